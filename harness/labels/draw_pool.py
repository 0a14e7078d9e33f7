"""Which documents to judge.

A pool has, for each drawn query, what any retriever ranks within the depth, without
what its audience has judged. `read_material` collects the rankings of results folders,
`draw_pool` draws, and `pool` writes the file.
"""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Literal, NamedTuple

from harness import records
from harness.dataset import Dataset
from harness.dataset.judgment import JUDGMENTS_FILE, Judgment, PairKey, read_judgments
from harness.identity import query_identity
from harness.labels.pool import (
    DEFAULT_POLICY,
    Pool,
    PoolDesign,
    PooledQuery,
    build_pool,
    build_pooled_query,
    shuffle_key,
)
from harness.records import Results, current_dataset
from harness.records.documents_file import KEPT_RANKS
from retrievers.errors import InputError, Problem
from retrievers.options.user_code import OBJECT_PREFIX
from retrievers.types import Query


@dataclass(frozen=True, slots=True)
class PoolOptions:
    """The options of a pool."""

    depth: int = 10
    """Number of documents that the material has of each ranking."""
    sample: int | None = None
    """Number of queries to draw; None: all, or as many as the next look needs."""
    seed: int = 0
    audience: Literal["human", "llm"] = "human"
    """Who will judge, people or models; pairs they have judged are left out."""
    policy: str = DEFAULT_POLICY
    """What judges read before they judge: which documents deserve which grade."""
    next_look: bool = False
    """Whether to draw what the next look, a planned interim analysis, needs.

    Then `sample` has no effect, and queries with labels count as drawn.
    """


@dataclass(frozen=True, slots=True)
class PoolMaterial:
    """The rankings of several results folders over the same documents."""

    dataset: Dataset
    queries: Mapping[str, Query]
    """The queries that any retriever has a ranking for, by id."""
    top_documents: Mapping[str, frozenset[str]]
    """Query -> documents that a retriever ranked within the depth."""
    planned_looks: tuple[int, ...] = ()
    """Number of queries at each look that the first folder's experiment plans."""


def draw_pool(
    material: PoolMaterial, options: PoolOptions, judgments: Iterable[Judgment] = ()
) -> Pool:
    """Draw a pool.

    With the same seed, a larger sample includes every query of a smaller one. Of equal
    queries, one is drawn: see `distinct_queries`.

    Args:
        material: rankings and texts.
        options: the options.
        judgments: existing judgments; pairs that the audience has judged are excluded.

    Raises:
        InputError: the sample is empty or larger than the number of queries; no look is
            left, or all queries are labelled, if the next look is drawn; or nothing is
            left to judge.
    """
    sample = _sample_queries(material, options)
    judged_pairs = _judged_pairs(judgments, options)
    documents_by_query: dict[str, list[str]] = {}
    for query_id in sample.order[sample.labelled : sample.size]:
        pairs = {(query_id, id_) for id_ in material.top_documents[query_id]}
        documents = [document for _, document in pairs - judged_pairs]
        documents_by_query[query_id] = _shuffle(documents, query_id, options.seed)
    population = len(sample.order)
    inclusion = sample.size / population
    queries = build_pooled_queries(material, documents_by_query, inclusion)
    if not queries:
        raise InputError(_nothing_to_judge(has_judgments=bool(judged_pairs)))
    design = PoolDesign(
        depth=options.depth,
        seed=options.seed,
        population=population,
        sampled=sample.size - sample.labelled,
        audience=options.audience,
    )
    return build_pool(options.policy, design, queries)


class _QuerySample(NamedTuple):
    """The queries that a pool is drawn from, in an order whose beginning is drawn."""

    order: Sequence[str]
    """Ids of all queries without duplicates; for a look, those with labels first."""
    labelled: int
    """How many at the beginning have labels: they are drawn, but not judged again."""
    size: int
    """How many are drawn, with those that have labels."""


def _sample_queries(material: PoolMaterial, options: PoolOptions) -> _QuerySample:
    """Return the sample of queries.

    Raises:
        InputError: the sample is empty or larger than the number of queries; or no look
            is left, or no query is without labels.
    """
    if options.next_look:
        return _sample_for_look(material, options.seed)
    candidates = distinct_queries(material.queries, options.seed)
    population = len(candidates)
    size = population if options.sample is None else options.sample
    if not 1 <= size <= population:
        problem = f"{size} queries of {population:,} cannot be drawn"
        raise InputError(Problem("--sample", problem))
    return _QuerySample(candidates, labelled=0, size=size)


def _sample_for_look(material: PoolMaterial, seed: int) -> _QuerySample:
    """Return the queries with labels, and as many others as the next look lacks."""
    judged = {id_ for id_ in material.queries if _is_judged(material, id_)}
    candidates = distinct_queries(material.queries, seed, first=judged)
    labelled = [query_id for query_id in candidates if query_id in judged]
    scored = [query_id for query_id in labelled if _is_scored(material, query_id)]
    look = _next_look(material.planned_looks, len(scored))
    missing = _queries_to_label(look - len(scored), len(scored), len(labelled))
    unlabelled = [query_id for query_id in candidates if query_id not in judged]
    population = len(candidates)
    if not unlabelled:
        problem = f"all {population:,} queries are labelled"
        remedy = "harness run shows the verdict"
        if population < look:
            remedy = "add queries to the data set, and run it again"
        raise InputError(Problem("--next-look", problem, remedy))
    size = min(len(labelled) + missing, population)
    return _QuerySample(candidates, len(labelled), size)


def _judged_pairs(judgments: Iterable[Judgment], options: PoolOptions) -> set[PairKey]:
    """Return the pairs that the audience of a pool has judged.

    That is in the first round: the second repeats pairs of it.
    """
    return {
        judgment.key
        for judgment in judgments
        if judgment.kind == options.audience and judgment.round == 1
    }


def _is_judged(material: PoolMaterial, query_id: str) -> bool:
    """Whether a query has labels, also if no document is relevant."""
    labels = material.dataset.labels.get(query_id)
    return labels is not None and labels.judged


def _is_scored(material: PoolMaterial, query_id: str) -> bool:
    """Whether a query has a relevant document: without one it has no score."""
    labels = material.dataset.labels.get(query_id)
    return labels is not None and bool(labels.relevant)


def _queries_to_label(missing: int, scored: int, labelled: int) -> int:
    """Return how many queries to label, at the share that was scored so far.

    Args:
        missing: the scored queries that the next look lacks.
        scored: of the labelled queries, how many have a score.
        labelled: the queries with labels.

    >>> _queries_to_label(8, 22, 30)
    11
    >>> _queries_to_label(21, 7, 10)
    30
    """
    return math.ceil(Fraction(missing * labelled, scored)) if scored else missing


def _next_look(planned_looks: Sequence[int], scored: int) -> int:
    """Return the number of scored queries at the next planned look.

    Raises:
        InputError: no look is planned, or all are done.
    """
    if not planned_looks:
        remedy = (
            "declare looks = { queries = [30, 60, 100] } "
            "under [statistics] of the experiment, and run it"
        )
        raise InputError(Problem("--next-look", "no look is planned", remedy))
    for look in planned_looks:
        if look > scored:
            return look
    last_look = f"the last look is planned at {planned_looks[-1]:,}"
    problem = f"{scored:,} queries are scored, and {last_look}"
    raise InputError(Problem("--next-look", problem, "harness run shows the verdict"))


def _nothing_to_judge(*, has_judgments: bool) -> Problem:
    """Return why a pool is empty: all was judged before, or nothing was found."""
    if has_judgments:
        remedy = "use a larger --sample or --depth"
        return Problem("", "nothing is left to judge", remedy)
    return Problem("", "no retriever found a document of the data set")


def distinct_queries(
    queries: Mapping[str, Query], seed: int, first: Collection[str] = ()
) -> list[str]:
    """Return the ids of queries in the order of a seed, without duplicates.

    Of queries with an equal history that differ only in case and white space, the first
    one is returned: a duplicate would be judged twice, and count as two queries.

    Args:
        queries: by id.
        seed: of the order.
        first: ids that come before all others.
    """
    first_ids: dict[tuple[str, ...], str] = {}
    for query_id in sorted(
        queries, key=lambda id_: (id_ not in first, shuffle_key(seed, id_))
    ):
        *history, text = queries[query_id].words
        words = (*history, " ".join(text.casefold().split()))
        first_ids.setdefault(words, query_id)
    return list(first_ids.values())


def _shuffle(documents: Iterable[str], query_id: str, seed: int) -> list[str]:
    return sorted(documents, key=lambda document: shuffle_key(seed, query_id, document))


def build_pooled_queries(
    material: PoolMaterial,
    documents_by_query: Mapping[str, Sequence[str]],
    inclusion: float,
) -> tuple[PooledQuery, ...]:
    """Return the lines of a pool: queries with their documents, in the given order.

    Queries without documents are omitted, and so are hits with unknown ids, which
    another retriever may return.
    """
    document_ids: set[str] = set()
    for documents in documents_by_query.values():
        document_ids.update(documents)
    texts = material.dataset.texts(document_ids)
    pooled_queries: list[PooledQuery] = []
    for query_id, documents in documents_by_query.items():
        known_documents = [texts[id_] for id_ in documents if id_ in texts]
        if known_documents:
            text = material.queries[query_id].text_with_history
            pooled_query = build_pooled_query(
                query_id, text, known_documents, inclusion
            )
            pooled_queries.append(pooled_query)
    return tuple(pooled_queries)


def read_material(folders: Sequence[Path], depth: int) -> PoolMaterial:
    """Read the rankings of results folders, and the texts of their data set.

    If the data set was in memory, the texts are those that the first folder stores.

    Raises:
        InputError: a folder cannot be read, the folders have different documents or
            different queries with the same id, or the data set has changed; or it was
            in memory, and the depth is below the ranks whose texts are stored.
    """
    runs = [records.read_results(folder) for folder in folders]
    first = runs[0]
    if not first.manifest.dataset.path.startswith(OBJECT_PREFIX):
        return collect_material(runs, current_dataset(first), depth)
    if depth > KEPT_RANKS:
        problem = f"has no texts below rank {KEPT_RANKS}: its documents were in memory"
        remedy = f"--depth {KEPT_RANKS} at most"
        raise InputError(Problem(str(first.folder), problem, remedy))
    return collect_material(runs, records.stored_dataset(first), depth)


def collect_material(
    runs: Sequence[Results], dataset: Dataset, depth: int
) -> PoolMaterial:
    """Return the rankings of results over one data set, with its texts.

    Raises:
        InputError: the results have different documents or different queries with the
            same id.
    """
    first_folder = runs[0].folder
    queries: dict[str, Query] = {}
    top_documents: dict[str, set[str]] = {}
    for run in runs:
        if run.manifest.dataset.corpus_digest != dataset.corpus_digest:
            problem = (
                f"has other documents than {first_folder}, or they have changed since"
            )
            remedy = "run the experiment again"
            raise InputError(Problem(str(run.folder), problem, remedy))
        for query_id, labelled_query in run.queries.items():
            query = labelled_query.query
            earlier = queries.setdefault(query_id, query)
            if query_identity(earlier) != query_identity(query):
                problem = f"has another query as {query_id!r} than {first_folder}"
                remedy = "use results of the same queries"
                raise InputError(Problem(str(run.folder), problem, remedy))
        for retriever in run.retrievers:
            for query_id, ranking in run.iter_rankings(retriever):
                documents = top_documents.setdefault(query_id, set())
                documents.update(ranking.doc_ids[:depth])
    searched = {id_: query for id_, query in queries.items() if id_ in top_documents}
    looks = runs[0].manifest.resolved.statistics.looks
    return PoolMaterial(
        dataset=dataset,
        queries=searched,
        top_documents={id_: frozenset(top_documents[id_]) for id_ in searched},
        planned_looks=looks.queries if looks else (),
    )


def read_known_judgments(
    material: PoolMaterial, paths: Sequence[Path]
) -> list[Judgment]:
    """Return the judgments of some files, then those in the data set's folder.

    Raises:
        InputError: a line is no judgment, or contradicts another of its judge.
    """
    all_paths = [*paths]
    dataset_path = Path(material.dataset.path) / JUDGMENTS_FILE
    if dataset_path.is_file():
        all_paths.append(dataset_path)
    return read_judgments(all_paths)

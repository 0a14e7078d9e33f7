"""Which documents to judge."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from harness import records
from harness.dataset import Dataset
from harness.dataset.judgment import JUDGMENTS_FILE, Judgment, PairKey, read_judgments
from harness.labels.pool import (
    DEFAULT_POLICY,
    Pool,
    PoolDesign,
    PooledQuery,
    build_pool,
    build_pooled_query,
    shuffle_key,
)
from harness.records import current_dataset
from retrievers.errors import InputError, Problem
from retrievers.types import Query


@dataclass(frozen=True, slots=True)
class PoolOptions:
    """The options of a pool."""

    depth: int = 10
    """Documents taken from each ranking."""
    sample: int | None = None
    """Queries to draw; by default all."""
    seed: int = 0
    audience: Literal["human", "llm"] = "human"
    """Whose judged pairs are excluded: people's, or models'."""
    policy: str = DEFAULT_POLICY
    next_look: bool = False
    """Draw as many queries as the next planned look needs in addition to the labelled ones."""


@dataclass(frozen=True, slots=True)
class PoolMaterial:
    """The rankings of several results folders over the same documents."""

    dataset: Dataset
    queries: Mapping[str, Query]
    """All queries."""
    top_documents: Mapping[str, frozenset[str]]
    """Query -> documents that a retriever ranked within the depth."""
    planned_looks: tuple[int, ...] = ()
    """Number of queries at each planned look of the experiment."""


def draw_pool(
    material: PoolMaterial, options: PoolOptions, judgments: Iterable[Judgment] = ()
) -> Pool:
    """Draw a pool; a larger sample with the same seed includes every query of a smaller one.

    Args:
        material: rankings and texts.
        options: options; of queries that differ only in case and white space, one is drawn.
        judgments: existing judgments, whose pairs are excluded.

    Raises:
        InputError: the sample is larger than the number of queries, or nothing is left to judge.
    """
    candidates = distinct_queries(material.queries, options.seed)
    population = len(candidates)
    labelled = []
    wanted = population if options.sample is None else options.sample
    if options.next_look:
        given = material.dataset.labels
        labelled = [
            query for query in candidates if query in given and given[query].judged
        ]
        candidates = [
            *labelled,
            *(query for query in candidates if query not in {*labelled}),
        ]
        wanted = _next_look(material.planned_looks, len(labelled))
    if not 1 <= wanted <= population:
        option = "--next-look" if options.next_look else "--sample"
        raise InputError(
            Problem(option, f"{wanted} queries of {population:,} cannot be drawn")
        )
    done = {
        one.key for one in judgments if one.kind == options.audience and one.round == 1
    }
    drawn_now = candidates[len(labelled) : wanted]
    asked = {
        query: _shuffled(query, material.top_documents[query], done, options.seed)
        for query in drawn_now
    }
    queries = build_pooled_queries(material, asked, wanted / population)
    if not queries:
        what = "nothing is left to judge" if done else "no retriever found a document"
        raise InputError(
            Problem("", what, "use a larger --sample or --depth" if done else "")
        )
    drawn = PoolDesign(
        depth=options.depth,
        seed=options.seed,
        population=population,
        sampled=wanted - len(labelled),
        audience=options.audience,
    )
    return build_pool(options.policy, drawn, queries)


def _next_look(planned: Sequence[int], labelled: int) -> int:
    """The number of queries of the next planned look; InputError if there is none."""
    if not planned:
        remedy = "declare looks = { queries = [30, 60, 100] } under [statistics] of the experiment, and run it"
        raise InputError(Problem("--next-look", "no look is planned", remedy))
    if (
        found := next((number for number in planned if number > labelled), None)
    ) is None:
        what = f"{labelled:,} queries are labelled, and the last look is planned at {planned[-1]:,}"
        raise InputError(Problem("--next-look", what, "harness run shows the verdict"))
    return found


def distinct_queries(queries: Mapping[str, Query], seed: int) -> list[str]:
    """The queries in the order of a seed; of those that differ only in case and white space, the first.

    A duplicate would be judged twice, and count as two queries.
    """
    first: dict[str, str] = {}
    for id_ in sorted(queries, key=lambda id_: shuffle_key(seed, id_)):
        first.setdefault(" ".join(queries[id_].text.casefold().split()), id_)
    return list(first.values())


def _shuffled(
    query: str, documents: frozenset[str], done: set[PairKey], seed: int
) -> list[str]:
    left = (document for document in documents if (query, document) not in done)
    return sorted(left, key=lambda document: shuffle_key(seed, query, document))


def build_pooled_queries(
    material: PoolMaterial,
    documents_by_query: Mapping[str, Sequence[str]],
    inclusion: float,
) -> tuple[PooledQuery, ...]:
    """The lines of a pool: queries with their documents in the given order; queries without documents are omitted.

    Hits with unknown ids, which another retriever may return, cannot be judged.
    """
    texts = material.dataset.texts(
        {
            document
            for documents in documents_by_query.values()
            for document in documents
        }
    )
    there = {
        query: [texts[id_] for id_ in documents if id_ in texts]
        for query, documents in documents_by_query.items()
    }
    return tuple(
        build_pooled_query(query, material.queries[query].text, documents, inclusion)
        for query, documents in there.items()
        if documents
    )


def read_material(folders: Sequence[Path], depth: int) -> PoolMaterial:
    """Read the rankings of results folders, and the texts of their data set.

    Raises:
        InputError: a folder cannot be read, the folders have different documents or different queries with the
            same id, or the data set has changed.
    """
    runs = [records.read_results(folder) for folder in folders]
    dataset = current_dataset(runs[0])
    queries: dict[str, Query] = {}
    tops: dict[str, set[str]] = {}
    for results in runs:
        if results.manifest.dataset.corpus_digest != dataset.corpus_digest:
            what = (
                f"has other documents than {runs[0].folder}, or they have changed since"
            )
            raise InputError(
                Problem(str(results.folder), what, "run the experiment again")
            )
        for id_, labelled in results.queries.items():
            if queries.setdefault(id_, labelled.query).text != labelled.query.text:
                what = f"has another query as {id_!r} than {runs[0].folder}"
                raise InputError(
                    Problem(
                        str(results.folder), what, "use results of the same queries"
                    )
                )
        for name in results.retrievers:
            for id_, ranking in results.iter_rankings(name):
                tops.setdefault(id_, set()).update(ranking.doc_ids[:depth])
    asked = {id_: query for id_, query in queries.items() if id_ in tops}
    planned = (runs[0].manifest.resolved.statistics.get("looks") or {}).get(
        "queries", ()
    )
    return PoolMaterial(
        dataset, asked, {id_: frozenset(tops[id_]) for id_ in asked}, tuple(planned)
    )


def read_known_judgments(
    material: PoolMaterial, paths: Sequence[Path]
) -> list[Judgment]:
    """The existing judgments: those of the given files, and those of the data set."""
    beside = Path(material.dataset.path) / JUDGMENTS_FILE
    return read_judgments([*paths, *([beside] if beside.is_file() else [])])

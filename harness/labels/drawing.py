"""What is drawn into a pool: the union of the top documents of every retriever.

The sample of questions, and the order of judging, follow from hashes of the seed and the ids alone.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from harness import records
from harness.dataset import Dataset
from harness.dataset.judgments import NAME, Judgment, PairKey, read_judgments
from harness.labels.pool import DEFAULT, DrawnPool, Pool, PooledQuery, pool_of, pooled_query, shuffled_place
from harness.records import dataset_of
from retrievers.errors import InputError, Problem
from retrievers.types import Query


@dataclass(frozen=True, slots=True)
class Drawing:
    """How a pool is to be drawn."""

    depth: int = 10
    """Documents of each ranking that are taken."""
    sample: int | None = None
    """Questions to draw; all of them if left out."""
    seed: int = 0
    audience: Literal["human", "llm"] = "human"
    """Whose earlier judgments are not asked for again: people's, or models'."""
    policy: str = DEFAULT
    next_look: bool = False
    """Draw as many questions as the next planned look lacks, beside those that are labelled."""


@dataclass(frozen=True, slots=True)
class FoundDocuments:
    """What several results folders over the same documents have found."""

    dataset: Dataset
    queries: Mapping[str, Query]
    """Every question that was asked."""
    tops: Mapping[str, frozenset[str]]
    """Question -> documents that some retriever ranked down to the depth."""
    planned: tuple[int, ...] = ()
    """Queries in all at each planned look of the experiment."""


def draw(material: FoundDocuments, drawing: Drawing, known: Iterable[Judgment] = ()) -> Pool:
    """Draw a pool; a larger sample with the same seed holds every question of a smaller one.

    Args:
        material: rankings and texts.
        drawing: how; of questions that are equal but for case and white space, one is drawn.
        known: judgments that were made already: their pairs are left out.

    Raises:
        InputError: the sample is larger than the number of questions, or nothing is left to be judged.
    """
    questions = distinct(material.queries, drawing.seed)
    population = len(questions)
    labelled = []
    wanted = population if drawing.sample is None else drawing.sample
    if drawing.next_look:
        given = material.dataset.labels
        labelled = [query for query in questions if query in given and given[query].judged]
        questions = [*labelled, *(query for query in questions if query not in {*labelled})]
        wanted = _next_look(material.planned, len(labelled))
    if not 1 <= wanted <= population:
        option = "--next-look" if drawing.next_look else "--sample"
        raise InputError(Problem(option, f"{wanted} questions of {population:,} cannot be drawn"))
    done = {one.key for one in known if one.kind == drawing.audience and one.round == 1}
    drawn_now = questions[len(labelled) : wanted]
    asked = {query: _shuffled(query, material.tops[query], done, drawing.seed) for query in drawn_now}
    queries = pooled(material, asked, wanted / population)
    if not queries:
        what = "nothing is left to be judged" if done else "no retriever found a document"
        raise InputError(Problem("", what, "a larger --sample or --depth asks for more" if done else ""))
    drawn = DrawnPool(depth=drawing.depth, seed=drawing.seed, population=population, sampled=wanted - len(labelled),
                  audience=drawing.audience)  # fmt: skip
    return pool_of(drawing.policy, drawn, queries)


def _next_look(planned: Sequence[int], labelled: int) -> int:
    """The number of queries of the first planned look that is not reached; InputError where there is none."""
    if not planned:
        remedy = "declare looks = { queries = [30, 60, 100] } under [statistics] of the experiment, and run it"
        raise InputError(Problem("--next-look", "no look is planned", remedy))
    if (found := next((number for number in planned if number > labelled), None)) is None:
        what = f"{labelled:,} queries are labelled, and the last look is planned at {planned[-1]:,}"
        raise InputError(Problem("--next-look", what, "harness run says what they decide"))
    return found


def distinct(queries: Mapping[str, Query], seed: int) -> list[str]:
    """The questions in the order that a seed draws; of those that differ in case and white space alone, the first.

    Nobody should judge the same question twice, and a sample that holds it twice counts one query as two.
    """
    first: dict[str, str] = {}
    for id_ in sorted(queries, key=lambda id_: shuffled_place(seed, id_)):
        first.setdefault(" ".join(queries[id_].text.casefold().split()), id_)
    return list(first.values())


def _shuffled(query: str, documents: frozenset[str], done: set[PairKey], seed: int) -> list[str]:
    left = (document for document in documents if (query, document) not in done)
    return sorted(left, key=lambda document: shuffled_place(seed, query, document))


def pooled(material: FoundDocuments, asked: Mapping[str, Sequence[str]], inclusion: float) -> tuple[PooledQuery, ...]:
    """The lines of a pool: questions with their documents in the given order, those without any left out.

    Hits that are not documents of the data set, as another system may give them, cannot be judged.
    """
    texts = material.dataset.texts({document for documents in asked.values() for document in documents})
    there = {query: [texts[id_] for id_ in documents if id_ in texts] for query, documents in asked.items()}
    return tuple(
        pooled_query(query, material.queries[query].text, documents, inclusion)
        for query, documents in there.items()
        if documents
    )


def gather(folders: Sequence[Path], depth: int) -> FoundDocuments:
    """Read the rankings of results folders, and the texts of their data set.

    Raises:
        InputError: a folder cannot be read, the folders are over different documents or ask other questions under
            the same id, or the data set is no longer what it was.
    """
    runs = [records.read(folder) for folder in folders]
    dataset = dataset_of(runs[0])
    queries: dict[str, Query] = {}
    tops: dict[str, set[str]] = {}
    for results in runs:
        if results.manifest.dataset.corpus_digest != dataset.corpus_digest:
            what = f"is over other documents than {runs[0].folder}, or they have changed since"
            raise InputError(Problem(str(results.folder), what, "run the experiment again"))
        for id_, labelled in results.queries.items():
            if queries.setdefault(id_, labelled.query).text != labelled.query.text:
                what = f"asks another question as {id_!r} than {runs[0].folder}"
                raise InputError(Problem(str(results.folder), what, "pool results of the same questions"))
        for name in results.retrievers:
            for id_, ranking in results.answers(name):
                tops.setdefault(id_, set()).update(ranking.doc_ids[:depth])
    asked = {id_: query for id_, query in queries.items() if id_ in tops}
    planned = (runs[0].manifest.resolved.statistics.get("looks") or {}).get("queries", ())
    return FoundDocuments(dataset, asked, {id_: frozenset(tops[id_]) for id_ in asked}, tuple(planned))


def known_judgments(material: FoundDocuments, paths: Sequence[Path]) -> list[Judgment]:
    """The judgments that were made already: of the named files, and those beside the data set's queries."""
    beside = Path(material.dataset.path) / NAME
    return read_judgments([*paths, *([beside] if beside.is_file() else [])])

"""A pool, the union of the top documents of every retriever: drawn, written and read.

The first line of `pool.jsonl` describes the pool (digest, drawing, policy); each further line is a query with its
documents, in the order of judging. The sample of queries and the order depend only on hashes of the seed and the ids.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

from pydantic import Field

from harness import records
from harness.dataset import Dataset
from harness.dataset.judgments import (
    NAME,
    Design,
    Judgment,
    PairKey,
    read_judgments,
    text_digest,
)
from harness.dataset.rows import read_jsonl, read_text
from harness.dataset.source import Findings
from harness.records import dataset_of
from retrievers.errors import InputError, Problem
from retrievers.opening import text_file, writing
from retrievers.options import Strict, checked
from retrievers.types import Document, Query

GRADE_WORDS = {
    0: "nothing to do with the question",
    1: "related, but does not answer it",
    2: "answers it in part, or the answer is unclear or hidden among other things",
    3: "dedicated to the question and answers it",
}
"""The four grades of TREC's passage tracks, in other words."""

CANNOT_TELL = " Where you cannot tell, skip the document and write a note."
"""For people only: the reply of a model is always a grade."""
DEFAULT = f"""\
Somebody typed the question into a search box. Grade each document by how far it would help that person.

Judge only what the document says, not how well it is written, how long it is, or whether you like it.
A document that shares words with the question and serves another purpose gets grade 0 or 1.
Read spelling mistakes as they were meant.{CANNOT_TELL}"""
VERSION = 1


def read_policy(path: Path | None) -> str:
    """Read the labelling policy of a file; the default one without a file.

    Raises:
        InputError: the file cannot be read.
    """
    if path is None:
        return DEFAULT
    return read_text(path).strip()


def digest_of(*parts: str) -> str:
    """Return a short digest of texts, such as a policy or a prompt.

    >>> digest_of("a", "b") == digest_of("ab")
    False
    """
    return hashlib.blake2b(
        "\0".join(parts).encode("utf-8", "surrogatepass"), digest_size=8
    ).hexdigest()


class PooledDocument(Strict):
    """One document to judge."""

    id: str
    title: str
    text: str
    digest: str
    """Digest of the query, title and text."""


class PooledQuery(Strict):
    """One query with the documents to judge."""

    query_id: str
    query: str
    inclusion: float = Field(gt=0, le=1)
    """The sampling probability of the query."""
    documents: tuple[PooledDocument, ...] = Field(strict=False)


def pooled_query(
    query_id: str, query: str, documents: Iterable[Document], inclusion: float = 1.0
) -> PooledQuery:
    """Make one line of a pool: a query with its documents and their digests."""
    shown = tuple(
        PooledDocument(
            id=one.id, title=one.title, text=one.text, digest=text_digest(query, one)
        )
        for one in documents
    )
    return PooledQuery(
        query_id=query_id, query=query, inclusion=inclusion, documents=shown
    )


class DrawnPool(Strict):
    """How a pool was drawn."""

    depth: int
    """Documents taken from each ranking."""
    seed: int
    population: int
    """Queries to draw from."""
    sampled: int
    """Queries that were drawn, including those without a document to judge."""
    design: Design = "sample"
    audience: Literal["human", "llm"] = "human"
    """Whose judged pairs were excluded."""


class Pool(NamedTuple):
    """The queries with the documents to judge."""

    digest: str
    policy: str
    drawn: DrawnPool
    queries: tuple[PooledQuery, ...]

    @property
    def pairs(self) -> int:
        """Number of documents to judge, over all queries."""
        return sum(len(query.documents) for query in self.queries)


def pool_of(policy: str, drawn: DrawnPool, queries: tuple[PooledQuery, ...]) -> Pool:
    """Make a pool with its digest."""
    return Pool(_digest(policy, drawn, queries), policy, drawn, queries)


def lines_of(pool: Pool) -> Iterator[str]:
    """The lines of a pool's file."""
    head = {
        "pool": VERSION,
        "digest": pool.digest,
        "drawn": pool.drawn.model_dump(),
        "policy": pool.policy,
    }
    for row in (head, *(query.model_dump() for query in pool.queries)):
        yield json.dumps(row, ensure_ascii=False) + "\n"


def write_pool(path: Path, pool: Pool) -> None:
    """Write a pool; InputError if the file exists, or cannot be written."""
    write_new(
        path, lines_of(pool), "labels may belong to it; name another file with --output"
    )


def write_new(
    path: Path, lines: Iterable[str], remedy: str = "name another file"
) -> None:
    """Write a new file.

    Raises:
        InputError: it exists, or cannot be written.
    """
    with writing(path, remedy), text_file(path, "x") as file:
        file.writelines(lines)


def check_new(path: Path) -> None:
    """Check that a file can be written before any paid request.

    Raises:
        InputError: it exists, or its folder is missing.
    """
    if path.exists() or path.is_symlink():
        raise InputError(Problem(str(path), "already exists", "name another file"))
    if not path.parent.is_dir():
        raise InputError(
            Problem(
                str(path),
                "cannot be written: the folder does not exist",
                f"make {path.parent}",
            )
        )


def read_pool(path: Path) -> Pool:
    """Read a pool.

    Raises:
        InputError: it is not a pool, is damaged, or was changed after it was made.
    """
    problems = Findings()
    rows = list(read_jsonl(path, problems))
    if problems:
        raise InputError(problems.problems)
    if not rows or rows[0][1].get("pool") != VERSION:
        what = (
            "is not a pool"
            if not rows or "pool" not in rows[0][1]
            else f"is not a pool of version {VERSION}"
        )
        raise InputError(Problem(str(path), what, "make one with harness pool RESULTS"))
    head = rows[0][1]
    try:
        drawn = checked(DrawnPool, head.get("drawn") or {}, f"{rows[0][0]}: drawn")
        queries = tuple(
            checked(PooledQuery, row, str(place)) for place, row in rows[1:]
        )
    except InputError as error:
        remedy = "the pool is damaged: make a new one with harness pool"
        raise InputError(
            [one._replace(remedy=remedy) for one in error.problems]
        ) from None
    pool = pool_of(str(head.get("policy", "")), drawn, queries)
    if pool.digest != head.get("digest"):
        raise InputError(
            Problem(
                str(path),
                "was changed after it was made",
                "make a new one with harness pool",
            )
        )
    return pool


def shuffled_place(seed: int, *ids: str) -> bytes:
    """The sort key of a query, or of a document of a query, for a seed."""
    return hashlib.sha256(
        "\0".join((str(seed), *ids)).encode("utf-8", "surrogatepass")
    ).digest()


def _digest(policy: str, drawn: DrawnPool, queries: tuple[PooledQuery, ...]) -> str:
    whole = hashlib.sha256()
    for row in (policy, drawn.model_dump(), *(query.model_dump() for query in queries)):
        whole.update(
            json.dumps(row, ensure_ascii=False, sort_keys=True).encode(
                "utf-8", "surrogatepass"
            )
            + b"\n"
        )
    return whole.hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Drawing:
    """The options of a pool."""

    depth: int = 10
    """Documents taken from each ranking."""
    sample: int | None = None
    """Queries to draw; by default all."""
    seed: int = 0
    audience: Literal["human", "llm"] = "human"
    """Whose judged pairs are excluded: people's, or models'."""
    policy: str = DEFAULT
    next_look: bool = False
    """Draw as many queries as the next planned look needs in addition to the labelled ones."""


@dataclass(frozen=True, slots=True)
class FoundDocuments:
    """The rankings of several results folders over the same documents."""

    dataset: Dataset
    queries: Mapping[str, Query]
    """All queries."""
    tops: Mapping[str, frozenset[str]]
    """Query -> documents that a retriever ranked within the depth."""
    planned: tuple[int, ...] = ()
    """Number of queries at each planned look of the experiment."""


def draw(
    material: FoundDocuments, drawing: Drawing, known: Iterable[Judgment] = ()
) -> Pool:
    """Draw a pool; a larger sample with the same seed includes every query of a smaller one.

    Args:
        material: rankings and texts.
        drawing: options; of queries that differ only in case and white space, one is drawn.
        known: existing judgments, whose pairs are excluded.

    Raises:
        InputError: the sample is larger than the number of queries, or nothing is left to judge.
    """
    candidates = distinct(material.queries, drawing.seed)
    population = len(candidates)
    labelled = []
    wanted = population if drawing.sample is None else drawing.sample
    if drawing.next_look:
        given = material.dataset.labels
        labelled = [
            query for query in candidates if query in given and given[query].judged
        ]
        candidates = [
            *labelled,
            *(query for query in candidates if query not in {*labelled}),
        ]
        wanted = _next_look(material.planned, len(labelled))
    if not 1 <= wanted <= population:
        option = "--next-look" if drawing.next_look else "--sample"
        raise InputError(
            Problem(option, f"{wanted} queries of {population:,} cannot be drawn")
        )
    done = {one.key for one in known if one.kind == drawing.audience and one.round == 1}
    drawn_now = candidates[len(labelled) : wanted]
    asked = {
        query: _shuffled(query, material.tops[query], done, drawing.seed)
        for query in drawn_now
    }
    queries = pooled(material, asked, wanted / population)
    if not queries:
        what = "nothing is left to judge" if done else "no retriever found a document"
        raise InputError(
            Problem("", what, "use a larger --sample or --depth" if done else "")
        )
    drawn = DrawnPool(
        depth=drawing.depth,
        seed=drawing.seed,
        population=population,
        sampled=wanted - len(labelled),
        audience=drawing.audience,
    )
    return pool_of(drawing.policy, drawn, queries)


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


def distinct(queries: Mapping[str, Query], seed: int) -> list[str]:
    """The queries in the order of a seed; of those that differ only in case and white space, the first.

    A duplicate would be judged twice, and count as two queries.
    """
    first: dict[str, str] = {}
    for id_ in sorted(queries, key=lambda id_: shuffled_place(seed, id_)):
        first.setdefault(" ".join(queries[id_].text.casefold().split()), id_)
    return list(first.values())


def _shuffled(
    query: str, documents: frozenset[str], done: set[PairKey], seed: int
) -> list[str]:
    left = (document for document in documents if (query, document) not in done)
    return sorted(left, key=lambda document: shuffled_place(seed, query, document))


def pooled(
    material: FoundDocuments, asked: Mapping[str, Sequence[str]], inclusion: float
) -> tuple[PooledQuery, ...]:
    """The lines of a pool: queries with their documents in the given order; queries without documents are omitted.

    Hits with unknown ids, which another retriever may return, cannot be judged.
    """
    texts = material.dataset.texts(
        {document for documents in asked.values() for document in documents}
    )
    there = {
        query: [texts[id_] for id_ in documents if id_ in texts]
        for query, documents in asked.items()
    }
    return tuple(
        pooled_query(query, material.queries[query].text, documents, inclusion)
        for query, documents in there.items()
        if documents
    )


def gather(folders: Sequence[Path], depth: int) -> FoundDocuments:
    """Read the rankings of results folders, and the texts of their data set.

    Raises:
        InputError: a folder cannot be read, the folders have different documents or different queries with the
            same id, or the data set has changed.
    """
    runs = [records.read(folder) for folder in folders]
    dataset = dataset_of(runs[0])
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
            for id_, ranking in results.answers(name):
                tops.setdefault(id_, set()).update(ranking.doc_ids[:depth])
    asked = {id_: query for id_, query in queries.items() if id_ in tops}
    planned = (runs[0].manifest.resolved.statistics.get("looks") or {}).get(
        "queries", ()
    )
    return FoundDocuments(
        dataset, asked, {id_: frozenset(tops[id_]) for id_ in asked}, tuple(planned)
    )


def known_judgments(material: FoundDocuments, paths: Sequence[Path]) -> list[Judgment]:
    """The existing judgments: those of the given files, and those of the data set."""
    beside = Path(material.dataset.path) / NAME
    return read_judgments([*paths, *([beside] if beside.is_file() else [])])

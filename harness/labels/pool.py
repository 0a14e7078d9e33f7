"""A pool as a file.

The first line of `pool.jsonl` describes the pool (digest, drawing, policy); each further line is a query with its
documents, in the order of judging. The sample of queries and the order depend only on hashes of the seed and the ids.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal, NamedTuple

from pydantic import Field

from harness.dataset.judgment import JudgmentDesign, judged_text_digest
from harness.dataset.read_problems import ReadProblems
from harness.dataset.text_rows import read_json_lines, read_text
from retrievers.errors import InputError, Problem
from retrievers.files.text_files import explain_write_errors, open_text_file
from retrievers.options.tables import StrictTable, validated
from retrievers.types import Document

GRADE_MEANINGS = {
    0: "nothing to do with the question",
    1: "related, but does not answer it",
    2: "answers it in part, or the answer is unclear or hidden among other things",
    3: "dedicated to the question and answers it",
}
"""The four grades of TREC's passage tracks, in other words."""

SKIP_INSTRUCTION = " Where you cannot tell, skip the document and write a note."
"""For people only: the reply of a model is always a grade."""
DEFAULT_POLICY = f"""\
Somebody typed the question into a search box. Grade each document by how far it would help that person.

Judge only what the document says, not how well it is written, how long it is, or whether you like it.
A document that shares words with the question and serves another purpose gets grade 0 or 1.
Read spelling mistakes as they were meant.{SKIP_INSTRUCTION}"""
POOL_VERSION = 1


def read_policy(path: Path | None) -> str:
    """Read the labelling policy of a file; the default one without a file.

    Raises:
        InputError: the file cannot be read.
    """
    if path is None:
        return DEFAULT_POLICY
    return read_text(path).strip()


def digest_texts(*parts: str) -> str:
    """Return a short digest of texts, such as a policy or a prompt.

    >>> digest_texts("a", "b") == digest_texts("ab")
    False
    """
    return hashlib.blake2b(
        "\0".join(parts).encode("utf-8", "surrogatepass"), digest_size=8
    ).hexdigest()


class PooledDocument(StrictTable):
    """One document to judge."""

    id: str
    title: str
    text: str
    digest: str
    """Digest of the query, title and text."""


class PooledQuery(StrictTable):
    """One query with the documents to judge."""

    query_id: str
    query: str
    inclusion: float = Field(gt=0, le=1)
    """The sampling probability of the query."""
    documents: tuple[PooledDocument, ...] = Field(strict=False)


def build_pooled_query(
    query_id: str, query: str, documents: Iterable[Document], inclusion: float = 1.0
) -> PooledQuery:
    """Make one line of a pool: a query with its documents and their digests."""
    shown = tuple(
        PooledDocument(
            id=one.id,
            title=one.title,
            text=one.text,
            digest=judged_text_digest(query, one),
        )
        for one in documents
    )
    return PooledQuery(
        query_id=query_id, query=query, inclusion=inclusion, documents=shown
    )


class PoolDesign(StrictTable):
    """How a pool was drawn."""

    depth: int
    """Documents taken from each ranking."""
    seed: int
    population: int
    """Queries to draw from."""
    sampled: int
    """Queries that were drawn, including those without a document to judge."""
    design: JudgmentDesign = "sample"
    audience: Literal["human", "llm"] = "human"
    """Whose judged pairs were excluded."""


class Pool(NamedTuple):
    """The queries with the documents to judge."""

    digest: str
    policy: str
    drawn: PoolDesign
    queries: tuple[PooledQuery, ...]

    @property
    def pairs(self) -> int:
        """Number of documents to judge, over all queries."""
        return sum(len(query.documents) for query in self.queries)


def build_pool(
    policy: str, drawn: PoolDesign, queries: tuple[PooledQuery, ...]
) -> Pool:
    """Make a pool with its digest."""
    return Pool(_digest(policy, drawn, queries), policy, drawn, queries)


def pool_lines(pool: Pool) -> Iterator[str]:
    """The lines of a pool's file."""
    head = {
        "pool": POOL_VERSION,
        "digest": pool.digest,
        "drawn": pool.drawn.model_dump(),
        "policy": pool.policy,
    }
    for row in (head, *(query.model_dump() for query in pool.queries)):
        yield json.dumps(row, ensure_ascii=False) + "\n"


def write_pool(path: Path, pool: Pool) -> None:
    """Write a pool; InputError if the file exists, or cannot be written."""
    write_new_file(
        path,
        pool_lines(pool),
        "labels may belong to it; name another file with --output",
    )


def write_new_file(
    path: Path, lines: Iterable[str], remedy: str = "name another file"
) -> None:
    """Write a new file.

    Raises:
        InputError: it exists, or cannot be written.
    """
    with explain_write_errors(path, remedy), open_text_file(path, "x") as file:
        file.writelines(lines)


def check_new_file(path: Path) -> None:
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
    problems = ReadProblems()
    rows = list(read_json_lines(path, problems))
    if problems:
        raise InputError(problems.problems)
    if not rows or rows[0][1].get("pool") != POOL_VERSION:
        what = (
            "is not a pool"
            if not rows or "pool" not in rows[0][1]
            else f"is not a pool of version {POOL_VERSION}"
        )
        raise InputError(Problem(str(path), what, "make one with harness pool RESULTS"))
    head = rows[0][1]
    try:
        drawn = validated(PoolDesign, head.get("drawn") or {}, f"{rows[0][0]}: drawn")
        queries = tuple(
            validated(PooledQuery, row, str(place)) for place, row in rows[1:]
        )
    except InputError as error:
        remedy = "the pool is damaged: make a new one with harness pool"
        raise InputError(
            [one._replace(remedy=remedy) for one in error.problems]
        ) from None
    pool = build_pool(str(head.get("policy", "")), drawn, queries)
    if pool.digest != head.get("digest"):
        raise InputError(
            Problem(
                str(path),
                "was changed after it was made",
                "make a new one with harness pool",
            )
        )
    return pool


def shuffle_key(seed: int, *ids: str) -> bytes:
    """The sort key of a query, or of a document of a query, for a seed."""
    return hashlib.sha256(
        "\0".join((str(seed), *ids)).encode("utf-8", "surrogatepass")
    ).digest()


def _digest(policy: str, drawn: PoolDesign, queries: tuple[PooledQuery, ...]) -> str:
    whole = hashlib.sha256()
    for row in (policy, drawn.model_dump(), *(query.model_dump() for query in queries)):
        whole.update(
            json.dumps(row, ensure_ascii=False, sort_keys=True).encode(
                "utf-8", "surrogatepass"
            )
            + b"\n"
        )
    return whole.hexdigest()[:16]

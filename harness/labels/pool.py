"""A pool as a file.

A pool is the queries and documents that somebody is to judge. The first line of
`pool.jsonl` describes it (digest, how it was drawn, policy for judges); each further
line is a query with its documents, in the order of judging. The digest covers all the
rest: a changed pool is refused. `draw_pool.draw_pool` draws queries and orders
documents by hashes of the seed and the ids (`shuffle_key`).
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
"""A sentence of the policy for people only.

`model_prompt` removes it: the reply of a model is always a grade.
"""
DEFAULT_POLICY = (
    "Somebody typed the question into a search box. "
    "Grade each document by how far it would help that person.\n"
    "\n"
    "Judge only what the document says, not how well it is written, "
    "how long it is, or whether you like it.\n"
    "A document that shares words with the question "
    "and serves another purpose gets grade 0 or 1.\n"
    f"Read spelling mistakes as they were meant.{SKIP_INSTRUCTION}"
)
POOL_VERSION = 1
"""Version of a pool's file; another one is refused."""
TEXT_DIGEST_BYTES = 8
"""Bytes of the digests of policies and prompts."""
POOL_DIGEST_LENGTH = 16
"""Hex digits of the digest by which judgments are matched to their pool."""


def read_policy(path: Path | None) -> str:
    """Read the policy (what judges read before they judge); by default ours.

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
    joined = "\0".join(parts).encode("utf-8", "surrogatepass")
    return hashlib.blake2b(joined, digest_size=TEXT_DIGEST_BYTES).hexdigest()


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
    """Its text, below the earlier turns of its conversation."""
    inclusion: float = Field(gt=0, le=1)
    """The probability that the query is in the sample."""
    documents: tuple[PooledDocument, ...] = Field(strict=False)
    """Not strict, since JSON has lists and no tuples."""


def build_pooled_query(
    query_id: str, query: str, documents: Iterable[Document], inclusion: float = 1.0
) -> PooledQuery:
    """Return one line of a pool: a query with its documents and their digests."""
    pooled_documents = tuple(
        PooledDocument(
            id=document.id,
            title=document.title,
            text=document.text,
            digest=judged_text_digest(query, document),
        )
        for document in documents
    )
    return PooledQuery(
        query_id=query_id,
        query=query,
        inclusion=inclusion,
        documents=pooled_documents,
    )


class PoolDesign(StrictTable):
    """How a pool was drawn; of disputes, or of drafts, depth and seed say nothing."""

    depth: int
    """Number of documents taken from each ranking."""
    seed: int
    """Seed of the sample of queries and of the order of documents."""
    population: int
    """Number of queries to draw from."""
    sampled: int
    """Number of queries drawn, including those without a document to judge.

    For --next-look without those that are labelled, which `inclusion` counts.
    """
    design: JudgmentDesign = "sample"
    """Why its pairs are judged.

    "sample" (also for --next-look), or "adjudication": people disagreed. "next" is of
    an earlier version, and its judgments are no labels.
    """
    audience: Literal["human", "llm"] = "human"
    """Who will judge; pairs they have judged are left out."""


class Pool(NamedTuple):
    """The queries with the documents to judge."""

    digest: str
    """Digest of all the rest, by which judgments are matched to their pool."""
    policy: str
    """What people and models read before they judge."""
    drawn: PoolDesign
    """How it was drawn."""
    queries: tuple[PooledQuery, ...]

    @property
    def pair_count(self) -> int:
        """Number of pairs of a query and a document to judge."""
        return sum(len(query.documents) for query in self.queries)


def build_pool(
    policy: str, drawn: PoolDesign, queries: tuple[PooledQuery, ...]
) -> Pool:
    """Return a pool with its digest."""
    return Pool(_pool_digest(policy, drawn, queries), policy, drawn, queries)


def pool_lines(pool: Pool) -> Iterator[str]:
    """Yield the lines of a pool's file."""
    head = {
        "pool": POOL_VERSION,
        "digest": pool.digest,
        "drawn": pool.drawn.model_dump(),
        "policy": pool.policy,
    }
    queries = [query.model_dump() for query in pool.queries]
    for row in (head, *queries):
        yield json.dumps(row, ensure_ascii=False) + "\n"


def write_pool(path: Path, pool: Pool) -> None:
    """Write a pool; InputError if the file exists, or cannot be written."""
    remedy = "labels may belong to it; name another file with --output"
    write_new_file(path, pool_lines(pool), remedy)


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
    """Check that a file can be written; called before paid requests.

    Raises:
        InputError: it exists, or its folder is missing.
    """
    if path.exists() or path.is_symlink():
        raise InputError(Problem(str(path), "already exists", "name another file"))
    if not path.parent.is_dir():
        problem = "cannot be written: the folder does not exist"
        raise InputError(Problem(str(path), problem, f"make {path.parent}"))


def read_pool(path: Path) -> Pool:
    """Read a pool.

    Raises:
        InputError: it is not a pool, is damaged, or was changed after it was made.
    """
    problems = ReadProblems()
    lines = list(read_json_lines(path, problems))
    if problems:
        raise InputError(problems.problems)
    head = lines[0].cells if lines else {}
    if head.get("pool") != POOL_VERSION:
        problem = "is not a pool"
        if "pool" in head:
            problem += f" of version {POOL_VERSION}"
        remedy = "make one with harness pool RESULTS"
        raise InputError(Problem(str(path), problem, remedy))
    try:
        drawn_path = f"{lines[0].location}: drawn"
        drawn = validated(PoolDesign, head.get("drawn") or {}, drawn_path)
        queries = tuple(
            validated(PooledQuery, line.cells, str(line.location)) for line in lines[1:]
        )
    except InputError as error:
        remedy = "the pool is damaged: make a new one with harness pool"
        raise InputError(
            [problem._replace(remedy=remedy) for problem in error.problems]
        ) from None
    pool = build_pool(str(head.get("policy", "")), drawn, queries)
    if pool.digest != head.get("digest"):
        problem = "was changed after it was made"
        remedy = "make a new one with harness pool"
        raise InputError(Problem(str(path), problem, remedy))
    return pool


def shuffle_key(seed: int, *ids: str) -> bytes:
    """Return a sort key that looks random, and is the same for a seed and ids."""
    joined = "\0".join((str(seed), *ids)).encode("utf-8", "surrogatepass")
    return hashlib.sha256(joined).digest()


def _pool_digest(
    policy: str, drawn: PoolDesign, queries: tuple[PooledQuery, ...]
) -> str:
    digest = hashlib.sha256()
    query_rows = [query.model_dump() for query in queries]
    for row in (policy, drawn.model_dump(), *query_rows):
        line = json.dumps(row, ensure_ascii=False, sort_keys=True) + "\n"
        digest.update(line.encode("utf-8", "surrogatepass"))
    return digest.hexdigest()[:POOL_DIGEST_LENGTH]

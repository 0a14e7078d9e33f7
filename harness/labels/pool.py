"""A pool: the questions and documents that are to be judged, and nothing of who retrieved them.

The first line of `pool.jsonl` says what the pool is (its digest, how it was drawn, the policy); each further line is a
question with its documents, in the order in which they are judged. That order, and the sample of questions, follow from
hashes of the seed and the ids alone.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from harness.dataset.judgments import Design
from harness.dataset.rows import read_jsonl
from harness.dataset.source import Place
from retrievers.errors import InputError, Problem

VERSION = 1


class _Line(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class PooledDocument(_Line):
    """One document that is to be judged."""

    id: str
    title: str
    text: str
    digest: str
    """Of what a judge reads: question, title and text."""


class PooledQuery(_Line):
    """One question with the documents that are to be judged for it."""

    query_id: str
    query: str
    inclusion: float = Field(gt=0, le=1)
    """The probability with which the question came into the pool."""
    documents: tuple[PooledDocument, ...] = Field(strict=False)


class DrawnPool(_Line):
    """How a pool was drawn."""

    depth: int
    """Documents of each ranking that were taken."""
    seed: int
    population: int
    """Questions that could have been drawn."""
    sampled: int
    """Questions that were drawn, those without an unjudged document too."""
    design: Design = "sample"
    audience: Literal["human", "llm"] = "human"
    """Whose judgments were not asked for again."""


class Pool(NamedTuple):
    """What is to be judged."""

    digest: str
    policy: str
    drawn: DrawnPool
    queries: tuple[PooledQuery, ...]

    @property
    def pairs(self) -> int:
        """How many documents are to be judged, over all questions."""
        return sum(len(query.documents) for query in self.queries)


def pool_of(policy: str, drawn: DrawnPool, queries: tuple[PooledQuery, ...]) -> Pool:
    """Make a pool, its digest computed."""
    return Pool(_digest(policy, drawn, queries), policy, drawn, queries)


def lines_of(pool: Pool) -> Iterator[str]:
    """The lines of a pool's file."""
    head = {"pool": VERSION, "digest": pool.digest, "drawn": pool.drawn.model_dump(), "policy": pool.policy}
    for row in (head, *(query.model_dump() for query in pool.queries)):
        yield json.dumps(row, ensure_ascii=False) + "\n"


def write_pool(path: Path, pool: Pool) -> None:
    """Write a pool.

    Raises:
        InputError: the file is there already, or cannot be written.
    """
    try:
        with path.open("x", encoding="utf-8", newline="\n") as file:
            file.writelines(lines_of(pool))
    except FileExistsError:
        remedy = "judgments may refer to it; name another file with --output"
        raise InputError(Problem(str(path), "is there already", remedy)) from None
    except OSError as error:
        raise InputError(Problem(str(path), f"cannot be written: {error.strerror}")) from None


def read_pool(path: Path) -> Pool:
    """Read a pool.

    Raises:
        InputError: it is none, cannot be read whole, or was changed after it was made.
    """
    problems: list[Problem] = []
    rows = list(read_jsonl(path, problems))
    if problems:
        raise InputError(problems)
    if not rows or rows[0][1].get("pool") != VERSION:
        what = "is no pool" if not rows or "pool" not in rows[0][1] else f"is not a pool of version {VERSION}"
        raise InputError(Problem(str(path), what, "harness pool RESULTS makes one"))
    head = rows[0][1]
    drawn = _checked(DrawnPool, head.get("drawn"), rows[0][0])
    queries = tuple(_checked(PooledQuery, row, place) for place, row in rows[1:])
    pool = pool_of(str(head.get("policy", "")), drawn, queries)
    if pool.digest != head.get("digest"):
        raise InputError(Problem(str(path), "was changed after it was made", "make it anew with harness pool"))
    return pool


def shuffled_place(seed: int, *ids: str) -> bytes:
    """The place of a question, or of a document of a question, in the order that a seed draws."""
    return hashlib.sha256("\0".join((str(seed), *ids)).encode("utf-8", "surrogatepass")).digest()


def _digest(policy: str, drawn: DrawnPool, queries: tuple[PooledQuery, ...]) -> str:
    whole = hashlib.sha256()
    for row in (policy, drawn.model_dump(), *(query.model_dump() for query in queries)):
        whole.update(json.dumps(row, ensure_ascii=False, sort_keys=True).encode("utf-8", "surrogatepass") + b"\n")
    return whole.hexdigest()[:16]


LineType = TypeVar("LineType", bound=_Line)


def _checked(model: type[LineType], row: Mapping[str, Any] | None, place: Place) -> LineType:
    try:
        return model.model_validate(row)
    except ValidationError as error:
        first = error.errors()[0]
        what = f"{'.'.join(map(str, first['loc'])) or 'the line'}: {first['msg'].lower()}"
        raise InputError(Problem(str(place), what, "the pool is damaged: make it anew with harness pool")) from None

"""The rows of labels.jsonl, documents.jsonl and rankings/*.jsonl: what each must hold, checked as it is read."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from functools import cache
from typing import Annotated, Any, NamedTuple, TypeVar

import numpy as np
from pydantic import BeforeValidator, Field, TypeAdapter, ValidationError
from pydantic_core import PydanticCustomError

from harness.dataset import Labels, LabelSource, references
from retrievers.types import Document, Query, Ranking

Row = TypeVar("Row")
Item = TypeVar("Item")
Listed = Annotated[list[Item], Field(fail_fast=True)]
"""A list of which the first fault is told alone: a line may have millions, which take half a kilobyte each."""


def _first_wrong(kind: type, called: str) -> BeforeValidator:
    """Tell the first wrong value of an object alone, for the same reason."""

    def check(value: object) -> object:
        for key, inner in value.items() if isinstance(value, dict) else ():
            if type(inner) is not kind:
                raise PydanticCustomError("wrong_value", "Input should be a valid {called} in {key}",
                                          {"called": called, "key": repr(key[:80])})  # fmt: skip
        return value

    return BeforeValidator(check)


Texts = Annotated[dict[str, str], _first_wrong(str, "string")]
Grades = Annotated[dict[str, int], _first_wrong(int, "integer")]


class LabelledQuery(NamedTuple):
    """One judged query with its labels as they were given."""

    query: Query
    labels: Labels


@dataclass(frozen=True, slots=True)
class _Claim:
    text: str
    vital: bool = True


@dataclass(frozen=True, slots=True)
class _LabelRow:
    query_id: str
    text: str
    fields: Texts
    reference: Listed[str] = field(default_factory=list)
    claims: Listed[str | _Claim] = field(default_factory=list)
    grades: Grades | None = None
    ranked: Listed[str] | None = None
    groups: Listed[Listed[str]] | None = None
    by: str = ""
    source: LabelSource = ""
    model: Grades = field(default_factory=dict)
    chosen: Grades = field(default_factory=dict)
    given: Annotated[dict[str, Grades], _first_wrong(dict, "object")] = field(default_factory=dict)
    inclusion: float = 1.0
    population: int = 0


@dataclass(frozen=True, slots=True)
class _DocumentRow:
    id: str
    title: str
    text: str


@dataclass(frozen=True, slots=True)
class _RankingRow:
    query_id: str
    doc_ids: Listed[str]
    scores: Listed[float]


def labelled(line: bytes) -> LabelledQuery:
    """Read a line of labels.jsonl; ValueError where it is none."""
    row = _read(_LabelRow, line)
    content = asdict(row)
    return LabelledQuery(
        Query(row.query_id, row.text, row.fields, references.from_json(content)), Labels.from_json(content)
    )


def document(line: bytes) -> Document:
    """Read a line of documents.jsonl; ValueError where it is none."""
    row = _read(_DocumentRow, line)
    return Document(row.id, row.title, row.text)


def ranking(line: bytes) -> tuple[str, Ranking]:
    """Read a line of rankings/*.jsonl: (query id, ranking); ValueError where it is none."""
    row = _read(_RankingRow, line)
    scores = np.asarray(row.scores, dtype=np.float64)
    scores.setflags(write=False)
    if len(scores) != len(row.doc_ids):
        raise ValueError(f"{len(row.doc_ids)} documents have {len(scores)} scores")
    if not np.isfinite(scores).all():
        raise ValueError("a score is not finite")
    if len(set(row.doc_ids)) < len(row.doc_ids):
        raise ValueError("a document stands twice")
    return row.query_id, Ranking(tuple(row.doc_ids), scores)


@cache
def _adapter(cls: Any) -> TypeAdapter[Any]:
    return TypeAdapter(cls)


def _read(cls: type[Row], line: bytes) -> Row:
    try:
        row: Row = _adapter(cls).validate_json(line, strict=True)  # type: ignore[arg-type]  # a class can be hashed
        return row
    except ValidationError as error:
        raise ValueError(first_fault(error)) from None


def first_fault(error: ValidationError) -> str:
    """Say what is wrong first, with its place, and how much more there is."""
    faults = error.errors(include_url=False, include_input=False)
    place = ".".join(map(str, faults[0]["loc"]))
    more = f" and {len(faults) - 1:,} more" if len(faults) > 1 else ""
    return f"{place}: {faults[0]['msg']}{more}" if place else f"{faults[0]['msg']}{more}"

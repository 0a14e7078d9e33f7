"""Judgments as they were given, one JSON object a line: who judged what, how, when, and as part of which pool.

The file is only ever appended to. It is read whole or not at all: a line that cannot be read, a grade outside the
scale, or a judge who contradicts himself is an error with its line.
"""

from __future__ import annotations

import hashlib
import json
import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from harness.dataset.rows import read_jsonl
from harness.dataset.source import Findings, Place, id_problem
from retrievers.errors import InputError
from retrievers.types import Document

NAME = "judgments.jsonl"
"""The file beside the queries whose judgments are the labels of a data set."""
GRADES = (0, 1, 2, 3)

JudgeKind = Literal["human", "llm"]
Design = Literal["sample", "next", "adjudication"]
PairKey = tuple[str, str]
"""Query id, document id."""


class Judgment(BaseModel):
    """What one judge said about one document for one query."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    query_id: str = Field(min_length=1)
    document_id: str = Field(min_length=1)
    grade: int | None = Field(ge=GRADES[0], le=GRADES[-1])
    """0 nothing to do with it, 1 related, 2 some answer, 3 dedicated to it; None where the judge gave none."""
    judge: str = Field(min_length=1, max_length=200)
    """The person's name, or the model's."""
    kind: JudgeKind
    pool: str
    """Digest of the pool that was judged."""
    text: str
    """Digest of what was read: the texts of the query and of the document."""
    prompt: str = ""
    """Digest of the policy that was shown, or of the prompt."""
    design: Design = "sample"
    """Why this pair was asked: as part of a random sample of the queries, because it could change the most ("next"), or
    because people disagreed ("adjudication")."""
    inclusion: float = Field(default=1.0, gt=0, le=1)
    """The probability with which this query came into the pool."""
    population: int = Field(default=0, ge=0)
    """How many queries could have been drawn into the pool; 0 where that was not written down."""
    asked: int = Field(default=0, ge=0)
    """How many documents of this query the pool asks for."""
    round: int = Field(default=1, ge=1)
    """1; 2 and more where the same judge was asked again, to measure the judge."""
    corrects: bool = False
    """Whether this replaces what the same judge said before in the same round."""
    seconds: float | None = Field(default=None, ge=0)
    note: str = ""
    at: str = ""
    """When, in ISO 8601."""

    @property
    def key(self) -> PairKey:
        """Which pair of query and document."""
        return self.query_id, self.document_id

    def line(self) -> str:
        """The judgment as one line of a file; what holds its default is left out."""
        row = {name: value for name, value in self if name == "grade" or value != type(self).model_fields[name].default}
        return json.dumps(row, ensure_ascii=False) + "\n"


Placed = tuple[Place, Judgment]


def text_digest(query: str, document: Document) -> str:
    """Return a digest of what a judge reads: the query, the title and the text.

    >>> text_digest("q", Document("1", "", "a")) == text_digest("q", Document("2", "", "a"))
    True
    """
    whole = json.dumps([query, document.title, document.text], ensure_ascii=False)
    return hashlib.blake2b(whole.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def read_judgments(paths: Iterable[Path]) -> list[Judgment]:
    """Read files of judgments as one, corrections applied and repeated lines dropped.

    Raises:
        InputError: with every problem: lines that are no judgment, and judges who contradict themselves.
    """
    seen = Findings()
    placed = [one for path in paths for one in read_file(path, seen)]
    settled = settle(placed, seen)
    if seen:
        raise InputError(seen.problems)
    return settled


def read_file(path: Path, problems: Findings) -> Iterator[Placed]:
    """Stream the judgments of one file; what cannot be read becomes a problem."""
    for place, row in read_jsonl(path, problems):
        if "pool" in row and "drawn" in row:  # the head of what `harness pool` writes
            what = "is a pool: what is to be judged, and nothing that was"
            problems.wrong(path, what, f"judge it first: harness judge {shlex.quote(str(path))}")
            return
        try:
            judgment = Judgment.model_validate(row)
        except ValidationError as error:
            problems.wrong(place, _complaint(error, row), "one judgment a line, as `harness judge` writes")
            continue
        if reason := id_problem(judgment.query_id) or id_problem(judgment.document_id):
            problems.wrong(place, f"an id {reason}")
        else:
            yield place, judgment


def settle(placed: Sequence[Placed], problems: Findings) -> list[Judgment]:
    """Keep what each judge said last about each pair in each round; a judge who contradicts himself is a problem."""
    kept: dict[tuple[str, str, str, str, int], Placed] = {}
    for place, judgment in placed:
        key = (*judgment.key, judgment.judge, judgment.design, judgment.round)
        first = kept.get(key)
        if first is None or judgment.corrects:
            kept[key] = place, judgment
        elif first[1].grade != judgment.grade:
            what = (
                f"{judgment.judge} graded document {judgment.document_id!r} for query {judgment.query_id!r} "
                f"{_shown(judgment.grade)}, and {_shown(first[1].grade)} at {first[0]}"
            )
            remedy = f'remove one of them, or mark the later with "corrects": true and name --corrects {judgment.judge}'
            problems.wrong(place, what, remedy)
    return [judgment for _, judgment in kept.values()]


def as_opinions(before: Iterable[Judgment], placed: Iterable[Placed], corrected: Collection[str]) -> Iterator[Placed]:
    """Yield judgments, with corrections of what somebody else may have sent as answers of a second round.

    A correction counts where its judge is named, and where a model gave no grade before; else anybody could write over
    another's grades with a file that bears his name.

    Args:
        before: what is there already, settled.
        placed: the lines that are to join it.
        corrected: judges whose corrections count.
    """
    known = {(*one.key, one.judge, one.design, one.round): one for one in before}
    for place, judgment in placed:
        key = (*judgment.key, judgment.judge, judgment.design, judgment.round)
        first = known.get(key)
        written_over = first is not None and (first.kind == "human" or first.grade is not None)
        if written_over and judgment.corrects and judgment.judge not in corrected:
            yield place, judgment.model_copy(update={"corrects": False, "round": judgment.round + 1})
        else:
            known[key] = judgment
            yield place, judgment


def _complaint(error: ValidationError, row: Mapping[str, Any]) -> str:
    first = error.errors()[0]
    key = ".".join(map(str, first["loc"]))
    if key == "grade" and "grade" in row:
        return f"grade {json.dumps(row['grade'], ensure_ascii=False)[:40]} is outside the scale of 0, 1, 2, 3 or null"
    if first["type"] == "missing":
        return f"{key!r} is missing"
    if first["type"] == "extra_forbidden":
        return f"unknown key {key!r}"
    return f"{key!r} cannot be read: {first['msg'].lower()}"


def _shown(grade: int | None) -> str:
    return "without a grade" if grade is None else f"as {grade}"

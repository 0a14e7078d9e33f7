"""One judgment."""

import hashlib
import json
import shlex
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from harness.dataset.read_problems import ReadProblems
from harness.dataset.source import SourceLocation
from harness.dataset.text_rows import read_json_lines
from harness.dataset.written_values import id_problem
from retrievers.errors import InputError
from retrievers.types import Document

JUDGMENTS_FILE = "judgments.jsonl"
"""The file beside the queries whose judgments are the labels of a data set."""
JUDGMENT_GRADES = (0, 1, 2, 3)

JudgeKind = Literal["human", "llm"]
JudgmentDesign = Literal["sample", "next", "adjudication"]
PairKey = tuple[str, str]
"""Query id, document id."""


class Judgment(BaseModel):
    """What one judge said about one document for one query."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    query_id: str = Field(min_length=1)
    document_id: str = Field(min_length=1)
    grade: int | None = Field(ge=JUDGMENT_GRADES[0], le=JUDGMENT_GRADES[-1])
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
    design: JudgmentDesign = "sample"
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
        row = {
            name: value
            for name, value in self
            if name == "grade" or value != type(self).model_fields[name].default
        }
        return json.dumps(row, ensure_ascii=False) + "\n"


PlacedJudgment = tuple[SourceLocation, Judgment]


def judged_text_digest(query: str, document: Document) -> str:
    """Return a digest of what a judge reads: the query, the title and the text.

    >>> judged_text_digest("q", Document("1", "", "a")) == judged_text_digest("q", Document("2", "", "a"))
    True
    """
    whole = json.dumps([query, document.title, document.text], ensure_ascii=False)
    return hashlib.blake2b(
        whole.encode("utf-8", "surrogatepass"), digest_size=8
    ).hexdigest()


def read_judgments(paths: Iterable[Path]) -> list[Judgment]:
    """Read files of judgments as one, corrections applied and repeated lines dropped.

    Raises:
        InputError: with every problem: lines that are no judgment, and judges who contradict themselves.
    """
    seen = ReadProblems()
    placed = [one for path in paths for one in read_judgment_file(path, seen)]
    settled = resolve_corrections(placed, seen)
    if seen:
        raise InputError(seen.problems)
    return settled


def read_judgment_file(path: Path, problems: ReadProblems) -> Iterator[PlacedJudgment]:
    """Stream the judgments of one file; what cannot be read becomes a problem."""
    for place, row in read_json_lines(path, problems):
        if "pool" in row and "drawn" in row:  # the head of what `harness pool` writes
            what = "is a pool: what is to be judged, and nothing that was"
            problems.add(
                path, what, f"judge it first: harness judge {shlex.quote(str(path))}"
            )
            return
        try:
            judgment = Judgment.model_validate(row)
        except ValidationError as error:
            problems.add(
                place,
                _complaint(error),
                "one judgment a line, as `harness judge` writes",
            )
            continue
        if reason := id_problem(judgment.query_id) or id_problem(judgment.document_id):
            problems.add(place, f"an id {reason}")
        else:
            yield place, judgment


def resolve_corrections(
    placed: Sequence[PlacedJudgment], problems: ReadProblems
) -> list[Judgment]:
    """Keep what each judge said last about each pair in each round; a judge who contradicts himself is a problem."""
    kept: dict[tuple[str, str, str, str, int], PlacedJudgment] = {}
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
            problems.add(place, what, remedy)
    return [judgment for _, judgment in kept.values()]


def _complaint(error: ValidationError) -> str:
    first = error.errors()[0]
    said = (
        "outside the scale of 0, 1, 2, 3 or null"
        if first["loc"] == ("grade",)
        else first["msg"].lower()
    )
    return f"{'.'.join(map(str, first['loc']))!r} cannot be read: {said}"


def _shown(grade: int | None) -> str:
    return "without a grade" if grade is None else f"as {grade}"

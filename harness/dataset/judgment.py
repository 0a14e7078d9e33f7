"""One judgment.

A line of a file says what a judge thinks of a document for a query, and from which pool
it came. Here lines are read, and corrections replace what they correct;
`merge_judgments` makes labels of the rest.
"""

import hashlib
import json
import shlex
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from harness.dataset.read_problems import ReadProblems
from harness.dataset.source import SourceLocation
from harness.dataset.text_rows import read_json_lines
from harness.dataset.written_values import id_problem
from harness.english import first_names, join_names
from retrievers.errors import InputError
from retrievers.remedy import Option, compose_remedy
from retrievers.types import Document

JUDGMENTS_FILE = "judgments.jsonl"
"""The file whose judgments replace the labels of a data set."""
JUDGMENT_GRADES = (0, 1, 2, 3)
DIGEST_BYTES = 8
"""Bytes of the digest of a query with a document, in a file of judgments."""

JudgeKind = Literal["human", "llm"]
JudgmentDesign = Literal["sample", "next", "adjudication"]
PairKey = tuple[str, str]
"""Query id, document id."""


class JudgmentKey(NamedTuple):
    """What a judge gives at most one grade: a pair, for one reason, in one round."""

    query_id: str
    document_id: str
    judge: str
    design: JudgmentDesign
    round: int


class Judgment(BaseModel):
    """The judgment of one judge about one document for one query."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    query_id: str = Field(min_length=1)
    document_id: str = Field(min_length=1)
    grade: int | None = Field(ge=JUDGMENT_GRADES[0], le=JUDGMENT_GRADES[-1])
    """0 nothing to do with it, 1 related, 2 some answer, 3 dedicated to it.

    None if the judge gave no grade.
    """
    judge: str = Field(min_length=1, max_length=200)
    """The person's name, or the model's."""
    kind: JudgeKind
    pool: str
    """Digest of the pool that was judged."""
    text: str
    """Digest of the texts of the query and of the document."""
    prompt: str = ""
    """Digest of the policy that people read, or of the model's prompt."""
    design: JudgmentDesign = "sample"
    """Why this pair was judged.

    It is part of a random sample of the queries ("sample"), it could change the most
    ("next"), or people disagreed about it ("adjudication").
    """
    inclusion: float = Field(default=1.0, gt=0, le=1)
    """The probability that this query came into the pool."""
    population: int = Field(default=0, ge=0)
    """How many queries could have come into the pool; 0 if unknown."""
    asked: int = Field(default=0, ge=0)
    """How many documents of this query the pool contains."""
    round: int = Field(default=1, ge=1)
    """1; more if the same judge judged again, to measure the judge."""
    corrects: bool = False
    """Whether this replaces an earlier judgment of the same judge and round."""
    seconds: float | None = Field(default=None, ge=0)
    """The time that the judge took; None if it was not measured."""
    note: str = ""
    at: str = ""
    """The time, in ISO 8601."""

    @property
    def key(self) -> PairKey:
        """The pair of query and document."""
        return self.query_id, self.document_id

    @property
    def round_key(self) -> JudgmentKey:
        """The pair with its judge, design and round."""
        return JudgmentKey(*self.key, self.judge, self.design, self.round)

    def line(self) -> str:
        """Return the judgment as one line of a file, without default values."""
        fields = type(self).model_fields
        row = {
            name: field
            for name, field in self
            if name == "grade" or field != fields[name].default
        }
        return json.dumps(row, ensure_ascii=False) + "\n"


class PlacedJudgment(NamedTuple):
    """A judgment with its location."""

    location: SourceLocation
    judgment: Judgment


def judged_text_digest(query: str, document: Document) -> str:
    """Return a digest of the texts that a judge reads: query, title and document.

    >>> first = judged_text_digest("q", Document("1", "", "a"))
    >>> first == judged_text_digest("q", Document("2", "", "a"))
    True
    """
    texts = json.dumps([query, document.title, document.text], ensure_ascii=False)
    encoded = texts.encode("utf-8", "surrogatepass")
    return hashlib.blake2b(encoded, digest_size=DIGEST_BYTES).hexdigest()


def read_judgments(paths: Iterable[Path]) -> list[Judgment]:
    """Return the judgments of several files, after corrections, without repeated ones.

    Raises:
        InputError: with every problem: lines that are not judgments, and judges who
            contradict themselves.
    """
    problems = ReadProblems()
    placed_judgments: list[PlacedJudgment] = []
    for path in paths:
        placed_judgments += read_judgment_file(path, problems)
    judgments = resolve_corrections(placed_judgments, problems)
    if problems:
        raise InputError(problems.problems)
    return judgments


def read_judgment_file(path: Path, problems: ReadProblems) -> Iterator[PlacedJudgment]:
    """Yield the judgments of one file; any other line becomes a problem.

    A pool is one problem: the rest of its file is not read.
    """
    for location, row in read_json_lines(path, problems):
        if "pool" in row and "drawn" in row:  # the first line of a pool
            problem = "is a pool: what is to be judged, and nothing that was"
            remedy = f"judge it first: harness judge {shlex.quote(str(path))}"
            problems.add(path, problem, remedy)
            return
        try:
            judgment = Judgment.model_validate(row)
        except ValidationError as error:
            remedy = "one judgment a line, as `harness judge` writes"
            problems.add(location, _invalid_field(error), remedy)
            continue
        reason = id_problem(judgment.query_id) or id_problem(judgment.document_id)
        if reason:
            problems.add(location, f"an id {reason}")
        else:
            yield PlacedJudgment(location, judgment)


def _invalid_field(error: ValidationError) -> str:
    errors = error.errors()
    keys_by_type: dict[str, list[str]] = {}
    for field_error in errors:
        key = ".".join(map(str, field_error["loc"]))
        keys_by_type.setdefault(field_error["type"], []).append(repr(key))
    missing = keys_by_type.get("missing", [])
    unknown = keys_by_type.get("extra_forbidden", [])
    if missing:
        verb = "is" if len(missing) == 1 else "are"
        problem = f"{join_names(missing)} {verb} missing"
        return f"{problem}; unknown: {first_names(unknown)}" if unknown else problem
    if len(unknown) == len(errors):
        verb = "is no key" if len(unknown) == 1 else "are no keys"
        return f"{first_names(unknown)} {verb} of a judgment"
    first = errors[0]
    reason = first["msg"].lower()
    if first["loc"] == ("grade",):
        reason = "outside the scale of 0, 1, 2, 3 or null"
    key_path = ".".join(map(str, first["loc"]))
    return f"{key_path!r} cannot be read: {reason}"


def resolve_corrections(
    placed_judgments: Sequence[PlacedJudgment], problems: ReadProblems
) -> list[Judgment]:
    """Return one judgment for each `JudgmentKey`: the last correction, else the first.

    Another grade that is not marked as a correction is a problem, unless its own file
    corrects it: the file may be read again after its correction was taken over.
    """
    corrected: set[int] = set()
    later_corrections: set[tuple[str, JudgmentKey]] = set()
    for number in reversed(range(len(placed_judgments))):
        judgment = placed_judgments[number].judgment
        file_and_key = (placed_judgments[number].location.file, judgment.round_key)
        if judgment.corrects:
            later_corrections.add(file_and_key)
        elif file_and_key in later_corrections:
            corrected.add(number)
    latest: dict[JudgmentKey, PlacedJudgment] = {}
    for number, placed in enumerate(placed_judgments):
        judgment = placed.judgment
        if number in corrected:
            continue
        earlier = latest.get(judgment.round_key)
        if earlier is None or judgment.corrects:
            latest[judgment.round_key] = placed
        elif earlier.judgment.grade != judgment.grade:
            _add_contradiction(earlier, placed, problems)
    return [placed.judgment for placed in latest.values()]


def _add_contradiction(
    earlier: PlacedJudgment, later: PlacedJudgment, problems: ReadProblems
) -> None:
    judgment = later.judgment
    pair = f"document {judgment.document_id!r} for query {judgment.query_id!r}"
    grade = _grade_text(judgment.grade)
    earlier_grade = _grade_text(earlier.judgment.grade)
    problems.add(
        later.location,
        f"{judgment.judge} graded {pair} {grade}, "
        f"and {earlier_grade} at {earlier.location}",
        compose_remedy(
            'remove one of them, or mark the later with "corrects": true '
            "and name the judge",
            Option(f"--corrects {shlex.quote(judgment.judge)}"),
        ),
    )


def _grade_text(grade: int | None) -> str:
    return "without a grade" if grade is None else f"as {grade}"

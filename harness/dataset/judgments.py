"""Judgments as they were given, one JSON object a line, and the labels that follow from them by one stated rule.

The file is only ever appended to. It is read whole or not at all: a line that cannot be read, a grade outside the
scale, or a judge who contradicts himself is an error with its line. People and models are never averaged:

1. Of each judge the first round counts; further rounds only measure the judge.
2. For a pair that several people judged: the median of their grades, the lower of two middle ones. Where their grades
   lie two or more apart, the pair is listed for adjudication; an adjudicated grade goes before all others.
3. Several models: the same among themselves.
4. A query belongs to people where a person answered every document that was asked of it: then people's grades alone are
   its labels. It belongs to the model where no person judged. Where people began and did not finish it is mixed: a
   person's grade goes before a model's, document by document.
5. Grades of pairs that were chosen because they could change a result are kept apart, and no score uses them.
"""

import hashlib
import json
import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median_low
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from harness.dataset.dataset_model import DatasetReference, Labels, LabelSource
from harness.dataset.rows import read_jsonl
from harness.dataset.source import Findings, Source, SourceLocation, id_problem
from retrievers.errors import InputError
from retrievers.types import Document, Query

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
        row = {
            name: value
            for name, value in self
            if name == "grade" or value != type(self).model_fields[name].default
        }
        return json.dumps(row, ensure_ascii=False) + "\n"


Placed = tuple[SourceLocation, Judgment]


def text_digest(query: str, document: Document) -> str:
    """Return a digest of what a judge reads: the query, the title and the text.

    >>> text_digest("q", Document("1", "", "a")) == text_digest("q", Document("2", "", "a"))
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
    seen = Findings()
    placed = [one for path in paths for one in read_file(path, seen)]
    settled = resolve_corrections(placed, seen)
    if seen:
        raise InputError(seen.problems)
    return settled


def read_file(path: Path, problems: Findings) -> Iterator[Placed]:
    """Stream the judgments of one file; what cannot be read becomes a problem."""
    for place, row in read_jsonl(path, problems):
        if "pool" in row and "drawn" in row:  # the head of what `harness pool` writes
            what = "is a pool: what is to be judged, and nothing that was"
            problems.wrong(
                path, what, f"judge it first: harness judge {shlex.quote(str(path))}"
            )
            return
        try:
            judgment = Judgment.model_validate(row)
        except ValidationError as error:
            problems.wrong(
                place,
                _complaint(error),
                "one judgment a line, as `harness judge` writes",
            )
            continue
        if reason := id_problem(judgment.query_id) or id_problem(judgment.document_id):
            problems.wrong(place, f"an id {reason}")
        else:
            yield place, judgment


def resolve_corrections(placed: Sequence[Placed], problems: Findings) -> list[Judgment]:
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


def merge(judgments: Sequence[Judgment]) -> dict[str, Labels]:
    """Merge judgments into the labels of each query that was judged, in the order of their first judgments.

    Those of an earlier version's `pool --next` chose their documents by what they could change, and make no label.
    """
    by_query: dict[str, list[Judgment]] = {}
    for judgment in judgments:
        if judgment.design != "next":
            by_query.setdefault(judgment.query_id, []).append(judgment)
    return {query: _merged(given) for query, given in by_query.items()}


def _merged(given: list[Judgment]) -> Labels:
    people = [one for one in given if one.kind == "human"]
    human, model = (
        grades_by_document(people),
        grades_by_document([one for one in given if one.kind == "llm"]),
    )
    source: LabelSource
    if not people:
        source, grades = "model", model
    elif _finished(people):
        source, grades = "people", human
    else:
        source, grades = "mixed", {**model, **human}
    probabilities, populations = (
        {getattr(one, name) for one in people} for name in ("inclusion", "population")
    )
    return Labels(
        grades=grades,
        by=", ".join(sorted({one.judge for one in given})),
        source=source,
        model=model if source != "model" else {},
        given=_each(people),
        inclusion=min(probabilities) if probabilities else 1.0,
        population=populations.pop() if len(populations) == 1 else 0,
    )


def grades_by_document(judgments: list[Judgment]) -> dict[str, int]:
    """One grade for each document that got any."""
    found: dict[str, int] = {}
    for (_, document), given in by_pair(judgments).items():
        final = [
            one
            for one in given
            if one.design == "adjudication" and one.grade is not None
        ] or given
        grades = [one.grade for one in final if one.grade is not None]
        if grades:
            found[document] = median_low(grades)
    return found


def _each(people: list[Judgment]) -> dict[str, dict[str, int]]:
    """What each of several people gave; nothing where there is one."""
    given: dict[str, dict[str, int]] = {}
    for one in people:
        if one.round == 1 and one.design == "sample" and one.grade is not None:
            given.setdefault(one.judge, {})[one.document_id] = one.grade
    return dict(sorted(given.items())) if len(given) > 1 else {}


def by_pair(judgments: Iterable[Judgment]) -> dict[PairKey, list[Judgment]]:
    """The judgments of the first round, by query and document."""
    pairs: dict[PairKey, list[Judgment]] = {}
    for judgment in judgments:
        if judgment.round == 1:
            pairs.setdefault(judgment.key, []).append(judgment)
    return pairs


def _finished(people: list[Judgment]) -> bool:
    """Whether people answered all that their pools asked of this query, also where the answer was not a grade."""
    asked: dict[str, int] = {}
    answered: dict[str, set[str]] = {}
    for one in people:
        asked[one.pool] = max(asked.get(one.pool, 0), one.asked)
        answered.setdefault(one.pool, set()).add(one.document_id)
    return all(len(answered[pool]) >= number for pool, number in asked.items())


def read_overlay(reference: DatasetReference, seen: Findings) -> list[Judgment] | None:
    """Read the `judgments.jsonl` that replaces labels of a folder; None if there is none."""
    if (
        reference.scheme
        or not reference.folder.is_dir()
        or not (reference.folder / NAME).is_file()
    ):
        return None
    return resolve_corrections(list(read_file(reference.folder / NAME, seen)), seen)


def overlay(
    labels: Mapping[str, Labels],
    judgments: list[Judgment],
    queries: Mapping[str, Query],
    documents: Collection[str],
    seen: Findings,
) -> dict[str, Labels]:
    """The labels of the files, with those of the judgments in the place of them where a query was judged.

    Judgments of queries that are not asked here are counted: several files of queries may share a folder.
    """
    known: list[Judgment] = []
    for one in judgments:
        if one.query_id not in queries:
            seen.note("judged-elsewhere", one.query_id)
        elif one.document_id not in documents:
            what = f"judges document {one.document_id!r} for query {one.query_id!r}, which does not exist"
            seen.wrong(NAME, what, "restore the document, or remove the line")
        else:
            known.append(one)
    merged = merge(known)
    kept = dict(labels)
    for query, given in merged.items():
        if query in labels:
            seen.note("replaced-labels", query)
        kept[query] = given
    return {query: kept[query] for query in queries if query in kept}


def note_changes(
    source: Source,
    judgments: list[Judgment],
    queries: Mapping[str, Query],
    seen: Findings,
) -> None:
    """Count the pairs whose question or document is not what was judged: a pass over the corpus."""
    judged: dict[str, dict[str, str]] = {}
    for one in judgments:
        if one.query_id in queries:
            judged.setdefault(one.document_id, {})[one.query_id] = one.text
    if not judged:
        return
    for _, document in source.documents(Findings()):
        for query, digest in judged.get(document.id, {}).items():
            if text_digest(queries[query].text, document) != digest:
                seen.note("changed-text", f"{query} {document.id}")

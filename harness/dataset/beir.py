"""The BEIR format: corpus.jsonl, queries.jsonl and qrels/<split>.tsv (Thakur et al. 2021)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.dataset.model import Labels
from harness.dataset.source import Place, grade_of, read_jsonl, read_lines, text_of
from retrievers.errors import InputError, Problem, did_you_mean
from retrievers.types import Document, Query

HEADER = ("query-id", "corpus-id", "score")


def matches(path: Path) -> bool:
    """Whether a folder looks like BEIR."""
    return (path / "corpus.jsonl").is_file()


def read(path: Path, *, queries: tuple[str, ...] = (), split: str | None = None) -> BeirSource:
    """Open a BEIR folder; `split` may be left out where there is one file of qrels, or one named test."""
    splits = sorted(file.stem for file in (path / "qrels").glob("*.tsv"))
    if split is None and splits:
        split = splits[0] if len(splits) == 1 else "test"
    if split not in splits:
        remedy = did_you_mean(split, splits) if split and splits else "one judgment a line: query-id, corpus-id, score"
        raise InputError(Problem(str(path / "qrels" / f"{split or 'test'}.tsv"), "no such file", remedy))
    names = queries or ("queries.jsonl",)
    return BeirSource(path / "corpus.jsonl", tuple(path / n for n in names), path / "qrels" / f"{split}.tsv")


@dataclass(frozen=True, slots=True)
class BeirSource:
    """A BEIR folder, one split of it."""

    corpus: Path
    query_files: tuple[Path, ...]
    qrels: Path

    def documents(self, problems: list[Problem]) -> Iterator[tuple[Place, Document]]:
        """One document a line of corpus.jsonl: `_id`, `text`, and `title` if there is one."""
        for place, row in read_jsonl(self.corpus, problems):
            id_, text = _id(row, place, problems), text_of(row, "text", place, problems)
            title = text_of(row, "title", place, problems) if row.get("title") is not None else ""
            if id_ is not None and text is not None and title is not None:
                yield place, Document(id_, title, text, _fields(row))

    def queries(self, problems: list[Problem]) -> Iterator[tuple[Place, Query]]:
        """One query a line of queries.jsonl: `_id` and `text`."""
        for file in self.query_files:
            for place, row in read_jsonl(file, problems):
                id_, text = _id(row, place, problems), text_of(row, "text", place, problems)
                if id_ is not None and text is not None:
                    yield place, Query(id_, text, _fields(row))

    def labels(self, problems: list[Problem]) -> Iterator[tuple[Place, str, Labels]]:
        """The rows of qrels/<split>.tsv, gathered by query; the place is that of the query's first row."""
        grades: dict[str, dict[str, int]] = {}
        places: dict[str, Place] = {}
        for place, line in read_lines(self.qrels, problems):
            cells = line.split("\t") if "\t" in line else line.split()
            if place.line == 1 and tuple(cells[:2]) == HEADER[:2]:
                continue
            if len(cells) != len(HEADER):
                problems.append(Problem(str(place), f"{len(cells)} columns", f"expected 3: {', '.join(HEADER)}"))
                continue
            query, document, written = (cell.strip() for cell in cells)
            grade = grade_of(written)
            if grade is None:
                problems.append(Problem(str(place), f"grade {written!r} is no whole number"))
            elif document in grades.setdefault(query, {}):
                problems.append(Problem(str(place), f"query {query!r} and document {document!r} are judged twice"))
            else:
                grades[query][document] = grade
                places.setdefault(query, place)
        for query, judged in grades.items():
            if judged:
                yield places[query], query, Labels(grades=judged)


def _id(row: Mapping[str, Any], place: Place, problems: list[Problem]) -> str | None:
    """The id under `_id`; numbers are taken as their digits, since BEIR's own qrels are text."""
    value = row.get("_id", row.get("id"))
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if isinstance(value, str) and value.strip():
        return value
    problems.append(Problem(str(place), "'_id' is missing or empty"))
    return None


def _fields(row: Mapping[str, Any]) -> dict[str, str]:
    """Further keys with plain values: those of the row, and those of its `metadata`."""
    metadata = row.get("metadata")
    extra = {**(metadata if isinstance(metadata, dict) else {}), **row}
    known = {"_id", "id", "title", "text", "metadata"}
    return {k: str(v) for k, v in extra.items() if k not in known and isinstance(v, str | int | float) and v != ""}

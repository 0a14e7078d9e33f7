"""A folder of Markdown or text files with ranked labels, as in iDEAKITT's experiment.

Every `*.md`, `*.markdown` and `*.txt` below the folder is a document, but for README and LICENSE files at its top.
`queries.json` is a list of objects with `query` and `relevant_documents`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.dataset.model import Labels
from harness.dataset.source import Place, files_below, grade_of, parse_json, read_text, text_of
from retrievers.errors import InputError, Problem, did_you_mean
from retrievers.types import Document, Query

SUFFIXES = {".md", ".markdown", ".txt"}
NOT_DOCUMENTS = {"readme", "license", "licence", "changelog"}
KEYS = {"id", "query", "relevant_documents", "tags", "fields", "labelled_by"}
SURVEY_LINE = re.compile(r"[*-]([^::]*)[::](.*)")
"""A line of a survey's head, white space around it removed first: one look at each character."""
SURVEY_KEYS = {
    "id": "id",
    "アンケート名": "title",
    "survey name": "title",
    "カテゴリ": "category",
    "category": "category",
    "タグ": "tags",
    "tags": "tags",
}


def matches(path: Path) -> bool:
    """Whether a folder holds a document of this form."""
    return next(document_files(path, []), None) is not None


def read(path: Path, *, queries: tuple[str, ...] = (), split: str | None = None) -> MarkdownSource:
    """Open a folder of documents; the query files lie in it, `queries.json` if none is named."""
    if split is not None:
        raise InputError(Problem("dataset.split", "a folder of Markdown has no splits", "name a file: queries = …"))
    return MarkdownSource(path, tuple(path / name for name in queries or ("queries.json",)))


@dataclass(frozen=True, slots=True)
class MarkdownSource:
    """A folder of documents and its files of labelled queries."""

    folder: Path
    query_files: tuple[Path, ...]

    def documents(self, problems: list[Problem]) -> Iterator[tuple[Place, Document]]:
        """One document a file, in the order of their paths."""
        for file in document_files(self.folder, problems):
            try:
                text = read_text(file)
            except InputError as error:
                problems.extend(error.problems)
                continue
            name = file.relative_to(self.folder).with_suffix("").as_posix()
            yield Place(file), parse_document(text, name)

    def queries(self, problems: list[Problem]) -> Iterator[tuple[Place, Query]]:
        """The queries; those without an id are q0, q1, … by their place in the file."""
        for place, id_, row in self._rows(problems):
            text = text_of(row, "query", place, problems)
            if text is not None:
                yield place, Query(id_, text, _fields(row, place, problems))

    def labels(self, problems: list[Problem]) -> Iterator[tuple[Place, str, Labels]]:
        """What `relevant_documents` says: ids best first, groups of alternatives, or grades by id."""
        for place, id_, row in self._rows([]):
            labels = parse_labels(row, place, problems)
            if labels is not None:
                yield place, id_, labels

    def _rows(self, problems: list[Problem]) -> Iterator[tuple[Place, str, Mapping[str, Any]]]:
        for file in self.query_files:
            try:
                rows = parse_json(read_text(file))
            except InputError as error:
                problems.extend(error.problems)
                continue
            except json.JSONDecodeError as error:
                problems.append(Problem(f"{file}:{error.lineno}", f"is not JSON: {error.msg}"))
                continue
            except ValueError as error:
                problems.append(Problem(str(file), f"is not JSON: {error}"))
                continue
            if not isinstance(rows, list):
                problems.append(Problem(str(file), "is not a list of queries"))
                continue
            for number, row in enumerate(rows):
                place = Place(Path(f"{file}[{number}]"))
                if not isinstance(row, dict):
                    problems.append(Problem(str(place), "is not an object with 'query' and 'relevant_documents'"))
                    continue
                problems.extend(
                    Problem(str(place), f"unknown key {key!r}", did_you_mean(key, KEYS)) for key in row.keys() - KEYS
                )
                id_ = row.get("id", f"q{number}")
                if isinstance(id_, str) and id_.strip():
                    yield place, id_, row
                else:
                    problems.append(Problem(str(place), f"'id' is {id_!r}, not a name"))


def parse_document(text: str, name: str) -> Document:
    r"""Read one file: a survey template by its head, any other text by its first heading.

    >>> doc = parse_document("# Survey overview\n\n* ID: X1\n* Survey name: Hotels\n* Tags: a, b\n", "file")
    >>> doc.id, doc.title, doc.fields
    ('X1', 'Hotels', {'tags': 'a, b'})
    >>> parse_document("# Setting up\n\nPlug it in.", "manual/setup").title
    'Setting up'
    """
    lines = text.split("\n")
    headings = [i for i, line in enumerate(lines) if line.startswith("# ")]
    head = lines[: headings[1]] if len(headings) > 1 else lines
    said: dict[str, str] = {}
    id_line = None
    for number, line in enumerate(head):
        found = SURVEY_LINE.fullmatch(line.strip())
        key = SURVEY_KEYS.get(found[1].strip().lower()) if found else None
        if found and key and key not in said:
            said[key] = found[2].strip()
            id_line = number if key == "id" else id_line
    if id_line is None or not said["id"]:
        title = lines[headings[0]][2:].strip() if headings else ""
        return Document(name, title, text.strip())
    body = "\n".join(lines[:id_line] + lines[id_line + 1 :]).strip()
    fields = {key: said[key] for key in ("category", "tags") if said.get(key)}
    return Document(said["id"], said.get("title", ""), body, fields)


def parse_labels(row: Mapping[str, Any], place: Place, problems: list[Problem]) -> Labels | None:
    """Read `relevant_documents`; None after a complaint."""
    said, by = row.get("relevant_documents"), str(row.get("labelled_by", ""))
    if isinstance(said, dict):
        grades = {doc: grade_of(grade) for doc, grade in said.items()}
        wrong = [doc for doc, grade in grades.items() if grade is None]
        problems.extend(
            Problem(str(place), f"grade {said[doc]!r} of document {doc!r} is no whole number") for doc in wrong
        )
        return None if wrong else Labels(grades={d: g for d, g in grades.items() if g is not None}, by=by)
    if isinstance(said, list) and all(isinstance(doc, str) for doc in said):
        return Labels(ranked=tuple(said), by=by)
    if isinstance(said, list) and all(isinstance(g, list) and all(isinstance(d, str) for d in g) for g in said):
        return Labels(groups=tuple(tuple(group) for group in said if group), by=by)
    what = "'relevant_documents' is missing" if said is None else "'relevant_documents' cannot be read"
    problems.append(Problem(str(place), what, "a list of document ids, best first"))
    return None


def document_files(folder: Path, problems: list[Problem]) -> Iterator[Path]:
    """The files below a folder that are documents, in the order of their paths."""
    for file in files_below(folder, problems):
        paper = file.parent == folder and file.stem.lower() in NOT_DOCUMENTS
        if file.suffix.lower() in SUFFIXES and not paper:
            yield file


def _fields(row: Mapping[str, Any], place: Place, problems: list[Problem]) -> dict[str, str]:
    fields, tags = row.get("fields", {}), row.get("tags", [])
    if isinstance(tags, str):
        tags = [tags]
    if not isinstance(fields, dict) or not isinstance(tags, list):
        problems.append(Problem(str(place), "'tags' is a list of words and 'fields' an object of strings"))
        return {}
    named = {str(key): str(value) for key, value in fields.items()}
    return {**named, "tags": ", ".join(map(str, tags))} if tags else named

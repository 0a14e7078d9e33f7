"""Questions whose reference contexts name documents by id or quote their text: what evaluation tools export.

The documents are given beside them (`documents = …`). A context is matched by id where the export has ids; else by
text: a document that is the context, or that holds it, white space and case aside. What did not match is counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from harness.dataset.archives import is_zip
from harness.dataset.columns import Columns, plain_id
from harness.dataset.files import File, listing, pick
from harness.dataset.markdown import MarkdownSource, holds_documents
from harness.dataset.model import Labels
from harness.dataset.reference import DatasetReference
from harness.dataset.rows import Row, read_rows
from harness.dataset.source import Findings, Place, Source
from harness.dataset.tables import DOCUMENTS, TableSource, named, rows_of
from retrievers.errors import InputError, Problem
from retrievers.types import Document, Query

ANCHOR = 5
"""Words of a context by whose place a document that may hold it is found."""


class ReferencedQuestion(NamedTuple):
    """One question with what its answer should rest on."""

    query: Query
    ids: tuple[str, ...] = ()
    contexts: tuple[str, ...] = ()


RowReader = Callable[[Row, Place, str, Findings], "ReferencedQuestion | None"]
"""Reads one row: with its place, and the name of a query that has none."""


@dataclass(frozen=True, slots=True)
class ContextSource:
    """Documents from one place, questions with reference contexts from another."""

    texts: Source
    rows: Callable[[Findings], Iterable[tuple[Place, Row]]]
    read: RowReader

    def documents(self, problems: Findings) -> Iterator[tuple[Place, Document]]:
        """The documents."""
        return self.texts.documents(problems)

    def queries(self, problems: Findings) -> Iterator[tuple[Place, Query]]:
        """The questions."""
        for place, asked in self._asked(problems):
            yield place, asked.query

    def labels(self, problems: Findings) -> Iterator[tuple[Place, str, Labels]]:
        """Grade 1 for each document that a reference context names or is found in."""
        asked = list(self._asked(Findings()))
        wanted = {key for _, one in asked if not one.ids for key in map(_key, one.contexts) if key}
        where = holders_of(wanted, (doc for _, doc in self.texts.documents(Findings()))) if wanted else {}
        for place, one in asked:
            grades = dict.fromkeys(one.ids, 1)
            for context in () if one.ids else one.contexts:
                if (document := where.get(_key(context))) is not None:
                    grades[document] = 1
                else:
                    problems.note("unmatched-context", f"{one.query.id}: {' '.join(context.split())[:80]}")
            yield place, one.query.id, Labels(grades=grades)

    def _asked(self, problems: Findings) -> Iterator[tuple[Place, ReferencedQuestion]]:
        for number, (place, row) in enumerate(self.rows(problems)):
            asked = self.read(row, place, f"q{number}", problems)
            if asked is not None:
                yield place, asked


def source_of(reference: DatasetReference, rows: Callable[[Findings], Iterable[tuple[Place, Row]]], read: RowReader
              ) -> ContextSource:  # fmt: skip
    """Put questions together with the documents that the reference names.

    Raises:
        InputError: no documents are named, or they are not there.
    """
    folder = reference.folder if reference.folder.is_dir() else reference.folder.parent
    files = {name: file for name, file in listing(folder).items() if "/" not in name}
    columns = Columns({key: name for key, name in reference.columns.items() if key in ("document_id", "title", "text")})
    if reference.documents is None:
        table = named(files, DOCUMENTS) if reference.folder.is_dir() else None
        if table is None:
            remedy = 'this export has the questions alone: documents = "…", a folder or a table of documents'
            raise InputError(Problem(reference.name, "names no documents", remedy))
        return ContextSource(TableSource(rows_of(table), rows_of(), None, columns), rows, read)
    place = folder / reference.documents
    if (place.is_dir() or is_zip(place)) and holds_documents(place):
        return ContextSource(MarkdownSource(place, ()), rows, read)
    table = pick(listing(folder), reference.documents, folder)
    return ContextSource(TableSource(rows_of(table), rows_of(), None, columns), rows, read)


def export_of(reference: DatasetReference) -> File:
    """The file of questions: the reference itself, or the one that it names in its folder."""
    if reference.folder.is_file():
        return File(reference.folder)
    names = reference.queries or ("testset.jsonl",)
    return pick(listing(reference.folder), names[0], reference.folder)


def first_row(reference: DatasetReference) -> Row:
    """The first row of a file of rows; empty where it is none."""
    path = Path(reference.path)
    if (
        reference.scheme
        or not path.is_file()
        or File(path).suffix not in (".jsonl", ".ndjson", ".json", ".csv", ".parquet")
    ):
        return {}
    return next((row for _, row in read_rows(File(path), Findings())), {})


def ids_of(listed: object, name: str, place: Place, problems: Findings) -> tuple[str, ...]:
    """A list of ids; empty, after a complaint, where it is something else."""
    if listed is None:
        return ()
    ids = [plain_id(one) for one in listed] if isinstance(listed, list) else [None]
    if None in ids:
        problems.append(Problem(str(place), f"{name!r} is no list of ids", '["d1", "d2"]'))
        return ()
    return tuple(str(one) for one in ids)


def texts_of(listed: object, name: str, place: Place, problems: Findings) -> tuple[str, ...]:
    """A list of texts, or one; empty, after a complaint, where it is something else."""
    listed = [listed] if isinstance(listed, str) else [] if listed is None else listed
    if isinstance(listed, list) and all(isinstance(one, str) for one in listed):
        return tuple(one for one in listed if one.strip())
    problems.append(Problem(str(place), f"{name!r} is no list of texts", "a list of strings"))
    return ()


def _key(text: str) -> str:
    return " ".join(text.split()).casefold()


def holders_of(wanted: Iterable[str], documents: Iterable[Document]) -> dict[str, str]:
    """Return for each text, white space and case put aside, the document that is it, or else the first that holds it.

    One pass over the documents; a text that none holds is left out.
    """
    wanted = set(wanted)
    whole, holds = dict[str, str](), dict[str, str]()
    anchors: dict[tuple[str, ...], list[str]] = {}
    for key in wanted:
        anchors.setdefault(tuple(key.split(" ")[:ANCHOR]), []).append(key)
    short = [anchor for anchor in anchors if len(anchor) < ANCHOR]
    for document in documents:
        for text in (document.text, document.content):
            if (key := _key(text)) in wanted:
                whole.setdefault(key, document.id)
        text = _key(document.content)
        words = text.split(" ")
        near = {tuple(words[i : i + ANCHOR]) for i in range(len(words) - ANCHOR + 1)} & anchors.keys()
        for anchor in (*near, *short):
            for key in anchors[anchor]:
                if key not in holds and key in text:
                    holds[key] = document.id
    return {**holds, **whole}

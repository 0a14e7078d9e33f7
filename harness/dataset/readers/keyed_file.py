"""Texts under keys of one JSON file."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from harness.dataset.columns import Columns
from harness.dataset.file import File, Files
from harness.dataset.reference import DatasetReference
from harness.dataset.row import Row
from harness.dataset.source import SourceLocation
from harness.dataset.table_source import TableSource
from harness.dataset.text_rows import read_json
from retrievers.errors import InputError, Problem
from retrievers.ids import document_id


class KeyedFile(NamedTuple):
    """A JSON object with three objects: of texts by id, and of labels by query id.

    The texts are under `queries` and `corpus`.
    """

    labels: str
    """The key of the labels: grades by document, or a list of documents in no order."""

    def matches(self, reference: DatasetReference, files: Files) -> bool:
        """Whether the reference is such a file."""
        reference = single_file(reference, files)
        return holds_keys(reference, "queries", "corpus", self.labels)

    def read(self, reference: DatasetReference, files: Files) -> TableSource:
        """Open the file.

        Raises:
            InputError: it is not a file of JSON, or one of its objects is missing.
        """
        reference = single_file(reference, files)
        if reference.scheme or not reference.folder.is_file():
            problem = "is not a file"
            raise InputError(
                Problem(reference.name, problem, "name the JSON file itself")
            )
        path = reference.folder
        content = read_json(File(path))
        if not isinstance(content, dict):
            content = {}
        for key in ("corpus", "queries", self.labels):
            if not isinstance(content.get(key), dict):
                problem = f"{key!r} is missing, or not an object"
                raise InputError(Problem(str(path), problem, "its keys are ids"))

        def entries_under(key: str) -> Iterator[_KeyedEntry]:
            for id_, content_under_id in content[key].items():
                location = SourceLocation(Path(f"{path}: {key}[{id_!r}]"))
                yield _KeyedEntry(location, id_, content_under_id)

        return TableSource(
            document_rows=lambda _: map(_document_row, entries_under("corpus")),
            query_rows=lambda _: map(_query_row, entries_under("queries")),
            label_rows=lambda _: map(_label_row, entries_under(self.labels)),
            columns=Columns(are_fixed=True),
        )


class _KeyedEntry(NamedTuple):
    """What a file has under the id of a document or a query."""

    location: SourceLocation
    id: str
    content: Any


def _document_row(entry: _KeyedEntry) -> Row:
    """Return a document: a text, or an object of columns."""
    cells = {"text": entry.content}
    if isinstance(entry.content, dict):
        cells = entry.content
    return Row(entry.location, {**cells, "_id": entry.id})


def _query_row(entry: _KeyedEntry) -> Row:
    return Row(entry.location, {"_id": entry.id, "text": entry.content})


def _label_row(entry: _KeyedEntry) -> Row:
    """Return the labels of a query; a list has no order, so each grade in it is 1."""
    documents = entry.content
    if isinstance(documents, list):
        ids = [document_id(element) for element in documents]
        if None not in ids:
            documents = dict.fromkeys(ids, 1)
    return Row(entry.location, {"_id": entry.id, "relevant": documents})


EMBENCH = KeyedFile("qrels")
"""embench 0.1.0."""
LLAMA_INDEX = KeyedFile("relevant_docs")
"""LlamaIndex's saved EmbeddingQAFinetuneDataset (llama-index-finetuning 0.4.2)."""


def single_file(reference: DatasetReference, files: Files) -> DatasetReference:
    """Return the one JSON file at the top of a folder, if it is alone there.

    Else the reference itself.
    """
    if reference.scheme or not reference.folder.is_dir():
        return reference
    top_files = [file for path, file in files.items() if "/" not in path]
    if len(top_files) != 1 or top_files[0].suffix != ".json":
        return reference
    return replace(reference, path=top_files[0].path)


def holds_keys(reference: DatasetReference, *keys: str) -> bool:
    """Whether the reference is a JSON file of an object, with these keys anywhere.

    The text is searched for them, since parsing a large file would take long.
    """
    if reference.scheme or not reference.folder.is_file():
        return False
    file = File(reference.folder)
    if file.suffix != ".json":
        return False
    text = file.read().decode("utf-8", "replace")
    if not text.lstrip("\ufeff \r\n\t").startswith("{"):
        return False
    return all(f'"{key}"' in text for key in keys)

"""Texts under keys of one JSON file."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from harness.dataset.file import File, Files
from harness.dataset.read_problems import ReadProblems
from harness.dataset.reference import DatasetReference
from harness.dataset.source import SourceLocation, TableRow
from harness.dataset.table_source import TableSource
from harness.dataset.text_rows import read_json
from retrievers.errors import InputError, Problem
from retrievers.ids import document_id


class KeyedFile(NamedTuple):
    """A JSON object with `queries` and `corpus`, texts by id, and under a key the documents of each query."""

    labels: str
    """Grades by document; or a list in no order, whose documents have grade 1."""

    def matches(self, reference: DatasetReference, files: Files) -> bool:
        """Whether the reference is such a file."""
        return holds_keys(
            _only_file(reference, files), "queries", "corpus", self.labels
        )

    def read(self, reference: DatasetReference, files: Files) -> TableSource:
        """Open the file."""
        reference = _only_file(reference, files)
        if reference.scheme or not reference.folder.is_file():
            raise InputError(
                Problem(reference.name, "is not a file", "name the JSON file itself")
            )
        path, whole = reference.folder, read_json(File(reference.folder))
        held: dict[str, Any] = whole if isinstance(whole, dict) else {}
        if wrong := [
            key
            for key in ("corpus", "queries", self.labels)
            if not isinstance(held.get(key), dict)
        ]:
            raise InputError(
                Problem(
                    str(path),
                    f"{wrong[0]!r} is missing, or not an object",
                    "its keys are ids",
                )
            )

        def rows_under(
            key: str, row_of: Callable[[Any], TableRow], _: ReadProblems
        ) -> Iterator[tuple[SourceLocation, TableRow]]:
            for id_, written in held[key].items():
                yield (
                    SourceLocation(Path(f"{path}: {key}[{id_!r}]")),
                    {"_id": id_, **row_of(written)},
                )

        return TableSource(
            partial(
                rows_under,
                "corpus",
                lambda written: (
                    written if isinstance(written, dict) else {"text": written}
                ),
            ),
            partial(rows_under, "queries", lambda written: {"text": written}),
            partial(rows_under, self.labels, _unordered),
        )


def _unordered(written: Any) -> TableRow:
    """The documents of a query; those of a list have grade 1, since it has no order."""
    ids = [document_id(one) for one in written] if isinstance(written, list) else [None]
    return {"relevant": written if None in ids else dict.fromkeys(ids, 1)}


EMBENCH = KeyedFile("qrels")
"""embench 0.1.0."""
LLAMA_INDEX = KeyedFile("relevant_docs")
"""LlamaIndex's EmbeddingQAFinetuneDataset as it saves itself (llama-index-finetuning 0.4.2)."""


def _only_file(reference: DatasetReference, files: Files) -> DatasetReference:
    """The one JSON file of a folder that holds no other; else what was given."""
    if reference.scheme or not reference.folder.is_dir():
        return reference
    top = [file for name, file in files.items() if "/" not in name]
    return (
        replace(reference, path=top[0].path)
        if len(top) == 1 and top[0].suffix == ".json"
        else reference
    )


def holds_keys(reference: DatasetReference, *keys: str) -> bool:
    """Whether the reference is a JSON file whose keys are these."""
    if (
        reference.scheme
        or not reference.folder.is_file()
        or File(reference.folder).suffix != ".json"
    ):
        return False
    text = File(reference.folder).read().decode("utf-8", "replace")
    return text.lstrip("\ufeff \r\n\t").startswith("{") and all(
        f'"{key}"' in text for key in keys
    )

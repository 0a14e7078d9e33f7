"""JSON files that hold documents, queries and labels under their ids: what embench and LlamaIndex write."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from harness.dataset.columns import plain_id
from harness.dataset.files import File
from harness.dataset.label_rows import list_of
from harness.dataset.model import Labels
from harness.dataset.reference import DatasetReference
from harness.dataset.rows import read_json
from harness.dataset.source import Findings, Place
from retrievers.errors import InputError, Problem
from retrievers.types import Document, Query

LabelReader = Callable[[Any, Place, Findings], "Labels | None"]


def looks_like(reference: DatasetReference, *keys: str) -> bool:
    """Whether the reference is a JSON file whose keys are these."""
    if reference.scheme or not reference.folder.is_file() or File(reference.folder).suffix != ".json":
        return False
    text = File(reference.folder).read().decode("utf-8", "replace")
    return text.lstrip("\ufeff \r\n\t").startswith("{") and all(f'"{key}"' in text for key in keys)


def source_of(reference: DatasetReference, labels: str, read: LabelReader) -> KeyedSource:
    """Open the file; `labels` is the key of the labels and `read` reads those of one query."""
    if reference.scheme or not reference.folder.is_file():
        raise InputError(Problem(reference.name, "is not a file", "name the JSON file itself"))
    return KeyedSource(File(reference.folder), labels, read)


@dataclass(frozen=True)
class KeyedSource:
    """One JSON object: `queries` and `corpus` are texts by id, and the labels stand by query."""

    file: File
    key: str
    read: LabelReader

    @cached_property
    def _whole(self) -> Mapping[str, Any]:
        whole = read_json(self.file)
        if not isinstance(whole, dict):
            raise InputError(Problem(str(self.file.path), "is not a JSON object", f"queries, corpus, {self.key}"))
        return whole

    def documents(self, problems: Findings) -> Iterator[tuple[Place, Document]]:
        """The texts of `corpus`, or its objects with `text` and `title`."""
        for id_, written in self._table("corpus", problems):
            place = self._place("corpus", id_)
            title, text = (
                ("", written) if not isinstance(written, dict) else (written.get("title", ""), written.get("text"))
            )
            if isinstance(text, str) and isinstance(title, str):
                yield place, Document(id_, title, text)
            else:
                problems.append(Problem(str(place), "is no text", "every document is a string"))

    def queries(self, problems: Findings) -> Iterator[tuple[Place, Query]]:
        """The texts of `queries`."""
        for id_, text in self._table("queries", problems):
            if isinstance(text, str):
                yield self._place("queries", id_), Query(id_, text)
            else:
                problems.append(Problem(str(self._place("queries", id_)), "is no text", "every query is a string"))

    def labels(self, problems: Findings) -> Iterator[tuple[Place, str, Labels]]:
        """The labels by query."""
        for id_, written in self._table(self.key, problems):
            labels = self.read(written, self._place(self.key, id_), problems)
            if labels is not None:
                yield self._place(self.key, id_), id_, labels

    def _table(self, key: str, problems: Findings) -> Iterator[tuple[str, Any]]:
        try:
            table = self._whole.get(key)
        except InputError as error:
            if key == "corpus":
                problems.extend(error.problems)
            return
        if not isinstance(table, dict):
            what = f"{key!r} is missing" if table is None else f"{key!r} is not an object"
            problems.append(Problem(str(self.file.path), what, "its keys are ids"))
            return
        yield from table.items()

    def _place(self, key: str, id_: str) -> Place:
        return Place(Path(f"{self.file.path}: {key}[{id_!r}]"))


def graded(written: Any, place: Place, problems: Findings) -> Labels | None:
    """Grades by document."""
    if isinstance(written, dict):
        return list_of(written, place, problems)
    problems.append(Problem(str(place), "is not an object", 'grades by document: {"d1": 1}'))
    return None


def listed(written: Any, place: Place, problems: Findings) -> Labels | None:
    """Relevant documents in no order: each has grade 1."""
    ids = [plain_id(one) for one in written] if isinstance(written, list) else [None]
    if None in ids:
        problems.append(Problem(str(place), "is not a list of document ids", '["d1", "d2"]'))
        return None
    return Labels(grades={str(id_): 1 for id_ in ids})

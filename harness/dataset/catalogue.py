"""A data set of ir_datasets by its name: `irds:beir/scifact/test`. What is not on this machine it fetches itself."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.dataset.archives import missing
from harness.dataset.dataset_model import DatasetReference, Labels
from harness.dataset.files import Files
from harness.dataset.label_rows import Gathered
from harness.dataset.source import Findings, Place
from retrievers.errors import InputError, Problem
from retrievers.types import Document, Query

PREFIX = "irds:"
NOT_FIELDS = {"doc_id", "query_id", "title", "text", "body", "marked_up_doc"}


def matches(reference: DatasetReference, _: Files) -> bool:
    """Whether the reference names a data set of ir_datasets."""
    return reference.scheme == PREFIX


def read(reference: DatasetReference, _: Files) -> CatalogueSource:
    """Open the data set; InputError where the name is unknown or it lacks documents, queries or judgments."""
    try:
        import ir_datasets
    except ImportError:
        raise InputError(missing(reference.name, "ir_datasets", "formats")) from None
    name = str(reference.path).removeprefix(PREFIX)
    try:
        collection = ir_datasets.load(name)
    except KeyError:
        remedy = "ir-datasets.com lists the names"
        raise InputError(Problem(reference.name, "is not known to ir_datasets", remedy)) from None
    lacking = [part for part in ("docs", "queries", "qrels") if not getattr(collection, f"has_{part}")()]
    if lacking:
        remedy = "name a part of it that has them, such as …/test"
        raise InputError(Problem(reference.name, f"has no {', '.join(lacking)}", remedy))
    return CatalogueSource(reference.name, collection)


@dataclass(frozen=True, slots=True)
class CatalogueSource:
    """One data set of ir_datasets."""

    name: str
    collection: Any

    def documents(self, problems: Findings) -> Iterator[tuple[Place, Document]]:
        """Documents: `title` where there is one, and `text`, else all the default text."""
        for number, doc in self._each(self.collection.docs_iter, problems):
            title = getattr(doc, "title", "")
            body = getattr(doc, "text", None) or getattr(doc, "body", None)
            text = doc.default_text() if body is None else body
            yield number, Document(doc.doc_id, title if body is not None else "", text, _fields(doc))

    def queries(self, problems: Findings) -> Iterator[tuple[Place, Query]]:
        """Queries: `text`, else the default text (of TREC topics the title)."""
        for number, query in self._each(self.collection.queries_iter, problems):
            yield number, Query(query.query_id, getattr(query, "text", None) or query.default_text(), _fields(query))

    def labels(self, problems: Findings) -> Iterator[tuple[Place, str, Labels]]:
        """Judgments, gathered by query."""
        gathered = Gathered()
        for place, judged in self._each(self.collection.qrels_iter, problems):
            gathered.add(place, judged.query_id, judged.doc_id, int(judged.relevance), problems)
        yield from gathered.labels()

    def _each(self, iterate: Any, problems: Findings) -> Iterator[tuple[Place, Any]]:
        try:
            for number, one in enumerate(iterate(), 1):
                yield Place(Path(self.name), number), one
        except Exception as error:
            what = f"cannot be read: {' '.join(str(error).split())[:200] or type(error).__name__}"
            remedy = "fetch it where there is a network, or give a folder with its files"
            problems.append(Problem(self.name, what, remedy))


def _fields(row: Any) -> dict[str, str]:
    return {
        name: str(value)
        for name, value in row._asdict().items()
        if name not in NOT_FIELDS and isinstance(value, str | int | float) and value != ""
    }

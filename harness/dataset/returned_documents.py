"""The documents that a system returned, out of a column."""

from pathlib import Path
from typing import Any, NamedTuple

from harness.dataset.columns import Columns
from harness.dataset.dataset import Dataset
from harness.dataset.file import File
from harness.dataset.label_lists import UnreadableLabels, read_label_list
from harness.dataset.read_problems import ReadProblems
from harness.dataset.reference import DatasetReference
from harness.dataset.row import Row
from harness.dataset.rows import read_file_rows
from harness.dataset.usual_names import normalised_name

RANK_NAMES = ("rank", "position", "documentposition", "documentrank")
SCORE_NAMES = ("score", "documentscore", "similarity", "retrievalscore")


class _Hit(NamedTuple):
    """A document that was returned, with what orders it: lower is better."""

    order: float
    document: str


def read_returned_documents(
    reference: DatasetReference, dataset: Dataset, column: str
) -> dict[str, list[str]]:
    """Return the documents in a column by query id, best first.

    They are in the order of their list, or by the rank or the score beside each of
    them. A document that occurs again keeps its best place.

    Args:
        reference: of the data set, with its columns.
        dataset: has the queries and the documents.
        column: what a system returned: a list, or one document a row.
    """
    documents: dict[str, list[str]] = {}
    for query_id, hits in _read_hits(reference, dataset, column).items():
        ordered = sorted(hits, key=lambda hit: hit.order)
        documents[query_id] = list(dict.fromkeys(hit.document for hit in ordered))
    return documents


def _read_hits(
    reference: DatasetReference, dataset: Dataset, column: str
) -> dict[str, list[_Hit]]:
    """Return the documents in a column by query."""
    ids_by_text = {query.text: query.id for query in dataset.queries}
    document_ids = {document.id for document in dataset.documents()}
    outer_column = column.partition(".")[0]
    declared = Columns(reference.columns)
    hits: dict[str, list[_Hit]] = {}
    for table in dataset.tables:
        path = Path(table.file)
        if not table.has_column(outer_column) or not path.is_file():
            continue
        for row in read_file_rows(File(path), ReadProblems()):
            query_id = _cell(row, "query_id", declared)
            if query_id is None:
                query = _cell(row, "query", declared)
                query_id = ids_by_text.get(str(query))
            labels = read_label_list(row.value(column), document_ids.__contains__)
            if query_id is None or isinstance(labels, UnreadableLabels):
                continue
            query_hits = hits.setdefault(str(query_id), [])
            for document in labels.documents:
                order = _order_of(row)
                position = float(len(query_hits))
                query_hits.append(_Hit(position if order is None else order, document))
    return hits


def _cell(row: Row, kind: str, columns: Columns) -> Any:
    """Return the value in the column of a kind; None if there is none."""
    name = columns.name(kind, row)
    return None if name is None else row.value(name)


def _order_of(row: Row) -> float | None:
    """Return the rank of a row, or its score with the sign changed."""
    for names, sign in ((RANK_NAMES, 1.0), (SCORE_NAMES, -1.0)):
        for name, cell in row.cells.items():
            if normalised_name(str(name)) not in names:
                continue
            try:
                return sign * float(cell)
            except (TypeError, ValueError, OverflowError):
                continue
    return None

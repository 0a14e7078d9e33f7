"""The documents that a system returned, out of a column.

They are not labels: the ranking becomes a retriever of its own. The tables are read
again, since reading labels skips this column.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from harness.dataset.check_corpus import CheckedDocuments
from harness.dataset.choose_reader import parse_sheet_path
from harness.dataset.columns import Columns
from harness.dataset.dataset import Dataset
from harness.dataset.file import File
from harness.dataset.judging_columns import RANK_WORDS, SCORE_WORDS
from harness.dataset.label_lists import (
    are_pairs,
    holds_scores,
    named_documents,
    scores_or_list,
)
from harness.dataset.listing import list_reference
from harness.dataset.placed_row import PlacedRow
from harness.dataset.read_problems import ReadProblems
from harness.dataset.reference import DatasetReference
from harness.dataset.row import NO_ROW, Row
from harness.dataset.rows import read_file_rows
from harness.dataset.split_cell import NamesDocument
from harness.dataset.usual_names import normalised_name, words_of_name
from retrievers.ids import document_id

RANK_NAMES = ("position", "documentposition", "documentrank")
"""Names of columns and keys whose lowest value is best, besides `RANK_WORDS`."""
SCORE_NAMES = ("documentscore", "retrievalscore", "similarityscore", "bm25score")
"""Names of columns and keys whose highest value is best, besides `SCORE_WORDS`."""


class _Hit(NamedTuple):
    """A document that was returned, with what orders it: lower is better."""

    order: float
    document: str


def read_returned_documents(
    reference: DatasetReference, dataset: Dataset, column: str
) -> dict[str, list[str]]:
    """Return the documents in a column by query id, best first.

    They are in the order of their list, or by the rank or else the score of each, in
    the list or else beside it. They may be named by the field that labels name. A
    document that occurs again keeps its best place; ids that no document has are kept.
    A query with an empty cell has no documents. If rows have no id of a query, those
    are left out whose text and history are not those of a query that is searched.

    Args:
        reference: of the data set, with its columns.
        dataset: has the queries and the documents.
        column: what a system returned: a list, or one document a row.
    """
    documents = _read_corpus(reference, dataset)
    ranked_ids: dict[str, list[str]] = {}
    for query_id, hits in _read_hits(reference, dataset, column, documents).items():
        names = [hit.document for hit in sorted(hits, key=lambda hit: hit.order)]
        if documents.by_field:
            matches = documents.match(names)
            names = [
                matches[name].document if name in matches else name for name in names
            ]
        ranked_ids[query_id] = list(dict.fromkeys(names))
    return ranked_ids


def _read_corpus(reference: DatasetReference, dataset: Dataset) -> CheckedDocuments:
    """Return the documents, which are named as in labels."""
    documents = CheckedDocuments(by_field=bool(reference.match))
    for document in dataset.documents():
        documents.known_documents.add(document.id, document.title)
        if documents.by_field:
            documents.add_key(document, reference.match)
    return documents


def _read_hits(
    reference: DatasetReference,
    dataset: Dataset,
    column: str,
    documents: CheckedDocuments,
) -> dict[str, list[_Hit]]:
    """Return the documents in a column by query, as they are written."""
    ids_by_words = {query.words: query.id for query in dataset.queries}

    def names_document(cell: str) -> bool:
        return cell in documents.ids or bool(documents.match([cell]))

    declared = Columns(reference.columns)
    hits: dict[str, list[_Hit]] = {}
    for row in _rows_with(column, reference, dataset):
        placed_row = PlacedRow(row, declared, ReadProblems())
        query_id = document_id(placed_row.value("query_id"))
        if query_id is None:
            query_id = ids_by_words.get(placed_row.query_words() or ())
        if query_id is None:
            continue
        query_hits = hits.setdefault(query_id, [])
        row_order = _order_of(row)
        for own_order, document in _hits_in(row.value(column), names_document):
            orders = (own_order, row_order, float(len(query_hits)))
            order = next(order for order in orders if order is not None)
            query_hits.append(_Hit(order, document))
    return hits


def _rows_with(
    column: str, reference: DatasetReference, dataset: Dataset
) -> Iterator[Row]:
    """Yield the rows of the data set's tables that have a column."""
    outer_column = column.partition(".")[0]
    tables = dataset.tables
    # The exports of tools are read without the columns that have no known path.
    with_column = [table for table in tables if table.has_column(outer_column)]
    listed = {_table_name(file): file for file in list_reference(reference).values()}
    for table in with_column or tables:
        file = _find_file(table.file, listed)
        if file is None:
            continue
        if reference.header is False:
            file = replace(file, header=("",))  # its columns are declared by number
        for row in read_file_rows(file, ReadProblems()):
            if row.has(column):
                yield row


def _table_name(file: File) -> str:
    """Return the name of a file, or of a sheet, as a table that was read has it."""
    return f"{file.path}#{file.table}" if file.table else str(file.path)


def _find_file(name: str, listed: Mapping[str, File]) -> File | None:
    """Return the file of a table; None if it is in none, as of a hub.

    Args:
        name: of the table; rows of JSON may be under a key, `queries.json: examples`.
        listed: the files of the data set, by their names.
    """
    for file_name in (name, name.rpartition(": ")[0]):
        if file_name in listed:
            return listed[file_name]
        if Path(file_name).is_file():
            return File(Path(file_name))
        sheet_path = parse_sheet_path(file_name)
        if sheet_path is not None:
            return File(sheet_path.workbook, table=sheet_path.sheet)
    return None


def _hits_in(
    cell: Any, names_document: NamesDocument
) -> Iterator[tuple[float | None, str]]:
    """Yield the documents in a cell, each with what orders it; None without that."""
    content = scores_or_list(cell, names_document)
    if holds_scores(content) or are_pairs(content):
        pairs = content.items() if isinstance(content, Mapping) else content
        for document, score in pairs:
            yield _signed(score, -1.0), str(document)
        return
    for element in content if isinstance(content, list | tuple) else [content]:
        order = None
        if isinstance(element, Mapping):
            order = _order_of(NO_ROW._replace(cells=element))
        for document in named_documents([element], names_document):
            yield order, document


def _order_of(row: Row) -> float | None:
    """Return the rank in a row or an object, or its score with the sign changed.

    Of several the shortest name counts: `score` before `bm25_score`.
    """
    orders = ((RANK_WORDS, RANK_NAMES, 1.0), (SCORE_WORDS, SCORE_NAMES, -1.0))
    for words, usual_names, sign in orders:
        for name in sorted(map(str, row.cells), key=len):
            is_order = not words.isdisjoint(words_of_name(name))
            if is_order or normalised_name(name) in usual_names:
                order = _signed(row.cells.get(name), sign)
                if order is not None:
                    return order
    return None


def _signed(cell: Any, sign: float) -> float | None:
    """Return a rank or score times a sign; None if it orders nothing, as NaN."""
    try:
        order = sign * float(cell)
    except (TypeError, ValueError, OverflowError):
        return None
    return None if math.isnan(order) else order

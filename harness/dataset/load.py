"""From a reference to a checked data set.

The queries are read first, then the documents, then the labels, which name both. If no
label fits, a column that names documents is looked for: if its name says labels, all is
read again with it, else a problem asks what it is. Judgments in a file of their own
replace labels at the end. Problems are collected and raised together; `choose_reader`
finds the format.
"""

import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path

from harness.dataset.check_corpus import (
    CheckedDocuments,
    check_documents,
    reread_documents,
)
from harness.dataset.check_queries import (
    check_queries,
    is_searched,
    note_unscored_queries,
    query_line,
)
from harness.dataset.choose_reader import open_source
from harness.dataset.columns import kind_first
from harness.dataset.dataset import Dataset, ReadColumn, ReadTable
from harness.dataset.excluded_documents import match_excluded
from harness.dataset.label_column import LabelColumnSearch, find_label_column
from harness.dataset.labels import Labels
from harness.dataset.match_labels import match_labels
from harness.dataset.matched_labels import MatchedLabels, columns_read_as
from harness.dataset.merge_judgments import (
    note_changed_texts,
    read_replacing_judgments,
    replace_labels,
)
from harness.dataset.misread_columns import (
    report_answers_of_ids,
    report_returned_documents,
)
from harness.dataset.read_problems import ReadProblems
from harness.dataset.reference import (
    DatasetReference,
    DeclaredColumn,
    parse_reference,
)
from harness.dataset.source import Source
from harness.dataset.unlabelled_texts import report_texts_of_documents
from harness.dataset.unused_columns import report_unused_columns
from harness.dataset.usual_names import (
    DOCUMENT_NAMING_KINDS,
    LABEL_KINDS,
    normalised_name,
)
from retrievers.errors import InputError
from retrievers.types import Document, Query

CLICK_WORD = "click"
"""A column of labels with this in its name has clicks, not judgments."""


def load_dataset(
    reference: DatasetReference | str | Path,
    *,
    drop_dangling: bool = False,
    sample_size: int = 0,
) -> Dataset:
    """Read and check a data set.

    Args:
        reference: where it is: a path, a name (`hf:…`, `irds:…`), or more.
        drop_dangling: whether labels of unknown documents and queries are dropped and
            counted, not refused; if more than one label in ten is, that is refused.
        sample_size: how many documents `Dataset.sample` has; they are chosen by ids.

    Raises:
        InputError: with the problems of queries, documents and labels; or the first one
            if the data set cannot be opened.

    >>> dataset = load_dataset("datasets/survey-templates-en")
    >>> dataset.document_count, len(dataset.queries)
    (182, 13)
    """
    reference = _as_reference(reference)
    format_name, source = open_source(reference)
    problems = ReadProblems()
    problems.where_columns = frozenset(reference.where)
    queries = check_queries(source, problems)
    documents = check_documents(
        source,
        problems,
        reference.match,
        place=_place_of_documents(reference),
        sample_size=sample_size,
    )
    problems.names_document = lambda cell: bool(documents.match([cell]))
    drop = drop_dangling or reference.drop_dangling
    matched = match_labels(source, problems, documents, queries, drop=drop)
    if matched.labels and (_has_clicks(problems) or _chooses_clicks(reference)):
        problems.notes["clicked-label"] = [*matched.labels]
    queries = match_excluded(queries, matched.labels, documents, problems, drop=drop)
    search = LabelColumnSearch(None)
    if not matched.labels and documents.ids:
        search = find_label_column(problems, documents, reference.columns)
    if search.column is not None:
        columns = (*reference.columns, search.column)
        declared = replace(reference, columns=columns)
        dataset = load_dataset(declared, drop_dangling=drop, sample_size=sample_size)
        return _with_found_column(dataset, search.column)
    is_question = search.is_question
    # Without problems nothing has been asked yet.
    if not (matched.labels or problems or _declares_documents(reference)):
        corpus = (document for _, document in source.documents(ReadProblems()))
        is_question = report_texts_of_documents(problems, corpus, reference.columns)
    parts = _CheckedParts(format_name, source, queries, documents, matched)
    _report_misread_columns(reference, parts, problems, is_question=is_question)
    return _check_labels(reference, parts, problems)


def _as_reference(reference: DatasetReference | str | Path) -> DatasetReference:
    """Return a reference whose columns have the kinds that their aliases mean."""
    if not isinstance(reference, DatasetReference):
        reference = parse_reference(reference)
    columns = tuple(kind_first(*column) for column in reference.columns)
    return replace(reference, columns=columns)


def _declares_documents(reference: DatasetReference) -> bool:
    return any(column.kind in DOCUMENT_NAMING_KINDS for column in reference.columns)


def _place_of_documents(reference: DatasetReference) -> str:
    return reference.documents or reference.name


@dataclass(frozen=True, slots=True)
class _CheckedParts:
    """The parts of a data set, each checked by itself."""

    format_name: str
    source: Source
    queries: Mapping[str, Query]
    documents: CheckedDocuments
    matched: MatchedLabels


def _report_misread_columns(
    reference: DatasetReference,
    parts: _CheckedParts,
    problems: ReadProblems,
    *,
    is_question: bool,
) -> None:
    """Add the problems of columns that may mean something else than was read.

    Args:
        reference: has the declared columns.
        parts: the queries, documents and labels.
        problems: takes the problems, and has the columns.
        is_question: whether a problem already asks which column has labels.
    """
    documents = parts.documents
    declared = reference.columns
    if not parts.matched.labels and documents.ids:
        report_answers_of_ids(parts.queries.values(), problems, documents, declared)
    if parts.matched.labels and not reference.labels:
        report_returned_documents(problems, declared)
    if not is_question:
        report_unused_columns(problems, declared, documents.example())


def _check_labels(
    reference: DatasetReference, parts: _CheckedParts, problems: ReadProblems
) -> Dataset:
    """Return the data set, after judgments have replaced labels.

    Raises:
        InputError: with every problem that was found so far, and those of judgments.
    """
    queries = parts.queries
    documents = parts.documents
    labels = parts.matched.labels
    judgments = read_replacing_judgments(reference, problems)
    if judgments is not None:
        labels = replace_labels(
            labels,
            judgments,
            queries=queries,
            document_ids=documents.ids,
            problems=problems,
        )
        note_changed_texts(parts.source, judgments, queries, problems)
    # All queries are searched if there are no labels yet, or while people judge.
    is_beginning = judgments is not None or not labels
    searched = tuple(
        query
        for query in queries.values()
        if is_searched(query, labels.get(query.id), is_beginning)
    )
    note_unscored_queries(queries, labels, is_beginning, problems)
    if not searched and not problems:
        _add_nothing_to_search(reference, queries, problems)
    if problems:
        raise InputError(problems.problems)
    return _build_dataset(reference, parts, searched, labels=labels, problems=problems)


def _build_dataset(
    reference: DatasetReference,
    parts: _CheckedParts,
    searched: tuple[Query, ...],
    *,
    labels: Mapping[str, Labels],
    problems: ReadProblems,
) -> Dataset:
    """Return the data set of parts that have no problem."""
    queries = parts.queries
    documents = parts.documents
    stored_ids = labels.keys() | {query.id for query in searched}
    unmatched = parts.matched.unmatched
    return Dataset(
        path=reference.name,
        format=parts.format_name,
        queries=searched,
        judged_queries=_queries_with_ids(queries, labels.keys()),
        stored_queries=_queries_with_ids(queries, stored_ids),
        labels=labels,
        document_count=len(documents.ids),
        digest=_dataset_digest(documents.digest, queries.values(), labels),
        corpus_digest=documents.digest,
        tables=_read_tables(problems),
        table_sizes=problems.table_sizes,
        matched_by=parts.matched.matched_by,
        unknown_documents=tuple(label.document for label in unmatched),
        data_quality={kind: tuple(ids) for kind, ids in problems.notes.items()},
        field_names=frozenset(documents.field_names),
        representatives=documents.representatives(),
        sample=documents.sample,
        documents=_corpus(reference, parts),
    )


def _read_tables(problems: ReadProblems) -> tuple[ReadTable, ...]:
    tables: list[ReadTable] = []
    for file, columns in problems.columns_used.items():
        read_columns = tuple(ReadColumn(*column) for column in columns.items())
        tables.append(ReadTable(file, read_columns))
    return tuple(tables)


def _queries_with_ids(
    queries: Mapping[str, Query], ids: Collection[str]
) -> tuple[Query, ...]:
    return tuple(query for query in queries.values() if query.id in ids)


def _corpus(
    reference: DatasetReference, parts: _CheckedParts
) -> Callable[[], Iterator[Document]]:
    digest = parts.documents.digest
    return partial(reread_documents, parts.source, reference.name, digest)


def _has_clicks(problems: ReadProblems) -> bool:
    """Whether a column of labels has clicks."""
    columns = columns_read_as(problems, LABEL_KINDS)
    return any(CLICK_WORD in normalised_name(column) for _, column in columns)


def _chooses_clicks(reference: DatasetReference) -> bool:
    """Whether the values that make a row a label are clicks."""
    values = chain.from_iterable(reference.where.values())
    return any(CLICK_WORD in value.casefold() for value in values)


def _with_found_column(dataset: Dataset, label_column: DeclaredColumn) -> Dataset:
    notes = {**dataset.data_quality, "found-labels": (label_column.column,)}
    return replace(dataset, found_column=label_column, data_quality=notes)


def _add_nothing_to_search(
    reference: DatasetReference, queries: Mapping[str, Query], problems: ReadProblems
) -> None:
    problem = "there is no query"
    remedy = "no query to search"
    if queries:
        problem = "no query has a relevant document"
        remedy = "nothing could be compared"
    problems.add(reference.name, problem, remedy)


def _dataset_digest(
    corpus_digest: str, queries: Iterable[Query], labels: Mapping[str, Labels]
) -> str:
    """Return the SHA-256 of documents, queries and labels."""
    digest = hashlib.sha256(f"{corpus_digest}\n".encode())
    for query in queries:
        query_labels = labels.get(query.id)
        stored_labels = None if query_labels is None else query_labels.as_json()
        digest.update(query_line(query, stored_labels))
    return digest.hexdigest()


def load_documents(reference: DatasetReference) -> Dataset:
    """Read and check the documents; queries are read unchecked, labels not at all.

    The digest of the data set is then that of its documents.

    Raises:
        InputError: with the problems of the documents; or the first one if the data set
            cannot be opened.
    """
    format_name, source = open_source(reference)
    problems = ReadProblems()
    place = _place_of_documents(reference)
    documents = check_documents(source, problems, (), place=place)
    if problems:
        raise InputError(problems.problems)
    queries = tuple(query for _, query in source.queries(ReadProblems()))
    digest = documents.digest
    return Dataset(
        path=reference.name,
        format=format_name,
        queries=queries,
        judged_queries=(),
        labels={},
        document_count=len(documents.ids),
        digest=digest,
        corpus_digest=digest,
        stored_queries=queries,
        table_sizes=problems.table_sizes,
        data_quality={kind: tuple(ids) for kind, ids in problems.notes.items()},
        documents=partial(reread_documents, source, reference.name, digest),
    )

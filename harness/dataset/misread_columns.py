"""Used columns that may mean something else."""

from collections.abc import Iterable, Sequence
from itertools import chain

from harness.dataset.check_corpus import CheckedDocuments
from harness.dataset.columns import (
    declaration,
    declared_field_names,
)
from harness.dataset.judging_columns import orders_documents
from harness.dataset.label_lists import named_documents
from harness.dataset.read_problems import ReadProblems
from harness.dataset.reference import DeclaredColumn
from harness.dataset.usual_names import (
    LABEL_KINDS,
    NEUTRAL_DOCUMENT_NAMES,
    SCORE_NAME,
    normalised_name,
)
from retrievers.remedy import Option, Remedy, Setting, compose_remedy
from retrievers.types import Query


def report_returned_documents(
    problems: ReadProblems, declared: Sequence[DeclaredColumn]
) -> None:
    """Add a problem for each table of labels that looks like what a system returned.

    Its documents have a rank, a distance or the like, and no grade but a score. Tables
    are not examined if a column of labels is declared.
    """
    if declares_labels(declared):
        return
    field_names = declared_field_names(declared)
    for file, columns in problems.columns_used.items():
        label_column = ""
        is_graded = False
        for column, kind in columns.items():
            column_name = normalised_name(column)
            if kind == "label_document" and column_name in NEUTRAL_DOCUMENT_NAMES:
                label_column = column
            is_graded |= kind == "grade" and column_name != SCORE_NAME
        order = _order_column(file, field_names, problems)
        if label_column and order and not is_graded:
            _add_returned_documents(file, label_column, order, problems)


def _order_column(file: str, field_names: Sequence[str], problems: ReadProblems) -> str:
    """Return the unused column of a file that orders documents; empty without one."""
    for column, cells in problems.unused_columns.get(file, {}).items():
        if column not in field_names and orders_documents(column, cells):
            return column
    return ""


def declares_labels(declared: Sequence[DeclaredColumn]) -> bool:
    """Whether a column of labels is declared."""
    return any(column.kind in LABEL_KINDS for column in declared)


def _add_returned_documents(
    file: str, label_column: str, order: str, problems: ReadProblems
) -> None:
    problem = (
        f"{order!r} looks like what a system returned, "
        "and each of these rows would be a label"
    )
    remedy = compose_remedy(
        "if people judged them: ",
        declaration("label_document", label_column),
        "; if a system returned them, ",
        _run_remedy(label_column),
    )
    problems.add(file, problem, remedy)


def _run_remedy(column: str) -> Remedy:
    """Return how a column that a system filled is compared."""
    return compose_remedy(
        "compare it as a retriever of ",
        Setting("kind", "run"),
        Option(f"harness init --columns run={column}"),
    )


def report_answers_of_ids(
    queries: Iterable[Query],
    problems: ReadProblems,
    documents: CheckedDocuments,
    declared: Sequence[DeclaredColumn],
) -> None:
    """Add a problem if all reference answers are ids of documents: perhaps labels."""
    if any(column.kind == "reference" for column in declared):
        return
    answers = chain.from_iterable(query.reference.answers for query in queries)
    ids: list[str] = []
    for answer in answers:
        ids += named_documents(answer, problems.names_document)
    matches = documents.match(ids)
    by_id = [
        id_ for id_ in ids if id_ in matches and matches[id_].matched_by != "title"
    ]
    if not ids or len(by_id) < len(ids):
        return
    for file, columns in problems.columns_used.items():
        for column, kind in columns.items():
            if kind == "reference":
                problems.add(
                    file,
                    f"{column!r} names documents, and is read as reference answers",
                    compose_remedy(
                        "if it has labels: ",
                        declaration("relevant", column),
                        "; if it has answers: ",
                        declaration("reference", column),
                    ),
                )

"""Labels that name no query or document."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from harness.dataset.check_corpus import (
    DROP_REMEDY,
    MAX_COMPARED_IDS,
    CheckedDocuments,
)
from harness.dataset.columns import declaration, not_labels_remedy
from harness.dataset.matched_labels import (
    MatchedLabels,
    TableColumn,
    UnmatchedLabel,
    has_unnamed_queries,
)
from harness.dataset.read_problems import ReadProblems, unconverted_reasons
from harness.dataset.source import PlacedLabels
from harness.english import count_of, first_names
from retrievers.errors import Problem, nearest_word
from retrievers.ids import KnownDocuments, common_folder
from retrievers.remedy import compose_remedy
from retrievers.types import Query

MAX_LOST_SHARE = 0.1
"""Largest share of the labels that may be lost, for all reasons together."""
MIN_LABELS_OF_ONE_CAUSE = 3
"""Labels or queries from which on one cause is reported as one problem."""
MAX_SHOWN_LABELS = 3
"""Labels that a message gives as examples."""


class ConversionFailure(NamedTuple):
    """A file that could not be converted."""

    file: str
    reason: str


def report_blank_query(placed: PlacedLabels, problems: ReadProblems) -> None:
    """Add the problem of labels whose query has no text."""
    query = f"judged query {placed.query_id!r}"
    if has_unnamed_queries(problems, placed.location):
        query = "a judged query"
    remedy = "write its text, or remove its labels"
    problems.add(placed.location, f"{query} is blank", remedy)


def report_unknown_queries(
    all_labels: Sequence[PlacedLabels],
    queries: Mapping[str, Query],
    problems: ReadProblems,
) -> None:
    """Add a problem for each labelled query that does not exist.

    One problem if none of them exists, and there are three or more.
    """
    unknown = [placed for placed in all_labels if placed.query_id not in queries]
    if len(unknown) == len(all_labels) >= MIN_LABELS_OF_ONE_CAUSE:
        example = next(iter(queries))
        problems.add(
            unknown[0].location.file,
            f"none of the {len(all_labels):,} labelled queries exists: "
            f"labels name {unknown[0].query_id!r}, and ids look like {example!r}",
            "give labels and queries the same ids",
        )
        return
    for location, query_id, _ in unknown:
        hint = ""
        if len(queries) <= MAX_COMPARED_IDS:
            hint = nearest_word(query_id, queries)
        beginning = f"{hint} correct the id, or ".lstrip()
        remedy = compose_remedy(beginning, DROP_REMEDY)
        problem = f"labels name query {query_id!r}, which does not exist"
        problems.add(location, problem, remedy)


def report_unknown_documents(
    matched: MatchedLabels,
    guessed_columns: Sequence[TableColumn],
    documents: CheckedDocuments,
    problems: ReadProblems,
) -> None:
    """Add the problems of labels that name no document.

    One problem if they come from a column that was only guessed to have ids, or if all
    ids are of another kind or in a missing folder; else one for each document and file
    of labels. Files that could not be converted have a problem each in any case.
    """
    unmatched = matched.unmatched
    distinct_names = dict.fromkeys(label.document for label in unmatched)
    failures = _conversion_failures(distinct_names, problems)
    failed = [label for label in unmatched if label.document in failures]
    unknown_count = len(unmatched) - len(failed)
    unknown_names = [name for name in distinct_names if name not in failures]
    has_many = len(unknown_names) >= MIN_LABELS_OF_ONE_CAUSE
    folder = common_folder(unknown_names) if has_many else ""
    examples = first_names([*map(repr, unknown_names)], MAX_SHOWN_LABELS)
    none_matches = not matched.matched_by
    # The column was only guessed to name documents, and none of its values does.
    if guessed_columns and none_matches and unknown_count > 1 and not folder:
        _report_wrong_column(guessed_columns[0], examples, documents, problems)
        unmatched = failed
    # One folder is missing, or the labels have ids of another kind.
    elif has_many and (folder or none_matches):
        subject = count_of(unknown_count, "label")
        if folder:
            subject += f" begin with {folder!r} and"
        problem = f"{subject} name no document: {examples}; {documents.example()}"
        remedy = compose_remedy("correct the ids, or ", DROP_REMEDY)
        problems.add(unmatched[0].location.file, problem.rstrip("; "), remedy)
        unmatched = failed
    labels_by_document: dict[tuple[str, str], list[UnmatchedLabel]] = {}
    for label in unmatched:
        file_and_document = (label.location.file, label.document)
        labels_by_document.setdefault(file_and_document, []).append(label)
    for labels in labels_by_document.values():
        _report_unknown_document(labels, failures, documents, problems)


def _conversion_failures(
    names: Iterable[str], problems: ReadProblems
) -> dict[str, ConversionFailure]:
    """Return the files that could not be converted, by the names that labels use."""
    reasons = unconverted_reasons(problems.notes.get("unconverted-file", ()))
    matches = KnownDocuments(set(reasons)).match(names)
    return {
        name: ConversionFailure(match.document, reasons[match.document])
        for name, match in matches.items()
    }


def _report_wrong_column(
    guessed: TableColumn,
    examples: str,
    documents: CheckedDocuments,
    problems: ReadProblems,
) -> None:
    """Add the problem of a column that was read as document ids and has none.

    Args:
        guessed: the column.
        examples: some of its values.
        documents: the ids of the corpus.
        problems: takes the problem.
    """
    problem = (
        f"Column {guessed.column!r}: no value is a document id. "
        f"Found {examples}; {documents.example()}"
    )
    remedy = compose_remedy(
        "name documents by their ids; or say which column does: ",
        declaration("label_document"),
        "; ",
        not_labels_remedy(guessed.column),
    )
    problems.add(guessed.file, problem.rstrip("; "), remedy)


def _report_unknown_document(
    labels: Sequence[UnmatchedLabel],
    failures: Mapping[str, ConversionFailure],
    documents: CheckedDocuments,
    problems: ReadProblems,
) -> None:
    """Add the problem of a document that is unknown or could not be converted.

    Args:
        labels: those of one file that name it.
        failures: label -> the file that it names, and that could not be converted.
        documents: the ids of the corpus.
        problems: takes the problem.
    """
    first, *others = labels
    has_names = not has_unnamed_queries(problems, first.location)
    subject = f"query {first.query_id!r} names" if has_names else "names"
    queries = ""
    if others:
        subject = f"{len(labels):,} {'queries' if has_names else 'labels'} name"
        names = [label.query_id for label in labels]
        queries = f": {first_names(names, MAX_SHOWN_LABELS)}" if has_names else ""
    failure = failures.get(first.document)
    if failure is None:
        reason = "which does not exist"
        remedy = documents.nearest_remedy(first.document)
    else:
        reason = f"which could not be converted: {failure.reason}"
        if failure.file != first.document:
            reason = f"but {failure.file} could not be converted: {failure.reason}"
        remedy = compose_remedy("write the file again, or as text")
    problem = f"{subject} document {first.document!r}, {reason}{queries}"
    where = str(first.location)
    problems.append(Problem(where, problem, remedy, occurrences=len(labels)))


def report_lost_labels(
    matched: MatchedLabels,
    documents: CheckedDocuments,
    problems: ReadProblems,
    file: str,
) -> None:
    """Add a problem if more than one label in ten is lost, for all reasons together.

    Skipped if there are problems already: they are about the same labels.
    """
    lost_count = matched.lost_label_counts.total()
    total = lost_count + matched.matched_by.total()
    if problems or lost_count <= MAX_LOST_SHARE * total:
        return
    causes = ", ".join(
        f"{count:,} {cause}"
        for cause, count in matched.lost_label_counts.items()
        if count
    )
    example = ""
    if matched.unmatched:
        document = matched.unmatched[0].document
        example = f", such as {document!r}; {documents.example()}".rstrip("; ")
    problem = (
        f"{lost_count:,} of {total:,} labels are lost, more than one in ten: {causes}"
    )
    remedy = "correct them, or remove them from the file"
    problems.add(file, f"{problem}{example}", remedy)

"""The documents that labels mean.

`match_labels` reads all labels, and finds their documents by id, by field, by title or,
if they may quote, by text. What names no document is a problem, or dropped and noted;
it is a problem, too, if more than one label in ten is lost. Spans are placed in their
documents at the end.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from harness.dataset.check_corpus import (
    DROP_REMEDY,
    MAX_COMPARED_IDS,
    CheckedDocuments,
    documents_with_text,
)
from harness.dataset.columns import declaration, not_labels_remedy
from harness.dataset.labels import Labels
from harness.dataset.place_spans import place_spans
from harness.dataset.read_problems import ReadProblems, unconverted_reasons
from harness.dataset.source import PlacedLabels, Source, SourceLocation
from harness.dataset.usual_names import DOCUMENT_ID_KINDS, normalised_name
from harness.english import count_of, first_names
from retrievers.errors import Problem, nearest_word
from retrievers.ids import IdMatch, KnownDocuments, common_folder, normalise_text
from retrievers.remedy import compose_remedy
from retrievers.types import Query

MAX_LOST_SHARE = 0.1
"""Largest share of the labels that may be lost, for all reasons together."""
MIN_LABELS_OF_ONE_CAUSE = 3
"""Labels or queries from which on one cause is reported as one problem."""
MAX_SHOWN_PASSAGE_LENGTH = 80
"""Characters of a passage in a note: about one line of a terminal."""
MAX_SHOWN_LABELS = 3
"""Labels that a message gives as examples."""
MAX_NOTE_LENGTH = 240
"""Characters of a note: about three lines of a terminal."""


class UnmatchedLabel(NamedTuple):
    """A label that names no document."""

    location: SourceLocation
    query_id: str
    document: str


class ConversionFailure(NamedTuple):
    """A file that could not be converted."""

    file: str
    reason: str


class TableColumn(NamedTuple):
    """A column of a table."""

    file: str
    column: str


@dataclass(slots=True)
class MatchedLabels:
    """The labels of a data set with the ids of their documents.

    Counts are of the names in each query's labels: a name that occurs twice counts
    once.
    """

    labels: dict[str, Labels] = field(default_factory=dict)
    matched_by: Counter[str] = field(default_factory=Counter)
    """How labels identify their documents, by id or title, say -> how many do."""
    unmatched: list[UnmatchedLabel] = field(default_factory=list)
    lost_label_counts: Counter[str] = field(default_factory=Counter)
    """Why labels are lost -> how many are."""
    queries_without_relevant: list[PlacedLabels] = field(default_factory=list)
    """The labels, as they were read, of queries that lose all relevant documents."""

    def add(
        self,
        placed: PlacedLabels,
        matches: Mapping[str, IdMatch],
        problems: ReadProblems,
    ) -> None:
        """Add the labels of a query under document ids.

        A label that names no document is not added: it is counted in
        `lost_label_counts`, and noted in `problems`, from which `harness check` prints
        it.
        """
        labels = placed.labels
        id_by_name: dict[str, str] = {}
        for document, position in _first_positions(labels.documents).items():
            match = matches.get(document)
            if match is not None:
                id_by_name[document] = match.document
                self.matched_by[match.matched_by] += 1
            elif labels.quoted:
                self._note_unknown_passage(placed.query_id, document, problems)
            else:
                location = placed.location.of_document(position)
                label = UnmatchedLabel(location, placed.query_id, document)
                self._note_unknown_document(label, problems)
        if any(id_by_name.get(name) != name for name in labels.documents):
            labels = labels.with_renamed_documents(id_by_name)
        if placed.labels.relevant and not labels.relevant:
            self.queries_without_relevant.append(placed)
        # Quotations have become ids like all others.
        self.labels[placed.query_id] = replace(labels, quoted=False)

    def add_unknown_query(self, placed: PlacedLabels, problems: ReadProblems) -> None:
        """Count the labels of a query that does not exist, and note the query."""
        problems.note("dangling-query", placed.query_id)
        count = len(set(placed.labels.documents))
        self.lost_label_counts["are of queries that do not exist"] += count

    def _note_unknown_passage(
        self, query_id: str, quotation: str, problems: ReadProblems
    ) -> None:
        self.lost_label_counts["are passages that no document holds"] += 1
        passage = " ".join(quotation.split())[:MAX_SHOWN_PASSAGE_LENGTH]
        problems.note("unmatched-context", f"{query_id}: {passage}")

    def _note_unknown_document(
        self, label: UnmatchedLabel, problems: ReadProblems
    ) -> None:
        self.lost_label_counts["name no document"] += 1
        self.unmatched.append(label)
        query = _query_or_line(label.query_id, label.location, problems)
        problems.note("dangling-document", f"{query} {label.document}")


def _first_positions(documents: Iterable[str]) -> dict[str, int]:
    """Return the first position of each document, in their order."""
    positions: dict[str, int] = {}
    for position, document in enumerate(documents):
        positions.setdefault(document, position)
    return positions


def match_labels(
    source: Source,
    problems: ReadProblems,
    documents: CheckedDocuments,
    queries: Mapping[str, Query],
    *,
    drop: bool,
) -> MatchedLabels:
    """Read the labels and find the documents that they name.

    Args:
        source: has the labels.
        problems: takes the problems and the notes.
        documents: the ids of the corpus.
        queries: by id.
        drop: whether labels of unknown queries and documents are dropped. If not, they
            are problems. If more than one label in ten is lost, that is a problem
            either way.
    """
    all_labels = list(source.labels(problems))
    guessed_columns = _guessed_columns(problems)
    matches = _find_documents(
        source, documents, all_labels, may_be_texts=bool(guessed_columns)
    )
    if not drop and queries:
        _report_unknown_queries(all_labels, queries, problems)
    matched = MatchedLabels()
    for placed in all_labels:
        query = queries.get(placed.query_id)
        if query is None:
            matched.add_unknown_query(placed, problems)
            continue
        if not query.text.strip():
            _report_blank_query(placed, problems)
        matched.add(placed, matches, problems)
    # Without any document, that alone is the problem.
    if documents.ids:
        _note_queries_without_relevant(
            matched.queries_without_relevant, documents, problems
        )
    if documents.ids and not drop:
        _report_unknown_documents(matched, guessed_columns, documents, problems)
    _place_spans(matched, all_labels, source, problems)
    if documents.ids and queries:
        file = all_labels[0].location.file if all_labels else ""
        _report_lost_labels(matched, documents, problems, file)
    return matched


def _guessed_columns(problems: ReadProblems) -> list[TableColumn]:
    """Return the columns read as document ids although their names do not say so."""
    return [
        column
        for column in columns_read_as(problems, DOCUMENT_ID_KINDS)
        if not _is_named_as_id(column.column)
    ]


def _place_spans(
    matched: MatchedLabels,
    all_labels: Iterable[PlacedLabels],
    source: Source,
    problems: ReadProblems,
) -> None:
    """Turn the labels' written spans into characters of their documents.

    If there are any, this takes a pass over the documents. It is skipped if there are
    problems already: a span may be of a missing document.
    """
    if problems or not any(labels.written_spans for labels in matched.labels.values()):
        return
    locations = {placed.query_id: placed.location for placed in all_labels}
    corpus = (document for _, document in source.documents(ReadProblems()))
    matched.labels = place_spans(matched.labels, locations, corpus, problems)


def _note_queries_without_relevant(
    queries_without_relevant: Iterable[PlacedLabels],
    documents: CheckedDocuments,
    problems: ReadProblems,
) -> None:
    """Note each query that loses all its relevant documents, with their names."""
    for placed in queries_without_relevant:
        query = _query_or_line(placed.query_id, placed.location, problems)
        first = placed.labels.relevant[0]
        examples = first_names([*map(repr, placed.labels.relevant)], MAX_SHOWN_LABELS)
        nearest = documents.nearest(first)
        suffix = f" ({nearest})" if nearest else ""
        problems.note("lost-query", f"{query}: {examples}{suffix}"[:MAX_NOTE_LENGTH])


def _is_named_as_id(column: str) -> bool:
    """Whether the name of a column says that it has ids."""
    return normalised_name(column).rstrip("s").endswith("id")


def _find_documents(
    source: Source,
    documents: CheckedDocuments,
    all_labels: Sequence[PlacedLabels],
    *,
    may_be_texts: bool,
) -> dict[str, IdMatch]:
    """Return the documents that labels name: name in a label -> id and how it matched.

    A name without a document is missing. If labels may quote documents, this takes a
    pass over the documents.

    Args:
        source: has the documents.
        documents: their ids.
        all_labels: the labels of all queries.
        may_be_texts: whether labels may be whole texts of documents, although no column
            says so.
    """
    is_quote_by_label: dict[str, bool] = {}
    for placed in all_labels:
        # If one query quotes a text that another gives as an id, the last one decides.
        labels = placed.labels
        is_quote_by_label |= dict.fromkeys(labels.documents, labels.quoted)
    matches = documents.match(is_quote_by_label)
    text_by_label: dict[str, str] = {}
    quotes: set[str] = set()
    for label, is_quote in is_quote_by_label.items():
        if label in matches or not (may_be_texts or is_quote):
            continue
        text_by_label[label] = normalise_text(label)
        if is_quote:
            quotes.add(text_by_label[label])
    texts = set(filter(None, text_by_label.values()))
    if not texts or documents.by_field:  # labels that name a field are no texts
        return matches
    corpus = (document for _, document in source.documents(ReadProblems()))
    id_by_text = documents_with_text(texts, corpus, full_texts=texts - quotes)
    for label, text in text_by_label.items():
        if text in id_by_text:
            matches[label] = IdMatch(id_by_text[text], "text")
    return matches


def _query_or_line(
    query_id: str, location: SourceLocation, problems: ReadProblems
) -> str:
    """Return the query's id, or the line if queries have no ids of their own."""
    if has_unnamed_queries(problems, location):
        return str(location)
    return query_id


def _report_blank_query(placed: PlacedLabels, problems: ReadProblems) -> None:
    """Add the problem of labels whose query has no text."""
    query = f"judged query {placed.query_id!r}"
    if has_unnamed_queries(problems, placed.location):
        query = "a judged query"
    remedy = "write its text, or remove its labels"
    problems.add(placed.location, f"{query} is blank", remedy)


def _report_unknown_queries(
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


def _report_unknown_documents(
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


def _report_lost_labels(
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


def has_unnamed_queries(problems: ReadProblems, location: SourceLocation) -> bool:
    """Whether queries of a table have no ids, so that messages show the line."""
    columns = problems.columns_used.get(location.file)
    if columns is None:
        return False
    return {"query_id", "label_query"}.isdisjoint(columns.values())


def columns_read_as(
    problems: ReadProblems, kinds: Iterable[str]
) -> Iterator[TableColumn]:
    """Yield each column that was read as one of these kinds."""
    for file, columns in problems.columns_used.items():
        for column, kind in columns.items():
            if kind in kinds:
                yield TableColumn(file, column)

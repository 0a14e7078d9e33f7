"""The documents that labels mean.

`match_labels` reads all labels, and finds their documents by id, by field, by title or,
if they may quote, by text. What names no document is a problem, or dropped and noted.
Spans are placed in their documents at the end.
"""

from collections.abc import Iterable, Mapping, Sequence

from harness.dataset.check_corpus import CheckedDocuments
from harness.dataset.matched_labels import (
    MatchedLabels,
    TableColumn,
    columns_read_as,
    query_or_line,
)
from harness.dataset.place_spans import place_spans
from harness.dataset.quoted_texts import documents_with_text
from harness.dataset.read_problems import ReadProblems
from harness.dataset.source import PlacedLabels, Source
from harness.dataset.unmatched_labels import (
    MAX_SHOWN_LABELS,
    report_blank_query,
    report_lost_labels,
    report_unknown_documents,
    report_unknown_queries,
)
from harness.dataset.usual_names import DOCUMENT_ID_KINDS, normalised_name
from harness.english import first_names
from retrievers.ids import IdMatch, normalise_text
from retrievers.types import Query

MAX_NOTE_LENGTH = 240
"""Characters of a note: about three lines of a terminal."""


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
        report_unknown_queries(all_labels, queries, problems)
    matched = MatchedLabels()
    for placed in all_labels:
        query = queries.get(placed.query_id)
        if query is None:
            matched.add_unknown_query(placed, problems)
            continue
        if not query.text.strip():
            report_blank_query(placed, problems)
        matched.add(placed, matches, problems)
    # Without any document, that alone is the problem.
    if documents.ids:
        _note_queries_without_relevant(
            matched.queries_without_relevant, documents, problems
        )
    if documents.ids and not drop:
        report_unknown_documents(matched, guessed_columns, documents, problems)
    _place_spans(matched, all_labels, source, problems)
    if documents.ids and queries:
        file = all_labels[0].location.file if all_labels else ""
        report_lost_labels(matched, documents, problems, file)
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
        query = query_or_line(placed.query_id, placed.location, problems)
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

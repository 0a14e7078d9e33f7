"""Problems of queries.

`check_queries` comes before labels are read; the rest decides after it which queries
are searched, and notes those without a score.
"""

from collections.abc import Mapping
from typing import Any

from harness.dataset.check_corpus import (
    HALF_CHARACTER_REMEDY,
    digest_line,
    half_character_problem,
)
from harness.dataset.labels import NO_LABELS, Labels
from harness.dataset.read_problems import ReadProblems
from harness.dataset.reference_answers import reference_as_json
from harness.dataset.source import Source, SourceLocation
from harness.dataset.written_values import id_problem
from retrievers.types import Query


def check_queries(source: Source, problems: ReadProblems) -> dict[str, Query]:
    """Return the queries by id; ids and texts that cannot be used become problems.

    The first query of an id stays. Blank queries stay, too, and are noted.
    """
    queries: dict[str, Query] = {}
    locations: dict[str, SourceLocation] = {}
    for location, query in source.queries(problems):
        reason = id_problem(query.id)
        if reason:
            problem = f"query id {query.id!r} {reason}"
            problems.add(location, problem, "give it another id")
        elif query.id in queries:
            remedy = f"ids must be unique; it is at {locations[query.id]} too"
            problems.add(location, f"query id {query.id!r} occurs twice", remedy)
        else:
            queries[query.id] = query
            locations[query.id] = location
            if not query.text.strip():
                problems.note("blank-query", query.id)
            try:
                query_line(query, None)
            except UnicodeEncodeError as error:
                problem = f"query {query.id!r} {half_character_problem(error)}"
                problems.add(location, problem, HALF_CHARACTER_REMEDY)
    return queries


def query_line(query: Query, stored_labels: Mapping[str, Any] | None) -> bytes:
    """Return a query with its labels as one line of JSON, for a digest.

    Raises:
        UnicodeEncodeError: as `digest_line` does.
    """
    row: list[Any] = [query.id, query.text, dict(query.fields), stored_labels]
    reference = reference_as_json(query.reference)
    if reference:
        row.append(reference)
    if query.history:
        row.append(query.history)
    if query.excluded:
        row.append({"excluded": query.excluded})
    return digest_line(row)


def is_searched(query: Query, labels: Labels | None, is_beginning: bool) -> bool:
    """Whether a run searches for a query.

    Args:
        query: the query.
        labels: its labels, if it has any.
        is_beginning: whether the data set has no labels, or people still judge it.
    """
    if labels is not None and labels.relevant:
        return True
    if not query.text.strip():
        return False
    has_use = query.unanswerable or _is_measured_by_claims(query, labels)
    return is_beginning or has_use


def _is_measured_by_claims(query: Query, labels: Labels | None) -> bool:
    """Whether a query has claims; or, without labels, an answer to take them from."""
    if query.reference.claims:
        return True
    return labels is None and bool(query.reference.answers)


def note_unscored_queries(
    queries: Mapping[str, Query],
    labels: Mapping[str, Labels],
    is_beginning: bool,
    problems: ReadProblems,
) -> None:
    """Note the queries without a score: without relevant documents, or labels.

    Queries without labels are not noted if there are problems: these may be the reason.
    """
    _note_irrelevant(queries, labels, problems)
    if problems:
        return
    for query_id in sorted(queries):
        query = queries[query_id]
        is_blank = not query.text.strip()
        if is_blank or labels.get(query_id, NO_LABELS).judged:
            continue
        by_claims = _is_measured_by_claims(query, labels.get(query_id))
        if query.unanswerable:
            problems.note("unanswerable-query", query_id)
        elif is_beginning or by_claims:
            problems.note("unlabelled-query", query_id)
        else:
            problems.note("unjudged-query", query_id)


def _note_irrelevant(
    queries: Mapping[str, Query], labels: Mapping[str, Labels], problems: ReadProblems
) -> None:
    """Note the labelled queries without a relevant label.

    A query that is said to have no answer must have none; if it has, it is a problem.
    """
    for query_id, query_labels in labels.items():
        query = queries[query_id]
        if query.unanswerable and query_labels.relevant:
            problem = "is said to have no answer, and has relevant documents"
            remedy = "remove one of the two"
            problems.add("answerable", f"query {query_id!r} {problem}", remedy)
        has_no_relevant = query_labels.judged and not query_labels.relevant
        if has_no_relevant and not query.unanswerable:
            problems.note("no-relevant-document", query_id)

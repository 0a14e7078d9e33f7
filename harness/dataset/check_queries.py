"""Faults of queries."""

from harness.dataset.labels import Labels
from harness.dataset.read_problems import ReadProblems
from harness.dataset.source import Source, SourceLocation
from harness.dataset.written_values import id_problem
from retrievers.types import Query


def check_queries(source: Source, seen: ReadProblems) -> dict[str, Query]:  # noqa: D103
    queries: dict[str, Query] = {}
    first: dict[str, SourceLocation] = {}
    for place, query in source.queries(seen):
        if reason := id_problem(query.id):
            seen.add(place, f"query id {query.id!r} {reason}", "give it another id")
        elif query.id in queries:
            remedy = f"ids must be unique; it is at {first[query.id]} too"
            seen.add(place, f"query id {query.id!r} occurs twice", remedy)
        else:
            queries[query.id], first[query.id] = query, place
            if not query.text.strip():
                seen.note("blank-query", query.id)
    return queries


def is_searched(query: Query, labels: Labels | None, beginning: bool) -> bool:  # noqa: D103
    if labels is not None and labels.relevant:
        return True
    return (
        beginning or query.unanswerable or _is_measured_by_claims(query, labels)
    ) and query.text.strip() != ""


def _is_measured_by_claims(query: Query, labels: Labels | None) -> bool:
    """Whether a query has claims; or an answer to take them from, if it has no labels."""
    return bool(query.reference.claims or (labels is None and query.reference.answers))


def note_unscored_queries(
    queries: dict[str, Query],
    labels: dict[str, Labels],
    beginning: bool,
    seen: ReadProblems,
) -> None:
    """Count the queries that make no score: without a relevant document, or without labels."""
    for query_id in labels:
        if queries[query_id].unanswerable and labels[query_id].relevant:
            what = f"query {query_id!r} is said to have no answer, and has relevant documents"
            seen.add("answerable", what, "remove one of the two")
        if (
            labels[query_id].judged
            and not labels[query_id].relevant
            and not queries[query_id].unanswerable
        ):
            seen.note("no-relevant-document", query_id)
    asked_of = (
        query_id for query_id, query in queries.items() if query.text.strip()
    )  # blank ones are counted as such
    unjudged = sorted(
        query_id
        for query_id in asked_of
        if query_id not in labels or not labels[query_id].judged
    )
    for query_id in unjudged if not seen else ():
        if queries[query_id].unanswerable:
            seen.note("unanswerable-query", query_id)
            continue
        asked = beginning or _is_measured_by_claims(
            queries[query_id], labels.get(query_id)
        )
        seen.note("unlabelled-query" if asked else "unjudged-query", query_id)

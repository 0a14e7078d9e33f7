"""Labels to grades.

Which queries are scored is decided here, too: those with a relevant document by the
labels that decide (people's; a model's if people judged no query), and those that some
measure scores without one.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from harness.dataset import Labels
from harness.experiment import MeasuredExperiment, RelevanceConfig
from harness.measures import QueryClaims
from harness.measures.grade_rules import (
    MAX_EXPONENTIAL_GRADE,
    GradeBuckets,
    gain_of,
    gain_warning,
    grade_documents,
)
from harness.measures.score import Grades
from retrievers.errors import InputError, Problem
from retrievers.types import Query, Span

ABSTAIN_MEASURE = "Abstain"
"""The measure of queries that no document answers."""


class GradedLabels(NamedTuple):
    """Labels after the grade rule."""

    grades: dict[str, dict[str, int]]
    """Query id -> document id -> grade, for every query with a relevant document.

    {} for a query that is scored without one: by its claims, or since nothing answers
    it.
    """
    groups: dict[str, tuple[tuple[str, ...], ...]]
    """Query id -> groups of alternatives, if the labels have them."""
    warning: str
    """The warning about the grades under the experiment's gain; "" for none."""
    judged_by_people: bool = True
    """False if only a model judged."""
    unanswerable: frozenset[str] = frozenset()
    """The scored queries that no document answers."""
    claims: Mapping[str, QueryClaims] | None = None
    """Query id -> the claims of its reference answer, and what entails them.

    None if no claims were judged.
    """
    spans: Mapping[str, tuple[Span, ...]] = {}
    """Query id -> its labelled characters, if the labels have spans."""


def grade_labels(
    labels: Mapping[str, Labels], relevance: RelevanceConfig
) -> GradedLabels:
    """Apply the grade rule to the labels.

    Queries without a relevant document are left out, for all retrievers alike. Groups
    of alternatives are graded 1. If people judged any query, those that a model judged,
    even in part, are not scored.

    Raises:
        InputError: the rule does not fit the labels, or the grades do not fit the gain.
    """
    deciding = deciding_labels(labels)
    grades: dict[str, dict[str, int]] = {}
    groups: dict[str, tuple[tuple[str, ...], ...]] = {}
    spans: dict[str, tuple[Span, ...]] = {}
    for query_id, query_labels in deciding.items():
        if not query_labels.relevant:
            continue
        grades[query_id] = grade_query(query_id, query_labels, relevance)
        if query_labels.groups is not None:
            groups[query_id] = query_labels.groups
        if query_labels.spans:
            spans[query_id] = query_labels.spans
    largest = max((max(judged.values()) for judged in grades.values()), default=0)
    rule_name = _rule_name(deciding, relevance)
    return GradedLabels(
        grades,
        groups,
        warning=gain_warning(rule_name, largest, relevance.gain),
        judged_by_people=people_judged(labels),
        spans=spans,
    )


def _rule_name(labels: Mapping[str, Labels], relevance: RelevanceConfig) -> str:
    """Return the name of the grade rule, as in messages."""
    if isinstance(relevance.grades, str) and relevance.grades:
        return relevance.grades
    if relevance.grades:
        return "buckets"
    has_grades = any(
        query_labels.grades is not None for query_labels in labels.values()
    )
    return "explicit" if has_grades else "linear"


def deciding_labels(labels: Mapping[str, Labels]) -> Mapping[str, Labels]:
    """Return the labels of the queries that people judged; if they judged none, all."""
    by_people = {
        query_id: query_labels
        for query_id, query_labels in labels.items()
        if query_labels.judged and _is_by_people(query_labels)
    }
    return by_people or labels


def people_judged(labels: Mapping[str, Labels]) -> bool:
    """Whether scores rest on people's labels, or on no labels at all.

    People's labels are files of labels, or judgments of people.
    """
    judged = [query_labels for query_labels in labels.values() if query_labels.judged]
    return not judged or any(map(_is_by_people, judged))


def _is_by_people(labels: Labels) -> bool:
    return labels.source in ("", "people")


def grade_measured_queries(
    labels: Mapping[str, Labels],
    queries: Iterable[Query],
    question: MeasuredExperiment,
) -> GradedLabels:
    """Grade the labels of an experiment, for every query that it measures.

    Raises:
        InputError: as `grade_labels`.
    """
    graded = grade_labels(labels, question.experiment.relevance)
    return _with_queries_without_relevant(graded, queries, question)


def _with_queries_without_relevant(
    graded: GradedLabels, queries: Iterable[Query], question: MeasuredExperiment
) -> GradedLabels:
    """Add the queries without a relevant document that are still measured.

    Measures by claims need claims, or a reference to take them from; Abstain needs
    queries that no document answers; measures by labels are undefined for both. Nothing
    is added if no measure needs them, nor if the primary measure needs labels and no
    query has any.
    """
    by_claims = any(measure.uses_claims for measure in question.measures)
    abstains = any(measure.name == ABSTAIN_MEASURE for measure in question.measures)
    primary = question.primary
    needs_labels = not primary.uses_claims and primary.name != ABSTAIN_MEASURE
    if needs_labels and not graded.grades:
        return graded
    added: dict[str, dict[str, int]] = {}
    unanswerable: set[str] = set()
    for query in queries:
        has_claims = bool(query.reference.claims or query.reference.answers)
        if (by_claims and has_claims) or (abstains and query.unanswerable):
            added[query.id] = {}
            if query.unanswerable:
                unanswerable.add(query.id)
    return graded._replace(
        grades={**added, **graded.grades}, unanswerable=frozenset(unanswerable)
    )


def unmeasured_abstention(where: str) -> Problem:
    """Return the problem that Abstain decides, and every query has an answer."""
    problem = "Abstain needs queries without an answer, and there are none"
    return Problem(where, problem, 'mark them: "answerable": false')


def exponential_gains(grades: Grades) -> dict[str, dict[str, int]] | None:
    """Return the exponential gains 2^grade - 1; None if a grade is too high for them.

    >>> exponential_gains({"q": {"a": 2, "b": 30}})
    {'q': {'a': 3, 'b': 1073741823}}
    >>> exponential_gains({"q": {"a": 31}}) is None
    True
    """
    gains: dict[str, dict[str, int]] = {}
    for query_id, judged in grades.items():
        if max(judged.values(), default=0) > MAX_EXPONENTIAL_GRADE:
            return None
        gains[query_id] = {
            document: gain_of(grade, "exponential")
            for document, grade in judged.items()
        }
    return gains


def grade_query(
    query: str, labels: Labels, relevance: RelevanceConfig
) -> dict[str, int]:
    """Return the grades of one query's documents.

    Raises:
        InputError: the rule does not fit the labels.
    """
    rule = relevance.grades
    remedy = "leave grades out to take the labels as they are"
    if labels.grades is not None:
        if rule in (None, "explicit"):
            return dict(labels.grades)
        if rule == "binary":
            return binary_grades(labels.grades)
        problem = f"query {query!r} has grades, no order: {rule!r} cannot be applied"
        raise InputError(Problem("relevance.grades", problem, remedy))
    if rule == "explicit":
        problem = f"query {query!r} has a list of documents, no grades"
        raise InputError(Problem("relevance.grades", problem, remedy))
    if labels.groups is not None:
        return dict.fromkeys(labels.documents, 1)
    if isinstance(rule, tuple):
        return grade_documents(labels.documents, GradeBuckets(rule))
    return grade_documents(labels.documents, rule or "linear")


def binary_grades(judged: Mapping[str, int]) -> dict[str, int]:
    """Return the grades with 1 for every relevant document."""
    return {document: min(grade, 1) for document, grade in judged.items()}

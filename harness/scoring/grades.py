"""Labels to grades."""

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
from retrievers.errors import InputError, Problem
from retrievers.types import Query

ABSTAIN_MEASURE = "Abstain"
"""The measure of queries that nothing answers."""
Grades = Mapping[str, Mapping[str, int]]
"""Query id -> document id -> grade."""


class GradedLabels(NamedTuple):
    """Labels after the grade rule."""

    grades: dict[str, dict[str, int]]
    """Query id -> document id -> grade, for every query with a relevant document; {} for one that has claims alone."""
    groups: dict[str, tuple[tuple[str, ...], ...]]
    """Query id -> groups of alternatives, where the labels have them."""
    warning: str
    """What to know about the grades under the experiment's gain; "" where nothing."""
    judged_by_people: bool = True
    """False where a model alone judged."""
    unanswerable: frozenset[str] = frozenset()
    """The scored queries that nothing answers."""
    claims: Mapping[str, QueryClaims] | None = None
    """Query id -> the claims of its reference answer and what entails them; None if no claims were judged."""


def grade_labels(
    labels: Mapping[str, Labels], relevance: RelevanceConfig
) -> GradedLabels:
    """Apply the grade rule to the labels.

    Queries without a relevant document are left out, for all retrievers alike. Groups of alternatives are graded 1.
    Where people judged any query, those that a model judged, wholly or in part, make no score.

    Raises:
        InputError: the rule does not fit the labels, or the grades do not fit the gain.
    """
    by_people = people_judged(labels)
    labels = deciding_labels(labels)
    grades = {
        query: grade_query(query, given, relevance)
        for query, given in labels.items()
        if given.relevant
    }
    rule = relevance.grades or (
        "explicit"
        if any(given.grades is not None for given in labels.values())
        else "linear"
    )
    named = rule if isinstance(rule, str) else "buckets"
    largest = max((max(judged.values()) for judged in grades.values()), default=0)
    groups = {
        query: labels[query].groups or ()
        for query in grades
        if labels[query].groups is not None
    }
    return GradedLabels(
        grades, groups, gain_warning(named, largest, relevance.gain), by_people
    )


def deciding_labels(labels: Mapping[str, Labels]) -> Mapping[str, Labels]:
    """The labels that scores use: people's where there are any, else a model's."""
    by_people = {
        query: given
        for query, given in labels.items()
        if given.judged and given.source in ("", "people")
    }
    return by_people or labels


def people_judged(labels: Mapping[str, Labels]) -> bool:
    """Whether scores rest on people's labels (files of labels, or judgments of people), or on no labels at all."""
    judged = [given for given in labels.values() if given.judged]
    return not judged or any(given.source in ("", "people") for given in judged)


def with_queries_without_relevant(
    graded: GradedLabels, queries: Iterable[Query], question: MeasuredExperiment
) -> GradedLabels:
    """The same with the queries that have no relevant document and are measured all the same.

    Measures by claims need claims, or a reference to take them from, and Abstain queries that nothing answers; measures
    by labels are undefined for both. Nothing is added where no measure needs them, nor where the primary measure needs
    labels and there are none.
    """
    by_claims = any(one.uses_claims for one in question.measures)
    abstains = any(one.name == ABSTAIN_MEASURE for one in question.measures)
    if not (
        graded.grades
        or question.primary.uses_claims
        or question.primary.name == ABSTAIN_MEASURE
    ):
        return graded
    bare = [
        query
        for query in queries
        if (by_claims and (query.reference.claims or query.reference.answers))
        or (abstains and query.unanswerable)
    ]
    grades = {**{query.id: {} for query in bare}, **graded.grades}
    return graded._replace(
        grades=grades,
        unanswerable=frozenset(one.id for one in bare if one.unanswerable),
    )


def exponential_gains(grades: Grades) -> dict[str, dict[str, int]] | None:
    """The exponential gains 2^grade - 1; None where a grade is too high for them to mean anything.

    >>> exponential_gains({"q": {"a": 2, "b": 30}}), exponential_gains({"q": {"a": 31}})
    ({'q': {'a': 3, 'b': 1073741823}}, None)
    """
    if any(
        g > MAX_EXPONENTIAL_GRADE for judged in grades.values() for g in judged.values()
    ):
        return None
    return {
        q: {doc: gain_of(g, "exponential") for doc, g in judged.items()}
        for q, judged in grades.items()
    }


def grade_query(  # noqa: D103
    query: str, labels: Labels, relevance: RelevanceConfig
) -> dict[str, int]:
    rule = relevance.grades
    remedy = "leave grades out to take the labels as they are"
    if labels.grades is not None:
        if rule in (None, "explicit"):
            return dict(labels.grades)
        if rule == "binary":
            return {doc: min(g, 1) for doc, g in labels.grades.items()}
        what = f"query {query!r} has grades, no order: {rule!r} cannot be applied"
        raise InputError(Problem("relevance.grades", what, remedy))
    if rule == "explicit":
        raise InputError(
            Problem(
                "relevance.grades",
                f"query {query!r} has a list of documents, no grades",
                remedy,
            )
        )
    if labels.groups is not None:
        return dict.fromkeys(labels.documents, 1)
    return grade_documents(
        labels.documents,
        GradeBuckets(rule) if isinstance(rule, tuple) else rule or "linear",
    )

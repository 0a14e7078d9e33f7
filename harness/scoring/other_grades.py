"""Grades by other rules, or by single persons."""

from collections.abc import Mapping

from harness.dataset import Labels
from harness.experiment import RelevanceConfig
from harness.measures.sensitivity import grades_by_rule
from harness.scoring.grades import (
    binary_grades,
    deciding_labels,
    grade_labels,
    grade_query,
)


def other_grades(
    labels: Mapping[str, Labels], relevance: RelevanceConfig
) -> dict[str, dict[str, dict[str, int]]]:
    """Return the judgments under other grade rules, the experiment's own first.

    They show whether the winner depends on the rule. Ordered lists can be graded by
    every named rule; explicit grades as given or binary; groups have one reading. Last
    are those of each person who judged documents of every scored query, as another
    person did.
    """
    graded = grade_labels(labels, relevance).grades
    deciding = deciding_labels(labels)
    scored = {query_id: deciding[query_id] for query_id in graded}
    lists = {
        query_id: query_labels.documents
        for query_id, query_labels in scored.items()
        if query_labels.ranked is not None
    }
    if len(lists) == len(graded):
        by_rule = _grades_of_lists(lists, graded, relevance)
    elif any(query_labels.groups is not None for query_labels in scored.values()):
        return {"as given": graded}
    else:
        by_rule = _grades_as_given_and_binary(scored, graded, relevance)
    return {**by_rule, **_grades_by_person(scored, relevance)}


def _grades_as_given_and_binary(
    labels: Mapping[str, Labels],
    graded: dict[str, dict[str, int]],
    relevance: RelevanceConfig,
) -> dict[str, dict[str, dict[str, int]]]:
    """Return explicit grades by the declared rule, then by the other if it differs."""
    as_given = relevance.model_copy(update={"grades": None})
    by_rule = {
        "as given": {
            query_id: grade_query(query_id, query_labels, as_given)
            for query_id, query_labels in labels.items()
        },
        "binary": {
            query_id: binary_grades(judged) for query_id, judged in graded.items()
        },
    }
    declared = "binary" if relevance.grades == "binary" else "as given"
    differing = {rule: grades for rule, grades in by_rule.items() if grades != graded}
    return {declared: graded, **differing}


def _grades_of_lists(
    lists: Mapping[str, tuple[str, ...]],
    graded: dict[str, dict[str, int]],
    relevance: RelevanceConfig,
) -> dict[str, dict[str, dict[str, int]]]:
    """Return the grades of ordered lists by every named rule."""
    if isinstance(relevance.grades, tuple):
        return {"buckets": graded, **grades_by_rule(lists)}
    if relevance.grades == "explicit":  # no query is graded: see `grade_query`
        return {}
    return grades_by_rule(lists, first=relevance.grades or "linear")


def labels_by_person(labels: Mapping[str, Labels]) -> dict[str, dict[str, Labels]]:
    """Return the labels of each person: person -> query id -> labels.

    Empty unless several persons labelled the same queries.

    >>> grades = {"ann": {"a": 2, "b": 1}, "ben": {"b": 1}}
    >>> merged = Labels(ranked=("a", "b"), grades_by_labeller=grades)
    >>> labels_by_person({"q": merged})["ann"]["q"].ranked
    ('a', 'b')
    """
    by_person: dict[str, dict[str, Labels]] = {}
    for query_id, merged in labels.items():
        for person, grades in merged.grades_by_labeller.items():
            by_person.setdefault(person, {})[query_id] = _person_labels(
                person, grades, merged
            )
    return by_person


def _person_labels(person: str, grades: Mapping[str, int], merged: Labels) -> Labels:
    """Return one person's labels, in the form of the merged ones."""
    if merged.ranked is None:
        return Labels(grades=grades, labelled_by=person, source=merged.source)
    ranked = tuple(sorted(grades, key=grades.__getitem__, reverse=True))
    return Labels(ranked=ranked, labelled_by=person, source=merged.source)


def _grades_by_person(
    labels: Mapping[str, Labels], relevance: RelevanceConfig
) -> dict[str, dict[str, dict[str, int]]]:
    """Return the grades of each person who judged every one of these queries."""
    by_person: dict[str, dict[str, dict[str, int]]] = {}
    for person, person_labels in labels_by_person(labels).items():
        if len(person_labels) == len(labels):
            by_person[f"by {person}"] = {
                query_id: grade_query(query_id, query_labels, relevance)
                for query_id, query_labels in person_labels.items()
            }
    return by_person

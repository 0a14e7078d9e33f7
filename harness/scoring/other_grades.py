"""Grades by other rules, or by single persons."""

from collections.abc import Mapping

from harness.dataset import Labels
from harness.experiment import RelevanceConfig
from harness.measures.sensitivity import grades_by_rule
from harness.scoring.grades import deciding_labels, grade_labels, grade_query


def other_grades(
    labels: Mapping[str, Labels], relevance: RelevanceConfig
) -> dict[str, dict[str, dict[str, int]]]:
    """The judgments under other grade rules, the experiment's own first: does the winner depend on the rule?

    Ordered lists can be graded by every named rule; grades as given also as binary; groups have one reading.
    """
    judged = grade_labels(labels, relevance).grades
    labels = deciding_labels(labels)
    lists = {
        query: labels[query].documents
        for query in judged
        if labels[query].ranked is not None
    }
    if len(lists) == len(judged):
        named = relevance.grades if isinstance(relevance.grades, str) else "linear"
        rules = grades_by_rule(lists, first=named) if named != "explicit" else {}
        rules = (
            {"buckets": judged, **rules}
            if isinstance(relevance.grades, tuple)
            else rules
        )
    elif any(labels[query].groups is not None for query in judged):
        return {"as given": judged}
    else:
        binary = {
            query: {doc: min(g, 1) for doc, g in grades.items()}
            for query, grades in judged.items()
        }
        rules = (
            {"as given": judged, "binary": binary}
            if binary != judged
            else {"as given": judged}
        )
    return {**rules, **_by_judge({query: labels[query] for query in judged}, relevance)}


def labels_by_person(labels: Mapping[str, Labels]) -> dict[str, dict[str, Labels]]:
    """The labels of each person, where several labelled the same queries: person -> query id -> labels.

    >>> merged = Labels(ranked=("a", "b"), grades_by_labeller={"ann": {"a": 2, "b": 1}, "ben": {"b": 1}})
    >>> labels_by_person({"q": merged})["ann"]["q"].ranked
    ('a', 'b')
    """
    people: dict[str, dict[str, Labels]] = {}
    for query, merged in labels.items():
        for person, grades in merged.grades_by_labeller.items():
            ranked = (
                None
                if merged.ranked is None
                else tuple(sorted(grades, key=grades.__getitem__, reverse=True))
            )
            own = Labels(
                grades=grades if ranked is None else None,
                ranked=ranked,
                labelled_by=person,
                source=merged.source,
            )
            people.setdefault(person, {})[query] = own
    return people


def _by_judge(
    labels: Mapping[str, Labels], relevance: RelevanceConfig
) -> dict[str, dict[str, dict[str, int]]]:
    """The judgments of each person who judged every one of these queries."""
    return {
        f"by {person}": {
            query: grade_query(query, given, relevance) for query, given in own.items()
        }
        for person, own in labels_by_person(labels).items()
        if len(own) == len(labels)
    }

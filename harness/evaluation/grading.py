"""From labels, kept as they were given, to grades and gains; which queries ask the same, and how much each counts."""

import math
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from harness.dataset import Labels
from harness.english import counted
from harness.experiment import Question, Relevance
from harness.measures import Claimed, Measure, MeasureValues, score
from harness.measures.compute import by_rule
from harness.measures.grades import STEEPEST, Buckets, gain_of, gain_warning, grade
from retrievers.errors import InputError, Problem, did_you_mean
from retrievers.types import Query

ABSTAIN = "Abstain"
"""The measure of queries that nothing answers."""
Judgments = Mapping[str, Mapping[str, int]]
"""Query id -> document id -> grade."""


class GradedLabels(NamedTuple):
    """Labels after the grade rule."""

    grades: dict[str, dict[str, int]]
    """Query id -> document id -> grade, for every query with a relevant document; {} for one that has claims alone."""
    groups: dict[str, tuple[tuple[str, ...], ...]]
    """Query id -> groups of alternatives, where the labels have them."""
    warning: str
    """What to know about the grades under the experiment's gain; "" where nothing."""
    by_people: bool = True
    """False where a model alone judged."""
    unanswerable: frozenset[str] = frozenset()
    """The scored queries that nothing answers."""
    claims: Mapping[str, Claimed] | None = None
    """Query id -> the claims of its reference answer and what entails them; None if no claims were judged."""


def grade_labels(labels: Mapping[str, Labels], relevance: Relevance) -> GradedLabels:
    """Apply the grade rule to the labels.

    Queries without a relevant document are left out, for all retrievers alike. Groups of alternatives are graded 1.
    Where people judged any query, those that a model judged, wholly or in part, make no score.

    Raises:
        InputError: the rule does not fit the labels, or the grades do not fit the gain.
    """
    by_people = people_judged(labels)
    labels = labels_that_count(labels)
    grades = {
        query: _grades(query, given, relevance)
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


def labels_that_count(labels: Mapping[str, Labels]) -> Mapping[str, Labels]:
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


def with_bare_queries(
    graded: GradedLabels, queries: Iterable[Query], question: Question
) -> GradedLabels:
    """The same with the queries that have no relevant document and are measured all the same.

    Measures by claims need claims, or a reference to take them from, and Abstain queries that nothing answers; measures
    by labels are undefined for both. Nothing is added where no measure needs them, nor where the primary measure needs
    labels and there are none.
    """
    by_claims = any(one.claimed for one in question.measures)
    abstains = any(one.name == ABSTAIN for one in question.measures)
    if not (
        graded.grades or question.primary.claimed or question.primary.name == ABSTAIN
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


def scores_of(
    measures: Sequence[Measure],
    judged: GradedLabels,
    rankings: Mapping[str, Sequence[str]],
) -> MeasureValues:
    """Score rankings, best first; a measure by labels is undefined (NaN) for a query that has claims alone."""
    scores = score(
        measures,
        judged.grades,
        rankings,
        groups=judged.groups or None,
        claims=judged.claims,
    )
    bare = [
        place
        for place, query in enumerate(scores.query_ids)
        if not judged.grades[query]
    ]
    by_labels = [
        row
        for row, measure in enumerate(scores.measures)
        if not measure.claimed and measure.name != ABSTAIN
    ]
    abstains = [
        row for row, measure in enumerate(scores.measures) if measure.name == ABSTAIN
    ]
    others = [
        place
        for place, query in enumerate(scores.query_ids)
        if query not in judged.unanswerable
    ]
    if not (bare and by_labels) and not (others and abstains):
        return scores
    values = scores.values.copy()
    values[np.ix_(by_labels, bare)] = np.nan
    values[np.ix_(abstains, others)] = np.nan
    values.setflags(write=False)
    return replace(scores, values=values)


def gains(grades: Judgments) -> dict[str, dict[str, int]] | None:
    """The exponential gains 2^grade - 1; None where a grade is too high for them to mean anything.

    >>> gains({"q": {"a": 2, "b": 30}}), gains({"q": {"a": 31}})
    ({'q': {'a': 3, 'b': 1073741823}}, None)
    """
    if any(g > STEEPEST for judged in grades.values() for g in judged.values()):
        return None
    return {
        q: {doc: gain_of(g, "exponential") for doc, g in judged.items()}
        for q, judged in grades.items()
    }


def alternatives(
    labels: Mapping[str, Labels], relevance: Relevance
) -> dict[str, dict[str, dict[str, int]]]:
    """The judgments under other grade rules, the experiment's own first: does the winner depend on the rule?

    Ordered lists can be graded by every named rule; grades as given also as binary; groups have one reading.
    """
    judged = grade_labels(labels, relevance).grades
    labels = labels_that_count(labels)
    lists = {
        query: labels[query].documents
        for query in judged
        if labels[query].ranked is not None
    }
    if len(lists) == len(judged):
        named = relevance.grades if isinstance(relevance.grades, str) else "linear"
        rules = by_rule(lists, first=named) if named != "explicit" else {}
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


def by_labeller(labels: Mapping[str, Labels]) -> dict[str, dict[str, Labels]]:
    """The labels of each person, where several labelled the same queries: person -> query id -> labels.

    >>> merged = Labels(ranked=("a", "b"), given={"ann": {"a": 2, "b": 1}, "ben": {"b": 1}})
    >>> by_labeller({"q": merged})["ann"]["q"].ranked
    ('a', 'b')
    """
    people: dict[str, dict[str, Labels]] = {}
    for query, merged in labels.items():
        for person, grades in merged.given.items():
            ranked = (
                None
                if merged.ranked is None
                else tuple(sorted(grades, key=grades.__getitem__, reverse=True))
            )
            own = Labels(
                grades=grades if ranked is None else None,
                ranked=ranked,
                by=person,
                source=merged.source,
            )
            people.setdefault(person, {})[query] = own
    return people


def _by_judge(
    labels: Mapping[str, Labels], relevance: Relevance
) -> dict[str, dict[str, dict[str, int]]]:
    """The judgments of each person who judged every one of these queries."""
    return {
        f"by {person}": {
            query: _grades(query, given, relevance) for query, given in own.items()
        }
        for person, own in by_labeller(labels).items()
        if len(own) == len(labels)
    }


def _grades(query: str, labels: Labels, relevance: Relevance) -> dict[str, int]:
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
    return grade(
        labels.documents, Buckets(rule) if isinstance(rule, tuple) else rule or "linear"
    )


def clusters_of(queries: Sequence[Query], name: str | None) -> tuple[str, ...] | None:
    """Return each query's cluster, "" if it has none; None where all do and no field is declared.

    Queries of equal text (after NFKC, case folding and collapsing white space) ask the same question under several
    ids: they belong together always, with all that shares the declared field with one of them. So do the turns of a
    conversation, where no field is declared.

    Args:
        queries: in the order of the answer.
        name: the declared field.

    Raises:
        InputError: no query has the field: no query would have a cluster, unnoticed.

    >>> clusters_of([Query("1", "When?"), Query("2", "Who?"), Query("3", " when? ")], None)
    ('1', '', '1')
    """
    if name is None and any(query.history for query in queries):
        name = "conversation"
    if (
        name is not None
        and queries
        and not any(query.fields.get(name) for query in queries)
    ):
        known = {one for query in queries for one in query.fields}
        raise InputError(
            Problem(
                "[statistics] cluster",
                f"no query has a field {name!r}",
                did_you_mean(name, known),
            )
        )
    first: dict[tuple[str, str], int] = {}
    leader = list(range(len(queries)))

    def led(place: int) -> int:
        while leader[place] != place:
            place = leader[place]
        return place

    for place, query in enumerate(queries):
        text = " ".join(unicodedata.normalize("NFKC", query.text).casefold().split())
        for key in (
            ("text", " ".join([*query.history, text])),
            ("field", query.fields.get(name, "") if name else ""),
        ):
            if key[1]:
                one, other = led(first.setdefault(key, place)), led(place)
                leader[max(one, other)] = min(one, other)
    together = [led(place) for place in range(len(queries))]
    members = Counter(together)
    if name is None and len(members) == len(queries):
        return None
    return tuple(queries[place].id if members[place] > 1 else "" for place in together)


def weights_of(queries: Sequence[Query], name: str | None) -> tuple[float, ...] | None:
    """Return how much each query counts, about 1 on average; None where no field is declared.

    Only shares matter, and sums of weighted differences are told from 0 by what is small beside 1. The scale is a power
    of two, which moves no digit.

    Raises:
        InputError: the field of a query is not a number above 0.
    """
    if name is None:
        return None
    weights, wrong = [], []
    for query in queries:
        value = query.fields.get(name, "")
        with suppress(ValueError):
            if 0 < (weight := float(value)) < math.inf:
                weights.append(weight)
                continue
        wrong.append(f"{query.id!r} has {value!r}")
    if wrong:
        what = f"{counted(len(wrong), 'query')} of {len(queries):,} without a number above 0 in the field {name!r}"
        raise InputError(
            Problem(
                "[statistics] weight",
                f"{what}: {', '.join(wrong[:3])}",
                "such as 120, its traffic",
            )
        )
    _, scale = math.frexp(math.fsum(weight / len(weights) for weight in weights))
    return tuple(math.ldexp(weight, 1 - scale) for weight in weights)

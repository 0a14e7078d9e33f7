"""The winner under other grade rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from harness.measures.grade_rules import (
    MAX_EXPONENTIAL_GRADE,
    NAMED_RULES,
    NamedRule,
    grade_documents,
)
from harness.measures.measure import Measure
from harness.measures.score import Grades, measure_rankings
from harness.measures.table import grades_decide, row_of

EQUAL_MEANS = 1e-10
"""Means nearer than this are equal."""


class RuleOutcome(NamedTuple):
    """The outcome under one grade rule and gain."""

    rule: str
    """A named rule, "buckets", "as given", or "by PERSON": see `other_grades`."""
    measure: Measure
    """The measure with the gain of this row."""
    means: dict[str, float]
    """Retriever -> mean over the queries."""
    winners: tuple[str, ...]
    """The retrievers with the highest mean."""
    changed: bool
    """Whether they differ from those of the first row."""


class RuleVariant(NamedTuple):
    """A grade rule, and a measure with one of its gains."""

    rule: str
    measure: Measure


def winners_by_rule(
    measure: Measure,
    rules: Mapping[str, Grades],
    rankings: Mapping[str, Mapping[str, Sequence[str]]],
    weights: Mapping[str, float] | None = None,
) -> list[RuleOutcome]:
    """Score every retriever under every grade rule, and under both gains.

    The first row is the first rule with the measure's own gain. Exponential gain is
    left out if it is not allowed: under `reciprocal`, and with a grade above 30.

    Args:
        measure: the one that decides; it has no rows unless grades alone decide it.
        rules: the name of a rule -> judgments under it, the experiment's own rule
            first; see `grades_by_rule`.
        rankings: retriever -> query id -> document ids, best first.
        weights: query id -> how much it counts in a mean; without them, all alike.

    >>> rows = winners_by_rule(
    ...     Measure("nDCG", 2),
    ...     grades_by_rule({"q": ["a", "b", "c", "d"]}),
    ...     {"x": {"q": ["a", "z"]}, "y": {"q": ["b", "c"]}},
    ... )
    >>> [(row.rule, str(row.measure), row.winners) for row in rows[:2]]
    [('linear', 'nDCG@2', ('y',)), ('linear', "nDCG(dcg='exp-log2')@2", ('x',))]
    """
    if not grades_decide(measure):
        return []
    measures_by_rule = {
        rule: _allowed_gains(measure, rule, judgments)
        for rule, judgments in rules.items()
    }
    means_by_variant: dict[RuleVariant, dict[str, float]] = {}
    for retriever, run in rankings.items():
        for rule, measures in measures_by_rule.items():
            means = measure_rankings(measures, rules[rule], run).means(weights)
            for variant_measure, mean in means.items():
                variant = RuleVariant(rule, variant_measure)
                means_by_variant.setdefault(variant, {})[retriever] = mean
    outcomes: list[RuleOutcome] = []
    for variant, retriever_means in means_by_variant.items():
        winners = _highest(retriever_means)
        outcomes.append(
            RuleOutcome(
                rule=variant.rule,
                measure=variant.measure,
                means=retriever_means,
                winners=winners,
                changed=bool(outcomes) and winners != outcomes[0].winners,
            )
        )
    return outcomes


def _highest(means: Mapping[str, float]) -> tuple[str, ...]:
    """Return the retrievers with the highest mean."""
    top = max(means.values(), default=0.0)
    return tuple(name for name, mean in means.items() if top - mean <= EQUAL_MEANS)


def grades_by_rule(
    lists: Mapping[str, Sequence[str]], first: NamedRule = "linear"
) -> dict[str, dict[str, dict[str, int]]]:
    """Grade the ordered lists of all queries under `first` and the other rules.

    Args:
        lists: query id -> its relevant documents, best first.
        first: the rule that comes first.

    Returns:
        Rule -> query id -> document id -> grade.

    >>> grades_by_rule({"q": ["a", "b"]}, first="binary")["binary"]
    {'q': {'a': 1, 'b': 1}}
    """
    by_rule: dict[str, dict[str, dict[str, int]]] = {}
    for rule in sorted(NAMED_RULES, key=lambda rule: rule != first):
        by_rule[rule] = {
            query_id: grade_documents(documents, rule)
            for query_id, documents in lists.items()
        }
    return by_rule


def _allowed_gains(measure: Measure, rule: str, judgments: Grades) -> list[Measure]:
    """Return the measure with its own gain, then with the other one.

    Exponential gain is left out if it is not allowed.
    """
    measures = [measure]
    if "dcg" in row_of(measure).options:
        params = dict(measure.params)
        if "dcg" in params:
            del params["dcg"]
        else:
            params["dcg"] = "exp-log2"
        measures.append(replace(measure, params=tuple(sorted(params.items()))))
    largest = max(
        (max(judged.values(), default=0) for judged in judgments.values()), default=0
    )
    if rule != "reciprocal" and largest <= MAX_EXPONENTIAL_GRADE:
        return measures
    return [variant for variant in measures if variant.get("dcg") != "exp-log2"]

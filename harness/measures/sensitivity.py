"""The winner under other grade rules."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
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
from harness.measures.table import row_of

EQUAL_MEANS = 1e-10
"""Means nearer than this share one place."""


class RuleOutcome(NamedTuple):
    """The outcome under one grade rule and gain."""

    rule: str
    measure: Measure
    """With the gain of this row."""
    means: dict[str, float]
    """Retriever -> mean over the queries."""
    winners: tuple[str, ...]
    """The retrievers with the highest mean."""
    changed: bool
    """Whether they are others than in the first row."""


def winners_by_rule(
    measure: Measure,
    rules: Mapping[str, Grades],
    rankings: Iterable[tuple[str, Mapping[str, Sequence[str]]]],
    weights: Mapping[str, float] | None = None,
) -> list[RuleOutcome]:
    """Score every retriever under every grade rule, and under both gains where the measure has a gain.

    The first row is the first rule with the measure's own gain. Exponential gain is left out where it is not
    allowed: under `reciprocal`, and with a grade above 30.

    Args:
        measure: whose winner is in question; none is found of a function of the user's own.
        rules: the name of a rule -> judgments under it, the experiment's own rule first; `by_rule` makes them.
        rankings: each retriever with query id -> document ids, best first; read one after the other.
        weights: query id -> how much it counts in a mean; left out, all alike.

    >>> rows = winners_by_rule(
    ...     Measure("nDCG", 2),
    ...     grades_by_rule({"q": ["a", "b", "c", "d"]}),
    ...     {"x": {"q": ["a", "z"]}, "y": {"q": ["b", "c"]}}.items(),
    ... )
    >>> [(row.rule, str(row.measure), row.winners) for row in rows[:2]]
    [('linear', 'nDCG@2', ('y',)), ('linear', "nDCG(dcg='exp-log2')@2", ('x',))]
    """
    if measure.is_own:  # its function may have gone with its process
        return []
    variants = {
        rule: _allowed(measure, rule, judgments) for rule, judgments in rules.items()
    }
    means: dict[tuple[str, Measure], dict[str, float]] = {}
    for name, run in rankings:
        for rule, under in variants.items():
            for variant, mean in (
                measure_rankings(under, rules[rule], run).means(weights).items()
            ):
                means.setdefault((rule, variant), {})[name] = mean
    rows: list[RuleOutcome] = []
    for (rule, variant), of in means.items():
        top = max(of.values(), default=0.0)
        winners = tuple(name for name, mean in of.items() if top - mean <= EQUAL_MEANS)
        rows.append(
            RuleOutcome(
                rule, variant, of, winners, bool(rows) and winners != rows[0].winners
            )
        )
    return rows


def grades_by_rule(
    lists: Mapping[str, Sequence[str]], first: NamedRule = "linear"
) -> dict[str, dict[str, dict[str, int]]]:
    """Grade the ordered lists of all queries under `first` and the other rules.

    >>> grades_by_rule({"q": ["a", "b"]}, first="binary")["binary"]
    {'q': {'a': 1, 'b': 1}}
    """
    ordered = sorted(NAMED_RULES, key=lambda rule: rule != first)
    return {
        rule: {q: grade_documents(documents, rule) for q, documents in lists.items()}
        for rule in ordered
    }


def _allowed(measure: Measure, rule: str, judgments: Grades) -> list[Measure]:
    """The measure with its own gain, then with the other one; without the exponential one where it is not allowed."""
    largest = max(
        (g for judged in judgments.values() for g in judged.values()), default=0
    )
    steep = rule == "reciprocal" or largest > MAX_EXPONENTIAL_GRADE
    variants = [measure]
    if "dcg" in row_of(measure).options and not measure.get("groups"):
        params = dict(measure.params)
        if params.pop("dcg", None) is None:
            params["dcg"] = "exp-log2"
        variants.append(replace(measure, params=tuple(sorted(params.items()))))
    return [
        variant
        for variant in variants
        if not (steep and variant.get("dcg") == "exp-log2")
    ]

"""Anyone's per-query scores against each other: summaries, exact tests, verdicts."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from harness.scoring.per_query import PerQuery
from harness.scoring.undefined import compare_defined, defined_everywhere
from harness.stats import Comparison, Facts, Range, Settings, Whole, summarize, whole
from retrievers.errors import InputError, Problem, did_you_mean
from retrievers.types import Floats

TURNED = {"better": "worse", "worse": "better"}


@dataclass(frozen=True, slots=True, eq=False)
class ComparedScores:
    """What per-query scores came to."""

    primary: str
    summary: list[dict[str, Any]]
    """The rows of summary.csv; a measure that a retriever has no value on has none."""
    rows: list[Comparison]
    whole: Whole
    """On the primary measure, over the queries for which everyone has a value."""
    settings: Settings
    low_is_good: frozenset[str]


def compare_scores(
    scores: PerQuery,
    *,
    primary: str,
    baseline: str | None,
    settings: Settings,
    low_is_good: AbstractSet[str] = frozenset(),
    bounds: Range | None = None,
) -> ComparedScores:
    """Summarize and compare per-query scores.

    Args:
        scores: of any tool.
        primary: the measure that decides.
        baseline: each other retriever is compared with it; None compares all pairs.
        settings: the tests.
        bounds: the lowest and the highest value of the primary measure; left out, scores in [0, 1] have that range.
        low_is_good: measures of which less is better: their verdicts are turned round, their numbers stay.

    Raises:
        InputError: the baseline has no score; no query has a value of the primary measure from everyone.
    """
    names = scores.retrievers
    if baseline is not None and baseline not in names:
        raise InputError(Problem("--baseline", f"{baseline!r} has no score", did_you_mean(baseline, names)))
    facts = Facts(ranges={} if bounds is None else {primary: bounds})
    values = {measure: dict(of) for measure, of in scores.values.items()}
    decides = defined_everywhere(values[primary])
    if not decides.any():
        remedy = "name another measure first"
        raise InputError(Problem(f"measure {primary!r}", "has no query with a value from everyone", remedy))
    rows = [
        _turned(row) if row.measure in low_is_good else row
        for row in compare_defined(
            values,
            primary=primary,
            baseline=baseline if baseline in values[primary] else None,
            settings=settings,
            facts=facts,
        )
    ]
    decided = {name: of[decides] for name, of in values[primary].items()}
    declared = [row for row in rows if row.measure == primary]
    decision = whole(decided, declared, measure=primary, settings=settings, facts=facts)
    return ComparedScores(primary, _summary(scores, settings, facts), rows, decision, settings, frozenset(low_is_good))


def range_known(scores: PerQuery, measure: str) -> bool:
    """Return whether the range of a measure follows from its scores: they all lie in [0, 1]."""
    return Facts().range_of(measure, of_defined(scores.values[measure])) is not None


def _summary(scores: PerQuery, settings: Settings, facts: Facts) -> list[dict[str, Any]]:
    rows = []
    for name in scores.retrievers:
        for measure, of in scores.values.items():
            values = of[name][~np.isnan(of[name])] if name in of else np.zeros(0)
            if len(values):
                described = asdict(summarize(values, settings.level, bounds=facts.range_of(measure, of_defined(of))))
                rows.append({"retriever": name, "measure": measure, **described})
    return rows


def of_defined(of: Mapping[str, Floats]) -> dict[str, Floats]:
    """The scores of each retriever that are defined."""
    defined = {name: values[~np.isnan(values)] for name, values in of.items()}
    return {name: values for name, values in defined.items() if len(values)}


def _turned(row: Comparison) -> Comparison:
    word = row.verdict.split(" ")[0]
    return replace(row, verdict=TURNED.get(word, word) + row.verdict.removeprefix(word))

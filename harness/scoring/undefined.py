"""Comparisons where a measure is undefined for some queries: a pair is compared over those where both have a value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from harness.stats import Comparison, Facts, ScoreTable, Settings, adjust, compare_all, family
from harness.stats.verdicts import DISAGREE, NOT_SHOWN, TOO_FEW, UNDECIDED
from retrievers.types import Floats

KeptQueries = npt.NDArray[np.bool_]
"""(n,): which queries stay."""


def compare_defined(
    scores: Mapping[str, ScoreTable], *, primary: str | None, baseline: str | None, settings: Settings, facts: Facts
) -> list[Comparison]:
    """Compare retrievers on several measures, each one family, as `compare_all` does.

    A pair is compared over the queries for which both have a value; column `n` counts them. A pair without such a
    query has no row, and counts in the correction with p = 1. Where pairs have different queries, Tukey's correction
    and the margin do not apply: Holm corrects, and nothing is called equivalent.

    Args:
        scores: measure -> retriever -> (n,) scores, NaN where undefined, queries in the order of their ids.
        primary: the measure declared before the run.
        baseline: each other retriever is compared with it; None compares all pairs.
        settings: the tests.
        facts: ranges of the measures, clusters of the queries, rankings that are the same.
    """
    whole: dict[str, ScoreTable] = {}
    apart: dict[str, list[Comparison]] = {}
    for measure, of in scores.items():
        masks = [~np.isnan(values) for values in of.values()]
        if not masks or all(mask.all() for mask in masks):
            whole[measure] = of
        elif all(np.array_equal(mask, masks[0]) for mask in masks):
            alone = {measure: kept_scores(of, masks[0])} if masks[0].any() else {}
            apart[measure] = compare_all(
                alone, primary=primary, baseline=baseline, settings=settings, facts=kept_facts(facts, masks[0])
            )
        else:
            declared = measure == primary
            apart[measure] = _by_pair({measure: of}, family(list(of), baseline), settings, facts, declared=declared)
    by_measure: dict[str, list[Comparison]] = {measure: apart.get(measure, []) for measure in scores}
    for row in compare_all(whole, primary=primary, baseline=baseline, settings=settings, facts=facts):
        by_measure[row.measure].append(row)
    return [row for rows in by_measure.values() for row in rows]


def defined_everywhere(of: Mapping[str, Floats]) -> KeptQueries:
    """(n,): the queries for which every retriever has a value.

    >>> defined_everywhere({"a": np.array([0.5, np.nan]), "b": np.array([1.0, 0.0])}).tolist()
    [True, False]
    """
    kept: KeptQueries = ~np.isnan(np.sum(list(of.values()), axis=0))  # a sum with NaN is NaN
    return kept


def kept_scores(of: ScoreTable, kept: KeptQueries) -> dict[str, Floats]:
    """The scores of some of the queries."""
    return {name: values[kept] for name, values in of.items()}


def kept_facts(facts: Facts, kept: KeptQueries) -> Facts:
    """The facts about some of the queries: their clusters; ranges and rankings are those of all."""
    if facts.clusters is None:
        return facts
    return replace(facts, clusters=[cluster for cluster, stays in zip(facts.clusters, kept, strict=True) if stays])


def _by_pair(
    scores: Mapping[str, ScoreTable],
    pairs: Sequence[tuple[str, str]],
    settings: Settings,
    facts: Facts,
    *,
    declared: bool,
) -> list[Comparison]:
    ((measure, of),) = scores.items()
    correction = "holm" if settings.correction == "tukey" else settings.correction
    alone = replace(settings, margin=None, correction="holm")
    rows: list[Comparison] = []
    for a, b in pairs:
        both = ~np.isnan(of[a]) & ~np.isnan(of[b])
        if both.any():
            group = {measure: kept_scores({a: of[a], b: of[b]}, both)}
            primary = measure if declared else None
            rows += compare_all(group, primary=primary, baseline=b, settings=alone, facts=kept_facts(facts, both))
    absent = [1.0] * (len(pairs) - len(rows))
    observed = [row.p_value for row in rows] + absent
    of_means = adjust([row.p_randomization for row in rows] + absent, correction)
    floors = [
        None if row.p_minimum is None
        else adjust([*observed[:i], row.p_minimum, *observed[i + 1 :]], correction)[i]
        for i, row in enumerate(rows)
    ]  # fmt: skip
    corrected = zip(rows, adjust(observed, correction), of_means, floors, strict=False)
    return [_corrected(*one, settings.alpha) for one in corrected]


def _corrected(row: Comparison, p: float, p_mean: float, floor: float | None, alpha: float) -> Comparison:
    """A row of a family of one as a row of its whole family: a verdict may be lost by the correction, none is won."""
    verdict = row.verdict
    if row.word in ("better", "worse") and max(p, p_mean) > alpha:
        reason = TOO_FEW if floor is not None and floor > alpha else DISAGREE if min(p, p_mean) <= alpha else NOT_SHOWN
        verdict = f"{UNDECIDED}: {reason}"
    return replace(row, p_adjusted=p, p_minimum_adjusted=floor, p_randomization_adjusted=p_mean, verdict=verdict)

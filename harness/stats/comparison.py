"""Retrievers against each other on their per-query scores: the rows of comparisons.csv."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Literal, NamedTuple

import numpy as np

from harness.stats.adjust import adjust
from harness.stats.differences import Differences, Floats, differences
from harness.stats.equivalence import equivalent_pairs
from harness.stats.intervals import mean, mean_difference_interval
from harness.stats.paired import paired_t, sign_test
from harness.stats.settings import Settings
from harness.stats.sign_flip import Contrast, FlipTest, sign_flip
from harness.stats.signed_rank import SignedRank, signed_rank_of
from harness.stats.tukey import tukey_hsd
from harness.stats.verdicts import BETTER, MODEL_ALONE, UNDECIDED, WORSE, Evidence, verdict_on

Role = Literal["confirmatory", "exploratory"]
Scores = Mapping[str, Floats]
"""Retriever -> (n,) scores of one measure, queries in the order of their ids."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """One row of comparisons.csv: its fields are the columns, in their order; None is an empty cell."""

    measure: str
    a: str
    b: str
    n: int
    """Queries."""
    zeros: int
    """Differences that the signed-rank test dropped."""
    wins: int
    """Queries where a scores higher."""
    ties: int
    losses: int
    mean_difference: float
    """mean(a) - mean(b)."""
    ci_low: float
    ci_high: float
    w_plus: float
    w_minus: float
    statistic: float
    p_value: float
    """Of the deciding test, two-sided."""
    p_adjusted: float
    """Corrected within the measure."""
    p_minimum: float | None
    """The smallest p that the deciding test could have given; None for the t-test, which has no such bound."""
    method: str
    """"exact" or "normal" (signed-rank), "enumerated" or "draws" (randomization), "t", "sign"; "undefined"
    (p = 1) for a t-test of equal differences."""
    effect_size: float | None
    """Matched-pairs rank-biserial correlation; None where no query differs."""
    verdict: str
    role: Role
    p_minimum_adjusted: float | None
    """min(1, rows of the family x p_minimum)."""
    p_randomization: float
    """Of the two-sided sign-flip test of the mean."""
    ci_method: str

    @property
    def word(self) -> str:
        """The verdict without its reason."""
        return self.verdict.partition(":")[0]

    @property
    def reason(self) -> str:
        """Why it is undecided; empty otherwise."""
        return self.verdict.partition(": ")[2]


class _Pair(NamedTuple):
    """All that was computed about one pair before the family's correction."""

    a: str
    b: str
    differences: Differences
    ranks: SignedRank
    flips: FlipTest
    p_value: float
    p_minimum: float | None
    method: str


def family(names: Sequence[str], baseline: str | None = None) -> list[tuple[str, str]]:
    """Return the pairs (a, b) of one family: each other against the baseline, else all pairs in the given order.

    >>> family(["x", "y", "z"])
    [('x', 'y'), ('x', 'z'), ('y', 'z')]
    >>> family(["x", "y", "z"], baseline="y")
    [('x', 'y'), ('z', 'y')]
    """
    if baseline is None:
        return list(combinations(names, 2))
    if baseline not in names:
        raise ValueError(f"the baseline {baseline!r} is not among {', '.join(names)}")
    return [(name, baseline) for name in names if name != baseline]


def compare(
    scores: Scores,
    *,
    measure: str,
    baseline: str | None = None,
    settings: Settings = Settings(),  # noqa: B008 - frozen
    role: Role = "confirmatory",
) -> list[Comparison]:
    """Compare retrievers on one measure.

    Args:
        scores: retriever -> (n,) scores, queries in the order of their ids.
        measure: its name, copied into the rows.
        baseline: each other retriever is compared with it; None compares all pairs, in the given order.
        settings: the tests and their levels.
        role: "confirmatory" for the primary measure (equivalence is only asked there), else "exploratory".

    Returns:
        One row for each pair of the family; none for fewer than two retrievers.
    """
    primary = measure if role == "confirmatory" else None
    return compare_all({measure: scores}, primary=primary, baseline=baseline, settings=settings)


def compare_all(
    scores: Mapping[str, Scores],
    *,
    primary: str | None,
    baseline: str | None = None,
    settings: Settings = Settings(),  # noqa: B008 - frozen
) -> list[Comparison]:
    """Compare retrievers on several measures, each one family; the draws are shared by all measures and pairs.

    Args:
        scores: measure -> retriever -> (n,) scores over the same queries in the order of their ids.
        primary: the measure declared before the run; its rows are confirmatory, all others exploratory.
        baseline: as in `compare`.
        settings: the tests and their levels.
    """
    pairs = {measure: family(list(group), baseline) for measure, group in scores.items()}
    flips = flip_tests(scores, pairs, settings.seed)
    rows: list[Comparison] = []
    # NumPy lets go of the interpreter while it counts: two cores count two pairs at once.
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        tested = {
            measure: [pool.submit(_test, a, b, group, flips[measure, a, b], settings) for a, b in pairs[measure]]
            for measure, group in scores.items()
        }
    for measure, group in scores.items():
        members = [future.result() for future in tested[measure]]
        role: Role = "confirmatory" if measure == primary else "exploratory"
        within = equivalent_pairs(group, pairs[measure], settings) if measure == primary else frozenset()
        rows += [
            _row(measure, group, pair, _Family(p, len(members), (pair.a, pair.b) in within, role), settings)
            for pair, p in zip(members, _adjusted(group, members, settings), strict=True)
        ]
    return rows


def swapped(row: Comparison) -> Comparison:
    """Return the same comparison seen from the other side."""
    verdict = row.verdict
    if verdict.startswith(BETTER):
        verdict = WORSE + verdict.removeprefix(BETTER)
    elif verdict.startswith(WORSE):
        verdict = BETTER + verdict.removeprefix(WORSE)
    return replace(
        row,
        a=row.b,
        b=row.a,
        wins=row.losses,
        losses=row.wins,
        mean_difference=0.0 - row.mean_difference,
        ci_low=0.0 - row.ci_high,
        ci_high=0.0 - row.ci_low,
        w_plus=row.w_minus,
        w_minus=row.w_plus,
        effect_size=None if row.effect_size is None else 0.0 - row.effect_size,
        verdict=verdict,
    )


def flip_tests(
    scores: Mapping[str, Scores], pairs: Mapping[str, Sequence[tuple[str, str]]], seed: int
) -> dict[tuple[str, str, str], FlipTest]:
    """Return the sign-flip test of every pair of every measure, (measure, a, b) -> test, on shared draws."""
    columns = {(measure, name): i for i, (measure, name) in enumerate((m, r) for m in scores for r in scores[m])}
    keys = [(measure, a, b) for measure in scores for a, b in pairs[measure]]
    if not keys:
        return {}
    table = np.column_stack([scores[measure][name] for measure, name in columns])
    tests = sign_flip(table, [Contrast(columns[m, a], columns[m, b]) for m, a, b in keys], seed)
    return dict(zip(keys, tests, strict=True))


def _test(a: str, b: str, group: Scores, flips: FlipTest, settings: Settings) -> _Pair:
    pairs = differences(group[a], group[b])
    ranks = signed_rank_of(pairs, zeros=settings.zeros)
    floor: float | None
    match settings.test:
        case "wilcoxon":
            p, floor, method = ranks.p_value, ranks.p_minimum, ranks.method
        case "randomization":
            p, floor, method = flips.two_sided, flips.p_minimum(pairs.wins + pairs.losses), flips.method
        case "t":
            statistic, p, floor = paired_t(pairs)
            method = "undefined" if statistic is None else "t"
        case "sign":
            _, p, floor = sign_test(pairs)
            method = "sign"
    return _Pair(a, b, pairs, ranks, flips, p, floor, method)


def _adjusted(group: Scores, members: Sequence[_Pair], settings: Settings) -> tuple[float, ...]:
    if settings.correction == "tukey":
        p_values = tukey_hsd(group, settings.seed)
        return tuple(p_values[pair.a, pair.b] for pair in members)
    return adjust([pair.p_value for pair in members], settings.correction)


class _Family(NamedTuple):
    """What a pair's family adds to it."""

    p_adjusted: float
    size: int
    within_margin: bool
    role: Role


def _row(measure: str, group: Scores, pair: _Pair, family: _Family, settings: Settings) -> Comparison:
    d, ranks = pair.differences, pair.ranks
    difference = mean(group[pair.a]) - mean(group[pair.b])
    floor = None if pair.p_minimum is None else min(1.0, family.size * pair.p_minimum)
    interval = mean_difference_interval(d, settings)
    evidence = Evidence(
        p_adjusted=family.p_adjusted,
        p_minimum_adjusted=floor,
        rank_sign=int(np.sign(ranks.w_plus - ranks.w_minus)),
        mean_sign=d.sign(difference),
        non_zero=d.wins + d.losses,
        defined=pair.method != "undefined",
        within_margin=family.within_margin,
    )
    return Comparison(
        measure=measure,
        a=pair.a,
        b=pair.b,
        n=len(d.values),
        zeros=ranks.zeros,
        wins=d.wins,
        ties=ranks.ties,
        losses=d.losses,
        mean_difference=difference,
        ci_low=interval.low,
        ci_high=interval.high,
        w_plus=ranks.w_plus,
        w_minus=ranks.w_minus,
        statistic=ranks.statistic,
        p_value=pair.p_value,
        p_adjusted=family.p_adjusted,
        p_minimum=pair.p_minimum,
        method=pair.method,
        effect_size=ranks.effect_size,
        verdict=verdict_on(evidence, settings.alpha) if settings.by_people else f"{UNDECIDED}: {MODEL_ALONE}",
        role=family.role,
        p_minimum_adjusted=floor,
        p_randomization=pair.flips.two_sided,
        ci_method=interval.method,
    )

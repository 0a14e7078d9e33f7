"""Retrievers against each other: pairs, families, corrections -> comparisons."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import combinations
from typing import NamedTuple

import numpy as np

from harness.evaluation.scores import KeptQueries, Scores
from harness.evaluation.verdict import Comparison, Evidence, Finding, Reason, TestRole, Verdict, verdict_on
from harness.stats.differences import differences
from harness.stats.intervals import Interval, student
from harness.stats.multiplicity import adjust, adjusted_floors
from harness.stats.paired_tests import Decided, Observed, Within, decide, equivalence_tests
from harness.stats.settings import Settings, Test
from harness.stats.sign_flip import Contrast, FlipTest, sign_flip
from harness.stats.signed_rank import signed_rank


class Key(NamedTuple):
    """One pair on one measure."""

    measure: str
    a: str
    b: str


class Member(NamedTuple):
    """One pair of a family, before anything is corrected."""

    key: Key
    kept: KeptQueries
    """The queries for which both have a value."""
    observed: Observed
    decided: Decided


class Corrected(NamedTuple):
    """The p-values of one pair after its family's correction."""

    decided: float
    floor: float | None
    mean: float
    ranks: float


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


def keys_of(scores: Scores, baseline: str | None = None) -> dict[str, list[Key]]:
    """Return the pairs of each measure's family; all pairs where the baseline has no scores.

    Above 1,000 pairs only the primary measure has a family; a residual, which is no quality, never has one.
    """
    families = {
        measure: [Key(measure, a, b) for a, b in family(list(group), baseline if baseline in group else None)]
        for measure, group in scores.values.items()
        if RESIDUAL not in measure
    }
    many = len(families.get(scores.primary, ())) > MOST_PAIRS
    return {measure: keys for measure, keys in families.items() if not many or measure == scores.primary}


MOST_PAIRS = 1_000
"""Of one family, beyond which neither other measures nor slices are compared."""
RESIDUAL = "residual=True"
"""In the name of a measure: how much the unjudged documents could add."""


def uncounted() -> None:
    """Stand for what counts pairs where nobody waits for them."""


def compare(
    scores: Scores, *, baseline: str | None = None, settings: Settings, step: Callable[[], None] = uncounted
) -> list[Comparison]:
    """Compare retrievers on every measure, each one family; the primary measure's rows are confirmatory.

    A pair is compared over the queries for which both have a value; column `n` counts them. A pair without such a
    query has no row, and counts in the correction with p = 1. Where the pairs of the primary measure have different
    queries, nothing is called equivalent.

    Args:
        scores: of any measures; the draws are shared by all measures and pairs of the same queries.
        baseline: each other retriever is compared with it; None, or one without scores, compares all pairs.
        settings: the tests and their levels.
        step: called once for each pair of `keys_of`, from several threads.

    Returns:
        The rows of each measure in turn; none for fewer than two retrievers.
    """
    families = keys_of(scores, baseline)
    kept = {key: scores.defined(*key) for keys in families.values() for key in keys}
    observed: dict[Key, Observed] = {}
    for mask in {one.tobytes(): one for one in kept.values() if one.any()}.values():
        keys = [key for key, one in kept.items() if np.array_equal(one, mask)]
        observed |= observe(scores.only(mask), keys, settings.seed, step)
    rows: list[Comparison] = []
    for measure, keys in families.items():
        members = [
            Member(key, kept[key], observed[key], decide(observed[key], settings.test))
            for key in keys
            if key in observed
        ]
        rows += _family_rows(scores.of(measure), members, settings, absent=len(keys) - len(members),
                             confirmatory=measure == scores.primary)  # fmt: skip
    return rows


def compare_pairs(scores: Scores, pairs: Sequence[tuple[str, str]], settings: Settings) -> list[Comparison]:
    """Compare some pairs on the primary measure, one family, over the queries for which everyone has a value."""
    kept = scores.only(scores.defined(scores.primary))
    keys = [Key(scores.primary, *pair) for pair in pairs]
    observed = observe(kept, keys, settings.seed)
    every = np.ones(kept.n, dtype=np.bool_)
    members = [Member(key, every, observed[key], decide(observed[key], settings.test)) for key in keys]
    return _family_rows(kept.of(scores.primary), members, settings, absent=0, confirmatory=True)


def observe(
    scores: Scores, keys: Sequence[Key], seed: int, step: Callable[[], None] = uncounted
) -> dict[Key, Observed]:
    """Return pairs over the same queries, defined for both, as every test wants to see them.

    Args:
        scores: of the queries that count.
        keys: which pairs, of which measures; their sign flips share the draws.
        seed: of the draws.
        step: called once for each pair, from several threads.
    """
    if not keys:
        return {}
    units = scores.units
    columns = {one: i for i, one in enumerate(dict.fromkeys((k.measure, name) for k in keys for name in k[1:]))}
    table = units.sums(np.column_stack([scores.values[measure][name] for measure, name in columns]))
    contrasts = [Contrast(columns[k.measure, k.a], columns[k.measure, k.b]) for k in keys]

    def ranked(key: Key, flips: FlipTest) -> Observed:
        a, b = scores.values[key.measure][key.a], scores.values[key.measure][key.b]
        by_query = differences(a, b)
        by_unit = differences(units.means(a), units.means(b)) if units.clustered else by_query
        observed = Observed(by_query, units, flips, signed_rank(by_unit))
        step()
        return observed

    # NumPy lets go of the interpreter while it counts: two cores count two pairs at once.
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return dict(zip(keys, pool.map(ranked, keys, sign_flip(table, contrasts, seed)), strict=True))


def equivalent_pairs(scores: Scores, pairs: Sequence[tuple[str, str]], settings: Settings) -> set[tuple[str, str]]:
    """Return the pairs shown to differ by less than the margin on the primary measure: Holm-corrected p <= alpha.

    Args:
        scores: of the queries for which everyone has a value.
        pairs: a family, corrected together.
        settings: margin, level and seed; without a margin nothing is equivalent.
    """
    if settings.margin is None or not pairs or settings.spent:
        return set()
    within = Within(settings.margin, scores.span_of(scores.primary), scores.units, settings.alpha)
    tests = equivalence_tests(scores.values[scores.primary], pairs, within, settings.seed)
    adjusted = adjust([test.greater for test in tests], "holm")
    return {pair for pair, p in zip(pairs, adjusted, strict=True) if p <= settings.alpha}


def _family_rows(
    scores: Scores, members: Sequence[Member], settings: Settings, *, absent: int, confirmatory: bool
) -> list[Comparison]:
    """Correct and judge one family; each absent pair counts with p = 1."""
    p_values = corrected([(one.observed, one.decided) for one in members], settings.correction, absent)
    together = not absent and all(np.array_equal(one.kept, members[0].kept) for one in members)
    within: set[tuple[str, str]] = set()
    if confirmatory and together and members:
        within = equivalent_pairs(scores.only(members[0].kept), [one.key[1:] for one in members], settings)
    measured = any(np.nan_to_num(values).any() for values in scores.values[scores.primary].values())
    bounds, rows = scores.gap_range, []
    for member, p in zip(members, p_values, strict=True):
        state = _known_before(scores, member, measured=measured, confirmatory=confirmatory)
        kept = scores.only(member.kept)
        difference = kept.mean(*member.key[:2]) - kept.mean(member.key.measure, member.key.b)
        interval = student(member.observed.queries.values, settings.level, bounds=bounds, units=member.observed.units)
        sign = sign_of(member.observed, difference, settings.test)
        finding = finding_on(Evidence(p.decided, p.floor, sign, state, member.key[1:] in within), settings)
        finding = finding.swapped if member.key.measure in scores.low_is_good else finding
        role: TestRole = "confirmatory" if confirmatory else "exploratory"
        rows.append(_row(member, p, finding, (difference, interval), role))
    return rows


def corrected(tests: Sequence[tuple[Observed, Decided]], correction: str, absent: int = 0) -> list[Corrected]:
    """Return the corrected p-values of one family; each absent pair counts with p = 1."""
    p_values = [decided.p_value for _, decided in tests] + [1.0] * absent
    means = [observed.flips.two_sided for observed, _ in tests] + [1.0] * absent
    ranks = [observed.ranks.p_value for observed, _ in tests] + [1.0] * absent
    floors = adjusted_floors(p_values, [decided.p_minimum for _, decided in tests], correction)
    adjusted = (adjust(p, correction)[: len(tests)] for p in (means, ranks))
    return [*map(Corrected._make, zip(adjust(p_values, correction)[: len(tests)], floors, *adjusted, strict=True))]


def sign_of(pair: Observed, mean_difference: float, test: Test) -> int:
    """Return the sign of what a test is about: the rank sums, or the mean difference."""
    ranks = int(np.sign(pair.ranks.w_plus - pair.ranks.w_minus))
    return ranks if test == "wilcoxon" else pair.queries.sign(mean_difference)


def finding_on(evidence: Evidence, settings: Settings) -> Finding:
    """Return the verdict on a pair; none where a model alone judged, or alpha is spent."""
    if not settings.by_people:
        return Finding(Verdict.UNDECIDED, Reason.MODEL_ALONE)
    if settings.spent:
        return Finding(Verdict.UNDECIDED, Reason.ALPHA_SPENT)
    return verdict_on(evidence, settings.alpha)


def _known_before(scores: Scores, member: Member, *, measured: bool, confirmatory: bool) -> Reason | None:
    """What there is to say before any test."""
    if not measured:
        return Reason.NOTHING_MEASURED
    if confirmatory and frozenset(member.key[1:]) in scores.identical:
        return Reason.IDENTICAL
    if not member.observed.queries.wins + member.observed.queries.losses:
        return Reason.NO_QUERY_DIFFERS
    return Reason.UNDEFINED if member.decided.method == "undefined" else None


def _row(member: Member, p: Corrected, finding: Finding, mean: tuple[float, Interval], role: TestRole) -> Comparison:
    d, ranks, units = member.observed.queries, member.observed.ranks, member.observed.units
    difference, interval = mean
    return Comparison(
        measure=member.key.measure,
        a=member.key.a,
        b=member.key.b,
        n=len(d.values),
        zeros=ranks.zeros,
        wins=d.wins,
        ties=len(d.values) - d.wins - d.losses,
        losses=d.losses,
        mean_difference=difference,
        ci_low=interval.low,
        ci_high=interval.high,
        w_plus=ranks.w_plus,
        w_minus=ranks.w_minus,
        statistic=ranks.statistic,
        p_value=member.decided.p_value,
        p_adjusted=p.decided,
        p_minimum=member.decided.p_minimum,
        method=member.decided.method,
        effect_size=ranks.effect_size,
        finding=finding,
        role=role,
        p_minimum_adjusted=p.floor,
        p_randomization=member.observed.flips.two_sided,
        ci_method=interval.method,
        p_randomization_adjusted=p.mean,
        clusters=len(units) if units.clustered else None,
        p_wilcoxon=None if units.weights is not None else ranks.p_value,
        p_wilcoxon_adjusted=None if units.weights is not None else p.ranks,
    )

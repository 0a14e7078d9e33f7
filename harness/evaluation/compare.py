"""Retrievers against each other: pairs, families, corrections -> comparisons."""

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import combinations
from typing import NamedTuple

import numpy as np

from harness.evaluation.scores import Scores
from harness.evaluation.verdict import (
    Comparison,
    Evidence,
    Finding,
    Reason,
    Verdict,
    verdict_on,
)
from harness.stats.differences import differences
from harness.stats.intervals import student
from harness.stats.multiplicity import adjust, adjusted_floors
from harness.stats.paired_tests import (
    Decided,
    EquivalenceMargin,
    Observed,
    decide,
    equivalence_tests,
)
from harness.stats.settings import Settings
from harness.stats.sign_flip import Contrast, FlipTest, sign_flip
from harness.stats.signed_rank import signed_rank


class Key(NamedTuple):
    """One pair on one measure."""

    measure: str
    a: str
    b: str


class TestedPair(NamedTuple):
    """One pair of a family as every test wants to see it, before anything is corrected."""

    key: Key
    scores: Scores
    """Of the queries for which both have a value."""
    observed: Observed
    decided: Decided
    difference: float
    """mean(a) - mean(b)."""


Equivalence = Mapping[tuple[str, str], tuple[FlipTest, float]]
"""Pair -> its test of equivalence, and the corrected p."""
NOTHING_KNOWN: Mapping[Key, Reason] = {}


class JudgedPair(NamedTuple):
    """What is shown of one pair by its family's correction."""

    p: float
    """Of the deciding test."""
    floor: float | None
    mean: float
    ranks: float | None
    """Of the exact signed-rank test; None with weights."""
    finding: Finding


def family(names: Sequence[str], baseline: str | None = None) -> list[tuple[str, str]]:
    """Return the pairs (a, b) of one family: each other against the baseline, else all pairs in the given order.

    >>> family(["x", "y", "z"])
    [('x', 'y'), ('x', 'z'), ('y', 'z')]
    >>> family(["x", "y", "z"], baseline="y")
    [('x', 'y'), ('z', 'y')]
    """
    if baseline is None:
        return list(combinations(names, 2))
    return [(name, baseline) for name in names if name != baseline]


def _keys_of(scores: Scores, baseline: str | None) -> dict[str, list[Key]]:
    """Return the pairs of each measure's family; all pairs where the baseline has no scores.

    Above 1,000 pairs only the primary measure has a family; a residual, which is no quality, never has one.
    """
    families = {
        measure: [
            Key(measure, a, b)
            for a, b in family(list(group), baseline if baseline in group else None)
        ]
        for measure, group in scores.values.items()
        if RESIDUAL not in measure
    }
    many = len(families.get(scores.primary, ())) > MOST_PAIRS
    return {
        measure: keys
        for measure, keys in families.items()
        if not many or measure == scores.primary
    }


MOST_PAIRS = 1_000
"""Of one family, beyond which neither other measures nor slices are compared."""
RESIDUAL = "residual=True"
"""In the name of a measure: how much the unjudged documents could add."""


def compare(
    scores: Scores,
    *,
    baseline: str | None = None,
    settings: Settings,
    equivalence: Equivalence | None = None,
) -> list[Comparison]:
    """Compare retrievers on every measure, each one family; the primary measure's rows are confirmatory.

    A pair is compared over the queries for which both have a value; column `n` counts them. A pair without such a
    query has no row, and counts in the correction with p = 1. Where the pairs of the primary measure have different
    queries, nothing is called equivalent.

    Args:
        scores: of any measures; the draws are shared by all measures and pairs of the same queries.
        baseline: each other retriever is compared with it; None, or one without scores, compares all pairs.
        settings: the tests and their levels.
        equivalence: `equivalence_of` the primary measure's family, where that is known.

    Returns:
        The rows of each measure in turn; none for fewer than two retrievers.
    """
    families = _keys_of(scores, baseline)
    kept = {key: scores.defined(*key) for keys in families.values() for key in keys}
    pairs: dict[Key, TestedPair] = {}
    for mask in {one.tobytes(): one for one in kept.values() if one.any()}.values():
        keys = [key for key, one in kept.items() if np.array_equal(one, mask)]
        pairs |= observe(scores.only(mask), keys, settings)
    rows: list[Comparison] = []
    for measure, keys in families.items():
        tested = [pairs[key] for key in keys if key in pairs]
        rows += _family(
            scores.of(measure),
            tested,
            settings,
            absent=len(keys) - len(tested),
            confirmatory=measure == scores.primary,
            equivalence=equivalence,
        )
    return rows


def compare_pairs(
    scores: Scores, pairs: Sequence[tuple[str, str]], settings: Settings
) -> list[Comparison]:
    """Compare some pairs on the primary measure, one family, over the queries for which everyone has a value."""
    kept = scores.of(scores.primary).only(scores.defined(scores.primary))
    observed = observe(kept, [Key(scores.primary, *pair) for pair in pairs], settings)
    return list(_family(kept, list(observed.values()), settings))


def observe(
    scores: Scores, keys: Sequence[Key], settings: Settings
) -> dict[Key, TestedPair]:
    """Return pairs over the same queries, defined for both, as every test wants to see them.

    Args:
        scores: of the queries that count.
        keys: which pairs, of which measures; their sign flips share the draws.
        settings: the test that decides, and the seed of the draws.
    """
    if not keys:
        return {}
    units = scores.units
    columns = {
        one: i
        for i, one in enumerate(
            dict.fromkeys((k.measure, name) for k in keys for name in k[1:])
        )
    }
    table = units.sums(
        np.column_stack([scores.values[measure][name] for measure, name in columns])
    )
    means = {column: scores.mean(*column) for column in columns}
    contrasts = [
        Contrast(columns[k.measure, k.a], columns[k.measure, k.b]) for k in keys
    ]

    def ranked(key: Key, flips: FlipTest) -> TestedPair:
        a, b = scores.values[key.measure][key.a], scores.values[key.measure][key.b]
        by_query = differences(a, b)
        by_unit = (
            differences(units.means(a), units.means(b)) if units.clustered else by_query
        )
        observed = Observed(by_query, units, flips, signed_rank(by_unit))
        difference = means[key.measure, key.a] - means[key.measure, key.b]
        return TestedPair(
            key, scores, observed, decide(observed, settings.test), difference
        )

    flips = sign_flip(table, contrasts, settings.seed)
    return {key: ranked(key, flipped) for key, flipped in zip(keys, flips, strict=True)}


def equivalence_of(
    scores: Scores, pairs: Sequence[tuple[str, str]], settings: Settings
) -> dict[tuple[str, str], tuple[FlipTest, float]]:
    """Return each pair's test of equivalence on the primary measure, and its Holm-corrected p; none without a margin.

    Args:
        scores: of the queries for which everyone has a value.
        pairs: a family, corrected together.
        settings: margin, level and seed.
    """
    if settings.margin is None:
        return {}
    within = EquivalenceMargin(
        settings.margin, scores.span_of(scores.primary), scores.units, settings.alpha
    )
    tests = equivalence_tests(
        scores.values[scores.primary], pairs, within, settings.seed
    )
    adjusted = adjust([test.greater for test in tests], "holm")
    return dict(zip(pairs, zip(tests, adjusted, strict=True), strict=True))


def _family(
    scores: Scores,
    pairs: Sequence[TestedPair],
    settings: Settings,
    *,
    absent: int = 0,
    confirmatory: bool = True,
    equivalence: Equivalence | None = None,
) -> Iterator[Comparison]:
    """Correct and judge one family; each absent pair counts with p = 1."""
    known: dict[Key, Reason] = {}
    within: set[tuple[str, str]] = set()
    if confirmatory:
        known = {
            pair.key: Reason.IDENTICAL
            for pair in pairs
            if frozenset(pair.key[1:]) in scores.identical
        }
        if (
            pairs
            and not absent
            and not settings.spent
            and all(pair.scores is pairs[0].scores for pair in pairs)
        ):
            if equivalence is None:
                together = pairs[0].scores.of(scores.primary)
                equivalence = equivalence_of(
                    together, [pair.key[1:] for pair in pairs], settings
                )
            within = {
                names for names, (_, p) in equivalence.items() if p <= settings.alpha
            }
    if not any(
        np.nan_to_num(values).any() for values in scores.values[scores.primary].values()
    ):
        known = {pair.key: Reason.NOTHING_MEASURED for pair in pairs}
    for pair, shown in zip(
        pairs, judged(pairs, settings, known, within, absent), strict=True
    ):
        d, flips, ranks, units = (
            pair.observed.queries,
            pair.observed.flips,
            pair.observed.ranks,
            pair.observed.units,
        )
        interval = student(
            d.values, settings.level, bounds=scores.gap_range, units=units
        )
        signed = {
            name: getattr(ranks, name)
            for name in ("zeros", "w_plus", "w_minus", "statistic", "effect_size")
        }
        tested = {
            name: getattr(pair.decided, name)
            for name in ("p_value", "p_minimum", "method")
        }
        yield Comparison(
            **pair.key._asdict(),
            n=len(d.values),
            wins=d.wins,
            ties=len(d.values) - d.wins - d.losses,
            losses=d.losses,
            mean_difference=pair.difference,
            ci_low=interval.low,
            ci_high=interval.high,
            **signed,
            **tested,
            p_adjusted=shown.p,
            finding=shown.finding.swapped
            if scores.primary in scores.low_is_good
            else shown.finding,
            role="confirmatory" if confirmatory else "exploratory",
            p_minimum_adjusted=shown.floor,
            p_randomization=flips.two_sided,
            ci_method=interval.method,
            p_randomization_adjusted=shown.mean,
            clusters=len(units) if units.clustered else None,
            p_wilcoxon=None if shown.ranks is None else ranks.p_value,
            p_wilcoxon_adjusted=shown.ranks,
        )


def judged(
    pairs: Sequence[TestedPair],
    settings: Settings,
    known: Mapping[Key, Reason] = NOTHING_KNOWN,
    within: AbstractSet[tuple[str, str]] = frozenset(),
    absent: int = 0,
) -> list[JudgedPair]:
    """Correct one family, and return the verdict on each pair; none where a model alone judged, or alpha is spent.

    Args:
        pairs: the family.
        settings: the correction and the level.
        known: what there is to say of a pair before any test.
        within: the pairs that are shown to be equivalent.
        absent: pairs without a query, each of which counts with p = 1.
    """
    p_values = [pair.decided.p_value for pair in pairs] + [1.0] * absent
    floors = adjusted_floors(
        p_values, [pair.decided.p_minimum for pair in pairs], settings.correction
    )
    means = adjust(
        [pair.observed.flips.two_sided for pair in pairs] + [1.0] * absent,
        settings.correction,
    )
    ranks = adjust(
        [pair.observed.ranks.p_value for pair in pairs] + [1.0] * absent,
        settings.correction,
    )
    rows = []
    columns = (adjust(p_values, settings.correction), floors, means, ranks)
    for pair, p, floor, mean, rank in zip(pairs, *columns, strict=False):
        d, state = pair.observed.queries, known.get(pair.key)
        if state is None and not d.wins + d.losses:
            state = Reason.NO_QUERY_DIFFERS
        elif state is None and pair.decided.method == "undefined":
            state = Reason.UNDEFINED
        by_ranks = int(
            np.sign(pair.observed.ranks.w_plus - pair.observed.ranks.w_minus)
        )
        sign = by_ranks if settings.test == "wilcoxon" else d.sign(pair.difference)
        finding = verdict_on(
            Evidence(p, floor, sign, state, pair.key[1:] in within), settings.alpha
        )
        if not settings.by_people:
            finding = Finding(Verdict.UNDECIDED, Reason.MODEL_ALONE)
        elif settings.spent:
            finding = Finding(Verdict.UNDECIDED, Reason.ALPHA_SPENT)
        weighted = pair.observed.units.weights is not None
        rows.append(JudgedPair(p, floor, mean, None if weighted else rank, finding))
    return rows

"""The rows of tests.csv: every family of tests beside the declared comparisons."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from harness.stats.adjust import adjust
from harness.stats.deciding import Decided, Observed, decide
from harness.stats.differences import differences
from harness.stats.equivalence import equivalence_tests
from harness.stats.facts import Facts, ScoreTable
from harness.stats.friedman import friedman
from harness.stats.intervals import mean
from harness.stats.settings import Settings, Test
from harness.stats.sign_flip import Contrast, sign_flip
from harness.stats.signed_rank import signed_rank_of
from harness.stats.tukey import tukey_hsd
from harness.stats.units import Units

Pairs = Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class TestRow:
    """One row of tests.csv: its fields are the columns, in their order; None is an empty cell."""

    __test__ = False  # pytest: a row, no test class

    family: str
    measure: str
    a: str
    b: str
    """Both empty where the test is of all retrievers at once."""
    n: int
    """Queries."""
    statistic: float | None
    p_value: float
    p_adjusted: float
    """Within the family, and within one measure."""
    method: str
    note: str
    """Which queries, where not all of them; what else there is to know of a row; empty otherwise."""
    mean_difference: float | None
    """mean(a) - mean(b)."""


def pairwise_families(
    scores: ScoreTable,
    pairs: Pairs,
    *,
    measure: str,
    settings: Settings,
    facts: Facts = Facts(),  # noqa: B008 - frozen
) -> list[TestRow]:
    """Return the other tests of the same pairs, each one family: randomization, t, sign, Tukey, equivalence.

    Tukey's p-values are born adjusted (for all pairs); equivalence is Holm-corrected and needs a margin; the
    others are corrected as the settings say (Holm where they say "tukey").

    Args:
        scores: retriever -> (n,) scores, queries in the order of their ids.
        pairs: the declared family (`family`).
        measure: the name that goes into the rows.
        settings: corrections, margin and seed.
        facts: the measure's range, and clusters of the queries.
    """
    if not pairs:
        return []
    method, n = correction_of(settings), len(scores[pairs[0][0]])
    observed = _observed(scores, pairs, facts.units(n), settings)
    tukey = tukey_hsd(scores, settings.seed, facts.units(n))

    def rows(name: str, tests: Sequence[Decided], how: str) -> list[TestRow]:
        p = [test.p_value for test in tests]
        adjusted = adjust(p, how) if how else p
        return [
            TestRow(name, measure, a, b, n, test.statistic, test.p_value, corrected, test.method, "", gap)
            for (a, b), test, corrected, gap in zip(pairs, tests, adjusted, gaps, strict=True)
        ]

    gaps = [mean(scores[a]) - mean(scores[b]) for a, b in pairs]
    others: tuple[Test, ...] = ("randomization", "t", "sign")
    family_rows = [row for test in others for row in rows(test, [decide(pair, test) for pair in observed], method)]
    family_rows += rows("tukey", [Decided(tukey[pair], None, None, "permutation") for pair in pairs], "")
    if settings.margin is not None:
        within = equivalence_tests(scores, pairs, measure, settings, facts)
        family_rows += rows("equivalence", [Decided(test.greater, None, None, test.method) for test in within], "holm")
    return family_rows


def friedman_row(scores: ScoreTable, *, measure: str, facts: Facts = Facts()) -> TestRow:  # noqa: B008 - frozen
    """Return Friedman's test of all retrievers as a family of one; of the clusters' means, where these are declared."""
    n = len(next(iter(scores.values())))
    units = facts.units(n)
    test = friedman({name: units.means(values) for name, values in scores.items()})
    return TestRow("friedman", measure, "", "", n, test.statistic, test.p_value, test.p_value, test.method, "", None)


def pair_family(
    scores: ScoreTable,
    pairs: Pairs,
    *,
    names: tuple[str, str],
    settings: Settings,
    facts: Facts = Facts(),  # noqa: B008 - frozen
) -> list[TestRow]:
    """Return the deciding tests of any pairs as a family of their own, such as each reranker with its first stage.

    Args:
        scores: retriever -> (n,) scores, queries in the order of their ids.
        pairs: whom to compare.
        names: the family's, such as "rerank uplift", and the measure's.
        settings: the test, its correction (Holm where they say "tukey") and treatment of zeros.
        facts: clusters of the queries.
    """
    parts = [("", scores, facts.units(len(next(iter(scores.values()), ()))))]
    return deciding_rows(parts, pairs, names, settings)


def deciding_rows(
    parts: Sequence[tuple[str, ScoreTable, Units]], pairs: Pairs, names: tuple[str, str], settings: Settings
) -> list[TestRow]:
    """Return one row for each part of the queries (its note, its scores) and pair, corrected together."""
    keys = [(note, part, a, b) for note, part, _ in parts for a, b in pairs]
    observed = [one for _, part, units in parts for one in _observed(part, pairs, units, settings)]
    tests = [decide(pair, settings.test) for pair in observed]
    adjusted = adjust([test.p_value for test in tests], correction_of(settings))
    gaps = [mean(part[a]) - mean(part[b]) for _, part, a, b in keys]
    return [
        TestRow(*names, a, b, len(part[a]), test.statistic, test.p_value, p, test.method, note, gap)
        for (note, part, a, b), test, p, gap in zip(keys, tests, adjusted, gaps, strict=True)
    ]


def _observed(scores: ScoreTable, pairs: Pairs, units: Units, settings: Settings) -> list[Observed]:
    """Return the pairs of one set of queries as the tests want to see them."""
    if not pairs:
        return []
    names = list(scores)
    table = units.sums(np.column_stack([scores[name] for name in names]))
    flips = sign_flip(table, [Contrast(names.index(a), names.index(b)) for a, b in pairs], settings.seed)
    observed = []
    for (a, b), flip in zip(pairs, flips, strict=True):
        d = differences(scores[a], scores[b])
        by_unit = differences(units.means(scores[a]), units.means(scores[b])) if units.clustered else d
        observed.append(Observed(d, by_unit, units, flip, signed_rank_of(by_unit, zeros=settings.zeros)))
    return observed


def correction_of(settings: Settings) -> str:
    """Return the correction for families that Tukey's test does not know."""
    return "holm" if settings.correction == "tukey" else settings.correction

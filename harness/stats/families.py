"""The rows of tests.csv: every family of tests beside the declared comparisons."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from harness.stats.adjust import adjust
from harness.stats.comparison import Scores
from harness.stats.differences import differences
from harness.stats.equivalence import equivalence_tests
from harness.stats.friedman import friedman
from harness.stats.intervals import mean
from harness.stats.paired import paired_t, sign_test
from harness.stats.settings import Settings
from harness.stats.sign_flip import Contrast, sign_flip
from harness.stats.signed_rank import signed_rank
from harness.stats.tukey import tukey_hsd

Pairs = Sequence[tuple[str, str]]

FEWEST = 10
"""Queries below which a slice is not tested."""


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
    """Which queries, where not all of them; empty otherwise."""
    mean_difference: float | None
    """mean(a) - mean(b)."""


def pairwise_families(scores: Scores, pairs: Pairs, *, measure: str, settings: Settings) -> list[TestRow]:
    """Return the other tests of the same pairs, each one family: randomization, t, sign, Tukey, equivalence.

    Tukey's p-values are born adjusted (for all pairs); equivalence is Holm-corrected and needs a margin; the
    others are corrected as the settings say (Holm where they say "tukey").

    Args:
        scores: retriever -> (n,) scores, queries in the order of their ids.
        pairs: the declared family (`family`).
        measure: the name that goes into the rows.
        settings: corrections, margin and seed.
    """
    method, names = _method(settings), list(scores)
    table = np.column_stack([scores[name] for name in names])
    flips = sign_flip(table, [Contrast(names.index(a), names.index(b)) for a, b in pairs], settings.seed)
    observed = [differences(scores[a], scores[b]) for a, b in pairs]
    t_tests, signs = [paired_t(d) for d in observed], [sign_test(d) for d in observed]
    tukey = tukey_hsd(scores, settings.seed)

    def rows(
        name: str, statistics: Sequence[float | None], p: Sequence[float], how: str, methods: Sequence[str]
    ) -> list[TestRow]:
        adjusted = adjust(p, how) if how else p
        return [
            TestRow(name, measure, a, b, len(table), x, y, z, label, "", mean(scores[a]) - mean(scores[b]))
            for (a, b), x, y, z, label in zip(pairs, statistics, p, adjusted, methods, strict=True)
        ]

    if not pairs:
        return []
    none = [None] * len(pairs)
    found = rows("randomization", none, [f.two_sided for f in flips], method, [f.method for f in flips])
    found += rows("t", [t.statistic for t in t_tests], [t.p_value for t in t_tests], method, ["t"] * len(pairs))
    found += rows("sign", [s.statistic for s in signs], [s.p_value for s in signs], method, ["sign"] * len(pairs))
    found += rows("tukey", none, [tukey[pair] for pair in pairs], "", ["permutation"] * len(pairs))
    if settings.margin is not None:
        tests = equivalence_tests(scores, pairs, settings)
        found += rows("equivalence", none, [e.greater for e in tests], "holm", [e.method for e in tests])
    return found


def friedman_row(scores: Scores, *, measure: str) -> TestRow:
    """Return Friedman's test of all retrievers as a family of one."""
    test = friedman(scores)
    n = len(next(iter(scores.values())))
    return TestRow("friedman", measure, "", "", n, test.statistic, test.p_value, test.p_value, test.method, "", None)


def pair_family(scores: Scores, pairs: Pairs, *, name: str, measure: str, settings: Settings) -> list[TestRow]:
    """Return the signed-rank tests of any pairs as a family of their own, such as each reranker with its first stage.

    Args:
        scores: retriever -> (n,) scores, queries in the order of their ids.
        pairs: whom to compare.
        name: the family's, such as "rerank uplift".
        measure: the name that goes into the rows.
        settings: correction (Holm where they say "tukey") and treatment of zeros.
    """
    return _signed_rank_rows([("", scores)], pairs, name=name, measure=measure, settings=settings)


def slice_family(
    scores: Scores, pairs: Pairs, labels: Sequence[str], *, name: str, measure: str, settings: Settings
) -> list[TestRow]:
    """Return the signed-rank tests of the pairs within each slice of the queries: one family, always exploratory.

    Corrected over all slices and pairs together. Slices of fewer than 10 queries are left out: `small_slices`
    names them.

    Args:
        scores: retriever -> (n,) scores, queries in the order of their ids.
        pairs: whom to compare.
        labels: (n,) each query's slice; "" belongs to none.
        name: the family's, such as "field language" or "query length".
        measure: the name that goes into the rows.
        settings: as in `pair_family`.
    """
    kinds = np.asarray(labels)
    large = [kind for kind, count in sorted(Counter(labels).items()) if kind and count >= FEWEST]
    parts = [(kind, {who: values[kinds == kind] for who, values in scores.items()}) for kind in large]
    return _signed_rank_rows(parts, pairs, name=name, measure=measure, settings=settings)


def _signed_rank_rows(
    parts: Sequence[tuple[str, Scores]], pairs: Pairs, *, name: str, measure: str, settings: Settings
) -> list[TestRow]:
    """Return one row for each part of the queries (its note, its scores) and pair, corrected together."""
    keys = [(note, part[a], part[b], a, b) for note, part in parts for a, b in pairs]
    tests = [signed_rank(x, y, zeros=settings.zeros) for _, x, y, _, _ in keys]
    adjusted = adjust([test.p_value for test in tests], _method(settings))
    return [
        TestRow(name, measure, a, b, len(x), t.statistic, t.p_value, p, t.method, note, mean(x) - mean(y))
        for (note, x, y, a, b), t, p in zip(keys, tests, adjusted, strict=True)
    ]


def _method(settings: Settings) -> str:
    """Return the correction for families that Tukey's test does not know."""
    return "holm" if settings.correction == "tukey" else settings.correction


def small_slices(labels: Sequence[str]) -> dict[str, int]:
    """Return the slices that are too small to be tested, with their numbers of queries.

    >>> small_slices(["en"] * 12 + ["ja"] * 3)
    {'ja': 3}
    """
    return {kind: count for kind, count in sorted(Counter(labels).items()) if kind and count < FEWEST}


def length_slices(texts: Sequence[str]) -> list[str]:
    """Return each query's slice by its length in characters: thirds, equal lengths together.

    >>> length_slices(["a", "bb", "ccc"])
    ['short (up to 1)', 'medium (2 to 2)', 'long (3 or more)']
    """
    lengths = np.array([len(text) for text in texts])
    short, medium = (int(x) for x in np.quantile(lengths, [1 / 3, 2 / 3], method="inverted_cdf"))
    return [
        f"short (up to {short})"
        if length <= short
        else f"medium ({short + 1} to {medium})"
        if length <= medium
        else f"long ({medium + 1} or more)"
        for length in lengths.tolist()
    ]

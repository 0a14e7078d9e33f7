"""The rows of tests.csv: every family of tests beside the declared comparisons."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from harness.evaluation.compare import Key, corrected, finding_on, observe, sign_of
from harness.evaluation.scores import Scores
from harness.evaluation.verdict import Evidence, Finding, Reason
from harness.stats.heterogeneity import large_slices, length_slices
from harness.stats.multiplicity import adjust
from harness.stats.paired_tests import Decided, Within, decide, equivalence_tests
from harness.stats.settings import Settings
from retrievers.types import CONTROL, Query

Pairs = Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class TestRow:
    """One row of tests.csv: its fields are the columns, in their order; None is an empty cell."""

    __test__ = False  # pytest: a row, no test class

    family: str
    measure: str
    a: str
    b: str
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
    p_wilcoxon_adjusted: float | None = None
    """Of the exact signed-rank test, corrected as p; empty with weights, and where no verdict is given."""
    finding: Finding | None = None
    """Of slices and rerankers, by the rule of every verdict; `wording` writes it."""


def equivalence_family(scores: Scores, pairs: Pairs, settings: Settings) -> Iterator[TestRow]:
    """Yield the tests of equivalence of the same pairs on the primary measure, Holm-corrected; none without a margin.

    Args:
        scores: of the queries for which everyone has a value.
        pairs: the declared family (`compare.family`).
        settings: margin and seed.
    """
    if settings.margin is not None:
        within = Within(settings.margin, scores.span_of(scores.primary), scores.units, settings.alpha)
        tests = equivalence_tests(scores.values[scores.primary], pairs, within, settings.seed)
        decided = [Decided(test.greater, None, None, test.method) for test in tests]
        yield from _rows(("equivalence", scores.primary), [("", scores, *pair) for pair in pairs], decided, "holm")


def pair_family(scores: Scores, pairs: Pairs, name: str, settings: Settings) -> list[TestRow]:
    """Return the deciding tests of any pairs as a family of their own, such as each reranker with its first stage.

    Args:
        scores: of the queries for which everyone has a value.
        pairs: whom to compare on the primary measure.
        name: the family's.
        settings: the test and its correction.
    """
    return _deciding_rows([("", scores)], pairs, name, settings)


def slices_of(queries: Sequence[Query], cluster: str | None = None) -> dict[str, list[str]]:
    r"""Return family -> each query's slice: by its text's length, and by each field that queries have.

    A field whose values are the clusters makes no slices. Names are as tests.csv has them, by which they are found.

    >>> slices_of([Query("1", "a", {"ki\nd": "x\ty"})])["field ki d"]
    ['x y']
    """
    kinds = {"query length": length_slices([query.text for query in queries])} if queries else {}
    for name in sorted({name for query in queries for name in query.fields} - {cluster}):
        labels = [CONTROL.sub(" ", query.fields.get(name, "")) for query in queries]
        kinds[CONTROL.sub(" ", f"field {name}")] = labels
    return kinds


def slice_families(scores: Scores, pairs: Pairs, queries: Sequence[Query], settings: Settings) -> Iterator[TestRow]:
    """Yield, for each way to divide the queries, the tests within each slice.

    Args:
        scores: of the queries for which everyone has a value.
        pairs: whom to compare on the primary measure.
        queries: (n,) those that were scored.
        settings: the test, its correction, the declared cluster.
    """
    kinds = {name: labels for name, labels in slices_of(queries, settings.cluster).items() if len(set(labels)) > 1}
    for name, labels in kinds.items():
        yield from slice_family(scores, pairs, labels, name, settings)


def slice_family(scores: Scores, pairs: Pairs, labels: Sequence[str], name: str, settings: Settings) -> list[TestRow]:
    """Return the deciding tests of the pairs within each slice of the queries: one family, always exploratory.

    Corrected over all slices and pairs together. Slices of fewer than 10 queries are left out: `stats.heterogeneity`
    names them (`small_slices`).

    Args:
        scores: of the queries for which everyone has a value.
        pairs: whom to compare on the primary measure.
        labels: (n,) each query's slice; "" belongs to none.
        name: the family's, such as "field language" or "query length".
        settings: the test and its correction.
    """
    parts = []
    for kind, places in large_slices(labels).items():
        kept = np.zeros(scores.n, dtype=np.bool_)
        kept[places] = True
        parts.append((kind, scores.only(kept)))
    return _deciding_rows(parts, pairs, name, settings)


def _deciding_rows(parts: Sequence[tuple[str, Scores]], pairs: Pairs, name: str, settings: Settings) -> list[TestRow]:
    """One row for each part of the queries (its note, its scores) and pair, corrected and judged together."""
    observed = [
        pair
        for _, part in parts
        for pair in observe(part, [Key(part.primary, a, b) for a, b in pairs], settings.seed).values()
    ]
    decided = [decide(pair, settings.test) for pair in observed]
    keys = [(note, part, a, b) for note, part in parts for a, b in pairs]
    measure = parts[0][1].primary if parts else ""
    rows = _rows((name, measure), keys, decided, settings.correction)
    p_values = corrected(list(zip(observed, decided, strict=True)), settings.correction)
    judged = []
    for row, pair, p, test in zip(rows, observed, p_values, decided, strict=True):
        differ = pair.queries.wins + pair.queries.losses
        state = (
            None if differ and test.method != "undefined" else Reason.UNDEFINED if differ else Reason.NO_QUERY_DIFFERS
        )
        sign = sign_of(pair, row.mean_difference or 0.0, settings.test)
        finding = finding_on(Evidence(p.decided, p.floor, sign, state), settings)
        ranks = None if pair.units.weights is not None else p.ranks
        judged.append(replace(row, p_wilcoxon_adjusted=ranks, finding=finding))
    return judged


def _rows(
    names: tuple[str, str], keys: Iterable[tuple[str, Scores, str, str]], decided: Sequence[Decided], correction: str
) -> Iterator[TestRow]:
    adjusted = adjust([test.p_value for test in decided], correction)
    for (note, scores, a, b), test, p in zip(keys, decided, adjusted, strict=True):
        gap = scores.mean(scores.primary, a) - scores.mean(scores.primary, b)
        yield TestRow(*names, a, b, scores.n, test.statistic, test.p_value, p, test.method, note, gap)

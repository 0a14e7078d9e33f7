"""Agreement of judges as text."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from harness.english import count_of, count_queries

if TYPE_CHECKING:
    from harness.labels.agreement import AgreementReport, PairOfJudges
    from harness.labels.disputes import Dispute
    from harness.stats.kappa import AgreementEstimate

MAX_LISTED_DISPUTES = 10
"""Pairs of one list that are shown; the others are counted."""


def agreement_lines(agreements: AgreementReport) -> Iterator[str]:
    """Yield the coefficients, the confusion tables, and the first disputed pairs."""
    for pair in agreements.pairs:
        yield from _pair_lines(pair)
    together = agreements.together
    if together is not None and len(together.judges) > 1:
        yield f"all of {', '.join(together.judges)}:"
        for level in ("nominal", "ordinal", "interval"):
            estimate = _estimate_text(getattr(together, level))
            yield f"  alpha, {level:<16} {estimate}"
    for repeated in agreements.themselves:
        pairs = count_of(repeated.pairs, "pair")
        yield (
            f"{repeated.judge} graded twice, {pairs}: {100 * repeated.same:.0f} % the "
            f"same, kappa with squared weights {_estimate_text(repeated.weighted)}"
        )
    yield from _dispute_lines("worth talking about", agreements.disputed)
    yield from _dispute_lines("people and model far apart", agreements.apart)


def _pair_lines(pair: PairOfJudges) -> Iterator[str]:
    units = count_of(pair.units, "pair")
    queries = count_queries(pair.queries)
    yield f"{pair.a} and {pair.b}: {units} of {queries} judged by both"
    yield f"  Cohen's kappa           {_estimate_text(pair.kappa)}"
    if pair.weighted is not None:
        yield f"  … with squared weights  {_estimate_text(pair.weighted)}"
    yield f"  positive agreement      {_estimate_text(pair.positive)}"
    if pair.rbo is not None:
        yield f"  rank-biased overlap     {pair.rbo:.4f}"
    yield from _confusion_lines(pair)


def _confusion_lines(pair: PairOfJudges) -> Iterator[str]:
    # Labellers of two files of queries give no grades: their table is 2 by 2.
    grades = range(len(pair.table)) if len(pair.table) > 2 else ("not", "relevant")
    widest_cell = max(len(f"{cell:,}") for row in pair.table for cell in row)
    width = max(widest_cell + 2, 10)
    yield f"  {pair.a} down, {pair.b} across:"
    yield " " * 14 + "".join(f"{grade!s:>{width}}" for grade in grades)
    for grade, row in zip(grades, pair.table, strict=True):
        yield f"  {grade!s:>10}  " + "".join(f"{cell:>{width},}" for cell in row)


def _estimate_text(estimate: AgreementEstimate) -> str:
    from harness.stats.kappa import MIN_BOOTSTRAP_QUERIES

    if math.isnan(estimate.value):
        return "undefined: all fell into one grade"
    interval = f"95 % interval over queries {estimate.low:.4f} to {estimate.high:.4f}"
    if math.isnan(estimate.low):
        interval = f"no interval below {MIN_BOOTSTRAP_QUERIES} queries"
    return f"{estimate.value:.4f} ({interval})"


def _dispute_lines(title: str, disputes: Sequence[Dispute]) -> Iterator[str]:
    """The first pairs of a list, and how many more there are."""
    for dispute in disputes[:MAX_LISTED_DISPUTES]:
        grades = ", ".join(f"{judge} {grade}" for judge, grade in dispute.grades)
        yield f"{title}: {dispute.query_id} {dispute.document_id}: {grades}"
    unlisted = len(disputes) - MAX_LISTED_DISPUTES
    if unlisted > 0:
        more = count_of(unlisted, "more pair")
        yield f"{title}: {more} (--json lists them all)"

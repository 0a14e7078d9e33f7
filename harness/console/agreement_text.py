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
"""Pairs of one list that are shown; the rest is counted."""


def agreement_lines(agreements: AgreementReport) -> Iterator[str]:
    """Every coefficient with its interval, the confusion tables, and the pairs worth talking about."""
    for pair in agreements.pairs:
        yield f"{pair.a} and {pair.b}: {count_of(pair.units, 'pair')} of {count_queries(pair.queries)} judged by both"
        yield f"  Cohen's kappa           {_shown(pair.kappa)}"
        if pair.weighted is not None:
            yield f"  … with squared weights  {_shown(pair.weighted)}"
        yield f"  positive agreement      {_shown(pair.positive)}"
        if pair.rbo is not None:
            yield f"  rank-biased overlap     {pair.rbo:.4f}"
        yield from _confusion(pair)
    if agreements.together is not None and len(agreements.together.judges) > 1:
        together = agreements.together
        yield f"all of {', '.join(together.judges)}:"
        for level in ("nominal", "ordinal", "interval"):
            yield f"  alpha, {level:<16} {_shown(getattr(together, level))}"
    for one in agreements.themselves:
        same = f"{100 * one.same:.0f} % the same, kappa with squared weights"
        yield f"{one.judge} graded twice, {count_of(one.pairs, 'pair')}: {same} {_shown(one.weighted)}"
    yield from _listed("worth talking about", agreements.disputed)
    yield from _listed("people and model far apart", agreements.apart)


def _listed(what: str, disputes: Sequence[Dispute]) -> Iterator[str]:
    """The first pairs of a list, and how many more there are."""
    for dispute in disputes[:MAX_LISTED_DISPUTES]:
        gave = ", ".join(f"{judge} {grade}" for judge, grade in dispute.grades)
        yield f"{what}: {dispute.query_id} {dispute.document_id}: {gave}"
    if (more := len(disputes) - MAX_LISTED_DISPUTES) > 0:
        yield f"{what}: {more:,} more pairs (--json lists them all)"


def _shown(agreement: AgreementEstimate) -> str:
    from harness.stats.kappa import MIN_BOOTSTRAP_QUERIES

    if math.isnan(agreement.value):
        return "undefined: all fell into one grade"
    interval = f"95 % interval over queries {agreement.low:.4f} to {agreement.high:.4f}"
    few = f"no interval below {MIN_BOOTSTRAP_QUERIES} queries"
    return f"{agreement.value:.4f} ({few if math.isnan(agreement.low) else interval})"


def _confusion(pair: PairOfJudges) -> Iterator[str]:
    names = range(len(pair.table)) if len(pair.table) > 2 else ("not", "relevant")
    width = max(len(f"{cell:,}") for row in pair.table for cell in row) + 2
    width = max(width, 10)
    yield f"  {pair.a} down, {pair.b} across:".ljust(14) + "".join(
        f"{name!s:>{width}}" for name in names
    )
    for name, row in zip(names, pair.table, strict=True):
        yield f"  {name!s:>10}  " + "".join(f"{cell:>{width},}" for cell in row)

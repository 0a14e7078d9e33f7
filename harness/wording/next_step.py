"""What to do after a verdict."""

from __future__ import annotations

import math

from harness.english import (
    join_names,
)
from harness.evaluation.evaluation import Evaluation
from harness.evaluation.verdict import Reason
from harness.stats.power import MAX_POWER_QUERIES
from harness.wording.looks import look_step


def next_step(evaluation: Evaluation, *, complete: bool) -> str:
    """Return the next look, how many queries to label, or the choice that remains.

    So many queries detect `evaluation.difference` from every undecided retriever.
    """
    if evaluation.look is not None:
        return look_step(evaluation)
    undecided = _undecided_retrievers(evaluation)
    helped = [name for name in undecided if _is_helped_by_queries(evaluation, name)]
    needed = max((evaluation.queries_needed[name] or 0 for name in helped), default=0)
    difference = f"a difference of {evaluation.difference:g}"
    if needed > (evaluation.clusters or evaluation.n):
        has_clusters = evaluation.clusters is not None
        queries_text = queries_needed_words(needed, clusters=has_clusters)
        return f"Label more: {queries_text} reliably detect {difference}."
    if needed:
        return f"These queries would probably have shown {difference}."
    if helped:
        return "Label more queries; too few differ to estimate how many."
    close = evaluation.as_good_as_leader
    if undecided or not complete or len(close) < 2:
        return ""
    return f"Among {join_names(close)}, choose by cost and speed."


def _undecided_retrievers(evaluation: Evaluation) -> list[str]:
    """Return the retrievers that need more queries, and whose rankings differ."""
    rows = evaluation.leader_comparisons
    return [
        name
        for name in evaluation.queries_needed
        if name not in evaluation.better_on_typical_query
        and rows[name].reason is not Reason.IDENTICAL
    ]


def _is_helped_by_queries(evaluation: Evaluation, name: str) -> bool:
    reason = evaluation.leader_comparisons[name].reason
    return reason is None or reason.helped_by_queries


def queries_needed_words(needed: int, *, clusters: bool = False) -> str:
    """Return a number of queries with two digits, rounded up.

    More digits would be false precision.

    >>> queries_needed_words(138)
    'about 140 queries'
    >>> queries_needed_words(MAX_POWER_QUERIES + 1)
    'more than 1,000,000 queries'
    """
    units = "clusters" if clusters else "queries"
    if needed > MAX_POWER_QUERIES:
        return f"more than {MAX_POWER_QUERIES:,} {units}"
    step = 10 ** max(0, math.floor(math.log10(max(1, needed))) - 1)
    return f"about {math.ceil(needed / step) * step:,} {units}"

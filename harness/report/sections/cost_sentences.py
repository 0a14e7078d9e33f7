"""Costs in sentences."""

import math
from collections.abc import Iterator, Mapping

from harness.evaluation.costs import (
    RetrieverCost,
    cheapest_of,
    fastest_of,
    is_clearly_faster,
    retriever_costs,
)
from harness.report.numbers import dollars_text
from harness.report.view import View
from harness.wording.dates import date_text
from harness.wording.missing_costs import (
    unknown_price_sentences,
    unmeasured_latency_sentences,
)
from harness.wording.numerals import numeral

MIN_TIMES_FASTER = 1.5
"""A smaller ratio of latencies is shown in percent."""


def cost_sentences(view: View) -> list[str]:
    """The result of latencies, then of prices."""
    costs = retriever_costs(view.results)
    return [*_latency_sentences(view, costs), *_price_sentences(costs)]


def _latency_sentences(view: View, costs: Mapping[str, RetrieverCost]) -> Iterator[str]:
    timed = [name for name in view.ranked if costs[name].p95 is not None]
    if not timed:
        if any(cost.is_cached for cost in costs.values()):
            yield from unmeasured_latency_sentences(costs)
            return
        yield "Latency was not measured: set `[latency] sample = 20`."
        return
    yield from unmeasured_latency_sentences({name: costs[name] for name in view.ranked})
    if len(timed) > 1:
        yield from _fastest_sentence(view, costs)
    measured_at = max(cost.measured_at for cost in costs.values())
    if measured_at and measured_at[:10] != view.manifest.started[:10]:
        yield f"Latencies were measured on {date_text(measured_at)}."


def _fastest_sentence(view: View, costs: Mapping[str, RetrieverCost]) -> Iterator[str]:
    """Yield which retriever is the fastest beyond the spread of the times.

    None is if a latency among theirs was not measured.
    """
    evaluation = view.evaluation
    candidates = [name for name in view.ranked if name not in evaluation.shown_worse]
    if len(candidates) > 1:
        fastest = fastest_of({name: costs[name] for name in candidates})
        if fastest is not None:
            number = numeral(len(candidates))
            yield f"Of the {number} that may be best, {fastest} is the fastest."
        return
    if costs[evaluation.leader].p95 is not None:
        yield from _leader_speed_sentence(view, costs)


def _leader_speed_sentence(
    view: View, costs: Mapping[str, RetrieverCost]
) -> Iterator[str]:
    """Yield how the leader's speed compares with that of the fastest."""
    evaluation = view.evaluation
    leader = evaluation.leader
    if fastest_of({name: costs[name] for name in view.ranked}) == leader:
        yield f"{leader} is also the fastest."
        return
    times = {name: cost.p95 for name, cost in costs.items() if cost.p95 is not None}
    fastest = min(view.ranked, key=lambda name: times.get(name, math.inf))
    if not is_clearly_faster(costs[fastest], costs[leader]):
        return
    gap = abs(evaluation.means[leader] - evaluation.means[fastest])
    ratio = times[leader] / (times[fastest] or math.inf)
    speed = _speed_words(ratio)
    yield f"{fastest} answers {speed} than {leader} and scores {gap:.3f} lower."


def _speed_words(ratio: float) -> str:
    """How much faster something is.

    >>> _speed_words(32.4), _speed_words(2.53), _speed_words(1.2)
    ('32 times faster', '2.5 times faster', '20 % faster')
    """
    if ratio < MIN_TIMES_FASTER:
        return f"{100 * (ratio - 1):.0f} % faster"
    return f"{ratio:,.0f} times faster" if ratio >= 10 else f"{ratio:.1f} times faster"


def _price_sentences(costs: Mapping[str, RetrieverCost]) -> Iterator[str]:
    """Yield which prices are unknown; if all are known, which is the lowest."""
    unknown = list(unknown_price_sentences(costs))
    yield from unknown
    prices = {
        name: cost.usd_per_million
        for name, cost in costs.items()
        if cost.usd_per_million is not None
    }
    if not prices or unknown:
        return
    if not any(prices.values()):
        yield "All cost $0 per million queries."
        return
    cheapest = cheapest_of(prices)
    if cheapest is not None:
        price = dollars_text(prices[cheapest])
        yield f"{cheapest} is the cheapest: {price} per million queries."

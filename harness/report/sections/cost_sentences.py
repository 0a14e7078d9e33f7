"""Costs in sentences."""

from collections.abc import Iterator, Mapping

from harness.english import join_names, names_or_count
from harness.evaluation.costs import RetrieverCost, retriever_costs
from harness.report.numbers import dollars_text
from harness.report.view import View
from harness.wording.dates import date_text
from harness.wording.numerals import numeral

MIN_TIMES_FASTER = 1.5
"""A smaller ratio of latencies is shown in percent."""


def cost_sentences(view: View) -> list[str]:
    """The result of latencies, then of prices."""
    costs = retriever_costs(view.results)
    return [*_latency_sentences(view, costs), *_price_sentences(costs)]


def _latency_sentences(view: View, costs: Mapping[str, RetrieverCost]) -> Iterator[str]:
    latencies: dict[str, float] = {}
    for name in view.ranked:
        p95 = costs[name].p95
        if p95 is not None:
            latencies[name] = p95
    if not latencies:
        yield "Latency was not measured: set `[latency] sample = 20`."
        return
    missing = [name for name in view.ranked if name not in latencies]
    if missing:
        yield f"The latency of {names_or_count(missing)} was not measured."
    if len(latencies) > 1:
        yield from _fastest_sentence(view, latencies)
    measured_at = max(cost.measured_at for cost in costs.values())
    if measured_at and measured_at[:10] != view.manifest.started[:10]:
        yield f"Latencies were measured on {date_text(measured_at)}."


def _fastest_sentence(view: View, latencies: Mapping[str, float]) -> Iterator[str]:
    """Yield which retriever is the fastest of those that may be best."""
    evaluation = view.evaluation
    leader = evaluation.leader
    candidates = [
        name
        for name in latencies
        if name not in evaluation.shown_worse or name == leader
    ]
    if len(candidates) > 1:
        fastest = min(candidates, key=latencies.__getitem__)
        number = numeral(len(candidates))
        yield f"Of the {number} that may be best, {fastest} is the fastest."
        return
    if leader not in latencies:
        return
    fastest = min(latencies, key=latencies.__getitem__)
    if fastest == leader:
        yield f"{leader} is also the fastest."
        return
    gap = abs(evaluation.means[leader] - evaluation.means[fastest])
    direction = "higher" if evaluation.measure in evaluation.low_is_good else "lower"
    speed = _speed_words(latencies[leader] / latencies[fastest])
    yield f"{fastest} answers {speed} than {leader} and scores {gap:.3f} {direction}."


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
    unknown = [name for name, cost in costs.items() if cost.usd_per_million is None]
    if unknown:
        verb = "is" if len(unknown) == 1 else "are"
        noun = "price" if len(unknown) == 1 else "prices"
        yield f"The {noun} of {join_names(unknown)} {verb} unknown: set price."
    prices = {
        name: cost.usd_per_million
        for name, cost in costs.items()
        if cost.usd_per_million is not None
    }
    if not prices or unknown:
        return
    if not any(prices.values()):
        yield "All run on this machine: $0."
    elif len(set(prices.values())) > 1:
        cheapest = min(prices, key=prices.__getitem__)
        price = dollars_text(prices[cheapest])
        yield f"{cheapest} is the cheapest: {price} per million queries."

"""Why a cost is not known."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from harness.english import join_names, names_or_count
from harness.evaluation.costs import RetrieverCost


def unknown_price_sentences(costs: Mapping[str, RetrieverCost]) -> Iterator[str]:
    """Yield which prices are unknown, and the key that states them.

    A search of a service, a server of tools or a function has no key for its price.

    Args:
        costs: retriever -> its cost.
    """
    names_by_keys: dict[tuple[str, ...], list[str]] = {}
    for name, cost in costs.items():
        if cost.usd_per_million is None:
            names_by_keys.setdefault(cost.price_keys, []).append(name)
    for keys, names in names_by_keys.items():
        is_single = len(names) == 1
        noun = "price" if is_single else "prices"
        verb = "is" if is_single else "are"
        reason = f"nothing says what {'its' if is_single else 'their'} searches cost"
        if keys:
            reason = f"set {join_names([f'`{key}`' for key in keys])}"
        yield f"The {noun} of {join_names(names)} {verb} unknown: {reason}."


def unmeasured_latency_sentences(costs: Mapping[str, RetrieverCost]) -> Iterator[str]:
    """Yield which latencies are unknown, and why, if that is known.

    Args:
        costs: retriever -> its cost.
    """
    untimed = [name for name, cost in costs.items() if cost.p95 is None]
    cached = [name for name in untimed if costs[name].is_cached]
    others = [name for name in untimed if name not in cached]
    if cached:
        yield (
            f"The latency of {names_or_count(cached)} was not measured: the cache "
            "answered. Add `[latency]` to measure it."
        )
    if others:
        yield f"The latency of {names_or_count(others)} was not measured."

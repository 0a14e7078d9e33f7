"""What is large enough to change the decision: it stands on the first screen, each with the way to its evidence."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from harness.report.costs import costs_of
from harness.report.sections.integrity import unjudged
from harness.report.sections.slices import called, carried, compared, labels_of, pair_of
from harness.report.view import View
from harness.stats.words import join

CUT = 0.05
"""Share of the documents of which a model read only the beginning, from which on the first screen says so."""
UNJUDGED = 0.1
"""Share of the first hits that nobody judged, from which on the first screen says so."""
APART = 2.0
"""Times that the latency of one and the same encoder may differ before the measurement is doubted."""
BUSY = 1.0
"""Waiting processes a core, from which on a machine was busy."""


class Alert(NamedTuple):
    """One thing that may change the decision."""

    text: str
    section: str
    """Where its evidence stands."""


def alerts(view: View) -> list[Alert]:
    """Everything that is large enough to change the decision, the gravest first."""
    return [*_cut(view), *_unjudged(view), *_carried(view), *_latency(view)]


def _cut(view: View) -> Iterator[Alert]:
    """Models that read only the beginning of many documents, each with what is made of it."""
    documents, ledger = view.manifest.dataset.documents, view.manifest.ledger.retrievers
    for name in view.retrievers:
        if view.resolved.blocks[name].get("derived_from") in view.retrievers:
            continue  # its vectors are those of another, which is told
        number = len(ledger[name].notes.get("truncated", ()))
        if number and number >= CUT * documents:
            others = [other for other in view.retrievers if other != name and _is_made_of(other, name, view)]
            made = f" {join(others)} {'is' if len(others) == 1 else 'are'} made of it." if others else ""
            yield Alert(
                f"{name} read only the beginning of {number:,} of {documents:,} documents ({number / documents:.0%}): "
                f"what stands later in them was not searched. Cut them into passages (chunk), or take a model that "
                f"reads more.{made}",
                "integrity",
            )


def _is_made_of(retriever: str, name: str, view: View) -> bool:
    """Whether a retriever, or one that it is made of, has the vectors of another."""
    parts = view.resolved.parts(retriever)
    return name in parts or any(view.resolved.blocks[part].get("derived_from") == name for part in parts)


def _unjudged(view: View) -> Iterator[Alert]:
    """Whoever returned much that nobody judged; where only relevant documents are listed nothing tells."""
    shares = unjudged(view)
    if not shares:
        return
    worst = max(shares, key=lambda name: shares[name])
    if shares[worst] >= UNJUDGED:
        yield Alert(
            f"Nobody judged {shares[worst]:.0%} of the first {view.cutoff} hits of {worst} "
            f"({shares[view.whole.leader]:.0%} of {view.whole.leader}'s): unjudged documents count as irrelevant.",
            "integrity",
        )


def _carried(view: View) -> Iterator[Alert]:
    """One slice that carries the whole difference between the leader and the next, where a difference is shown."""
    kinds = labels_of(view)
    if len(view.retrievers) < 2 or not kinds or view.ranked[1] not in view.whole.shown_worse:
        return
    pair = pair_of(view, view.whole.leader, compared(view)[0], kinds)
    if (row := carried(view, pair)) is not None:
        name, rest = view.names[view.primary].short, pair.rows[0].queries - row.queries
        yield Alert(
            f"{pair.a} is ahead of {pair.b} because of the {row.queries} queries of {called(row)} alone "
            f"({row.difference:+.3f} in {name}): on the other {rest} queries it is not ahead.",
            "slices",
        )


def _latency(view: View) -> Iterator[Alert]:
    """Timings that cannot be trusted: the same encoder at very different speeds, or a busy machine."""
    costs, encoders = costs_of(view.results), dict[str, dict[str, float]]()
    for name in view.retrievers:
        encoder = view.resolved.blocks[name].get("encoder")
        for stage in costs[name].stages:
            if encoder and stage.stage == "embed-queries":
                encoders.setdefault(repr(sorted(encoder.items())), {})[name] = stage.p50
    for timed in encoders.values():
        slow, fast = max(timed, key=lambda name: timed[name]), min(timed, key=lambda name: timed[name])
        if timed[slow] > APART * timed[fast] > 0:
            yield Alert(
                f"{slow} and {fast} use the same encoder, yet a query took {timed[slow]:.3g} ms in one and "
                f"{timed[fast]:.3g} ms in the other: the machine was busy, so do not compare the latencies.",
                "tradeoffs",
            )
    cores, load = view.manifest.machine.get("cores"), view.manifest.machine.get("load")
    if cores and load is not None and any(cost.stages for cost in costs.values()) and load > BUSY * cores:
        yield Alert(
            f"When the run ended, {load:.1f} processes wanted the {cores} cores of the machine: latencies are likely "
            "longer than on an idle one.",
            "tradeoffs",
        )

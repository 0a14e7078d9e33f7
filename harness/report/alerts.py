"""What is large enough to change the decision: it stands on the first screen, each with the way to its evidence."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from harness.evaluation.cautions import clicked, foreign_hits, half_read
from harness.evaluation.costs import costs_of
from harness.report import text
from harness.report.sections.integrity import unjudged
from harness.report.sections.slices import called, carried, compared, labels_of, pair_of
from harness.report.view import View

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
    about_hits = [*half_read(view.manifest), *foreign_hits(view.manifest), *clicked(view.manifest)]
    return [*(Alert(text, "trust") for text in about_hits), *_unjudged(view), *_carried(view), *_latency(view)]


def _unjudged(view: View) -> Iterator[Alert]:
    """Whoever returned much that nobody judged; where only relevant documents are listed nothing tells."""
    shares = unjudged(view)
    if not shares:
        return
    worst = max(shares, key=lambda name: shares[name])
    leader = view.conclusion.leader
    beside = "" if worst == leader else f" ({100 * shares[leader]:.0f} % of {leader}'s)"
    if shares[worst] >= UNJUDGED:
        yield Alert(
            f"Nobody judged {100 * shares[worst]:.0f} % of the first {view.cutoff} hits of {worst}{beside}: "
            "unjudged documents count as irrelevant.",
            "trust",
        )


def _carried(view: View) -> Iterator[Alert]:
    """One slice that carries the whole difference between the leader and the next, where a difference is shown."""
    kinds = labels_of(view)
    if len(view.retrievers) < 2 or not kinds or view.ranked[1] not in view.conclusion.shown_worse:
        return
    pair = pair_of(view, view.conclusion.leader, compared(view)[0], kinds)
    if (row := carried(view, pair)) is not None:
        name, rest = view.names[view.primary].short, pair.rows[0].queries - row.queries
        yield Alert(
            f"Without the {row.queries} queries of {called(row)} ({text.signed(row.difference)} in {name}) the lead of "
            f"{pair.a} over {pair.b} vanishes: on the other {rest} its mean is not higher.",
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

"""The decision in plain words: each clause stands only where its condition holds, and links to its evidence."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from harness.english import count, join
from harness.evaluation.costs import costs_of
from harness.measures import parse
from harness.report import text
from harness.report.sections.failure_map import hits_within
from harness.report.sections.slices import Slice, called, labels_of, pair_of
from harness.report.view import View

COUNTED = 3
"""Retrievers whose counts stand in the sentence: the leader and the next."""


class Clause(NamedTuple):
    """One sentence of the decision."""

    text: str
    section: str
    """Where its evidence stands."""


def receipt(view: View) -> list[Clause]:
    """What to use, what it finds, where the gain comes from, what it costs; nothing of a run that is not whole."""
    if view.evaluation.partial:
        return []
    return [*_use(view), *_finds(view), *_gain(view), *_cost(view), *_judging(view)]


def recommended(view: View) -> str | None:
    """The one retriever to use: every other one is shown to be worse than it; None where that is not so."""
    whole = view.conclusion
    alone = len(whole.within_margin) == 1 and not whole.unresolved
    return whole.leader if alone and len(whole.means) > 1 and not view.evaluation.partial else None


def _use(view: View) -> Iterator[Clause]:
    """Stands where one retriever is shown better than every other."""
    name = recommended(view)
    if name is not None:
        yield Clause(f"Use {name}: every other retriever is shown to be worse.", "tests")


def _finds(view: View) -> Iterator[Clause]:
    """Stands where the measure that decides rests on labels: counts of queries, no comparison."""
    if parse(view.primary).claimed:
        return
    k = view.cutoff
    counts = {name: int((hits > 0).sum()) for name, hits in hits_within(view, k).items()}
    first, *others = view.ranked[:COUNTED]
    rest = f"; {join([f'{name} for {counts[name]:,}' for name in others])}" if others else ""
    yield Clause(
        f"{first} finds a relevant document among its first {k} hits for {counts[first]:,} of {count(view.n)}{rest}.",
        "failure_map",
    )


def _gain(view: View) -> Iterator[Clause]:
    """Stands for a family of slices where the difference from the next is shown to change from slice to slice."""
    kinds = labels_of(view) if len(view.ranked) > 1 else {}
    if not kinds or not view.conclusion.means:
        return
    pair = pair_of(view, view.ranked[0], view.ranked[1], kinds)
    level = 0.0 if view.settings.spent else view.settings.alpha
    shown = [test for test in pair.interactions if test.p_adjusted <= level]
    for test in sorted(shown, key=lambda test: test.p_adjusted)[:1]:
        rows = sorted((row for row in pair.rows if row.family == test.family), key=lambda row: -row.difference)
        said = (
            f"The lead of {pair.a} over {pair.b} in {view.names[view.primary].short} depends on the query type "
            f"(exploratory, extremes shown): {_of_slice(rows[0])}, {_of_slice(rows[-1])}"
        )
        yield Clause(said if said.endswith("…") else f"{said}.", "slices")


def _of_slice(row: Slice) -> str:
    return f"{text.signed(row.difference)} on {called(row)}"


def _judging(view: View) -> Iterator[Clause]:
    """Stands where a chat model judged claims in this run: what that took, for all retrievers together."""
    costs = view.results.costs
    for row in costs[(costs["retriever"] == "") & (costs["stage"] == "judge")].to_dict("records"):
        if row["calls"]:
            spent = f" and {text.dollars(row['usd'])}" if row["usd"] else ""
            yield Clause(f"Judging the claims took {row['calls']:,} requests{spent} in this run.", "tradeoffs")


def _cost(view: View) -> Iterator[Clause]:
    """Each half stands where it was measured or its price is known."""
    name = view.conclusion.leader
    cost = costs_of(view.results)[name]
    if cost.usd_per_million is not None:
        money = (
            f"costs {text.dollars(cost.usd_per_million)} a million queries"
            if cost.usd_per_million
            else "calls no paid service"
        )
        time = "" if cost.p50 is None else f" and answers a query in {text.milliseconds(cost.p50)} (median)"
        yield Clause(f"{name} {money}{time}.", "tradeoffs")
    elif cost.p50 is not None:
        yield Clause(f"{name} answers a query in {text.milliseconds(cost.p50)} (median).", "tradeoffs")

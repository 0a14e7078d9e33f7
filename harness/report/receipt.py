"""What a choice hangs on in plain words: each clause where its condition holds, with a link to its evidence."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from harness.english import count, few_names
from harness.evaluation.costs import Cost, costs_of
from harness.measures import parse
from harness.report import text
from harness.report.failures import hits_within
from harness.report.sections.slices import Slice, called, labels_of, pair_of
from harness.report.view import View

COUNTED = 3
"""Retrievers whose counts stand in the sentence: the leader and the next."""


class Clause(NamedTuple):
    """One sentence of the decision."""

    text: str
    section: str
    """Where its evidence stands."""


class Expense(NamedTuple):
    """One way to be the cheapest."""

    word: str
    unit: str
    price: Callable[[Cost], float | None]
    shown: Callable[[float], str]


EXPENSES = (
    Expense("Cheapest", "a million queries", lambda cost: cost.usd_per_million, text.dollars),
    Expense("Fastest", "a query (median)", lambda cost: cost.p50, text.milliseconds),
    Expense("Smallest", "of vectors", lambda cost: cost.vector_bytes, text.size),
)


def facts(view: View) -> list[Clause]:
    """What the first retrievers find, where the lead comes from, what it costs; nothing of a run that is not whole."""
    if view.evaluation.partial:
        return []
    return [*_finds(view), *_gain(view), *_cost(view), *_judging(view)]


def choice(view: View) -> list[str]:
    """The cheapest and the fastest of what is shown within the margin of the leader, only of a whole run."""
    result = view.conclusion
    if view.evaluation.waiting:
        return ["Nothing is recommended before every retriever has answered."]
    if view.evaluation.failed:
        return ["Nothing is recommended: a retriever that failed might be better. Run the experiment again."]
    if not view.settings.by_people:
        return ["Nothing is recommended: let people judge a random part of these queries."]
    good = result.within_margin
    if len(good) == 1 or not result.measured:
        return []
    costs = costs_of(view.results)
    # What is not resolved may be better than the leader: then nothing is as good as the best.
    still = f"; {few_names(list(result.unresolved))} may still be better" if result.unresolved else ""
    sentences = []
    for word, unit, price, shown in EXPENSES:
        priced = [(value, name) for name in good if (value := price(costs[name])) is not None]
        if len(priced) == len(good) and len({value for value, _ in priced}) > 1:
            value, name = min(priced)
            within = f"within {view.settings.margin:g} of {result.leader}"
            sentences.append(f"{word} {within}: {name}, {shown(value)} {unit}{still}.")
    return sentences or ["No price, latency or size tells them apart."]


def _finds(view: View) -> Iterator[Clause]:
    """Stands where the measure that decides rests on labels: counts of queries, no comparison."""
    if parse(view.primary).claimed:
        return
    k = view.cutoff
    counts = [f"{name} {int((hits > 0).sum()):,}" for name, hits in hits_within(view, k).items()]
    more = f" and {len(counts) - COUNTED} more" if len(counts) > COUNTED else ""
    yield Clause(
        f"A relevant document in the top {k}: {', '.join(counts[:COUNTED])}{more}, of {count(view.n)}.", "queries"
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
        said = f"{_of_slice(rows[0])}, {_of_slice(rows[-1])}"
        yield Clause(f"Lead of {pair.a} over {pair.b}, extremes (exploratory): {said}.", "slices")


def _of_slice(row: Slice) -> str:
    return f"{called(row)} {text.signed(row.difference)} (n = {row.queries})"


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

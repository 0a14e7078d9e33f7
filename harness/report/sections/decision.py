"""The first screen: the verdict, what may change it, the paired leaderboard, and what a choice hangs on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from harness.english import count, counted, few_names, shared_beginning
from harness.evaluation.conclusions import first_lines, next_step
from harness.evaluation.costs import costs_of
from harness.evaluation.evaluation import Board, WarningKind
from harness.evaluation.wording import STANDINGS, look_sentences, warning_sentence
from harness.measures import parse
from harness.report import text
from harness.report.axes import numbers, steps
from harness.report.charts import ForestRow
from harness.report.elements import Figure, Section, forest
from harness.report.failures import hits_within
from harness.report.sections.slices import called, carried, compared, labels_of, pair_of
from harness.report.sections.tradeoffs import PRICES
from harness.report.view import View

PLACE = 10

APART = 2.0
"""Times that the latency of one and the same encoder may differ before the measurement is doubted."""
BUSY = 1.0
"""Waiting processes a core, from which on a machine was busy."""
COUNTED = 3
"""Retrievers whose counts stand in the sentence: the leader and the next."""


class Clause(NamedTuple):
    """One sentence of the decision, or one thing that may change it."""

    text: str
    section: str
    """The section or the fold where its evidence stands."""


class Screen(NamedTuple):
    """What the first screen says, in its order."""

    headline: str
    lead: str
    """How far the first is ahead; may be empty."""
    notes: tuple[str, ...]
    """What to do next, and what to know of the tests; a line each."""
    alerts: tuple[Clause, ...]
    board: Board
    beginning: str
    """What all names begin with, which the head says once; "" for nothing."""
    facts: tuple[Clause, ...]
    failed: Mapping[str, str]
    standings: Mapping[str, tuple[str, str]] = STANDINGS

    def short(self, name: str) -> str:
        """A name without what all begin with."""
        return name.removeprefix(self.beginning)

    @property
    def signs(self) -> list[tuple[str, str]]:
        """The signs of the leaderboard, each with its word; a row without a mean says its own."""
        return list(dict.fromkeys(self.standings[row.standing] for row in self.board.rows if row.mean is not None))

    @property
    def axis(self) -> tuple[float, float]:
        """The ends of the forest's axis, with some room."""
        low, high = self.board.span
        room = (high - low) * 0.04 or 0.05
        return low - room, high + room

    @property
    def ticks(self) -> list[tuple[float, str]]:
        """The axis's round values, and how they read."""
        values = steps(*self.axis, 5)
        return list(zip(values, numbers(values, "-"), strict=True))


def section(view: View) -> Section:
    """The verdict, what may change it, the paired leaderboard, and what a choice hangs on."""
    screen = screen_of(view)
    drawn = (_figure(view, screen),) if screen.board.paired else ()
    return Section("decision", "Decision", {"screen": screen}, drawn)


def _figure(view: View, screen: Screen) -> Figure:
    """The paired forest as a figure that stands alone, with the figures of each row beside it."""
    board, name = screen.board, view.names[view.primary].short
    rows = [
        ForestRow(
            row.retriever, row.retriever, row.difference, row.low, row.high, board.n,
            record := f"{row.wins:,} / {row.ties:,} / {row.losses:,}", beside=record,
        )
        for row in board.rows
        if row.difference is not None
    ]  # fmt: skip
    where = f"ahead of {board.reference}" if board.against_baseline else f"behind {board.reference}"
    differences = "; ".join(f"{row.label} {text.signed(row.difference)}" for row in rows)
    words = (
        "leaderboard",
        f"{name} {where}, with {100 * board.level:g} % intervals; queries better / equal / worse",
        f"Mean paired difference of {name}, {where}: {differences}.",
        f"{name} {where}",
    )
    return forest(words, {"": rows}, board.margin)


def screen_of(view: View) -> Screen:
    """Put the first screen together."""
    said, beginning = first_lines(view.evaluation), shared_beginning(list(view.evaluation.means))

    def short(sentence: str) -> str:
        # The head of the leaderboard says once what all names begin with.
        spoken = view.spoken(sentence)
        return spoken.replace(beginning, "…") if beginning else spoken

    notes = (next_step(view.evaluation), *said.following, *choice(view), *look_sentences(view.evaluation))
    return Screen(
        headline=short(said.headline),
        lead=short(said.lead),
        notes=tuple(short(note) for note in notes if note),
        alerts=tuple(alert._replace(text=short(alert.text)) for alert in alerts(view)),
        board=view.evaluation.board,
        beginning=beginning,
        facts=tuple(clause._replace(text=short(clause.text)) for clause in facts(view)),
        failed=view.evaluation.failed,
    )


def facts(view: View) -> list[Clause]:
    """What the first retrievers find, where the lead comes from, what it costs; nothing of a run that is not whole."""
    if view.evaluation.failed:
        return []
    return [*_finds(view), *_cost(view), *_judging(view)]


def choice(view: View) -> list[str]:
    """The cheapest and the fastest of what is shown within the margin of the leader, only of a whole run."""
    result, good = view.evaluation, view.evaluation.within_margin
    if next_step(view.evaluation) or len(good) == 1 or not result.measured:
        return []
    costs = costs_of(view.results)
    # What is not resolved may be better than the leader: then nothing is as good as the best.
    still = f"; {few_names(list(result.plans))} may still be better" if result.plans else ""
    sentences = []
    for price in (PRICES["dollars"], PRICES["latency"], PRICES["bytes"]):
        priced = [(value, name) for name in good if (value := price.of(costs[name])) is not None]
        if len(priced) == len(good) and len({value for value, _ in priced}) > 1:
            value, name = min(priced)
            within = f"within {view.settings.margin:g} of {result.leader}"
            sentences.append(f"{price.word} {within}: {name}, {price.shown(value)} {price.each}{still}.")
    return sentences or ["No price, latency or size separates them."]


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


def _judging(view: View) -> Iterator[Clause]:
    """Stands where a chat model judged claims in this run: what that took, for all retrievers together."""
    costs = view.results.costs
    for row in costs[(costs["retriever"] == "") & (costs["stage"] == "judge")].to_dict("records"):
        if row["calls"]:
            spent = f" and {text.dollars(row['usd'])}" if row["usd"] else ""
            yield Clause(
                f"Judging the claims took {counted(int(row['calls']), 'request')}{spent} in this run.", "tradeoffs"
            )


def _cost(view: View) -> Iterator[Clause]:
    """Each half stands where it was measured or its price is known."""
    name = view.evaluation.leader
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


def alerts(view: View) -> list[Clause]:
    """Everything that is large enough to change the decision, the gravest first."""
    left_out = (WarningKind.FRAGILE, WarningKind.JUDGED_GAP)  # of the next steps, and of the labels
    known = [warning_sentence(one) for one in view.evaluation.warnings if one.kind not in left_out]
    return [*(Clause(text, "integrity") for text in known), *_carried(view), *_latency(view)]


def _carried(view: View) -> Iterator[Clause]:
    """One slice that carries the whole difference between the leader and the next, where a difference is shown."""
    kinds = labels_of(view)
    if len(view.retrievers) < 2 or not kinds or view.ranked[1] not in view.evaluation.shown_worse:
        return
    pair = pair_of(view, view.evaluation.leader, compared(view)[0], kinds)
    if (row := carried(view, pair)) is not None:
        name, rest = view.names[view.primary].short, pair.rows[0].queries - row.queries
        yield Clause(
            f"Without the {row.queries:,} queries of {called(row)} ({text.signed(row.difference)} in {name}) the lead "
            f"of {pair.a} over {pair.b} vanishes: on the other {rest:,} its mean is not higher.",
            "slices",
        )


def _latency(view: View) -> Iterator[Clause]:
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
            yield Clause(
                f"{slow} and {fast} use the same encoder, yet a query took {timed[slow]:.3g} ms in one and "
                f"{timed[fast]:.3g} ms in the other: the machine was busy, so do not compare the latencies.",
                "tradeoffs",
            )
    cores, load = view.manifest.machine.get("cores"), view.manifest.machine.get("load")
    if cores and load is not None and any(cost.stages for cost in costs.values()) and load > BUSY * cores:
        yield Clause(
            f"When the run ended, {load:.1f} processes wanted the {cores} cores of the machine: latencies are likely "
            "longer than on an idle one.",
            "tradeoffs",
        )

"""What a choice hangs on in plain words: each clause where its condition holds, with the way to its evidence."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from harness.english import count, counted, few_names
from harness.evaluation.cautions import (
    asked_sentence,
    below_noise,
    clicked,
    foreign_hits,
    half_read,
    look_sentence,
    second_look_sentence,
    unjudged_note,
)
from harness.evaluation.costs import Cost, costs_of
from harness.measures import parse
from harness.report import text
from harness.report.failures import hits_within
from harness.report.sections.integrity import unjudged
from harness.report.sections.slices import called, carried, compared, divided, labels_of, pair_of
from harness.report.view import View

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
    if len(view.retrievers) == 1:
        return ["Next: add a second [[retrievers]] to the experiment, of another kind or model, and run it again."]
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
        by = divided(test.family)
        said = ", ".join(
            f"{called(row).removeprefix(f'{by}: ')} {text.signed(row.difference)} (n = {row.queries})"
            for row in (rows[0], rows[-1])
        )
        yield Clause(f"Lead of {pair.a} over {pair.b} by {by} (exploratory): {said}.", "slices")


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


def alerts(view: View) -> list[Clause]:
    """Everything that is large enough to change the decision, the gravest first."""
    about_hits = [*half_read(view.manifest), *foreign_hits(view.manifest), *clicked(view.manifest)]
    return [*(Clause(text, "trust") for text in about_hits), *_unjudged(view), *_carried(view), *_latency(view)]


def _unjudged(view: View) -> Iterator[Clause]:
    """Whoever returned much that nobody judged; where only relevant documents are listed nothing tells."""
    if note := unjudged_note(unjudged(view), view.conclusion.leader, view.cutoff):
        yield Clause(note, "trust")


def _carried(view: View) -> Iterator[Clause]:
    """One slice that carries the whole difference between the leader and the next, where a difference is shown."""
    kinds = labels_of(view)
    if len(view.retrievers) < 2 or not kinds or view.ranked[1] not in view.conclusion.shown_worse:
        return
    pair = pair_of(view, view.conclusion.leader, compared(view)[0], kinds)
    if (row := carried(view, pair)) is not None:
        name, rest = view.names[view.primary].short, pair.rows[0].queries - row.queries
        yield Clause(
            f"Without the {row.queries} queries of {called(row)} ({text.signed(row.difference)} in {name}) the lead of "
            f"{pair.a} over {pair.b} vanishes: on the other {rest} its mean is not higher.",
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


def first_caveats(view: View) -> list[str]:
    """What stands on the first screen: which look this is, and what counts as one observation."""
    if not view.conclusion.measured:
        return moved_sentences(view)
    sentences = [*moved_sentences(view), asked_sentence(view.n, view.conclusion.clusters)]
    if view.look is not None:
        sentences.append(look_sentence(view.look, view.n))
    elif len(view.retrievers) > 1:
        sentences.append(second_look_sentence(1 + len(view.manifest.earlier_looks)))
    return [sentence for sentence in (*sentences, *below_noise(view.manifest, view.conclusion)) if sentence]


def moved_sentences(view: View) -> list[str]:
    """The retrievers whose cached vectors are no longer those that their model gives."""
    sentences = []
    for name in view.retrievers:
        stages = view.manifest.ledger.retrievers[name].counts.values()
        moved, probed = (int(sum(stage.get(kind, 0) for stage in stages)) for kind in ("moved", "probed"))
        if moved:
            sentences.append(
                f"{name} mixes vectors of two models: {moved} of {counted(probed, 'cached text')} came back different "
                "when they were embedded again. Run it again with --fresh."
            )
    return sentences

"""The first screen: what was decided, on what, and what these queries could have shown."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from harness.measures import parse
from harness.report import charts, text
from harness.report.alerts import alerts
from harness.report.costs import Cost, costs_of
from harness.report.figures import Figure, figure
from harness.report.section import Section
from harness.report.view import View
from harness.stats import (
    Comparison,
    Standing,
    Unresolved,
    differences,
    judged_note,
    letters,
    minimum_detectable,
    optimism,
    optimism_sentence,
    significance_sentence,
    standings,
)
from harness.stats.words import NO_MATTER_OF_SIZE, count, join

SETS = {
    "good": ("●", "As good as the best"),
    "open": ("?", "Not resolved"),
    "worse": ("▼", "Shown worse"),
}
"""A sign and a name for each of the three sets: never a colour alone."""


FEW = 10
"""Differing queries below which an interval of the difference is likely too short."""
PRAISES: tuple[tuple[str, str, Callable[[Cost], float | None], Callable[[float], str]], ...] = (
    ("Cheapest", "a million queries", lambda cost: cost.usd_per_million, text.dollars),
    ("Fastest", "a query (median)", lambda cost: cost.p50, text.milliseconds),
    ("Smallest", "of vectors", lambda cost: cost.vector_bytes, text.size),
)


class Line(NamedTuple):
    """One line of the leaderboard."""

    retriever: str
    mean: float
    low: float
    high: float
    letters: str
    standing: Standing
    set: str
    """"good", "open" or "worse"."""
    against: Comparison | None
    """The leader (a) with this one (b); None for the leader."""
    open: Unresolved | None
    cost: Cost


def decision(view: View) -> Section:
    """The verdict, the leaderboard, the three sets, and what to choose."""
    whole = view.whole
    lines = leaderboard(view)
    sentences = [view.spoken(sentence) for sentence in view.outcome.sentences()]
    if not view.outcome.failed and len(lines) > 1 and len(whole.shown_worse) == len(lines) - 1:
        del sentences[-1]  # The headline says it.
    # The limits of each pair stand in the cards, in figures.
    limits = [s for s in sentences if any(s.startswith(f"{whole.leader} and {other}:") for other in whole.unresolved)]
    declared = (
        []
        if len(lines) == 1 or not view.settings.by_people
        else [view.spoken(significance_sentence(view.comparisons[view.primary], view.settings))]
    )
    span = (min(line.low for line in lines), max(line.high for line in lines))
    pad = (span[1] - span[0]) * 0.06 or 0.05
    return Section(
        "decision",
        "Decision",
        {
            "headline": headline(view),
            "alerts": alerts(view),
            "lede": [*declared, *(s for s in sentences[1:] if s not in limits), *resolution(view)],
            "limits": limits,
            "lines": lines,
            "failed": {name: text.visible(error) for name, error in view.outcome.failed.items()},
            "signs": {key: sign for key, (sign, _) in SETS.items()},
            "timed": any(line.cost.p50 is not None for line in lines),
            "paid": any(line.cost.usd_per_million != 0 for line in lines),
            "sets": [
                (key, *SETS[key], [line for line in lines if line.set == key])
                for key in SETS
                if view.settings.by_people
            ],
            "axis": (span[0] - pad, span[1] + pad),
            "unforetold": NO_MATTER_OF_SIZE,
            "choice": choice(view, lines),
            "notes": notes(view),
        },
        figures=(_figure(view, lines),),
    )


def leaderboard(view: View) -> list[Line]:
    """The retrievers by their mean on the primary measure, highest first."""
    whole, scores = view.whole, view.scores[view.primary]
    shown = letters(scores, view.comparisons[view.primary]) if view.all_pairs else {}
    places = {place.name: place for place in standings(scores, level=view.settings.level, seed=view.settings.seed)}
    summary = view.results.summary
    intervals = {
        row["retriever"]: (row["ci_low"], row["ci_high"])
        for row in summary[summary["measure"] == view.primary].to_dict("records")
    }
    costs = costs_of(view.results)
    return [
        Line(
            retriever=name,
            mean=mean,
            low=intervals[name][0],
            high=intervals[name][1],
            letters=shown.get(name, ""),
            standing=places[name],
            set="worse" if name in whole.shown_worse else "open" if name in whole.unresolved else "good",
            against=whole.against.get(name),
            open=whole.unresolved.get(name),
            cost=costs[name],
        )
        for name, mean in whole.means.items()
    ]


def resolution(view: View) -> list[str]:
    """What so many queries can show, where the leader's nearest rival is resolved; else the sets tell."""
    rival = next(iter(view.ranked[1:]), None)
    if rival is None or rival in view.whole.unresolved or not view.settings.by_people:
        return []
    scores = view.scores[view.primary]
    found = minimum_detectable(
        differences(scores[view.whole.leader], scores[rival]),
        level=view.settings.alpha / max(1, len(view.comparisons[view.primary])),
        zeros=view.settings.zeros,
        seed=view.settings.seed,
    )
    if found.difference is None:
        return []
    return [
        f"{count(view.n)} {'finds' if view.n == 1 else 'find'} a true difference between {view.whole.leader} and "
        f"{rival} four times in five if it is {found.difference:.3f} or more."
    ]


def headline(view: View) -> str:
    """The verdict in one line."""
    whole = view.whole
    queries = count(whole.n)
    if view.outcome.incomplete:
        return view.outcome.incomplete
    if len(whole.means) == 1:
        return f"{whole.leader} ran alone: there is nothing to compare it with"
    if not view.settings.by_people:
        return f"A model alone judged {queries}: its labels put {whole.leader} first, and decide nothing"
    if len(whole.unresolved) == len(whole.means) - 1:
        which = "both" if len(whole.means) == 2 else f"the {len(whole.means)} retrievers"
        return f"No difference shown: {queries} cannot tell {which} apart"
    if whole.unresolved:
        return f"{whole.leader} leads, but {queries} cannot tell it from {_few(list(whole.unresolved))}"
    if len(whole.within_margin) > 1:
        return f"{_few(whole.within_margin)} are equally good within {view.settings.margin:g}"
    return f"{whole.leader} is the best of {len(whole.means)}"


def choice(view: View, lines: Sequence[Line]) -> list[str]:
    """The cheapest and the fastest, only among what is shown to be as good as the best, and only of a whole run."""
    good = [line for line in lines if line.set == "good"]
    if view.outcome.failed:
        return ["Nothing is recommended: a retriever that failed might be better. Run the experiment again."]
    if not view.settings.by_people:
        return ["Nothing is recommended: let people judge a random part of these queries."]
    if len(lines) == 1:
        return []
    if len(good) == 1:
        if not view.whole.unresolved:
            return [f"Take {good[0].retriever}: every other retriever is shown to be worse."]
        why = "no margin was declared" if view.settings.margin is None else "none is shown to be as good as the leader"
        return [f"Cheapest and fastest are not named: {why}, and what is not resolved is not known to be as good."]
    found = []
    for word, unit, price, shown in PRAISES:
        priced = [(value, line.retriever) for line in good if (value := price(line.cost)) is not None]
        if len(priced) == len(good) and len({value for value, _ in priced}) > 1:
            value, name = min(priced)
            found.append(f"{word} of what is as good as the best: {name}, {shown(value)} {unit}.")
    return found or [f"{join([line.retriever for line in good])} cost the same as far as it was measured."]


def notes(view: View) -> list[str]:
    """What to know before the verdict is believed."""
    found = [text.visible(warning) for warning in view.manifest.warnings]
    if view.resolved.baseline and view.baseline is None:
        found.append(f"The baseline {view.resolved.baseline} failed: all pairs were compared instead.")
    if len(view.retrievers) > 1 and view.n > 1:
        gain = optimism(view.scores[view.primary], seed=view.settings.seed)
        if gain.optimism >= 0.0005:
            found.append(optimism_sentence(gain, len(view.retrievers)))
    if parse(view.primary).get("ideal") in ("retrieved", "retrieved-all"):
        found.append(
            "The ideal of the primary measure is what was retrieved: one relevant document at rank 1 scores 1, "
            "however much was missed."
        )
    few = [row for row in view.comparisons[view.primary] if row.wins + row.losses < FEW]
    if few:
        pairs = join([f"{row.a} and {row.b}" for row in few[:3]] + (["other pairs"] if few[3:] else []))
        found.append(f"Fewer than {FEW} queries differ between {pairs}: the intervals there are likely too short.")
    return found + _judged(view)


def _judged(view: View) -> list[str]:
    """Whether unjudged documents may favour someone."""
    measure = f"Judged@{view.cutoff}"
    found = {
        name: view.scores[measure][name] if measure in view.scores else answers.extra[parse(measure)]
        for name, answers in view.answers.items()
    }
    if all(grade > 0 for judged in view.grades.values() for grade in judged.values()):
        return []  # Only relevant documents are listed: Judged is precision then, and says nothing of pooling.
    shares = {name: math.fsum(values) / len(values) for name, values in found.items()}
    leader = view.whole.leader
    told = (judged_note(leader, other, shares[leader], shares[other]) for other in view.ranked[1:])
    return [note for note in told if note]


def _few(names: Sequence[str]) -> str:
    return join(names) if len(names) <= 4 else f"{', '.join(names[:3])} and {len(names) - 3} others"


def _figure(view: View, lines: Sequence[Line]) -> Figure:
    name = view.names[view.primary]
    rows = [
        {"retriever": line.retriever, "mean": line.mean, "low": line.low, "high": line.high, "letters": line.letters}
        for line in lines
    ]
    said = "; ".join(f"{line.retriever} {text.score(line.mean)}" for line in lines)
    return figure(
        "leaderboard",
        f"Mean {name.short} with its {view.settings.level:.0%} interval",
        f"Means of {name.short}, highest first: {said}.",
        charts.means(view.ranked, view.marks, measure=name.short),
        rows=rows,
    )

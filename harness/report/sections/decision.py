"""The first screen: what was decided, on what, and what these queries could have shown."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from harness.report import charts, text
from harness.report.alerts import alerts
from harness.report.caveats import caveats, first_caveats, observed_forecasts
from harness.report.costs import Cost, costs_of
from harness.report.figures import Figure, figure
from harness.report.losses import EXPENSES, losses
from harness.report.receipt import receipt
from harness.report.section import Section
from harness.report.view import View
from harness.stats import (
    Comparison,
    Power,
    Standing,
    asked_of,
    detectable_words,
    letters,
    power_of,
    resolution_sentence,
    significance_sentence,
    standings,
)
from harness.stats.sentences import NO_MATTER_OF_SIZE, limits, untold
from harness.stats.verdicts import BETTER, DISAGREE, IDENTICAL, WORSE
from harness.stats.words import asked, join

PLACE = 10

SETS = {
    "good": ("●", "As good as the best"),
    "open": ("?", "Not resolved"),
    "worse": ("▼", "Shown worse"),
}
"""A sign and a name for each of the three sets: never a colour alone."""


class Line(NamedTuple):
    """One line of the leaderboard."""

    retriever: str
    mean: float
    low: float | None
    """Both ends None where no interval can be estimated."""
    high: float | None
    letters: str
    standing: Standing
    set: str
    """"good", "open" or "worse"."""
    against: Comparison | None
    """The leader (a) with this one (b); None for the leader."""
    open: Power | None
    cost: Cost
    p_of_mean: float | None
    """The adjusted p of the sign-flip test of the mean, where it and the deciding test do not agree."""


def section(view: View) -> Section:
    """The verdict, the leaderboard, the three sets, and what to choose."""
    whole = view.whole
    lines = leaderboard(view)
    sentences = [view.spoken(sentence) for sentence in view.outcome.sentences()]
    if not view.outcome.partial and len(lines) > 1 and whole.measured and len(whole.shown_worse) == len(lines) - 1:
        del sentences[-1]  # The headline says it.
    # The limits of each pair stand in the cards, in figures; so does who is shown worse.
    each = {view.spoken(sentence) for sentence in limits(whole, view.settings)}
    worse = f"Shown to be worse than {whole.leader}: "
    # The headline and the cards say it.
    repeated = view.spoken(f" {untold(whole)}") if whole.unresolved and "cannot tell" in headline(view) else "\n"
    rows = view.comparisons[view.primary]
    declared = (
        []
        if not view.settings.by_people or not whole.measured or all(row.ties == row.n for row in rows)
        else [view.spoken(significance_sentence(rows, view.settings))]
    )
    ends = [end for line in lines for end in (line.low, line.mean, line.high) if end is not None]
    pad = (max(ends) - min(ends)) * 0.06 or 0.05
    first = 1 if whole.measured else 0
    return Section(
        "decision",
        "Decision",
        {
            "headline": headline(view),
            "receipt": receipt(view),
            "alerts": alerts(view),
            "lede": [
                *first_caveats(view), *declared,
                *(s for s in sentences[first:]
                  if s not in each and not s.startswith(worse) and not s.endswith(repeated)),
                *resolution(view),
            ],
            "forecasts": observed_forecasts(view),
            "limits": [sentence for sentence in sentences if sentence in each],
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
            "axis": (min(ends) - pad, max(ends) + pad),
            "unforetold": NO_MATTER_OF_SIZE,
            "detectable": detectable_words,
            "choice": choice(view, lines),
            "losses": losses(view),
            "notes": caveats(view),
        },
        figures=(_figure(view, lines),),
    )  # fmt: skip


def leaderboard(view: View) -> list[Line]:
    """The retrievers by their mean on the primary measure, highest first."""
    whole, scores = view.whole, view.scores[view.primary]
    shown = letters(scores, view.comparisons[view.primary]) if view.all_pairs else {}
    places = {
        place.name: place
        for place in standings(scores, level=view.settings.level, seed=view.settings.seed, facts=view.facts)
    }
    summary = view.results.summary
    intervals = {
        row["retriever"]: (_known(row["ci_low"]), _known(row["ci_high"]))
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
            p_of_mean=_disagreeing(whole.against.get(name)),
        )
        for name, mean in whole.means.items()
    ]


def _disagreeing(row: Comparison | None) -> float | None:
    return row.p_randomization_adjusted if row is not None and row.reason == DISAGREE else None


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value


def resolution(view: View) -> list[str]:
    """What so many queries can show, where the leader's nearest rival is resolved; else the sets tell."""
    whole, rival = view.whole, next(iter(view.ranked[1:]), None)
    if rival is None or rival in whole.unresolved or not whole.measured or not view.settings.by_people:
        return []
    if whole.against[rival].ties == whole.against[rival].n:
        return []  # Where no query differs, nothing tells how queries gain and lose.
    bounds = view.facts.range_of(view.primary, view.scores[view.primary])
    power = power_of(
        view.scores[view.primary],
        (whole.leader, rival),
        asked_of(view.settings, max(1, len(view.comparisons[view.primary]))),
        (view.facts, 1.0 if bounds is None else bounds.span, whole.difference),
    )
    pair, queries = f"{whole.leader} and {rival}", asked(view.n, whole.clusters)
    sentence = resolution_sentence(power.detectable, pair, queries)
    return [sentence] if sentence else []


def headline(view: View) -> str:
    """The verdict in one line."""
    whole = view.whole
    queries = asked(whole.n, whole.clusters)
    if view.outcome.incomplete:
        return view.outcome.incomplete
    if not whole.measured:
        return f"Nothing was measured: every score of {view.names[view.primary].short} is 0"
    if len(whole.means) == 1:
        return f"{whole.leader} ran alone: there is nothing to compare it with"
    if not view.settings.by_people:
        return f"A model alone judged {queries}: its labels put {whole.leader} first, and decide nothing"
    if len(whole.unresolved) == len(whole.means) - 1:
        if any(row.word.startswith((BETTER, WORSE)) for row in view.comparisons[view.primary]):
            return f"{whole.leader} leads, but {queries} cannot tell it from any other"
        which = join(list(whole.means)) if len(whole.means) == 2 else f"the {len(whole.means)} retrievers"
        return f"No difference shown: {queries} cannot tell {which} apart"
    if whole.unresolved:
        return f"{whole.leader} leads, but {queries} cannot tell it from {_few(list(whole.unresolved))}"
    if len(whole.within_margin) > 1:
        others = [row for name, row in whole.against.items() if name in whole.within_margin]
        if all(row.reason == IDENTICAL for row in others):
            return f"{_few(whole.within_margin)} rank identically on these {queries}"
        return f"{_few(whole.within_margin)} are equally good within {view.settings.margin:g}"
    return f"{whole.leader} is the best of {len(whole.means)}"


def choice(view: View, lines: Sequence[Line]) -> list[str]:
    """The cheapest and the fastest, only among what is shown to be as good as the best, and only of a whole run."""
    good = [line for line in lines if line.set == "good"]
    if view.outcome.waiting:
        return ["Nothing is recommended before every retriever has answered."]
    if view.outcome.failed:
        return ["Nothing is recommended: a retriever that failed might be better. Run the experiment again."]
    if not view.settings.by_people:
        return ["Nothing is recommended: let people judge a random part of these queries."]
    if len(lines) == 1 or not view.whole.measured:
        return []
    if len(good) == 1:
        if not view.whole.unresolved:
            return []  # The first sentence says it.
        why = "no margin was declared" if view.settings.margin is None else "none is shown to be as good as the leader"
        return [f"Cheapest and fastest are not named: {why}, and what is not resolved is not known to be as good."]
    sentences, known, which = [], set[str](), join([line.retriever for line in good])
    for word, unit, price, shown in EXPENSES:
        priced = [(value, line.retriever) for line in good if (value := price(line.cost)) is not None]
        if len(priced) == len(good):
            known.add(word)
        if word in known and len({value for value, _ in priced}) > 1:
            value, name = min(priced)
            sentences.append(f"{word} of what is as good as the best: {name}, {shown(value)} {unit}.")
    if not sentences and not known & {"Cheapest", "Fastest"}:
        return [f"Neither price nor latency is known for each of {which}."]
    return sentences or [f"{which} cost the same as far as it was measured."]


def _few(names: Sequence[str]) -> str:
    return join(names) if len(names) <= 4 else f"{', '.join(names[:3])} and {len(names) - 3} others"


def _figure(view: View, lines: Sequence[Line]) -> Figure:
    name = view.names[view.primary]
    rows = [
        {"retriever": line.retriever, "mean": line.mean, "low": line.low, "high": line.high, "letters": line.letters}
        for line in lines
    ]
    means = "; ".join(f"{line.retriever} {text.score(line.mean)}" for line in lines)
    return figure(
        "leaderboard",
        f"Mean {name.short} with its {view.settings.level:.0%} interval",
        f"Means of {name.short}, highest first: {means}.",
        charts.means(view.ranked, view.marks, measure=name.short),
        rows=rows,
    )

"""The first screen: what was decided, on what, and what these queries could have shown."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from harness.english import join
from harness.evaluation import statements
from harness.evaluation.compare import letter_display
from harness.evaluation.conclusion import Power, power_of
from harness.evaluation.costs import Cost, costs_of
from harness.evaluation.statements import Topic, detectable_words, needed_words, resolution_sentence
from harness.evaluation.verdict import Comparison, Reason
from harness.evaluation.wording import reason_words, significance_sentence
from harness.report import charts, text
from harness.report.alerts import alerts
from harness.report.caveats import caveats, first_caveats
from harness.report.figures import Figure, Section, figure
from harness.report.receipt import receipt
from harness.report.view import View
from harness.stats.resampling import Standing, standings

PLACE = 10

SETS = {
    "good": ("●", "Within the margin of the leader"),
    "open": ("?", "Not resolved"),
    "worse": ("▼", "Shown worse"),
}
"""A sign and a name for each of the three sets: never a colour alone."""


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


ELSEWHERE = (Topic.BASELINE, Topic.LEADER, Topic.SHOWN_WORSE, Topic.BEST, Topic.POWER)
"""What the headline, the leaderboard and the cards say, so that the lede does not."""


def section(view: View) -> Section:
    """The verdict, the leaderboard, the three sets, and what to choose."""
    result = view.conclusion
    lines = leaderboard(view)
    stated = [(one.topic, view.spoken(one.text)) for one in view.evaluation.statements()]
    unresolved = any(result.against[name].reason is not Reason.IDENTICAL for name in result.unresolved)
    hidden = (*ELSEWHERE, Topic.UNRESOLVED) if unresolved and not view.evaluation.partial else ELSEWHERE
    rows = view.comparisons[view.primary]
    declared = (
        []
        if not view.settings.by_people or not result.measured or all(row.ties == row.n for row in rows)
        else [view.spoken(significance_sentence(rows, view.settings))]
    )
    ends = [end for line in lines for end in (line.low, line.mean, line.high) if end is not None]
    pad = (max(ends) - min(ends)) * 0.06 or 0.05
    return Section(
        "decision",
        "Decision",
        {
            "headline": headline(view),
            "receipt": receipt(view),
            "alerts": alerts(view),
            "lede": [
                *first_caveats(view), *declared,
                *(text_ for topic, text_ in stated if topic not in hidden),
                *resolution(view),
            ],
            "limits": [text_ for topic, text_ in stated if topic is Topic.POWER],
            "lines": lines,
            "failed": {name: text.visible(error) for name, error in view.evaluation.failed.items()},
            "signs": {key: sign for key, (sign, _) in SETS.items()},
            "timed": any(line.cost.p50 is not None for line in lines),
            "paid": any(line.cost.usd_per_million != 0 for line in lines),
            "sets": [
                (key, sign, "Highest mean" if key == "good" and len(within) == 1 else name, within)
                for key, (sign, name) in SETS.items()
                for within in [[line for line in lines if line.set == key]]
                if view.settings.by_people
            ],
            "axis": (min(ends) - pad, max(ends) + pad),
            "open_facts": {line.retriever: open_facts(line) for line in lines if line.open is not None},
            "choice": choice(view, lines),
            "notes": caveats(view),
        },
        figures=(_figure(view, lines),),
    )  # fmt: skip


def open_facts(line: Line) -> tuple[str, str]:
    """What these queries could find of a retriever that is not resolved, and how many would be needed."""
    row = line.against
    if line.open is None or row is None or (row.reason is not None and not row.reason.helped_by_queries):
        return ("–", reason_words(row.reason if row else None))
    needed = "too few differ to say" if line.open.needed is None else needed_words(line.open.needed)
    return detectable_words(line.open.detectable), needed


def leaderboard(view: View) -> list[Line]:
    """The retrievers by their mean on the primary measure, highest first."""
    result, table = view.conclusion, view.evaluation.scores
    scores = table.values[view.primary]
    shown = letter_display(table, view.comparisons[view.primary]) if view.all_pairs else {}
    settings = view.settings
    places = {place.name: place for place in standings(scores, table.units, level=settings.level, seed=settings.seed)}
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
            set="worse" if name in result.shown_worse else "open" if name in result.unresolved else "good",
            against=result.against.get(name),
            open=result.unresolved.get(name),
            cost=costs[name],
            p_of_mean=_disagreeing(result.against.get(name)),
        )
        for name, mean in result.means.items()
    ]


def _disagreeing(row: Comparison | None) -> float | None:
    return row.p_randomization_adjusted if row is not None and row.reason is Reason.DISAGREE else None


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value


def resolution(view: View) -> list[str]:
    """What so many queries can show, where the leader's nearest rival is resolved; else the sets tell."""
    result, rival = view.conclusion, next(iter(view.ranked[1:]), None)
    if rival is None or rival in result.unresolved or not result.measured or not view.settings.by_people:
        return []
    alpha = view.settings.alpha / max(1, len(view.comparisons[view.primary]))
    power = power_of(view.evaluation.scores, (result.leader, rival), alpha, result.difference)
    sentence = resolution_sentence(power.detectable, result, rival)
    return [sentence] if sentence else []


def headline(view: View) -> str:
    """The conclusion in one line."""
    family = view.comparisons[view.primary]
    return view.evaluation.incomplete or view.spoken(statements.headline(view.conclusion, view.settings, family))


def choice(view: View, lines: Sequence[Line]) -> list[str]:
    """The cheapest and the fastest of what is shown within the margin of the leader, only of a whole run."""
    good = [line for line in lines if line.set == "good"]
    if view.evaluation.waiting:
        return ["Nothing is recommended before every retriever has answered."]
    if view.evaluation.failed:
        return ["Nothing is recommended: a retriever that failed might be better. Run the experiment again."]
    if not view.settings.by_people:
        return ["Nothing is recommended: let people judge a random part of these queries."]
    if len(lines) == 1 or not view.conclusion.measured:
        return []
    if len(good) == 1:
        if not view.conclusion.unresolved:
            return []  # The first sentence says it.
        why = "no margin was declared" if view.settings.margin is None else "none is shown to be as good as the leader"
        return [f"Cheapest and fastest are not named: {why}, and what is not resolved is not known to be as good."]
    sentences, known, which = [], set[str](), join([line.retriever for line in good])
    # What is not resolved may be better than the leader: then nothing is as good as the best.
    unknown = join(list(view.conclusion.unresolved)) if view.conclusion.unresolved else ""
    still = f"; {unknown} may still be better" if unknown else ""
    within = f"within {view.settings.margin:g} of {view.conclusion.leader}"
    for word, unit, price, shown in EXPENSES:
        priced = [(value, line.retriever) for line in good if (value := price(line.cost)) is not None]
        if len(priced) == len(good):
            known.add(word)
        if word in known and len({value for value, _ in priced}) > 1:
            value, name = min(priced)
            sentences.append(f"{word} {within}: {name}, {shown(value)} {unit}{still}.")
    if not sentences and not known & {"Cheapest", "Fastest"}:
        return [f"Neither price nor latency is known for each of {which}."]
    return sentences or [f"{which} cost the same as far as it was measured."]


def _figure(view: View, lines: Sequence[Line]) -> Figure:
    name = view.names[view.primary]
    dots = [
        charts.Dot(
            line.retriever,
            line.mean,
            line.mean if line.low is None else line.low,
            line.mean if line.high is None else line.high,
            line.letters,
        )
        for line in lines
    ]
    means = "; ".join(f"{line.retriever} {text.score(line.mean)}" for line in lines)
    return figure(
        "leaderboard",
        f"Mean {name.short} with its {view.settings.level:.0%} interval",
        f"Means of {name.short}, highest first: {means}.",
        lambda width: charts.means(dots, view.marks, name.short, width),
    )

"""The grid of a sweep, what each axis does, and what to take instead; the first screen says what it is worth."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations

from harness.english import these
from harness.evaluation.conclusions import alike_sentence
from harness.evaluation.costs import Cost, costs_of
from harness.evaluation.evaluation import SweepChoice
from harness.evaluation.sweep import sweep_of
from harness.experiment import Sweep
from harness.experiment.sweep import words_of
from harness.report import text
from harness.report.elements import Figure, Section, figure
from harness.report.heat_map import GainPoint, HeatGrid, gains, heat_map
from harness.report.sections.tradeoffs import PRICES
from harness.report.view import View

PLACE = 15

MAPS = 6
"""Pairs of axes that are drawn."""
SHOWN = 20
"""Configurations of the table."""


def section(view: View) -> Section | None:
    """The grid and its choice; None where the experiment has no sweep, or nothing could be chosen."""
    choice, written = view.evaluation.sweep, view.resolved.sweep
    if choice is None or written is None:
        return None
    sweep = sweep_of(written)
    costs = costs_of(view.results)
    long = [axis for axis, words in words_of(sweep).items() if len(words) > 1]
    maps = [drawn for pair in list(combinations(long, 2))[:MAPS] if (drawn := _map(view, sweep, choice, pair))]
    plane = _plane(view, sweep, choice, costs)
    default = view.mean(view.primary, choice.default)
    rows = [(name, mean := view.mean(view.primary, name), mean - default, costs[name]) for name in choice.alike[:SHOWN]]
    return Section(
        "sweep",
        "The sweep",
        {
            "maps": maps,
            "effects": choice.effects,
            "plane": plane,
            "alike": alike_sentence(choice, these(view.n, view.evaluation.clusters)),
            "rows": rows,
            "more": len(choice.alike) - len(rows),
            "choice": choice,
            "timed": any(cost.p50 is not None for cost in costs.values()),
        },
        (*maps, *((plane,) if plane else ())),
    )


def _map(view: View, sweep: Sweep, choice: SweepChoice, pair: tuple[str, str]) -> Figure | None:
    down, across = pair
    if len(words_of(sweep)[down]) > len(words_of(sweep)[across]):
        down, across = across, down
    cells: dict[tuple[int, int], list[float]] = {}
    for name, chosen in sweep.cells.items():
        if down in chosen and across in chosen and name in view.retrievers:
            cells.setdefault((chosen[down], chosen[across]), []).append(view.mean(view.primary, name))

    def place(name: str) -> tuple[int, int] | None:
        chosen = sweep.cells.get(name, {})
        return (chosen[down], chosen[across]) if down in chosen and across in chosen else None

    best = place(choice.chosen)
    if best is None or not cells:
        return None
    words = {axis: "\t".join(words_of(sweep)[axis]) for axis in pair}
    grid = HeatGrid(
        (down, words[down]), (across, words[across]),
        {at: sum(values) / len(values) for at, values in cells.items()}, best, place(choice.default),
    )  # fmt: skip
    short, others = view.names[view.primary].short, len(sweep.axes) > 2
    return figure(
        f"sweep-{down}-{across}",
        f"{short} by {down} and {across}{', mean over the other axes' if others else ''}",
        f"Chosen: {choice.chosen}. "
        + "; ".join(f"{words_of(sweep)[down][i]}, {words_of(sweep)[across][j]}: {text.score(value)}"
                    for (i, j), value in grid.values.items()),
        lambda width: heat_map(grid, width),
    )  # fmt: skip


def _plane(view: View, sweep: Sweep, choice: SweepChoice, costs: Mapping[str, Cost]) -> Figure | None:
    """Gain against the first cost that is known for all and differs; None where they all cost the same."""
    names = [name for name in dict.fromkeys((*sweep.cells, choice.default)) if name in view.retrievers]
    known = [
        (price.axis, {name: value for name in names if (value := price.of(costs[name])) is not None})
        for price in PRICES.values()
    ]
    told = [(axis, prices) for axis, prices in known if len(prices) == len(names) and len(set(prices.values())) > 1]
    if not told:
        return None
    axis, prices = told[0]
    base = view.mean(view.primary, choice.default)
    roles = {choice.default: "default", choice.chosen: "chosen"}
    points = [
        GainPoint(name, prices[name], view.mean(view.primary, name) - base, name in choice.alike, roles.get(name, ""))
        for name in names
    ]
    short = view.names[view.primary].short
    return figure(
        "sweep-cost",
        f"Gain in {short} over {choice.default} against cost; hollow: told from the chosen one",
        "; ".join(f"{one.name}: {text.plain(one.price)}, {text.signed(one.gain)}" for one in points),
        lambda width: gains(points, axis, width),
    )

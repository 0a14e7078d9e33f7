"""The grid of a sweep."""

from collections.abc import Iterator
from itertools import combinations
from typing import Any

from harness.evaluation.costs import retriever_costs
from harness.evaluation.evaluation import SweepChoice
from harness.evaluation.sweep import resolved_sweep
from harness.experiment import Sweep
from harness.experiment.value_labels import value_labels
from harness.report.templates import Section
from harness.report.view import View

MAX_SWEEP_MAPS = 6
"""Most pairs of axes that are drawn."""
MAX_SWEEP_ROWS = 20
"""Most configurations of the table."""
SWEEP_SHADE_COUNT = 5
"""Number of colours from the lowest to the highest cell."""


def sweep_section(view: View) -> Section | None:
    """The grid and its choice; None if the experiment has no sweep, or nothing could be chosen."""
    choice, written = view.evaluation.sweep, view.resolved.sweep
    if choice is None or written is None:
        return None
    sweep, costs = resolved_sweep(written), retriever_costs(view.results)
    tried = [
        name
        for name in view.ranked
        if name in sweep.configurations or name == choice.default
    ]
    order = [*choice.alike, *(name for name in tried if name not in choice.alike)]
    default = view.mean(view.primary, choice.default)
    rows = [
        (name, mean := view.mean(view.primary, name), mean - default, costs[name])
        for name in order[:MAX_SWEEP_ROWS]
    ]
    return Section(
        "sweep",
        "The sweep",
        {
            "maps": list(_maps(view, sweep, choice)),
            "effects": choice.effects,
            "rows": rows,
            "more": len(order) - len(rows),
            "choice": choice,
            "timed": any(cost.p50 is not None for cost in costs.values()),
        },
    )


def _maps(view: View, sweep: Sweep, choice: SweepChoice) -> Iterator[dict[str, Any]]:
    """Two axes and a cell for each pair of values; every other axis has the value of the chosen configuration."""
    words, best = value_labels(sweep), sweep.configurations[choice.chosen]
    means = {
        name: view.mean(view.primary, name)
        for name in sweep.configurations
        if name in view.retrievers
    }
    low, high = min(means.values()), max(means.values())
    long = [axis for axis, values in words.items() if len(values) > 1 and axis in best]
    for pair in list(combinations(long, 2))[:MAX_SWEEP_MAPS]:
        down, across = sorted(pair, key=lambda axis: -len(words[axis]))
        others = {axis: place for axis, place in best.items() if axis not in pair}
        at = {
            (places[down], places[across]): name
            for name, places in sweep.configurations.items()
            if name in means
            and places.keys() == best.keys()
            and others.items() <= places.items()
        }
        cells = {
            place: {
                "name": name,
                "mean": mean,
                "shade": round(
                    (SWEEP_SHADE_COUNT - 1) * (mean - low) / ((high - low) or 1.0)
                ),
            }
            for place, name in at.items()
            for mean in [means[name]]
        }
        rows = {
            word: [cells.get((i, j)) for j in range(len(words[across]))]
            for i, word in enumerate(words[down])
        }
        fixed = ", ".join(
            f"{axis} = {words[axis][place]}"
            for axis, place in others.items()
            if len(words[axis]) > 1
        )
        yield {
            "down": down,
            "across": across,
            "columns": words[across],
            "rows": rows,
            "fixed": fixed,
        }

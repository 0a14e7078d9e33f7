"""The grid of a sweep."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, combinations
from typing import NamedTuple

from harness.evaluation.costs import RetrieverCost, retriever_costs
from harness.evaluation.evaluation import AxisEffect, SweepChoice
from harness.experiment import Sweep
from harness.experiment.value_labels import value_labels
from harness.report.templates import Section
from harness.report.view import View
from harness.wording.sweep_choice import alike_sentence

MAX_SWEEP_MAPS = 6
"""Pairs of axes that are drawn, at most."""
MAX_SWEEP_ROWS = 20
"""Configurations in the table, at most."""
SWEEP_SHADE_COUNT = 5
"""Number of colours from the lowest to the highest mean."""


class SweepRow(NamedTuple):
    """One configuration of the table."""

    name: str
    mean: float
    gain: float
    """Its gain over the default."""
    cost: RetrieverCost


class SweepCell(NamedTuple):
    """One configuration of a map."""

    name: str
    mean: float
    shade: int
    """0 for the lowest mean of all configurations, those of other maps included;
    SWEEP_SHADE_COUNT - 1 for the highest.
    """


class SweepMap(NamedTuple):
    """Two axes of the grid, and a cell for each pair of values."""

    down: str
    across: str
    columns: Sequence[str]
    rows: Mapping[str, Sequence[SweepCell | None]]
    """Label of a value of `down` -> its cells; None for a pair that was not tried."""
    fixed: str
    """The values of the other axes that have several; "" without any."""


@dataclass(frozen=True, slots=True)
class SweepContext:
    """The section's content."""

    maps: list[SweepMap]
    effects: Sequence[AxisEffect]
    rows: list[SweepRow]
    more: int
    """Configurations that the table leaves out."""
    choice: SweepChoice
    sentence: str
    timed: bool
    """Whether the latency of any retriever was measured."""

    @property
    def draws_default(self) -> bool:
        """Whether a map has the default."""
        return any(
            cell is not None and cell.name == self.choice.default
            for grid in self.maps
            for cell in chain.from_iterable(grid.rows.values())
        )


def sweep_section(view: View) -> Section[SweepContext] | None:
    """The grid and its choice.

    None if the experiment has no sweep, or nothing could be chosen.
    """
    choice = view.evaluation.sweep
    sweep = view.resolved.sweep
    if choice is None or sweep is None:
        return None
    costs = retriever_costs(view.results)
    others = [
        name
        for name in view.ranked
        if (name in sweep.configurations or name == choice.default)
        and name not in choice.alike
    ]
    order = [*choice.alike, *others]
    default_mean = view.mean(view.primary, choice.default)
    rows: list[SweepRow] = []
    for name in order[:MAX_SWEEP_ROWS]:
        mean = view.mean(view.primary, name)
        rows.append(SweepRow(name, mean, mean - default_mean, costs[name]))
    context = SweepContext(
        maps=list(_maps(view, sweep, choice)),
        effects=choice.effects,
        rows=rows,
        more=len(order) - len(rows),
        choice=choice,
        sentence=alike_sentence(choice),
        timed=any(cost.p50 is not None for cost in costs.values()),
    )
    return Section("sweep", "Settings", context)


def _maps(view: View, sweep: Sweep, choice: SweepChoice) -> Iterator[SweepMap]:
    """A map for each two axes with several values, up to `MAX_SWEEP_MAPS`.

    Every other axis has the value of the chosen configuration.
    """
    means = {
        name: view.mean(view.primary, name)
        for name in sweep.configurations
        if name in view.retrievers
    }
    drawer = _MapDrawer(sweep, choice, means, labels=value_labels(sweep))
    axes = [
        axis
        for axis, labels in drawer.labels.items()
        if len(labels) > 1 and axis in drawer.chosen
    ]
    for pair in list(combinations(axes, 2))[:MAX_SWEEP_MAPS]:
        down, across = sorted(pair, key=lambda axis: -len(drawer.labels[axis]))
        yield drawer.draw(down, across)


@dataclass(frozen=True, slots=True)
class _MapDrawer:
    """Draws the maps of a sweep."""

    sweep: Sweep
    choice: SweepChoice
    means: Mapping[str, float]
    """Configuration -> its mean."""
    labels: Mapping[str, Sequence[str]]
    """Axis -> the labels of its values."""

    @property
    def chosen(self) -> Mapping[str, int]:
        """Axis -> the index of the chosen value."""
        return self.sweep.configurations[self.choice.chosen]

    def draw(self, down: str, across: str) -> SweepMap:
        """Return the map of two axes."""
        fixed = {
            axis: index
            for axis, index in self.chosen.items()
            if axis not in (down, across)
        }
        cells: dict[tuple[int, int], SweepCell] = {}
        for name, indices in self.sweep.configurations.items():
            # Where several retrievers are swept, each may have axes of its own.
            if name not in self.means or indices.keys() != self.chosen.keys():
                continue
            if fixed.items() <= indices.items():
                cells[indices[down], indices[across]] = self._cell(name)
        rows: dict[str, list[SweepCell | None]] = {}
        for i, label in enumerate(self.labels[down]):
            rows[label] = [cells.get((i, j)) for j in range(len(self.labels[across]))]
        fixed_texts = [
            f"{axis} = {self.labels[axis][index]}"
            for axis, index in fixed.items()
            if len(self.labels[axis]) > 1
        ]
        columns = self.labels[across]
        return SweepMap(down, across, columns, rows, fixed=", ".join(fixed_texts))

    def _cell(self, name: str) -> SweepCell:
        mean = self.means[name]
        low = min(self.means.values())
        high = max(self.means.values())
        shade = (SWEEP_SHADE_COUNT - 1) * (mean - low) / ((high - low) or 1.0)
        return SweepCell(name, mean, round(shade))

"""What the choice of a sweep is worth: the best of many configurations against what is in use today."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from harness.evaluation.csv_views import Prices
from harness.evaluation.evaluation import FEWEST_QUERIES, AxisEffect, SweepChoice
from harness.evaluation.scores import Scores, by_mean
from harness.experiment import Sweep
from harness.experiment.sweep import words_of
from harness.stats.intervals import mean, student
from harness.stats.multiplicity import cross_fitted
from harness.stats.settings import Settings
from harness.stats.sign_flip import max_t, max_t_pairs
from retrievers.options import checked


def sweep_of(table: Mapping[str, Any]) -> Sweep:
    """The sweep of a resolved experiment."""
    return checked(Sweep, table, "resolved.sweep")


def choose(
    scores: Scores, sweep: Sweep, settings: Settings, prices: Prices
) -> SweepChoice | None:
    """Choose the configuration of the highest mean on the primary measure, and test it.

    None where the default, or every configuration, failed.

    Args:
        scores: only the queries for which everyone has a value of the primary measure count.
        sweep: the grid.
        settings: level, seed, and whether people judged.
        prices: they order the configurations that may be as good.
    """
    scores = scores.of(scores.primary).only(scores.defined(scores.primary))
    group, units = scores.values[scores.primary], scores.units
    tried = [name for name in sweep.cells if name in group and name != sweep.default]
    if sweep.default not in group or not tried or not scores.n:
        return None
    default = group[sweep.default]
    gaps = np.column_stack([group[name] - default for name in tried])
    found = max_t(gaps, units, alpha=settings.alpha, seed=settings.seed)
    chosen = tried[found.best]
    expected = cross_fitted(
        {name: group[name] for name in tried}, scores.ids, units, seed=settings.seed
    )
    every = [*tried, sweep.default]
    table = np.column_stack([group[name] for name in every])
    apart = max_t_pairs(
        table, units, found.best, alpha=settings.alpha, seed=settings.seed
    )
    alike = [name for name, told in zip(every, apart, strict=True) if not told]
    ranked = list(by_mean({name: mean(group[name], units.weights) for name in every}))
    free, bounds, too_few = (0.0,), scores.gap_range, len(units) < FEWEST_QUERIES
    allowed = settings.by_people and not settings.spent and not too_few
    return SweepChoice(
        default=sweep.default,
        chosen=chosen,
        configurations=len(tried),
        gain=found.gain,
        expected=None if expected is None else expected - mean(default, units.weights),
        low=found.low
        if found.low is None or bounds is None
        else max(found.low, bounds.low),
        p_value=found.p_value,
        method=found.method,
        beats=allowed and found.gain > 0 and found.p_value <= settings.alpha / 2,
        too_few=too_few,
        alike=tuple(
            sorted(alike, key=lambda name: (prices.get(name, free), ranked.index(name)))
        ),
        effects=tuple(_effects(scores, sweep, settings.level)),
    )


def _effects(scores: Scores, sweep: Sweep, level: float) -> list[AxisEffect]:
    group, units, effects = scores.values[scores.primary], scores.units, []
    for axis, words in words_of(sweep).items():
        cells = {
            name: chosen[axis]
            for name, chosen in sweep.cells.items()
            if axis in chosen and name in group
        }
        for place, word in enumerate(words):
            own = [group[name] for name, value in cells.items() if value == place]
            if not own or len(words) < 2:
                continue
            values = np.mean(own, axis=0)
            rest = values - np.mean([group[name] for name in cells], axis=0)
            ends = student(rest, level, bounds=scores.gap_range, units=units)
            centre = mean(rest, units.weights)
            effects.append(
                AxisEffect(
                    axis, word, mean(values, units.weights), centre, ends.low, ends.high
                )
            )
    return effects

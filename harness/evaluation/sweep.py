"""The choice of a sweep."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from harness.evaluation.costs import RetrieverPrices
from harness.evaluation.evaluation import MIN_SWEEP_QUERIES, AxisEffect, SweepChoice
from harness.experiment import Sweep
from harness.experiment.value_labels import value_labels
from harness.scoring.scores import Scores, order_by_mean
from harness.stats.intervals import mean, student_interval
from harness.stats.max_t import cross_fitted_mean, max_t_pairs, max_t_test
from harness.stats.settings import Settings
from retrievers.options.tables import validated


def resolved_sweep(table: Mapping[str, Any]) -> Sweep:
    """The sweep of a resolved experiment."""
    return validated(Sweep, table, "resolved.sweep")


def choose_configuration(
    scores: Scores, sweep: Sweep, settings: Settings, prices: RetrieverPrices
) -> SweepChoice | None:
    """Choose the configuration of the highest mean on the primary measure, and test it.

    None where the default, or every configuration, failed.

    Args:
        scores: only the queries for which everyone has a value of the primary measure count.
        sweep: the grid.
        settings: level, seed, and whether people judged.
        prices: they order the configurations that may be as good.
    """
    scores = scores.select_measures(scores.primary).select_queries(
        scores.defined(scores.primary)
    )
    group, units = scores.values[scores.primary], scores.units
    tried = [
        name for name in sweep.configurations if name in group and name != sweep.default
    ]
    if sweep.default not in group or not tried or not scores.n:
        return None
    default = group[sweep.default]
    gaps = np.column_stack([group[name] - default for name in tried])
    found = max_t_test(gaps, units, alpha=settings.alpha, seed=settings.seed)
    chosen = tried[found.best]
    expected = cross_fitted_mean(
        {name: group[name] for name in tried}, scores.ids, units, seed=settings.seed
    )
    every = [*tried, sweep.default]
    table = np.column_stack([group[name] for name in every])
    apart = max_t_pairs(
        table, units, found.best, alpha=settings.alpha, seed=settings.seed
    )
    alike = [name for name, told in zip(every, apart, strict=True) if not told]
    ranked = list(
        order_by_mean({name: mean(group[name], units.weights) for name in every})
    )
    free, bounds, too_few = (0.0,), scores.gap_range, len(units) < MIN_SWEEP_QUERIES
    allowed = settings.judged_by_people and not settings.alpha_spent and not too_few
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
    for axis, words in value_labels(sweep).items():
        cells = {
            name: chosen[axis]
            for name, chosen in sweep.configurations.items()
            if axis in chosen and name in group
        }
        for place, word in enumerate(words):
            own = [group[name] for name, value in cells.items() if value == place]
            if not own or len(words) < 2:
                continue
            values = np.mean(own, axis=0)
            rest = values - np.mean([group[name] for name in cells], axis=0)
            ends = student_interval(rest, level, bounds=scores.gap_range, units=units)
            centre = mean(rest, units.weights)
            effects.append(
                AxisEffect(
                    axis, word, mean(values, units.weights), centre, ends.low, ends.high
                )
            )
    return effects

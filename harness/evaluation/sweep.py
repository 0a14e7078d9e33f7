"""The choice of a sweep.

The data choose the configuration with the highest mean. So its p and its bound are
corrected for the choice, and the gain to expect is that on queries that did not choose.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from harness.evaluation.costs import PricePoint, RetrieverPrices, cheapest_of
from harness.evaluation.evaluation import (
    MIN_SWEEP_QUERIES,
    AxisEffect,
    GridEdge,
    SweepChoice,
)
from harness.experiment import Sweep
from harness.experiment.value_labels import label_axis, value_labels
from harness.scoring.scores import Scores, order_by_mean
from harness.stats.cross_fitting import cross_fitted_scores
from harness.stats.differences import ValueRange
from harness.stats.intervals import mean, standard_error, student_interval
from harness.stats.max_t import MaxTResult, max_t_differs_from, max_t_test
from harness.stats.settings import Settings

NO_PRICE = PricePoint(0.0, 0.0)
"""Stands for each configuration if the prices do not name it: then none is cheapest."""
MIN_EDGE_VALUES = 3
"""Numbers of an axis from which its largest and smallest are an edge."""


def choose_configuration(
    scores: Scores, sweep: Sweep, settings: Settings, prices: RetrieverPrices
) -> SweepChoice | None:
    """Choose the configuration of the highest mean on the primary measure, and test it.

    None if the default, or every configuration, failed, or if no query counts.

    Args:
        scores: only the queries for which every retriever has a value of the primary
            measure count.
        sweep: the grid.
        settings: level, seed, and whether people judged.
        prices: they order the configurations that may be as good.
    """
    primary_scores = scores.select_measures(scores.primary)
    complete = primary_scores.select_queries(scores.defined(scores.primary))
    columns = complete.values[complete.primary]
    units = complete.units
    tried = [
        name
        for name in sweep.configurations
        if name in columns and name != sweep.default
    ]
    if sweep.default not in columns or not tried or not complete.n:
        return None
    default_column = columns[sweep.default]
    test = max_t_test(
        np.column_stack([columns[name] - default_column for name in tried]),
        units,
        alpha=settings.alpha,
        seed=settings.seed,
    )
    expected = None
    expected_error = None
    held_out = cross_fitted_scores(
        {name: columns[name] for name in tried}, complete.ids, units, seed=settings.seed
    )
    if held_out is not None:
        gains = held_out - default_column
        expected = mean(gains, units.weights)
        estimate = standard_error(gains, units)
        expected_error = None if estimate is None else estimate.error
    too_few = len(units) < MIN_SWEEP_QUERIES
    alike = _alike(
        complete, [*tried, sweep.default], test.best, settings, prices=prices
    )
    return SweepChoice(
        default=sweep.default,
        chosen=tried[test.best],
        configurations=len(tried),
        gain=test.gain,
        expected=expected,
        expected_error=expected_error,
        low=_bounded_low(test, complete.difference_range(complete.primary)),
        p_value=test.p_value,
        method=test.method,
        beats=not too_few and _is_shown(test, settings),
        too_few=too_few,
        alike=alike,
        effects=tuple(_axis_effects(complete, sweep, settings.level)),
        cheapest=_cheapest(alike, prices),
        edges=tuple(_grid_edges(sweep, tried[test.best], test.gain)),
    )


def _cheapest(alike: Sequence[str], prices: RetrieverPrices) -> str | None:
    """Return the configuration that costs the fewest dollars; see `cheapest_of`."""
    return cheapest_of(
        {name: prices.get(name, NO_PRICE).usd_per_million for name in alike}
    )


def _grid_edges(sweep: Sweep, chosen: str, gain: float) -> Iterator[GridEdge]:
    """Yield the axes whose largest or smallest number the chosen configuration has.

    Nothing if the default scores as high.
    """
    if gain <= 0:
        return
    for axis, index in sweep.configurations[chosen].items():
        numbers = _axis_numbers(sweep, axis)
        chosen_number = sweep.axes[axis][index]
        if len(numbers) < MIN_EDGE_VALUES or chosen_number not in numbers:
            continue
        label = label_axis(sweep.axes[axis], axis)[index]
        smallest = min(numbers)
        largest = max(numbers)
        # An axis that ends at 1 may be of shares: nothing is above 1, or below 0.
        is_share = smallest >= 0 and largest == 1
        if chosen_number == largest and not is_share:
            yield GridEdge(axis, label, is_largest=True)
        elif chosen_number == smallest != 0:
            yield GridEdge(axis, label, is_largest=False)


def _axis_numbers(sweep: Sweep, axis: str) -> list[float]:
    """Return the numbers of an axis; whole documents are none."""
    is_size = axis.endswith("chunk.size")
    return [
        number
        for number in sweep.axes[axis]
        if isinstance(number, int | float)
        and not isinstance(number, bool)
        and not (is_size and number == 0)
    ]


def _bounded_low(test: MaxTResult, bounds: ValueRange | None) -> float | None:
    """Return the lower bound of the gain, within the range of differences."""
    if test.low is None or bounds is None:
        return test.low
    return max(test.low, bounds.low)


def _is_shown(test: MaxTResult, settings: Settings) -> bool:
    """Whether the chosen configuration is shown to be better than the default."""
    if not settings.judged_by_people or settings.alpha_spent:
        return False
    return test.gain > 0 and test.p_value <= settings.alpha / 2


def _alike(
    scores: Scores,
    names: Sequence[str],
    best: int,
    settings: Settings,
    *,
    prices: RetrieverPrices,
) -> tuple[str, ...]:
    """Return the configurations that may be as good as the chosen one, cheapest first.

    Args:
        scores: of the queries for which every retriever has a value.
        names: all configurations.
        best: the index of the chosen one.
        settings: level and seed.
        prices: retriever -> its price.
    """
    columns = scores.values[scores.primary]
    differs = max_t_differs_from(
        np.column_stack([columns[name] for name in names]),
        scores.units,
        best,
        alpha=settings.alpha,
        seed=settings.seed,
    )
    means = {name: mean(columns[name], scores.units.weights) for name in names}
    by_mean = list(order_by_mean(means))
    alike = [
        name
        for name, is_different in zip(names, differs, strict=True)
        if not is_different
    ]
    alike.sort(key=lambda name: (prices.get(name, NO_PRICE), by_mean.index(name)))
    return tuple(alike)


def _axis_effects(scores: Scores, sweep: Sweep, level: float) -> Iterator[AxisEffect]:
    """Yield the effect of each value of each axis that has several values."""
    columns = scores.values[scores.primary]
    units = scores.units
    for axis, labels in value_labels(sweep).items():
        if len(labels) < 2:
            continue
        value_index = {
            name: chosen[axis]
            for name, chosen in sweep.configurations.items()
            if axis in chosen and name in columns
        }
        for index, label in enumerate(labels):
            with_value = [
                columns[name] for name in value_index if value_index[name] == index
            ]
            if not with_value:
                continue
            value_scores = np.mean(with_value, axis=0)
            axis_scores = np.mean([columns[name] for name in value_index], axis=0)
            effects = value_scores - axis_scores
            interval = student_interval(
                effects,
                level,
                bounds=scores.difference_range(scores.primary),
                units=units,
            )
            yield AxisEffect(
                axis=axis,
                value=label,
                mean=mean(value_scores, units.weights),
                effect=mean(effects, units.weights),
                low=interval.low,
                high=interval.high,
            )

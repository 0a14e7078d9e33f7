"""Few queries judged by people and many by a model: prediction-powered inference on means.

The unit is the query. n queries are a random sample that people and the model judged; N further queries were judged
by the model alone. Sources: Angelopoulos et al. (2023), "Prediction-powered inference" and "PPI++"; the divisors and
Student's t are chosen for small n, and their coverage is simulated in benchmarks/prediction.md.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy import special

from harness.stats.intervals import Interval, student
from retrievers.types import Floats


class Predicted(NamedTuple):
    """One mean (of a measure, or of a difference of two retrievers), estimated with and without the model."""

    n: int
    """Queries that people judged, and the model too."""
    others: int
    """Further queries, judged by the model alone."""
    people: float
    """The mean by people's grades alone."""
    people_interval: Interval
    combined: float
    """The estimate that uses both."""
    combined_interval: Interval
    tuning: float
    """Lambda: how much weight the model's values get, 0 to 1."""
    standard_error: float
    """Of the combined estimate."""
    correlation: float
    """Of people's and the model's values over the n queries; NaN where one of them is constant."""
    worth: float
    """The number of queries judged by people that would give as much certainty."""
    favour: float
    """The mean of people's minus the model's values over the n queries: below 0 where the model overrates a."""
    favour_interval: Interval


def predicted(people: Floats, model: Floats, elsewhere: Floats, *, level: float = 0.95) -> Predicted:
    """Combine people's values on a random sample of the queries with a model's values on all of them.

    lambda = clip(cov_n(D, D^) / ((1 + n/N) var_all(D^)), 0, 1), the covariance with divisor n, the variance over all
    n + N with divisor n + N - 1; the estimate is lambda mean_N(D^) + mean_n(D - lambda D^), its squared standard error
    lambda^2 var_N(D^)/N + var_n(D - lambda D^)/n, and the interval is Student's t with n - 1 degrees of freedom.

    Args:
        people: (n,) values by people's grades.
        model: (n,) values by the model's grades, for the same queries in the same order.
        elsewhere: (N,) values by the model's grades for the other queries; may be empty.
        level: confidence.

    Raises:
        ValueError: there are fewer than two queries that both judged.
    """
    n, others = len(people), len(elsewhere)
    if n < 2 or len(model) != n:
        raise ValueError(f"{n} values by people and {len(model)} by the model: two or more of each are needed")
    tuning = _tuning(people, model, elsewhere)
    rest = people - tuning * model
    variance = float(np.var(rest, ddof=1)) / n
    estimate = math.fsum(rest) / n
    if others:
        estimate += tuning * math.fsum(elsewhere) / others
        variance += tuning**2 * float(np.var(elsewhere, ddof=1)) / others if others > 1 else 0.0
    correlation = _correlation(people, model)
    error = math.sqrt(variance)
    half = float(special.stdtrit(n - 1, (1 + level) / 2)) * error
    method = "t" if error > 0 else "not estimable"
    return Predicted(
        n=n,
        others=others,
        people=math.fsum(people) / n,
        people_interval=student(people, level),
        combined=estimate,
        combined_interval=Interval(estimate - half, estimate + half, method),
        tuning=tuning,
        standard_error=error,
        correlation=correlation,
        worth=worth_in_queries(n, others, correlation),
        favour=math.fsum(people - model) / n,
        favour_interval=student(people - model, level),
    )


def worth_in_queries(n: int, others: int, correlation: float) -> float:
    """Return how many queries judged by people would be as certain as n of them with a model's on others beside.

    n / (1 - rho^2 N / (n + N)), and n where the correlation is not positive (the model is then left out).

    >>> round(worth_in_queries(30, 300, 0.8), 1)
    71.7
    """
    if not correlation > 0:
        return float(n)
    return n / (1 - min(correlation, 1.0) ** 2 * others / (n + others))


def _tuning(people: Floats, model: Floats, elsewhere: Floats) -> float:
    n, others = len(people), len(elsewhere)
    everywhere = np.concatenate([model, elsewhere])
    spread = float(np.var(everywhere, ddof=1))
    if others < 2 or spread == 0.0:
        return 0.0
    shared = float(np.mean((people - people.mean()) * (model - model.mean())))
    return min(max(shared / ((1 + n / others) * spread), 0.0), 1.0)


def _correlation(a: Floats, b: Floats) -> float:
    if np.ptp(a) == 0 or np.ptp(b) == 0:
        return math.nan
    return float(np.corrcoef(a, b)[0, 1])

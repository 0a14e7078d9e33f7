"""How often the interval of the combined estimate holds the truth: people's labels on n queries, a model's on all.

    python benchmarks/prediction.py > benchmarks/prediction.md

Differences of two retrievers are drawn with a normal distribution, and with the many zeros of real ones; the model's
differences correlate with them and are biased. Seeded; a minute on one core.
"""

from __future__ import annotations

import math

import numpy as np
from scipy import special

from harness.stats.prediction import predicted

EXPERIMENTS = 20_000
OTHERS = 300
TRUTH, BIAS, SPREAD = 0.02, 0.06, 0.2


def drawn(rng: np.random.Generator, n: int, rho: float, *, zeros: bool) -> tuple[np.ndarray, np.ndarray]:
    """(experiments, n + OTHERS) differences by people, and by a model that favours the first retriever."""
    shape = (EXPERIMENTS, n + OTHERS)
    people = rng.standard_normal(shape)
    model = rho * people + math.sqrt(1 - rho**2) * rng.standard_normal(shape)
    if zeros:  # two retrievers answer a third of the queries alike, and people and model see it
        alike = rng.random(shape) < 1 / 3
        people, model = (np.where(alike, 0.0, values) for values in (people, model))
    return TRUTH + SPREAD * people, TRUTH + BIAS + SPREAD * model


def combined(people: np.ndarray, model: np.ndarray, n: int) -> dict[str, np.ndarray]:
    """The formulas of `predicted`, for all experiments at once."""
    judged, there, elsewhere = people[:, :n], model[:, :n], model[:, n:]
    shared = (judged * there).mean(axis=1) - judged.mean(axis=1) * there.mean(axis=1)
    tuning = np.clip(shared / ((1 + n / OTHERS) * model.var(axis=1, ddof=1)), 0, 1)
    rest = judged - tuning[:, None] * there
    estimate = tuning * elsewhere.mean(axis=1) + rest.mean(axis=1)
    error = np.sqrt(tuning**2 * elsewhere.var(axis=1, ddof=1) / OTHERS + rest.var(axis=1, ddof=1) / n)
    return {"estimate": estimate, "error": error, "tuning": tuning}


def row(rng: np.random.Generator, n: int, rho: float, *, zeros: bool) -> str:
    """One line of the table."""
    people, model = drawn(rng, n, rho, zeros=zeros)
    found = combined(people, model, n)
    check = predicted(people[0, :n], model[0, :n], model[0, n:])
    assert math.isclose(check.combined, found["estimate"][0], abs_tol=1e-12)
    assert math.isclose(check.standard_error, found["error"][0], abs_tol=1e-12)
    t = float(special.stdtrit(n - 1, 0.975))
    holds = np.abs(found["estimate"] - TRUTH) <= t * found["error"]
    alone = people[:, :n].std(axis=1, ddof=1) / math.sqrt(n)
    naive = model.std(axis=1, ddof=1) / math.sqrt(n + OTHERS)
    model_alone = np.abs(model.mean(axis=1) - TRUTH) <= 1.96 * naive
    width = float(found["error"].mean() / alone.mean())
    kind = "a third are 0" if zeros else "normal"
    within = "yes" if 0.935 <= holds.mean() <= 0.97 else "NO"
    return (
        f"| {kind} | {n} | {rho} | {holds.mean():.4f} | {within} | {width:.3f} | {found['tuning'].mean():.2f} "
        f"| {model_alone.mean():.3f} |"
    )


def main() -> None:
    """Print the page."""
    print("# Coverage of the combined estimate\n")
    print(f"Printed by `python benchmarks/prediction.py`: {EXPERIMENTS:,} seeded experiments a row. People judge n")
    print(f"queries, the model the same and {OTHERS} more; the model's differences are biased by {BIAS / SPREAD:.1f}")
    print("standard deviations. The interval is nominally 95 %, and should hold the truth in 93.5 to 97 %.\n")
    print("| differences | n | correlation | holds | within | width / people alone | lambda | model alone holds |")
    print("| --- | ---: | ---: | ---: | --- | ---: | ---: | ---: |")
    rng = np.random.default_rng(20261121)
    for zeros in (False, True):
        for n in (20, 30, 60, 100):
            for rho in (0.3, 0.5, 0.8):
                print(row(rng, n, rho, zeros=zeros))
    print("\nA model alone, its labels taken for people's, holds the truth hardly ever: its bias does not shrink.")


if __name__ == "__main__":
    main()

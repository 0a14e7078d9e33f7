"""The choice among many configurations: false claims and power of several rules; used
by stats.py.

Differences are those of BM25 grids (k1 x b, 48 configurations against k1 0.9, b 0.4) on
Cranfield and SciFact, whose scores `python benchmarks/stats_sweeps.py FOLDER` computes
from the data sets in a folder and keeps in build/sweeps/; and normals with one
correlation. Experiments draw queries with replacement from differences that are
centred, or moved, or of which each row has a sign that is drawn: then no configuration
is better in any query.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
from scipy import special

from harness.stats.differences import Floats
from harness.stats.max_t import max_t_test
from harness.stats.units import single_units

KEPT = Path(__file__).parents[1] / "build" / "sweeps"
K1, B = (0.3, 0.6, 0.9, 1.2, 1.5, 1.8, 2.1, 2.4), (0, 0.2, 0.4, 0.6, 0.8, 1)
LEVEL = 0.025
SIGNS = "signs of rows drawn"
THIRD, ONE = "a third, 2.8 standard errors", "one, 0.25 standard deviations"
"""What is gained where power is measured."""
EXPERIMENT = """
name = "{name}"
dataset = "{data}"
primary = "nDCG@10"
measures = ["nDCG@10"]
report = false
[[retrievers]]
name = "bm25"
kind = "bm25"
[sweep]
default = "bm25"
of = "bm25"
k1 = {k1}
b = {b}
"""


def compute(data: Path) -> None:
    """Run the two grids and keep the differences from the default, query by query."""
    from harness.pipeline import run
    from harness.running.options import RunOptions

    KEPT.mkdir(parents=True, exist_ok=True)
    for name in ("cranfield", "scifact"):
        with tempfile.TemporaryDirectory() as place:
            path = Path(place) / "e.toml"
            path.write_text(
                EXPERIMENT.format(
                    name=name, data=(data / name).as_posix(), k1=list(K1), b=list(B)
                ),
                "utf-8",
            )
            scores = run(path, RunOptions(place)).scores.pivot(
                index="query_id", columns="retriever", values="value"
            )
        np.save(
            KEPT / f"{name}.npy",
            scores.drop(columns="bm25").sub(scores["bm25"], axis=0).to_numpy(),
        )


def tables() -> dict[str, Callable[[np.random.Generator, int], Floats]]:
    """Name -> what draws (n, m) differences with the mean 0."""
    drawn: dict[str, Callable[[np.random.Generator, int], Floats]] = {}
    for path in sorted(KEPT.glob("*.npy")):  # none where they were not computed
        name, values = path.stem, np.load(path)
        values = values[:, values.std(axis=0) > 0]

        drawn[f"{name}, BM25 grid of {values.shape[1]}"] = partial(
            _rows, values - values.mean(axis=0)
        )
        drawn[f"{name}, BM25 grid of {values.shape[1]}, {SIGNS}"] = partial(
            _signed, values
        )
    for m, r in ((12, 0.5), (48, 0.5), (48, 0.9)):
        drawn[f"normal, {m} with correlation {r}"] = lambda rng, n, m=m, r=r: (
            0.1
            * (
                np.sqrt(r) * rng.standard_normal((n, 1))
                + np.sqrt(1 - r) * rng.standard_normal((n, m))
            )
        )
    return drawn


def _rows(values: Floats, rng: np.random.Generator, n: int) -> Floats:
    rows: Floats = values[rng.integers(len(values), size=n)]
    return rows


def _signed(values: Floats, rng: np.random.Generator, n: int) -> Floats:
    rows: Floats = _rows(values, rng, n) * rng.choice([-1.0, 1.0], (n, 1))
    return rows


def _t(sums: Floats) -> Floats:
    t: Floats = (
        sums.mean(axis=0)
        / np.maximum(sums.std(axis=0, ddof=1), 1e-12)
        * np.sqrt(len(sums))
    )
    return t


def _claims(rows: Floats, rng: np.random.Generator) -> tuple[bool, bool, bool, bool]:
    """Whether naive, half and half, Bonferroni, max-T claim a gain of the best."""
    n = len(rows)
    best = int(np.argmax(rows.mean(axis=0)))
    order = rng.permutation(n)
    first, second = rows[order[: n // 2]], rows[order[n // 2 :]]
    held = second[:, int(np.argmax(first.mean(axis=0)))]
    p = float(special.stdtr(n - 1, -_t(rows)[best]))
    half = float(special.stdtr(len(held) - 1, -_t(held[:, None])[0]))
    swept = max_t_test(rows, single_units(n), seed=int(rng.integers(1 << 30)))
    return p <= LEVEL, half <= LEVEL, p * rows.shape[1] <= LEVEL, swept.p_value <= LEVEL


def _gains(rows: Floats, gain: str) -> Floats:
    """What each configuration gains, in points: nothing, or so much of the standard
    deviation of its differences.
    """
    deviations, places = rows.std(axis=0, ddof=1), np.arange(rows.shape[1])
    if gain == THIRD:  # what a single t-test finds with 80 % power
        return 2.8 / np.sqrt(len(rows)) * deviations * (places % 3 == 0)
    return (0.25 if gain == ONE else 0.0) * deviations * (places == 0)


def sweeps(experiments: int) -> Iterator[str]:
    """False claims where no configuration is better than the default; power where some
    are.
    """
    rounds = min(experiments, 1_000)
    rules = "naive | half and half | Bonferroni | max-T"
    yield f"| differences | queries | gain | {rules} |"
    yield "| --- | ---: | --- | ---: | ---: | ---: | ---: |"
    for name, draw in tables().items():
        for n, gain in (
            (50, "none"),
            (150, "none"),
            (300, "none"),
            (150, THIRD),
            (150, ONE),
        ):
            if gain != "none" and name.endswith(SIGNS):
                continue
            rng = np.random.default_rng(
                [n, len(name), gain == THIRD, *[1] * (gain == ONE)]
            )
            claimed = np.zeros(4)
            for _ in range(rounds):
                rows = draw(rng, n)
                claimed += _claims(rows + _gains(rows, gain), rng)
            rates = " | ".join(f"{rate:.1%}" for rate in claimed / rounds)
            yield f"| {name} | {n} | {gain} | {rates} |"


def bounds(experiments: int) -> Iterator[str]:
    """How often the lower bound of the gain lies above the truth, 0 for all of six
    equal configurations.
    """
    rounds = min(experiments, 1_000)
    shapes: dict[str, Callable[[np.random.Generator, int], Floats]] = {
        "normal": lambda rng, n: rng.standard_normal((n, 6)),
        "exponential, rare large losses": lambda rng, n: (
            1 - rng.standard_exponential((n, 6))
        ),
    }
    yield "| differences | weights | queries | bound above 0 |"
    yield "| --- | --- | ---: | ---: |"
    for name, draw in shapes.items():
        for spread in (0.0, 1.0):
            for n in (13, 30, 100):
                rng = np.random.default_rng([n, len(name), int(spread)])
                above = 0
                for _ in range(rounds):
                    weights = rng.lognormal(sigma=spread, size=n) if spread else None
                    low = max_t_test(
                        0.1 * draw(rng, n),
                        single_units(n, weights),
                        seed=int(rng.integers(1 << 30)),
                    ).low
                    above += low is not None and low > 0
                yield (
                    f"| {name} | {'lognormal' if spread else 'equal'} | {n} | "
                    f"{above / rounds:.1%} |"
                )


if __name__ == "__main__":
    compute(Path(sys.argv[1]))

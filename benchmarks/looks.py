"""How many queries planned looks save.

The average that is judged, against the fixed plan of the same level and power.

python -m benchmarks.looks [RESULTS]   differences of a folder beside normal ones
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import numpy.typing as npt
from scipy import optimize, stats

from harness.stats.looks import look_levels
from harness.stats.power import queries_for_effect

LOOKS, ALPHA, POWER, RUNS = (30, 60, 100, 150), 0.05, 0.80, 20_000
Floats = npt.NDArray[np.float64]


def judged(differences: Floats) -> tuple[float, float]:
    """Return the average number of queries at which a run of looks ends.

    With the share that ends with a claim.

    Args:
        differences: (runs, last look) paired differences, tested by the t-test at the
            level of each look.
    """
    ended = np.full(len(differences), LOOKS[-1])
    claimed = np.zeros(len(differences), dtype=np.bool_)
    for number, level in reversed(
        [*zip(LOOKS, look_levels(ALPHA, LOOKS), strict=True)]
    ):
        some = differences[:, :number]
        t = some.mean(1) / (some.std(1, ddof=1) / np.sqrt(number))
        rejects = np.abs(t) > stats.t.isf(level / 2, number - 1)
        ended[rejects] = (
            number  # the earliest look counts: looks are gone through backwards
        )
        claimed |= rejects
    return float(ended.mean()), float(claimed.mean())


def effect_of(power: float, scatter: Floats) -> float:
    """The mean, in standard deviations, that the last look finds with this power."""
    return float(
        optimize.brentq(
            lambda one: judged(scatter + one)[1] - power, 0.0, 1.0, xtol=1e-3
        )
    )


def main() -> None:
    rng = np.random.default_rng(0)
    samples = {"normal": rng.standard_normal((RUNS, LOOKS[-1]))}
    for folder in map(Path, sys.argv[1:]):
        from harness import records

        results = records.read_results(folder)
        table = results.scores[
            results.scores["measure"] == results.manifest.resolved.primary
        ]
        values = table.pivot(
            index="query_id", columns="retriever", values="value"
        ).to_numpy()
        gaps = values[:, 0] - values[:, 1]
        samples[f"{folder.name}: {' and '.join(results.retrievers[:2])}"] = rng.choice(
            (gaps - gaps.mean()) / gaps.std(ddof=1), (RUNS, LOOKS[-1])
        )
    print(
        f"looks at {LOOKS}, level {ALPHA}, power {POWER} at the last; {RUNS:,} runs "
        "each"
    )
    for name, scatter in samples.items():
        effect = effect_of(POWER, scatter)
        for times in (0, 1, 2):
            mean, power = judged(scatter + times * effect)
            fixed = queries_for_effect(effect, ALPHA) or 0
            share = (
                f"{mean / fixed:.2f} of the fixed plan's {fixed}"
                if times
                else "no difference"
            )
            print(
                f"{name:40} {times} x {effect:.3f} sd: {mean:6.1f} queries, claimed "
                f"{power:.3f}; {share}"
            )


if __name__ == "__main__":
    main()

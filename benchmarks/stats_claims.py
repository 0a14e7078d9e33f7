"""What the sentences of a report promise, simulated before and after the rules that keep them; used by stats.py.

Every row is measured with the program's own tests on samples that are drawn from a shape with a known truth.
"before" is the rule that stood here until the review of November 2026.
"""

from __future__ import annotations

import contextlib
import math
import tempfile
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path

import numpy as np

from harness import pipeline
from harness.running.options import Options
from harness.stats import Contrast, Criterion, Range, differences, levels, optimism, plan, sign_flip, singles, units_of
from harness.stats.differences import Differences, Floats, Integers
from harness.stats.equivalence import Within, not_worse
from harness.stats.intervals import student
from harness.stats.plan import MODELS, minimum_detectable, queries_needed, sakai_queries
from harness.stats.power import doubled_ranks_by_row, flip_p, simulated_power
from harness.stats.signed_rank import signed_rank_of
from harness.stats.units import Units

ALPHA, MARGIN = 0.05, 0.02
DRAWS = 2_000
"""Sign flips a test: enough for a level of 5 %, and fifty times as fast."""
Shape = Callable[[np.random.Generator, tuple[int, int]], Floats]
EXPERIMENTS_SHIPPED = {"quickstart": ("bm25", "minilm", "hybrid"), "japanese": ("bm25", "hashing")}


@contextlib.contextmanager
def changed(module: str, **values: object) -> Iterator[None]:
    """Set constants of a module of the statistics for a while."""
    found = import_module(f"harness.stats.{module}")
    before = {name: getattr(found, name) for name in values}
    for name, value in values.items():
        setattr(found, name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            setattr(found, name, value)


def shipped() -> dict[str, Floats]:
    """The differences in nDCG@10 of the experiments that come with the project."""
    found = {}
    for name, retrievers in EXPERIMENTS_SHIPPED.items():
        with tempfile.TemporaryDirectory() as folder:
            table = pipeline.run(f"experiments/{name}.toml", Options(Path(folder))).scores
        wide = table[table["measure"] == "nDCG@10"].pivot(index="query_id", columns="retriever", values="value")
        for other in retrievers[1:]:
            values = (wide[other] - wide[retrievers[0]]).to_numpy(dtype=np.float64)
            found[f"nDCG@10, {name}: {other} - {retrievers[0]}"] = values
    return found


def redrawn(values: Floats, mean: float) -> Shape:
    """Draw from observed differences, moved to a mean and kept within [-1, 1]."""
    centred = values - values.mean()
    low, high = -2.0, 2.0
    while high - low > 1e-12:  # clipping moves the mean: search for the step that gives it
        step = (low + high) / 2
        low, high = (step, high) if np.clip(centred + step, -1, 1).mean() < mean else (low, step)
    moved = np.clip(centred + high, -1, 1)
    return lambda rng, shape: rng.choice(moved, shape)


def lossy(ordinary: Shape, share: float) -> Shape:
    """An ordinary difference, and now and then the worst possible loss."""
    return lambda rng, shape: np.where(rng.random(shape) < share, -1.0, ordinary(rng, shape))


def at_the_margin(data: dict[str, Floats]) -> dict[str, Shape]:
    """Shapes whose true mean is a loss of 0.02."""
    return {
        "0/1, 2 % lost": lambda rng, s: -(rng.random(s) < 0.02).astype(np.float64),
        "95 % ties, 5 % lose 0.4": lambda rng, s: -0.4 * (rng.random(s) < 0.05),
        "half gain 0.02, 3 % lose 1": lambda rng, s: rng.choice([0.02, -1.0, 0.0], s, p=[0.5, 0.03, 0.47]),
        "normal (0.01, 0.01), 3 % lose 1": lossy(lambda rng, s: rng.normal(0.01 / 0.97, 0.01, s), 0.03),
        "80 % gain 0.025, 10 % lose 0.4": lambda rng, s: rng.choice([0.025, -0.4, 0.0], s, p=[0.8, 0.1, 0.1]),
        "normal, deviation 0.05": lambda rng, s: rng.normal(-0.02, 0.05, s),
        "normal, deviation 0.2": lambda rng, s: np.clip(rng.normal(-0.02, 0.2, s), -1, 1),
        "exponential losses": lambda rng, s: np.maximum(0.08 - rng.exponential(0.1, s), -1),
        **{name: redrawn(values, -MARGIN) for name, values in data.items()},
    }


def margins(experiments: int, data: dict[str, Floats]) -> Iterator[str]:
    """How often a loss of the whole margin passes, and how often a true equality does."""
    yield "| differences, true loss 0.02 | queries | before | passes | at most 8 % | passes at equality |"
    yield "| --- | ---: | ---: | ---: | --- | ---: |"
    for name, draw in at_the_margin(data).items():
        for n in (13, 50, 150, 500):
            rng = np.random.default_rng([n, len(name)])
            lost = draw(rng, (experiments, n))
            equal = np.abs(draw(rng, (experiments, n))) * rng.choice([-1.0, 1.0], (experiments, n))
            with changed("equivalence", LOSSES=0):
                before = passed(lost)
            after, power = passed(lost), passed(equal)
            good = "yes" if after <= 0.08 + 3 * math.sqrt(0.08 * 0.92 / experiments) else "NO"
            yield f"| {name} | {n} | {before:.1%} | {after:.1%} | {good} | {power:.1%} |"


def passed(table: Floats) -> float:
    """The share of samples (rows) that are shown not to lose the margin."""
    experiments, n = table.shape
    within = Within(MARGIN, 1.0, singles(n))
    shown = 0
    for start in range(0, experiments, 1_000):
        found = [observed(row) for row in table[start : start + 1_000]]
        shown += sum(test.greater <= ALPHA for test in not_worse(found, within))
    return shown / experiments


def observed(row: Floats) -> Differences:
    return differences(row, np.zeros(len(row)))


def claims(table: Floats, units: Units, level: float = ALPHA) -> tuple[Floats, Floats]:
    """Which samples (rows) are called different: by the signed-rank test and the sign of the mean; by both tests."""
    rows = np.array([units.means(row) for row in table])
    ranks = [signed_rank_of(observed(row)) for row in rows]
    columns = np.column_stack([*(units.sums(row) for row in table), np.zeros(len(units))])
    flips = sign_flip(columns, [Contrast(place, len(table)) for place in range(len(table))])
    agree = np.array([(r.w_plus - r.w_minus) * row.mean() > 0 for r, row in zip(ranks, table, strict=True)])
    before = agree & (np.array([r.p_value for r in ranks]) <= level)
    return before, before & (np.array([flip.two_sided for flip in flips]) <= level)


def equal_means(data: dict[str, Floats]) -> dict[str, Shape]:
    """Shapes whose true mean is 0, most of them skewed."""
    return {
        "normal": lambda rng, s: rng.normal(0, 0.1, s),
        "exponential": lambda rng, s: (rng.exponential(1, s) - 1) / 10,
        "lognormal": lambda rng, s: (rng.lognormal(0, 1, s) - math.exp(0.5)) / 10,
        "eight in ten gain 0.05, one loses 0.4": lambda rng, s: rng.choice([0.05, -0.4, 0.0], s, p=[0.8, 0.1, 0.1]),
        "45 % gain 0.02, 1 % lose 0.9": lambda rng, s: rng.choice([0.02, -0.9, 0.0], s, p=[0.45, 0.01, 0.54]),
        "0/1, 10 % won and lost": lambda rng, s: rng.choice([1.0, -1.0, 0.0], s, p=[0.1, 0.1, 0.8]),
        **{name: redrawn(values, 0.0) for name, values in data.items()},
    }


def better(experiments: int, data: dict[str, Floats]) -> Iterator[str]:
    """How often a pair with equal means is called better or worse."""
    yield "| differences, mean 0 | queries | before: signed rank and sign of the mean | now: the mean must agree |"
    yield "| --- | ---: | ---: | ---: |"
    for name, draw in equal_means(data).items():
        for n in (13, 50, 150):
            rng = np.random.default_rng([n, len(name), 1])
            both = [claims(draw(rng, (1_000, n)), singles(n)) for _ in range(-(-experiments // 1_000))]
            before, after = (np.mean([part[i] for part in both]) for i in (0, 1))
            yield f"| {name} | {n} | {before:.1%} | {after:.1%} |"


def clustered(experiments: int) -> Iterator[str]:
    """30 needs x 5 paraphrases, and needs of unequal size, with an intraclass correlation of 0.5."""
    yield "| needs | false claims by query | by cluster | at most 6 % | coverage by query | by cluster | 94 to 97 % |"
    yield "| --- | ---: | ---: | --- | ---: | ---: | --- |"
    for name, sizes in {"30 x 5": [5] * 30, "30, of 1 to 9 queries": [1 + j % 9 for j in range(30)]}.items():
        labels = [str(j) for j, size in enumerate(sizes) for _ in range(size)]
        units, rng, n = units_of(labels), np.random.default_rng(len(labels)), len(labels)
        rates = np.zeros(4)
        rounds = -(-experiments // 1_000)
        for _ in range(rounds):
            shared = rng.normal(0, math.sqrt(0.5), (1_000, len(sizes)))[:, units.members]
            table = (shared + rng.normal(0, math.sqrt(0.5), (1_000, n))) / 10
            rates[:2] += claims(table, singles(n))[1].mean(), claims(table, units)[1].mean()
            rates[2:] += [np.mean([_covers(student(row, units=u)) for row in table]) for u in (singles(n), units)]
        query, cluster, covered, covered_by_cluster = rates / rounds
        few, near = "yes" if cluster <= 0.06 else "NO", "yes" if 0.94 <= covered_by_cluster <= 0.97 else "no"
        yield f"| {name} | {query:.1%} | {cluster:.1%} | {few} | {covered:.1%} | {covered_by_cluster:.1%} | {near} |"


def _covers(interval: tuple[float | None, float | None, str], truth: float = 0.0) -> bool:
    low, high, _ = interval
    return low is not None and high is not None and low <= truth <= high


def looks(experiments: int) -> Iterator[str]:
    """A second test after more queries, without any difference: how often either look claims one."""
    yield "| differences, mean 0 | looks at | each at 5 % | with alpha spent |"
    yield "| --- | --- | ---: | ---: |"
    shapes: dict[str, Shape] = {
        "normal": lambda rng, s: rng.normal(0, 0.1, s),
        "normal in steps, 40 % ties": lambda rng, s: np.round(rng.normal(0, 2, s)) * (rng.random(s) > 0.4) / 10,
    }
    for name, draw in shapes.items():
        for planned in ((60, 150), (50, 100, 200)):
            rng = np.random.default_rng(planned)
            table = draw(rng, (experiments, planned[-1]))
            p = np.column_stack([_both(table[:, :n]) for n in planned])
            naive, spent = (p <= ALPHA).any(axis=1).mean(), (p <= np.array(levels(ALPHA, planned))).any(axis=1).mean()
            yield f"| {name} | {' and '.join(map(str, planned))} | {naive:.1%} | {spent:.1%} |"


def _both(table: Floats) -> Floats:
    """The larger p of the signed-rank test and of the test of the mean, for each row."""
    sizes, inverse = np.unique(np.round(np.abs(table), 9), return_inverse=True)
    groups = inverse.reshape(table.shape) + (0 if sizes[0] == 0 else 1)
    ranks = np.concatenate([
        doubled_ranks_by_row(_compressed(part), "wilcox") for part in np.array_split(groups, max(1, len(groups) // 200))
    ])  # fmt: skip
    p: Floats = np.maximum(flip_p(np.sign(table) * ranks, 2.0), flip_p(table))
    return p


def _compressed(groups: Integers) -> Integers:
    """Number the groups of some rows anew, 0 staying 0: fewer numbers, less memory."""
    inverse: Integers = np.unique(np.append(groups.ravel(), 0), return_inverse=True)[1]
    return inverse[:-1].reshape(groups.shape)


def intervals(experiments: int) -> Iterator[str]:
    """The interval of a mean near the end of its measure's range, n = 13."""
    yield "| scores in [0, 1], n = 13 | mean | t left the range | coverage of t | coverage now | by the logit |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: |"
    shapes: dict[str, tuple[float, Shape]] = {
        "Beta(8, 1)": (8 / 9, lambda rng, s: rng.beta(8, 1, s)),
        "Beta(4, 0.4)": (4 / 4.4, lambda rng, s: rng.beta(4, 0.4, s)),
        "Beta(1, 9)": (0.1, lambda rng, s: rng.beta(1, 9, s)),
        "two in three are 1, else uniform": (
            2 / 3 + 1 / 6, lambda rng, s: np.where(rng.random(s) < 2 / 3, 1.0, rng.random(s)),
        ),
        "Beta(3, 3)": (0.5, lambda rng, s: rng.beta(3, 3, s)),
    }  # fmt: skip
    for name, (truth, draw) in shapes.items():
        table = draw(np.random.default_rng(len(name)), (experiments, 13))
        plain = [student(row) for row in table]
        now = [student(row, bounds=Range(0.0, 1.0)) for row in table]
        left = np.mean([x.low is not None and x.high is not None and (x.low < 0 or x.high > 1) for x in plain])
        logit = np.mean([x.method == "logit" for x in now])
        covered = [np.mean([_covers(x, truth) for x in rows]) for rows in (plain, now)]
        yield f"| {name} | {truth:.3f} | {left:.1%} | {covered[0]:.1%} | {covered[1]:.1%} | {logit:.1%} |"


def forecast_count(experiments: int) -> int:
    """How many experiments the rows of `forecasts` have: each makes plans."""
    return max(200, experiments // 40)


def flattery_count(experiments: int) -> int:
    """How many experiments the rows of `flattery` have: each makes 10,000 resamples."""
    return max(100, experiments // 40)


def forecasts(experiments: int) -> Iterator[str]:
    """Queries needed, where 50 queries showed nothing: for the observed difference, and for a declared one."""
    yield "| true difference | truly needed | not shown | finite guess | its median (before) | plan for 0.05, median |"
    yield "| ---: | ---: | ---: | ---: | ---: | ---: |"
    few, n = forecast_count(experiments), 50
    asked = Criterion("wilcoxon", ALPHA)
    for truth, needed in ((0.0, "none"), (0.05, f"{sakai_queries(0.05 / 0.25)} (Sakai)")):
        rng = np.random.default_rng(7)
        table = rng.normal(truth, 0.25, (few, n))
        shown = claims(table, singles(n))[1]
        with changed("plan", RESAMPLES=1):
            guesses = [queries_needed(observed(row), asked=asked) for row in table[~shown]]
        found = [math.inf if g is None or g.best_guess is None else g.best_guess for g in guesses]
        plans = [plan(observed(row), 0.05, asked=asked).models["shift"] or math.inf for row in table[~shown][:100]]
        finite = np.mean(np.isfinite(found))
        yield (
            f"| {truth:g} | {needed} | {1 - shown.mean():.0%} | {finite:.0%} | {np.median(found):,.0f} | "
            f"{np.median(plans):,.0f} |"
        )


def detectable(data: dict[str, Floats]) -> Iterator[str]:
    """The smallest difference found by each model, and the power at the first one's figure under the others."""
    yield "| differences | queries | sign tilt (before, alone) | exponential tilt | shift | power at the first figure |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: |"
    rng = np.random.default_rng(11)
    shapes = {**data, **{name: draw(rng, (1, 138))[0] for name, draw in equal_means({}).items()}}
    for name, values in shapes.items():
        d = observed(values)
        asked = Criterion("wilcoxon", ALPHA)
        found = minimum_detectable(d, asked=asked).models
        first = found["sign tilt"]
        powers = []
        for model in ("exponential tilt", "shift"):
            truth = None if first is None else MODELS[model](d, first, 1.0)
            powers.append("–" if truth is None else f"{simulated_power(truth, len(values), asked):.2f}")
        shown = " | ".join("none" if value is None else f"{value:.2g}" for value in found.values())
        yield f"| {name} | {len(values)} | {shown} | {' and '.join(powers)} |"


def flattery(experiments: int) -> Iterator[str]:
    """The optimism that the bootstrap finds, as a share of the truth."""
    yield "| retrievers, equal in truth | queries | true optimism | found, mean | share |"
    yield "| ---: | ---: | ---: | ---: | ---: |"
    few = flattery_count(experiments)
    for k, n in ((3, 50), (8, 50), (8, 150)):
        rng = np.random.default_rng([k, n])
        true, found = 0.0, 0.0
        for _ in range(few):
            noise = rng.normal(0, 0.15, (n, k))
            scores = rng.normal(0.6, 0.2, (n, 1)) + noise
            true += noise.mean(axis=0).max() / few  # the queries' own luck is shared by all
            found += optimism({str(j): scores[:, j] for j in range(k)}).optimism / few
        yield f"| {k} | {n} | {true:.4f} | {found:.4f} | {found / true:.2f} |"

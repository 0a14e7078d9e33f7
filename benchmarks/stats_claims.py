"""Rates of the choice of one, the board's intervals, the gate, abstention and a corpus
that changed.

    python benchmarks/stats_claims.py          # prints the tables: a minute
    python benchmarks/stats_claims.py --write  # into benchmarks/stats.md as well

P-values of flips by Edgeworth's expansion (`flip_p`, which tests/ compare with
enumeration).
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy import special, stats
from stats_samples import ALPHA, changed, flip_p

from harness.stats.binary_interval import PairCounts, binary_interval
from harness.stats.corrections import adjust_p_values
from harness.stats.differences import Floats
from harness.stats.paired_tests import min_units_for_margin
from harness.stats.roc_area import RocScores, roc_area
from harness.stats.sign_flip import Contrast
from harness.stats.simultaneous import simultaneous_quantile, single_level
from harness.stats.units import single_units

PAGE = Path(__file__).with_name("stats.md")
START = "<!-- printed by stats_claims.py -->"
END = "<!-- end of what stats_claims.py printed -->"
RETRIEVERS = (2, 3, 5, 10, 20)
SIZES = (13, 50, 150)
RUNS = 1_200
"""Experiments of a cell of the choice."""
FAR = 0.5
"""Standard deviations by which the others are behind where only two are tied."""
Draw = Callable[[np.random.Generator, tuple[int, ...]], Floats]

SHAPES: dict[str, Draw] = {
    "normal": lambda rng, s: rng.normal(0, 1, s),
    "t, 3 degrees of freedom": lambda rng, s: rng.standard_t(3, s) / 3**0.5,
    "lognormal": lambda rng, s: (rng.lognormal(0, 1, s) - 1.6487) / 2.1612,
    "rare losses": lambda rng, s: (0.1 - (rng.random(s) < 0.1)) / 0.3,
    "0/1": lambda rng, s: 2.0 * (rng.random(s) < 0.5) - 1.0,
}
"""Scores of a retriever with mean 0 and deviation 1, each query drawn alone."""
STEPS = {"rare losses": 2 / 0.3, "0/1": 4.0}
"""Between two possible sums of differences under flips."""


def leader_p(scores: Floats, step: float = 0.0) -> Floats:
    """The largest uncorrected p of the leader against the others: (runs,) of (runs, k,
    n).
    """
    runs, k, n = scores.shape
    leader = scores.mean(axis=2).argmax(axis=1)
    gaps = scores[np.arange(runs), leader][:, None, :] - scores
    p = flip_p(np.round(gaps, 9).reshape(-1, n), step).reshape(runs, k)
    p[np.arange(runs), leader] = 0.0
    return np.asarray(p.max(axis=1))


def false_choices() -> Iterator[str]:
    """All retrievers tied, or two with the others behind: how often one is chosen."""
    yield f"| scores | n | {' | '.join(f'{k} retrievers' for k in RETRIEVERS)} |"
    yield f"| --- | ---: | {' | '.join('---:' for _ in RETRIEVERS)} |"
    for name, draw in SHAPES.items():
        for n in SIZES:
            cells = []
            for k in RETRIEVERS:
                rng = np.random.default_rng([n, k, len(name)])
                scores = draw(rng, (RUNS, k, n))
                tied = np.mean(leader_p(scores, STEPS.get(name, 0.0)) <= ALPHA)
                if name not in STEPS:
                    scores[:, 2:] -= FAR
                    two = np.mean(leader_p(scores) <= ALPHA)
                    cells.append(f"{100 * tied:.1f} / {100 * two:.1f}")
                else:
                    cells.append(f"{100 * tied:.1f}")
            yield f"| {name} | {n} | {' | '.join(cells)} |"


def power_of_the_choice() -> Iterator[str]:
    """The best is ahead by 0.3 deviations of a score; correlation 0.6, n = 150."""
    yield "| retrievers | chosen | before: Holm over all pairs |"
    yield "| ---: | ---: | ---: |"
    n = 150
    for k, runs in ((4, 1_000), (10, 400), (20, 150)):
        rng = np.random.default_rng([k, 7])
        common = rng.normal(0, 0.6**0.5, (runs, 1, n))
        scores = common + rng.normal(0, 0.4**0.5, (runs, k, n))
        scores[:, 0] += 0.3
        leads = scores.mean(axis=2).argmax(axis=1) == 0
        chosen = leads & (leader_p(scores) <= ALPHA)
        first, second = np.triu_indices(k, 1)
        p = flip_p((scores[:, first] - scores[:, second]).reshape(-1, n))
        adjusted = np.array(
            [adjust_p_values(row.tolist(), "holm") for row in p.reshape(runs, -1)]
        )
        before = leads & (adjusted[:, first == 0] <= ALPHA).all(axis=1)
        yield f"| {k} | {100 * chosen.mean():.0f} % | {100 * before.mean():.0f} % |"


def board_coverage() -> Iterator[str]:
    """All means are equal; the leader is picked by the data."""
    yield (
        "| scores | retrievers | n | a row, before | any row, before | any row, now | "
        "width |"
    )
    yield "| --- | ---: | ---: | ---: | ---: | ---: | ---: |"
    cells = [
        (name, k, n)
        for name in ("normal", "lognormal")
        for k in (4, 10, 20)
        for n in (50, 150)
    ]
    for name, k, n in [*cells, ("0/1", 4, 50), ("0/1", 4, 150)]:
        yield f"| {name} | {k} | {n} | {_board_cell(name, k, n)} |"


def _board_cell(name: str, k: int, n: int, runs: int = 200) -> str:
    rng = np.random.default_rng([k, n, len(name)])
    family = [Contrast(a, b) for a in range(k) for b in range(a)]
    single = float(stats.t.ppf(0.975, n - 1))
    missed_rows, missed_any, missed_now, widths = [], [], [], []
    with changed("draws", SIGN_DRAWS=2_000):
        for _ in range(runs):
            scores = SHAPES[name](rng, (n, k))
            c = simultaneous_quantile(scores, single_units(n), family) or single
            gaps = _gaps_of_leader(scores)
            t = np.abs(gaps.mean(axis=0)) / (gaps.std(axis=0, ddof=1) / n**0.5)
            missed_rows.append(np.mean(t > single))
            missed_any.append(np.any(t > single))
            missed_now.append(_misses(name, gaps, t, c))
            widths.append(c / single)
    rates = [np.mean(kind) for kind in (missed_rows, missed_any, missed_now)]
    return (
        f"{' | '.join(f'{100 * rate:.0f} %' for rate in rates)} | {np.mean(widths):.2f}"
    )


def _gaps_of_leader(scores: Floats) -> Floats:
    leader = int(scores.mean(axis=0).argmax())
    return np.asarray(scores[:, [leader]] - np.delete(scores, leader, axis=1))


def _misses(name: str, gaps: Floats, t: Floats, c: float) -> bool:
    """Whether any row's interval leaves out 0."""
    if name != "0/1":
        return bool(np.any(t > c))
    alpha = min(ALPHA, single_level(c, single_units(len(gaps))))
    for column in gaps.T:
        won = int((column > 0).sum())
        lost = int((column < 0).sum())
        counts = PairCounts(won, lost, len(column) - won - lost)
        interval = binary_interval(counts, alpha)
        if interval.low is None or interval.high is None:
            continue
        if interval.low > 0 or interval.high < 0:
            return True
    return False


MARGIN = 0.05
HEAVY = float(np.exp(1 - special.ndtri(MARGIN)))
"""Weight above which lognormal queries hold 5 % of all weight."""


class Lost(NamedTuple):
    """Sums of units with a true loss of the margin."""

    sums: Floats
    """(runs, units): weight x difference."""
    weights: Floats


def equal(rng: np.random.Generator, s: tuple[int, int]) -> Lost:
    return Lost(-1.0 * (rng.random(s) < MARGIN), np.ones(s))


def random_queries(rng: np.random.Generator, s: tuple[int, int]) -> Lost:
    weights = rng.lognormal(0, 1, s)
    return Lost(-weights * (rng.random(s) < MARGIN), weights)


def heavy_queries(rng: np.random.Generator, s: tuple[int, int]) -> Lost:
    weights = rng.lognormal(0, 1, s)
    return Lost(-weights * (weights > HEAVY), weights)


def clusters(rng: np.random.Generator, s: tuple[int, int]) -> Lost:
    sizes = np.ceil(rng.lognormal(0, 1, s))
    return Lost(-sizes * (rng.random(s) < MARGIN), sizes)


GATES = {
    "equal weights, losses of 1": equal,
    "lognormal weights, losses on random queries": random_queries,
    "lognormal weights, losses on the heaviest": heavy_queries,
    "clusters of lognormal size, whole clusters lost": clusters,
}


def gates() -> Iterator[str]:
    """A true loss of exactly the margin, 0.05: how often the gate passes."""
    yield "| losses | units | before: added unit of mean weight | now: of the largest |"
    yield "| --- | ---: | ---: | ---: |"
    for name, draw in GATES.items():
        for n in (60, 100, 200, 400):
            rng = np.random.default_rng([n, len(name)])
            lost = draw(rng, (10_000, n))
            ahead = lost.sums.sum(axis=1) / lost.weights.sum(axis=1)
            needed = [min_units_for_margin(MARGIN, 1.0, ALPHA, d) for d in ahead]
            enough = np.array(needed) <= n
            rates = []
            for added in (lost.weights.mean(axis=1), lost.weights.max(axis=1)):
                raised = lost.sums + MARGIN * lost.weights
                worst = added[:, None] * (MARGIN - 1)
                table = np.hstack([raised, worst])
                p = flip_p(table) / 2
                passed = (table.sum(axis=1) > 0) & (p <= ALPHA) & enough
                rates.append(f"{100 * passed.mean():.1f} %")
            yield f"| {name} | {n} | {' | '.join(rates)} |"


def abstention() -> Iterator[str]:
    """Normal scores with a true area: coverage of 95 %, and equal retrievers."""
    yield (
        "| answered | unanswerable | true area | covers, before (DeLong) "
        "| covers, now | pairs of equal areas, false |"
    )
    yield "| ---: | ---: | ---: | ---: | ---: | ---: |"
    runs = 1_000
    for m, n in ((25, 5), (25, 8), (100, 5), (100, 8)):
        for area in (0.75, 0.9, 0.98):
            rng = np.random.default_rng([m, n, int(100 * area)])
            shift = 2**0.5 * float(special.ndtri(area))
            positives = rng.normal(shift, 1, (2, runs, m))
            negatives = rng.normal(0, 1, (2, runs, n))
            found, variances, pair_variance = _delong(positives, negatives)
            z = float(special.ndtri(0.975))
            plain = np.abs(found[0] - area) <= z * variances[0] ** 0.5
            now = [
                _covers(RocScores(positives[0, run], negatives[0, run]), area)
                for run in range(runs)
            ]
            gap = np.abs(found[0] - found[1])
            false = gap > z * np.maximum(pair_variance, 1e-12) ** 0.5
            yield (
                f"| {m} | {n} | {area} | {100 * plain.mean():.0f} % "
                f"| {100 * np.mean(now):.0f} % | {100 * false.mean():.1f} % |"
            )


def _covers(scores: RocScores, area: float) -> bool:
    found = roc_area(scores)
    assert found.low is not None and found.high is not None
    return found.low <= area <= found.high


def _delong(positives: Floats, negatives: Floats) -> tuple[Floats, Floats, Floats]:
    """Areas and variances (2, runs), and the variance of their difference (runs,)."""
    wins = (positives[..., :, None] > negatives[..., None, :]).astype(np.float64)
    areas = wins.mean(axis=(2, 3))

    def variance(table: Floats) -> Floats:
        by_positive = table.mean(axis=-1).var(axis=-1, ddof=1) / table.shape[-2]
        by_negative = table.mean(axis=-2).var(axis=-1, ddof=1) / table.shape[-1]
        return np.asarray(by_positive + by_negative)

    return areas, variance(wins), variance(wins[0] - wins[1])


def floors() -> Iterator[str]:
    """The share of new answers above the floor, which shall be 95 %."""
    yield (
        "| answered | kept, before (largest floor that keeps 95 % of these) | kept, "
        "now |"
    )
    yield "| ---: | ---: | ---: |"
    for n in (19, 25, 50, 150):
        rising = np.sort(np.random.default_rng(n).random((20_000, n)), axis=1)
        before = 1 - rising[:, int(0.05 * n)]
        now = 1 - rising[:, int(0.05 * (n + 1) + 1e-9) - 1]
        yield f"| {n} | {100 * before.mean():.1f} % | {100 * now.mean():.1f} % |"


DOCUMENTS = 200
QUERIES = 60
CUTOFF = 10
SHARE_RELEVANT = 0.01


def corpus_changes() -> Iterator[str]:
    """A corpus that grew by documents like the old; the ranker stays as it is."""
    yield (
        "| new documents | mean difference, own labels | worse, before "
        "| worse, now | worse, unlabelled, by the test alone | now |"
    )
    yield "| ---: | ---: | ---: | ---: | ---: | ---: |"
    for share in (0.1, 0.25, 0.5):
        found = [_corpus_change(share, seed) for seed in range(300)]
        differences = np.array([one.own for one in found])
        rates = [
            np.mean([getattr(one, field) for one in found])
            for field in ("before", "now", "unlabelled", "unlabelled_now")
        ]
        cells = " | ".join(f"{100 * rate:.0f} %" for rate in rates)
        yield f"| {100 * share:.0f} % | {differences.mean():+.4f} | {cells} |"


class Grown(NamedTuple):
    """What is found of a corpus that grew."""

    own: float
    """Mean difference by own labels."""
    before: bool
    now: bool
    unlabelled: bool
    unlabelled_now: bool


def _corpus_change(share: float, seed: int) -> Grown:
    rng = np.random.default_rng([seed, int(100 * share)])
    total = DOCUMENTS + int(share * DOCUMENTS)
    relevant = rng.random((QUERIES, total)) < SHARE_RELEVANT
    relevant[:, 0] = True
    scores = rng.normal(2.0 * relevant, 1)
    old = relevant[:, :DOCUMENTS]
    gained = relevant[:, DOCUMENTS:].any(axis=1)
    before = _recall(scores[:, :DOCUMENTS], old)
    after = _recall(scores, relevant)
    old_labels = relevant.copy()
    old_labels[:, DOCUMENTS:] = False
    missing = _recall(scores, old_labels)
    difference = after - before
    first = np.argsort(-scores, axis=1)[:, :CUTOFF]
    has_unlabelled = bool((first >= DOCUMENTS).any())
    is_worse = _is_worse(missing - before)
    return Grown(
        own=float(difference.mean()),
        before=_is_worse(difference[~gained]),
        now=_is_worse(difference),
        unlabelled=is_worse,
        unlabelled_now=is_worse and not has_unlabelled,
    )


def _is_worse(differences: Floats) -> bool:
    p = flip_p(differences[None, :])[0]
    return bool(differences.sum() < 0 and p <= ALPHA)


def _recall(scores: Floats, relevant: Floats) -> Floats:
    """RR@10 of each query."""
    order = np.argsort(-scores, axis=1)[:, :CUTOFF]
    hits = np.take_along_axis(relevant, order, axis=1)
    return np.asarray(np.where(hits.any(axis=1), 1 / (1 + hits.argmax(axis=1)), 0.0))


class Table(NamedTuple):
    """A table with what has to be known of it."""

    title: str
    text: str
    rows: Callable[[], Iterator[str]]


TABLES = (
    Table(
        "The choice of one: false choices",
        f"""\
Percent of {RUNS:,} runs that say "Use A" although A has an equal: all retrievers
tied / two tied and the others behind by {FAR} deviations (of the shapes that can be
moved). Retrievers are drawn alone, at a nominal 5 %. Holm over all pairs, as before,
keeps this below 5 % by construction; the next table has its price.""",
        false_choices,
    ),
    Table(
        "The choice of one: power",
        "The best is ahead by 0.3 deviations, correlation 0.6, n = 150: how often it "
        "is chosen.",
        power_of_the_choice,
    ),
    Table(
        "Intervals of the leaderboard",
        """\
All means equal: how often the interval of a row, or of any row, leaves out the true
difference of 0. Before: Student's interval of each row alone. Now: simultaneous by
max-T, 2,000 flips; of 0/1 measures by the flips. Width: against one row alone. 200
runs a row.""",
        board_coverage,
    ),
    Table(
        "The gate under weights and clusters",
        """\
A true loss of exactly the margin, 0.05, by losses of 1 (10,000 runs a row): how
often the gate passes at 5 %. The worst unit that is added had the mean weight, and
has the largest.""",
        gates,
    ),
    Table(
        "Queries that nothing answers: areas",
        """\
1,000 runs a row. Before: DeLong's interval on the plain scale. Now: the wider of
Newcombe's method 5 and DeLong's on the logit scale. The last column is DeLong's test
of two equal retrievers, drawn alone, at 5 %.""",
        abstention,
    ),
    Table(
        "Queries that nothing answers: floors",
        "Mean share of new answers above the floor (20,000 runs a row).",
        floors,
    ),
    Table(
        "A corpus that grew",
        """\
60 queries, 200 documents, RR@10; new documents are as often relevant as the old ones
(1 %), and the ranker scores them alike; 300 runs a row. Before: queries that gained
a relevant document were left out. Now: every query by its own state's labels. In the
last two columns the new documents have no labels: a fall is then undecided.""",
        corpus_changes,
    ),
)


def printed() -> Iterator[str]:
    """The tables, as they stand in stats.md."""
    for table in TABLES:
        yield f"## {table.title}\n\n{table.text}\n"
        yield from table.rows()
        yield ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="into stats.md")
    given = parser.parse_args()
    started = time.process_time()
    lines = []
    for line in printed():
        print(line, flush=True)
        lines.append(line)
    seconds = time.process_time() - started
    print(f"{seconds:.0f} CPU seconds")
    if given.write:
        head, _, rest = PAGE.read_text(encoding="utf-8").partition(START)
        tail = rest.partition(END)[2]
        body = "\n".join(lines)
        text = f"{head.rstrip()}\n\n{START}\n\n{body}\n{END}\n{tail.lstrip()}"
        PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()

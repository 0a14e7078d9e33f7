"""How often `harness explain` finds a planted slice; prints benchmarks/explain.md.

python benchmarks/explain_power.py > benchmarks/explain.md     # some ten minutes
python benchmarks/explain_power.py --experiments 50            # a quick look
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from stats_samples import changed
from stats_shapes import Shape, made_up

from harness.evaluation.property_slices import PropertySlice, property_slices
from harness.evaluation.shown_slices import confirmed_slices, shown_slices
from harness.records import QueryProperty
from harness.stats.differences import Floats
from harness.stats.settings import Settings
from harness.stats.slice_contrasts import slice_contrasts
from harness.stats.units import single_units
from retrievers.types import Query

ALPHA = 0.05
DRAWS = 2_000
"""Permutations a family: enough for a level of 5 %, and fifty times as fast."""
PLANTED_FIELD = "planted"
PLANTED_PROPERTY = f"field {PLANTED_FIELD}"
PLANTED_SHARE = 0.2
DEVIATION = 0.3


class Sample(NamedTuple):
    """One simulated pair of retrievers."""

    ids: list[str]
    slices: list[PropertySlice]
    is_planted: Floats
    """(n,): 1 for the queries of the planted slice."""


class Outcome(NamedTuple):
    """What was said of one sample."""

    finds_planted: bool
    finds_confirmed: bool
    """Whether the planted slice is shown, and confirmed on the other half."""
    halves_alone: bool
    """Whether it is shown where the halves decide: the one by its corrected p, then the
    other."""
    covers: bool
    """Whether the interval of the planted slice's gap has the true one."""


def draw_sample(rng: np.random.Generator, n: int) -> Sample:
    """Draw the properties of n queries, some of them correlated.

    Five numbers and two flags as the harness computes them, a field of four topics, and
    the planted one, which is yes for 20 % of the queries.
    """
    ids = [f"q{i}" for i in range(n)]
    difficulty = rng.normal(size=n)
    numbers = {
        "query length": np.round(np.exp(3.6 + 0.4 * rng.normal(size=n))),
        "shared words": np.clip(0.5 - 0.2 * difficulty, 0, 1),
        "rarest word": np.round(np.exp(2 + 0.6 * difficulty + rng.normal(size=n))),
        "document length": np.round(np.exp(7 + 0.3 * rng.normal(size=n))),
        "labels": 1.0 + rng.poisson(0.8, n),
    }
    flags = {
        "digits": rng.random(n) < 0.3,
        "quotation marks": rng.random(n) < 0.1,
    }
    topics = rng.integers(0, 4, n)
    is_planted = rng.permutation(n) < PLANTED_SHARE * n
    rows: list[QueryProperty] = []
    for name, values in numbers.items():
        rows += [
            QueryProperty(q, name, float(v)) for q, v in zip(ids, values, strict=True)
        ]
    for name, values in flags.items():
        rows += [
            QueryProperty(q, name, bool(v)) for q, v in zip(ids, values, strict=True)
        ]
    queries = [
        Query(q, "", {"topic": f"t{topic}", PLANTED_FIELD: "yes" if planted else "no"})
        for q, topic, planted in zip(ids, topics, is_planted, strict=True)
    ]
    return Sample(ids, property_slices(queries, rows, ()), is_planted.astype(float))


def judge_sample(sample: Sample, differences: Floats, gap: float, seed: int) -> Outcome:
    """Return what is said of the differences of one sample."""
    n = len(differences)
    settings = Settings(alpha=ALPHA, seed=seed)
    units = single_units(n)
    shown = shown_slices(
        differences, sample.slices, units, sample.ids, settings=settings
    )
    planted = [each for each in shown if is_planted(each.property_slice)]
    masks = np.column_stack([each.mask for each in sample.slices])
    column = [is_planted(each) for each in sample.slices].index(True)
    contrast = slice_contrasts(differences, masks, units, alpha=ALPHA, seed=seed)[
        column
    ]
    sign = 1 if sample.slices[column].mask[sample.is_planted > 0].all() else -1
    return Outcome(
        finds_planted=bool(planted),
        finds_confirmed=any(each.confirmed for each in planted),
        halves_alone=_halves_alone(sample, differences, settings, column),
        covers=contrast.low <= sign * gap <= contrast.high,
    )


def is_planted(property_slice: PropertySlice) -> bool:
    """Whether this is the planted slice."""
    return property_slice.name.property_name == PLANTED_PROPERTY


def _halves_alone(
    sample: Sample, differences: Floats, settings: Settings, column: int
) -> bool:
    """Whether the halves alone show the planted slice."""
    units = single_units(len(differences))
    masks = np.column_stack([each.mask for each in sample.slices])
    confirmed = confirmed_slices(
        differences, masks, units, sample.ids, settings=settings
    )
    return confirmed is not None and column in confirmed


def planted_rates(n: int, loss: float, experiments: int) -> tuple[float, ...]:
    """Return the share of experiments with each outcome, in percent."""
    rng = np.random.default_rng([n, round(1000 * loss)])
    outcomes: list[Outcome] = []
    for seed in range(experiments):
        sample = draw_sample(rng, n)
        noise = rng.normal(0, DEVIATION, n)
        differences = noise - loss * sample.is_planted
        outcomes.append(judge_sample(sample, differences, -loss, seed))
    return tuple(100 * np.mean(outcomes, axis=0))


def noise_rate(n: int, shape: Shape, experiments: int) -> float:
    """Return how often a slice is named though none means anything, in percent."""
    rng = np.random.default_rng(n)
    named = 0
    for seed in range(experiments):
        sample = draw_sample(rng, n)
        differences = shape(rng, (1, n))[0]
        settings = Settings(alpha=ALPHA, seed=seed)
        units = single_units(n)
        named += bool(
            shown_slices(
                differences, sample.slices, units, sample.ids, settings=settings
            )
        )
    return 100 * named / experiments


class PageOutcome(NamedTuple):
    """What two pairs with the same leader show of one sample."""

    first: bool
    """Whether the pair of *Where it fails* shows a slice."""
    second: bool
    """Whether the other pair does."""

    @property
    def either(self) -> bool:
        """Whether a page would speak that asked each pair by itself."""
        return self.first or self.second

    @property
    def page(self) -> bool:
        """Whether the page speaks: of the second pair only beside the first."""
        return self.first

    @property
    def page_of_second(self) -> bool:
        """Whether the page speaks of the second pair, too."""
        return self.first and self.second


def judge_pairs(sample: Sample, pairs: Sequence[Floats], seed: int) -> PageOutcome:
    """Return which of two pairs show a slice."""
    n = len(sample.ids)
    settings = Settings(alpha=ALPHA, seed=seed)
    outcomes: list[bool] = []
    for differences in pairs:
        shown = shown_slices(
            differences, sample.slices, single_units(n), sample.ids, settings=settings
        )
        outcomes.append(bool(shown))
    return PageOutcome(*outcomes)


def two_pairs(rng: np.random.Generator, n: int, shape: Shape) -> tuple[Floats, Floats]:
    """Draw the differences of two pairs; on half of the queries they are the same."""
    first, other = shape(rng, (2, n))
    return first, np.where(rng.random(n) < 0.5, first, other)


def page_noise(n: int, shape: Shape, experiments: int) -> list[PageOutcome]:
    """Return what is shown though no slice means anything."""
    rng = np.random.default_rng([n, 2])
    outcomes: list[PageOutcome] = []
    for seed in range(experiments):
        sample = draw_sample(rng, n)
        outcomes.append(judge_pairs(sample, two_pairs(rng, n, shape), seed))
    return outcomes


def page_planted(n: int, loss: float, experiments: int) -> list[PageOutcome]:
    """Return whether a slice is shown on which the leader loses to both others."""
    rng = np.random.default_rng([n, round(1000 * loss), 2])
    outcomes: list[PageOutcome] = []
    for seed in range(experiments):
        sample = draw_sample(rng, n)
        noise = two_pairs(rng, n, _normal)
        pairs = [each - loss * sample.is_planted for each in noise]
        outcomes.append(judge_pairs(sample, pairs, seed))
    return outcomes


def _normal(rng: np.random.Generator, size: tuple[int, int]) -> Floats:
    return rng.normal(0, DEVIATION, size)


def page_table(experiments: int) -> Iterator[str]:
    """How often a page with two pairs speaks."""
    yield (
        "| differences | queries | first pair | second pair | either by itself | "
        "the page | and of the second pair |"
    )
    yield f"| --- |{' ---: |' * 6}"
    for name, shape in made_up().items():
        for n in (120, 250):
            yield _page_row(name, n, page_noise(n, shape, 2 * experiments))
    for loss in (0.3, 0.2):
        name = f"planted: the leader loses {loss} to both"
        yield _page_row(name, 250, page_planted(250, loss, experiments))


def _page_row(name: str, n: int, outcomes: Sequence[PageOutcome]) -> str:
    rates = [
        [outcome.first for outcome in outcomes],
        [outcome.second for outcome in outcomes],
        [outcome.either for outcome in outcomes],
        [outcome.page for outcome in outcomes],
        [outcome.page_of_second for outcome in outcomes],
    ]
    cells = " | ".join(f"{100 * np.mean(rate):.1f} %" for rate in rates)
    return f"| {name} | {n} | {cells} |"


def power_table(experiments: int) -> Iterator[str]:
    """How often a planted slice is found, by its loss and the number of queries."""
    yield (
        "| queries | loss | found | and confirmed on the other half | halves alone "
        "| the interval has the true gap |"
    )
    yield "| ---: | ---: | ---: | ---: | ---: | ---: |"
    for n in (60, 120, 250, 500):
        for loss in (0.3, 0.2, 0.15, 0.1):
            rates = planted_rates(n, loss, experiments)
            found, confirmed, halves, covers = (f"{rate:.1f} %" for rate in rates)
            if n < 120:
                confirmed = halves = ""
            yield f"| {n} | {loss} | {found} | {confirmed} | {halves} | {covers} |"


def noise_table(experiments: int) -> Iterator[str]:
    """How often anything is said of pure noise."""
    sizes = (60, 120, 250, 500)
    heads = " | ".join(f"n = {n}" for n in sizes)
    yield f"| differences | {heads} |"
    yield f"| --- | {' | '.join('---:' for _ in sizes)} |"
    for name, shape in made_up().items():
        rates = [noise_rate(n, shape, 2 * experiments) for n in sizes]
        yield f"| {name} | {' | '.join(f'{rate:.1f} %' for rate in rates)} |"


class Section(NamedTuple):
    """A table with what has to be known of it."""

    name: str
    """What `--only` takes."""
    title: str
    text: str
    table: Callable[[int], Iterator[str]]


SECTIONS = (
    Section(
        "planted",
        "A planted slice",
        """\
A yes-or-no field of 20 % of the queries, on which one retriever loses; the other
differences scatter by .3. It is one of 12 slices or so: five numbers, two flags, a
field of four topics, the planted field. *Found*: the family over all queries names
the planted slice. *Halves alone*: what would be found if the halves decided. The
interval holds for all slices at once, so that one alone is covered more often than
in 95 %. The goal is 80 % at 250 queries and a loss of .3.""",
        power_table,
    ),
    Section(
        "noise",
        "Pure noise",
        """\
No property has to do with the differences: how often any slice is named, in twice as
many experiments. The goal is at most 5 %; 1,000 experiments at 5 % have a standard
error of 0.7 points, and the largest of 24 such cells is expected near 6.4. The
permutation is exact; three cells above 5 % anew, in 3,000 experiments of 500
permutations (standard error 0.4): exponential at n = 250 4.9 %, normal at n = 60 5.2 %
and at n = 500 4.6 %.""",
        noise_table,
    ),
    Section(
        "page",
        "The whole page",
        """\
The page has two pairs: the leader against the runner-up, and against the baseline. On
half of the queries their differences are the same; of noise there are twice as many
experiments. If each pair spoke by itself, the page would speak of noise in 6 to 11 %.
*Where it fails* is about the first pair, as `harness explain`; of the second the page
speaks only if it does of the first, so that the whole page is as sure as one
command.""",
        page_table,
    ),
)


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--experiments", type=int, default=500)
    names = [section.name for section in SECTIONS]
    parser.add_argument("--only", nargs="+", choices=names, default=names)
    arguments = parser.parse_args()
    experiments = arguments.experiments
    print("# Power and calibration of `harness explain`\n")
    print(
        "Printed by `python benchmarks/explain_power.py`; "
        f"{experiments:,} seeded experiments a row, {DRAWS:,} permutations each."
    )
    for section in SECTIONS:
        if section.name not in arguments.only:
            continue
        print(f"\n## {section.title}\n\n{section.text}\n", flush=True)
        with changed("draws", PERMUTATION_DRAWS=DRAWS):
            for line in section.table(experiments):
                print(line, flush=True)


if __name__ == "__main__":
    main()

"""The sign-flip test: its p against enumeration, in every method."""

import math
import sys

import numpy as np
import pytest
from scipy import stats

from harness.stats.sign_flip import flip_signs
from harness.stats.subset_tail import _grid_chance, subset_tail


def enumerate_by_halves(sizes: np.ndarray, limit: float) -> float:
    """The chance of a subset sum of at most the limit, over all subsets."""

    def all_sums(half: np.ndarray) -> np.ndarray:
        sums = np.zeros(1)
        for size in half:
            sums = np.concatenate([sums, sums + size])
        return np.sort(sums)

    first = all_sums(sizes[::2])
    second = all_sums(sizes[1::2])
    counts = np.searchsorted(second, limit + 1e-12 - first, side="right")
    return float(counts.sum() / 2.0 ** len(sizes))


SHAPES = {
    "normal": lambda rng, n: rng.normal(0.3, 1, n),
    "exponential": lambda rng, n: rng.exponential(1, n) - 0.7,
    "lognormal": lambda rng, n: rng.lognormal(0, 1, n) - 1.2,
    "rare losses": lambda rng, n: np.where(
        np.arange(n) % 7 == 0, -5 * rng.random(n), 0.4 * rng.random(n)
    ),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("n", [24, 34])
def test_the_p_is_within_one_percent_of_enumeration(shape: str, n: int) -> None:
    differences = SHAPES[shape](np.random.default_rng(n), n)
    sizes = np.sort(np.abs(differences))
    smaller_side = min(
        differences[differences > 0].sum(), -differences[differences < 0].sum()
    )
    exact = min(1.0, 2 * enumerate_by_halves(sizes, smaller_side))
    assert flip_signs(differences, 1e-12).two_sided == pytest.approx(exact, rel=0.01)


@pytest.mark.parametrize("losses", [0, 1, 2, 3])
@pytest.mark.parametrize("n", [50, 400])
def test_few_small_losses_are_counted_exactly(losses: int, n: int) -> None:
    gains = np.linspace(0.5, 0.9, n - losses)
    lost = -np.array([0.01, 0.02, 0.04][:losses])
    test = flip_signs(np.concatenate([gains, lost]), 1e-12)
    assert test.method == "enumerated"
    # Every subset of the losses is within the limit, and no gain is.
    assert test.two_sided == pytest.approx(math.ldexp(2.0 * 2**losses, -n), rel=1e-12)


def test_a_p_is_never_zero() -> None:
    assert flip_signs(np.ones(2_000), 1e-12).two_sided > 0


@pytest.mark.parametrize(("won", "lost"), [(12, 3), (64, 56), (300, 250)])
def test_of_zero_and_one_it_is_the_sign_test(won: int, lost: int) -> None:
    differences = np.repeat([1.0, -1.0, 0.0], [won, lost, 40])
    expected = stats.binomtest(won, won + lost).pvalue
    assert flip_signs(differences, 1e-10).two_sided == pytest.approx(expected)


def test_swapping_the_retrievers_swaps_the_tails() -> None:
    differences = np.random.default_rng(5).normal(0.2, 1, 40)
    forward = flip_signs(differences, 1e-12)
    backward = flip_signs(-differences, 1e-12)
    assert forward.two_sided == backward.two_sided
    assert forward.greater + backward.greater == pytest.approx(1, abs=1e-3)


@pytest.mark.parametrize(
    ("n", "limit", "method"), [(12, 4, "enumerated"), (60, 20, "convolved")]
)
def test_both_tails_are_counted_with_and_without_sums_at_the_limit(
    n: int, limit: int, method: str
) -> None:
    tail = subset_tail(np.full(n, 0.1), limit * 0.1, 1e-9)
    assert tail.method == method
    assert tail.at_most == pytest.approx(stats.binom.cdf(limit, n, 0.5), rel=1e-12)
    assert tail.below == pytest.approx(stats.binom.cdf(limit - 1, n, 0.5), rel=1e-12)


def test_few_large_and_many_tiny_differences_use_the_grid() -> None:
    sizes = np.sort(np.concatenate([np.ones(20), np.full(380, 1e-3)]))
    sizes = sizes * np.random.default_rng(0).uniform(0.9, 1.1, 400)
    sizes = np.sort(sizes)
    limit = float(sizes.sum()) * 0.3
    coarse = subset_tail(sizes, limit, 0.0)
    fine = _grid_chance(sizes, limit, 400_000)
    assert coarse.method == "grid"
    assert coarse.at_most == pytest.approx(fine, rel=0.013)


def test_the_method_does_not_depend_on_the_unit_of_the_scores() -> None:
    sizes = np.sort(np.append(np.random.default_rng(0).uniform(0.9, 1.1, 400), 100.0))
    tail = subset_tail(sizes, float(sizes.sum()) * 0.4, 0.0)
    large = subset_tail(sizes * 1e90, float(sizes.sum()) * 0.4e90, 0.0)
    assert tail.method == large.method == "grid"
    assert large.at_most == pytest.approx(tail.at_most, rel=1e-3)


@pytest.mark.parametrize(
    ("n", "fast", "method"),
    [(150, False, "grid"), (150, True, "saddlepoint"), (600, False, "saddlepoint")],
)
def test_the_method_follows_from_the_number_of_differences(
    n: int, fast: bool, method: str
) -> None:
    differences = np.random.default_rng(n).normal(0.1, 1, n)
    assert flip_signs(differences, 1e-12, fast=fast).method == method


def test_the_saddlepoint_is_near_the_grid() -> None:
    differences = np.random.default_rng(1).normal(0.15, 1, 200)
    grid = flip_signs(differences, 1e-12)
    saddlepoint = flip_signs(differences, 1e-12, fast=True)
    assert saddlepoint.two_sided == pytest.approx(grid.two_sided, rel=0.01)


def test_differences_of_float_noise_count_as_zero() -> None:
    noisy = np.array([0.3 - 0.2 - 0.1, 0.1, 0.2, 0.3])
    assert flip_signs(noisy, 1e-10) == flip_signs(np.array([0.1, 0.2, 0.3]), 1e-10)


@pytest.mark.parametrize("losses", [5, 60, 200])
def test_many_differences_of_two_sizes_are_counted_to_the_smallest_number(losses):
    # Each won query differs by 1/2: that is the sign test, which SciPy counts exactly.
    won = np.full(1_100, 0.5)
    differences = np.concatenate([won, np.full(losses, -0.5)])
    expected = stats.binomtest(losses, len(differences)).pvalue
    test = flip_signs(differences, 1e-10)
    assert test.two_sided == pytest.approx(expected, rel=1e-9, abs=1e-307)


def test_a_chance_below_the_smallest_number_is_the_smallest_number():
    differences = np.concatenate([np.full(4_000, 0.5), np.full(200, -0.25)])
    test = flip_signs(differences, 1e-10)
    assert (test.two_sided, test.method) == (sys.float_info.min, "convolved")


def test_equal_sums_of_both_signs_are_at_the_centre() -> None:
    sizes = np.random.default_rng(1).random(400)
    test = flip_signs(np.concatenate([sizes, -sizes]), 1e-10)
    assert test.method == "saddlepoint"
    assert (test.two_sided, test.greater) == (1.0, 0.5)

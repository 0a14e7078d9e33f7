"""The independent recomputation finds what is wrong: a check that finds nothing ever would prove nothing."""

from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from statsmodels.stats.multitest import multipletests

from harness.pipeline import run
from harness.records import write_table
from harness.running.options import Options
from tests import recompute, small


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("results")
    return run(small.experiment(folder), Options(folder / "out")).folder


def test_a_sound_folder_has_no_differences_and_every_number_was_recomputed(
    results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared: list[float] = []
    monkeypatch.setattr(recompute, "near", lambda one, other: bool(compared.append(one)) or one == pytest.approx(other))
    assert recompute.differences(results) == []
    # 3 retrievers x 8 measures x 6 queries; 5 columns of 24 summaries; 12 columns of 24 comparisons, and p_adjusted.
    undefined = pd.read_csv(results / "comparisons.csv")["effect_size"].isna().sum()
    assert len(compared) == 3 * 8 * 6 + 24 * 5 + 24 * 13 - undefined


@pytest.mark.parametrize(
    ("table", "column"),
    [
        ("scores", "value"),
        ("summary", "mean"),
        ("summary", "median"),
        *(("comparisons", name) for name in ("w_plus", "p_value", "p_adjusted", "p_minimum", "wins", "ties")),
        *(("comparisons", name) for name in ("mean_difference", "effect_size", "p_randomization")),
    ],
)
def test_a_changed_number_is_found(results: Path, table: str, column: str) -> None:
    file = results / f"{table}.csv"
    whole = file.read_bytes()
    try:
        rows = pd.read_csv(file, dtype={"query_id": str})
        rows.loc[0, column] += 1 if column in ("wins", "ties") else 1e-6
        write_table(results, table, rows)
        assert any(column in fault or table == "scores" for fault in recompute.differences(results))
    finally:
        file.write_bytes(whole)


def test_a_changed_ranking_is_found(results: Path) -> None:
    file = results / "runs" / "bm25.trec"
    whole = file.read_text(encoding="utf-8")
    first, second, *others = whole.splitlines()
    ids = [line.split()[2] for line in (first, second)]
    swapped = [first.replace(ids[0], ids[1]), second.replace(ids[1], ids[0])]
    try:
        file.write_text("\n".join([*swapped, *others]), encoding="utf-8")
        assert any("nDCG@3" in fault for fault in recompute.differences(results))
    finally:
        file.write_text(whole, encoding="utf-8")


def test_the_exact_p_value_is_that_of_every_change_of_signs() -> None:
    chance = np.random.default_rng(1)
    for _ in range(20):
        a, b = chance.integers(0, 4, 7) / 4, chance.integers(0, 4, 7) / 4
        above, below = recompute.ranked_differences(list(a), list(b))
        least = min(sum(above), sum(below))
        sums = [sum(rank for rank, sign in zip(above + below, signs, strict=True) if sign)
                for signs in product((0, 1), repeat=len(above + below))]  # fmt: skip
        enumerated = min(1, 2 * np.mean([total <= least for total in sums]))
        assert recompute.signed_rank(list(a), list(b))[2] == pytest.approx(enumerated)


def test_without_ties_the_p_value_is_scipys() -> None:
    chance = np.random.default_rng(2)
    for n in (5, 20, 40):
        a, b = chance.random(n), chance.random(n)
        expected = stats.wilcoxon(a, b, method="exact")
        plus, minus, p_value = recompute.signed_rank(list(a), list(b))
        assert (min(plus, minus), p_value) == (expected.statistic, pytest.approx(expected.pvalue, rel=1e-12))


def test_the_randomization_is_scipys() -> None:
    a, b = np.random.default_rng(3).random((2, 7))
    expected = stats.permutation_test(
        (a, b), lambda x, y, axis: np.mean(x - y, axis=axis), permutation_type="samples", n_resamples=1000
    )
    assert recompute.randomization(list(a), list(b)) == pytest.approx(expected.pvalue)


def test_holms_steps_are_those_of_statsmodels() -> None:
    chance = np.random.default_rng(4)
    for n in (1, 2, 6):
        p_values = np.round(chance.random(n) ** 3, 1).tolist()
        expected = multipletests(p_values, method="holm")[1]
        assert recompute.corrected(p_values, "holm") == pytest.approx(expected)

"""The independent recomputation finds changed numbers.

A check that never finds anything would prove nothing.
"""

import shutil
from pathlib import Path

import pandas as pd
import pytest

from harness.records import Results, write_table
from tests.support import recompute


@pytest.fixture
def results(finished: Results, tmp_path: Path) -> Path:
    return Path(shutil.copytree(finished.folder, tmp_path / "results"))


def test_a_sound_folder_has_no_differences_and_every_number_was_recomputed(
    results, monkeypatch
):
    compared: list[float] = []

    def near(number, expected):
        compared.append(number)
        return number == pytest.approx(expected)

    monkeypatch.setattr(recompute, "near", near)
    assert recompute.differences(results) == []
    # 3 retrievers x 8 measures x 6 queries; 5 columns of 24 summaries; 13 columns of 24
    # comparisons, and p_adjusted.
    undefined = pd.read_csv(results / "comparisons.csv")["effect_size"].isna().sum()
    assert len(compared) == 3 * 8 * 6 + 24 * 5 + 24 * 14 - undefined


COLUMNS = {
    "scores": ["value"],
    "summary": ["mean", "median"],
    "comparisons": [
        "w_plus",
        "p_value",
        "p_adjusted",
        "p_minimum",
        "wins",
        "ties",
        "mean_difference",
        "effect_size",
        "p_randomization",
        "p_wilcoxon",
    ],
}


CELLS = [(table, column) for table, columns in COLUMNS.items() for column in columns]


@pytest.mark.parametrize(("table", "column"), CELLS)
def test_a_changed_number_is_found(results: Path, table: str, column: str) -> None:
    rows = pd.read_csv(results / f"{table}.csv", dtype={"query_id": str})
    rows.loc[0, column] += 1 if column in ("wins", "ties") else 1e-6
    write_table(results, table, rows)
    differences = recompute.differences(results)
    cell = "recomputed" if table == "scores" else column
    assert any(
        fault.startswith(f"{table}.csv: ") and cell in fault for fault in differences
    )

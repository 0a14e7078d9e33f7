"""Results folders of the last release: two tests had to agree there; their comparisons are computed again."""

import shutil
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from harness import records
from harness.overview import listing
from harness.pipeline import run
from harness.running.options import Options
from tests.support import small

pytestmark = pytest.mark.usefixtures("own_cache")


@pytest.fixture
def earlier(tmp_path: Path) -> Path:
    """A folder as the last release wrote it, in which no pair was decided, beside one of today."""
    today = run(small.experiment(tmp_path), Options(tmp_path / "out")).folder
    folder = tmp_path / "out" / "earlier"
    shutil.copytree(today, folder)
    table = pd.read_csv(folder / "comparisons.csv", keep_default_na=False, dtype=str)
    table["verdict"] = "undecided: ranks and means disagree"
    table.drop(columns=["p_wilcoxon", "p_wilcoxon_adjusted"]).to_csv(folder / "comparisons.csv", index=False)
    manifest = records.read_manifest(folder)
    records.write_manifest(folder, replace(manifest, tables=records.file_digests(folder)))
    return folder


def test_their_comparisons_are_computed_again_and_the_page_says_so(earlier, capsys):
    said = small.ends(capsys, 0, "report", earlier)
    assert "its comparisons are computed again" in " ".join(said.out.split())
    page = (earlier / "report.html").read_text(encoding="utf-8")
    assert "its comparisons are computed again" in " ".join(page.split())
    assert "ranks and means disagree" not in page


def test_the_index_has_the_verdict_of_today(earlier):
    found = listing(earlier.parent)
    assert found.unread == ()
    assert len({entry.verdict for entry in found.entries}) == 1

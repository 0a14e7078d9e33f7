"""The evaluation of a results folder: read back as it was written, else computed again from the scores."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from harness import records
from harness.evaluation.evaluate import FILE, evaluation_of, read_evaluation
from harness.pipeline import run
from harness.report.index import listing
from harness.running.forecast import Options
from tests.support import small

pytestmark = pytest.mark.usefixtures("own_cache")


@pytest.fixture
def today(tmp_path: Path) -> Path:
    """A folder of today, whose statistics declare all that an evaluation can hold."""
    more = '[statistics]\nmargin = 0.9\nlooks = { queries = [3, 6] }\n\n[relevance]\ngrades = "linear"\n'
    return run(small.experiment(tmp_path, more=more), Options(tmp_path / "out")).folder


def signed(folder: Path) -> None:
    """Let the manifest have the digests of the files as they are."""
    records.write_manifest(folder, replace(records.read_manifest(folder), tables=records.file_digests(folder)))


def test_what_is_written_is_read_back_equal_and_is_what_follows_from_the_scores(today):
    results = records.read(today)
    written = read_evaluation(today, results.manifest)
    assert written == evaluation_of(results)
    without = {name: digest for name, digest in results.manifest.tables.items() if name != FILE}
    again = evaluation_of(replace(results, manifest=replace(results.manifest, tables=without)))
    assert again.recomputed and again.model_copy(update={"recomputed": False}) == written
    content = json.loads((today / FILE).read_text(encoding="utf-8"))
    assert [row["retriever"] for row in content["board"]["rows"]] == list(written.means)
    assert content["comparisons"]["nDCG@3"][0]["finding"]["verdict"] == written.comparisons["nDCG@3"][0].verdict.value


@pytest.mark.parametrize(
    ("content", "known"),
    [(None, True), ("", True), ("{}", True), ("[1]", True), ('{"measure": 3}', True), ("{}", False), ("\x00", False)],
)
def test_one_that_is_missing_damaged_or_changed_is_computed_again_and_that_is_said(today, content, known, capsys):
    before = evaluation_of(records.read(today))
    path = today / FILE
    path.unlink() if content is None else path.write_text(content, encoding="utf-8")
    if known:
        signed(today)
    again = evaluation_of(records.read(today))
    assert again.recomputed and again.comparisons == before.comparisons
    assert len({entry.verdict for entry in listing(today.parent).entries}) == 1
    said = " ".join(small.ends(capsys, 0, "report", today).out.split())
    page = " ".join((today / "report.html").read_text(encoding="utf-8").split())
    assert "its comparisons are computed again" in said and "its comparisons are computed again" in page


def test_a_folder_of_the_last_release_has_the_verdicts_of_today(today, capsys):
    """Two tests had to agree there, so that no pair was decided; the CSV files are read by nobody."""
    folder = shutil.copytree(today, today.parent / "earlier")
    table = pd.read_csv(folder / "comparisons.csv", keep_default_na=False, dtype=str)
    table["verdict"] = "undecided: ranks and means disagree"
    table.drop(columns=["p_wilcoxon", "p_wilcoxon_adjusted"]).to_csv(folder / "comparisons.csv", index=False)
    (folder / FILE).unlink()
    signed(folder)
    small.ends(capsys, 0, "report", folder)
    assert "ranks and means disagree" not in (folder / "report.html").read_text(encoding="utf-8")
    found = listing(folder.parent)
    assert (len(found.entries), found.unread, len({entry.verdict for entry in found.entries})) == (2, (), 1)

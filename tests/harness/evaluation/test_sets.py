"""One experiment on several data sets, and several experiments in one command: folders, tests, page, gate, export."""

from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import harness
from harness import pipeline
from harness.evaluation.across_sets import _strictest, read_sets, results_together, together
from harness.evaluation.conclusions import FEW_SETS, sets_sentence, sets_sentences
from harness.evaluation.scores import Scores
from harness.evaluation.verdict import Verdict
from harness.experiment import Loaded, load, load_sets
from harness.records import Results
from harness.report.index import listing
from harness.reproduce import reproduce
from harness.running.forecast import Options
from harness.running.machine import earlier_runs
from harness.stats.settings import Settings
from retrievers.errors import BackendError, InputError
from tests.support import small

pytestmark = pytest.mark.usefixtures("own_cache", "in_tmp")

KNOWN = (0.02, 0.05, -0.01, 0.04, 0.03, 0.06)
"""Mean differences of six sets, from the definitions."""


def several(folder: Path, *, name: str = "sets", entries: str = "", report: bool = False) -> Path:
    """An experiment on three data sets: one as it is, one under another name, one without a query."""
    for place in ("hr", "legal", "it"):
        if not (folder / place).exists():
            small.dataset(folder / place)
    rows = json.loads((folder / "it" / "queries.json").read_text(encoding="utf-8"))
    (folder / "it" / "queries.json").write_text(json.dumps(rows[:5]), encoding="utf-8")
    path = small.experiment(folder, name=name, report=report)
    listed = entries or '["hr", { path = "legal", name = "law" }, "it"]'
    lines = path.read_text(encoding="utf-8").splitlines()
    path.write_text("\n".join(f"dataset = {listed}" if one.startswith("dataset") else one for one in lines), "utf-8")
    return path


def told(words: Sequence[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    capsys.readouterr()
    said = small.call(capsys, *words)
    return said.code, said.out + said.err


def scores_of(difference: float, n: int) -> Scores:
    noise = np.linspace(-0.1, 0.1, n)
    ids = tuple(f"{i:03}" for i in range(n))
    return Scores(ids=ids, values={"RR": {"a": 0.5 + difference + noise, "b": np.full(n, 0.5)}})


def test_what_six_sets_say_is_the_known_answer() -> None:
    found = together({f"s{i}": scores_of(d, 11 + i) for i, d in enumerate(KNOWN)}, "b", Settings())
    (pair,) = found.pairs
    assert pair.differences == pytest.approx(KNOWN)
    assert pair.like is not None
    assert (round(pair.like.t, 4), round(pair.like.p_value, 5)) == (3.1236, 0.02615)
    sentence = sets_sentence(pair)
    assert "a is ahead of b on 5 of 6 sets, mean +0.032 (0.006 to 0.058); on a new set −0.037 to +0.101" in sentence
    sets = {f"s{i}": scores_of(d, 11 + i) for i, d in enumerate(KNOWN)}
    assert pair.verdict is Verdict.BETTER
    assert together(sets, "b", Settings(spent=True)).pairs[0].verdict is Verdict.UNDECIDED
    turned = together({f"s{i}": scores_of(d, 11 + i) for i, d in enumerate(KNOWN)}, "a", Settings())
    assert sets_sentence(turned.pairs[0]) == sentence  # however the pair is turned
    each = [Settings(alpha=0.05), Settings(alpha=0.01), Settings(spent=True), Settings(by_people=False)]
    for turn in (1, -1):  # sets of different sizes are at different looks, in any order
        assert [_strictest(each[:count][::turn]) for count in range(1, 5)] == each


def test_each_set_counts_alike_whatever_its_queries_and_three_say_nothing_of_others() -> None:
    found = together(
        {"large": scores_of(0.2, 400), "s": scores_of(-0.1, 12), "t": scores_of(-0.1, 12)}, None, Settings()
    )
    (pair,) = found.pairs
    assert pair.mean_difference == pytest.approx(0.0, abs=1e-9)  # by queries it would be 0.18
    assert pair.verdict is Verdict.UNDECIDED
    assert sets_sentence(replace(pair, p_adjusted=0.00746)).endswith("not shown (p .007).")
    assert sets_sentences(found, 5)[-1] == FEW_SETS
    many = {"a": np.where(np.arange(100_000) < 10, 0.6, 0.5), "b": np.full(100_000, 0.5)}
    one = Scores(ids=tuple(map(str, range(100_000))), values={"RR": many})
    assert together({"s": one, "t": one}, None, Settings()).pairs[0].p_value == 2 / 2**20  # few are not float noise


def test_every_set_has_a_folder_of_its_own_and_they_share_a_page(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = several(tmp_path)
    assert list(harness.run_sets(path)) == ["hr", "law", "it"]
    place = tmp_path / "results" / "sets"
    assert not (place / "report.html").exists()  # report = false
    listed = listing(tmp_path / "results")
    assert (sorted(entry.folder for entry in listed.entries), listed.unread) == (["sets/hr", "sets/it", "sets/law"], ())
    sets = read_sets(place)
    assert [(one.manifest.name, one.manifest.dataset.scored) for one in sets] == [("hr", 6), ("law", 6), ("it", 5)]
    found = results_together(sets)
    with (place / "data_sets.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [float(row["mean_difference"]) for row in rows] == [pair.mean_difference for pair in found.pairs]
    assert all(row["t"] == "" for row in rows)
    assert reproduce(place / "law").differing == ()
    before = (place / "hr" / "scores.csv").read_bytes()
    code, said = told(["report", str(place), "--json"], capsys)
    assert (code, len(json.loads(said)["together"])) == (0, 3)
    assert (place / "report.html").exists()
    code, said = told(["run", str(path), "--quiet"], capsys)  # again, as after a kill: what is done is cached
    assert (code, said) == (0, "")
    assert (place / "hr" / "scores.csv").read_bytes() == before


def test_the_sets_are_gated_compared_and_exported_together(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, said = told(["run", str(several(tmp_path, report=True))], capsys)
    assert code == 0, said
    assert all(f"\n{name}: bm25: index: " in f"\n{said}" for name in ("hr", "law", "it"))
    page = (tmp_path / "results" / "sets" / "report.html").read_text(encoding="utf-8")
    assert FEW_SETS in page
    assert 'href="law/report.html"' in page
    fewer = several(tmp_path, name="two", entries='["hr", { path = "data", name = "other" }]')
    told(["run", str(fewer), "--quiet"], capsys)
    gate = ["gate", "results/sets", "--baseline", "bm25", "--challenger", "hybrid"]
    code, said = told([*gate, "--margin", "0.02", "--margin", "law=0.9"], capsys)
    assert code == 1
    assert "law: not worse by 0.9" in said
    assert "it: not worse by 0.02: 5 queries, at least" in said
    assert told([*gate, "--margin", "lw=0.9"], capsys)[1].startswith("error: 4 problems")
    code, said = told(["compare", "results/sets", "results/two"], capsys)
    assert code == 0
    assert "Shared data sets: hr; law only in results/sets; it only in results/sets; other only in results/two." in said
    code, said = told(["compare", "results/sets", "results/two", "--baseline", "bm52"], capsys)
    assert (code, "no retriever is called 'bm52' (did you mean 'bm25'?)" in said) == (2, True)
    for option in (["--margin", "0.02"], ["--test", "t"]):
        code, said = told(["compare", "results/sets", "results/two", *option], capsys)
        assert (code, f"{option[0]}: is for the results of one data set" in said) == (2, True)
    text = fewer.read_text(encoding="utf-8").replace("dimensions = 64", "dimensions = 8")
    fewer.write_text(text.replace('["hr", { path = "data", name = "other" }]', '["hr", "it"]'), encoding="utf-8")
    told(["run", str(fewer), "--quiet"], capsys)
    code, said = told(["compare", "results/sets", "results/two", "--json"], capsys)
    pairs = {(row["a"], row["b"]) for row in json.loads(said.splitlines()[0])["together"]}
    assert code == 0
    assert ("bm25", "sets/hashing") in pairs  # the same in both folders, and two that have one name
    assert ("sets/hashing", "two/hashing") in pairs
    code, said = told(["compare", "results/sets", "results/sets/hr"], capsys)
    assert (code, "results/sets/hr: holds no results of several data sets" in said) == (2, True)
    code, said = told(["compare", "results/sets/hr", "results/sets"], capsys)
    assert (code, "results/sets: is not a results folder (give one that it holds, such as" in said) == (2, True)
    code, said = told(["export", "results/sets", "--as", "mteb"], capsys)
    assert code == 0
    table = (tmp_path / "results" / "sets" / "export" / "mteb" / "table.csv").read_text(encoding="utf-8")
    assert table.splitlines()[0] == "Model,Mean (Task),hr,law,it"
    assert len(table.splitlines()) == 4
    assert listing(tmp_path / "results").unread == ()


def test_check_takes_several_data_sets(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = several(tmp_path)
    code, said = told(["check", str(path), "--json"], capsys)
    assert (code, [one["queries"] for one in json.loads(said)["data_sets"]]) == (0, [6, 6, 5])
    assert sum(one["total"]["texts"] for one in json.loads(said)["data_sets"]) == 3 * 6 + 6 + 6 + 5
    harness.run(small.experiment(tmp_path, name="hr"))  # the same data in another experiment
    told(["run", str(path), "--quiet"], capsys)
    assert [one.manifest.name for one in earlier_runs(Path("results"))] == ["hr", "hr", "it", "law"]
    _, said = told(["check", str(path), "--json"], capsys)
    assert [one["total"]["calls"] for one in json.loads(said)["data_sets"]] == [0, 0, 0]
    shutil.rmtree(tmp_path / "it")
    assert "'it' does not exist" in told(["check", str(path)], capsys)[1]


def test_a_set_that_is_stopped_or_fails_leaves_the_others_whole(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path, whole = several(tmp_path), pipeline.run
    ends: dict[str, BaseException] = {"law": KeyboardInterrupt()}

    def run(loaded: Loaded, options: Options) -> Results:
        if error := ends.pop(loaded.experiment.name, None):
            raise error
        return whole(loaded, options)

    monkeypatch.setattr(pipeline, "run", run)
    code, said = told(["run", str(path)], capsys)
    assert (code, "the same command continues" in said) == (130, True)
    assert (tmp_path / "results" / "sets" / "hr" / "manifest.json").exists()
    ends["law"] = BackendError("nobody answered")
    code, said = told(["run", str(path)], capsys)
    assert (code, said.splitlines()[-1]) == (3, "error: law: nobody answered")
    assert [one.manifest.name for one in read_sets(tmp_path / "results" / "sets")] == ["hr", "it"]
    assert told(["run", str(path), "--quiet"], capsys) == (0, "")
    assert len(read_sets(tmp_path / "results" / "sets")) == 3


@pytest.mark.parametrize(
    ("entries", "told_of"),
    [
        ("[]", "is an empty list"),
        ('["hr", "other/HR"]', "'HR' occurs twice"),
        ('["hr", { path = "it", name = "../it" }]', "'../it' is not a name of a folder"),
        (r'["hr", { path = "it", name = "it\n" }]', "is not a name of a folder"),
        ('["hr", { path = "it", name = "日本" }]', r"has letters \(A to Z\), digits"),
        ('["hr", 3]', "dataset"),
    ],
)
def test_a_list_that_cannot_be_is_refused(tmp_path: Path, entries: str, told_of: str) -> None:
    with pytest.raises(InputError, match=told_of):
        load_sets(several(tmp_path, entries=entries))


def test_what_takes_one_data_set_says_so(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="names 3 data sets, and this takes one"):
        load(several(tmp_path))


def test_several_experiments_run_in_turn_with_one_summary(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = (small.experiment(tmp_path, name=name) for name in ("first", "second"))
    code, said = told(["run", str(first), str(second)], capsys)
    assert code == 0
    assert "first: bm25: index: " in said
    assert "second: bm25: index: " in said
    assert told(["run", str(first), str(first)], capsys) == (
        2, f"error: {first}: name: 'first' is in two files (rename one)\n",
    )  # fmt: skip
    second.write_text(second.read_text(encoding="utf-8").replace('"nDCG@3"\n', '"nDCG@4"\n'), encoding="utf-8")
    code, said = told(["run", str(first), str(second), "--json"], capsys)
    assert (code, "nDCG@4 is not among the measures" in said) == (2, True)

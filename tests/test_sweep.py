"""Many configurations of one retriever: how they are written out, planned and run, and what the choice is worth."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness.evaluation.evaluation import evaluation_of
from harness.experiment import parse, uses
from harness.pipeline import run
from harness.records import Results
from harness.report.theme import marks
from harness.reproduce import reproduce
from harness.running.options import Options
from harness.running.plan import RunPlan, plan
from retrievers.errors import InputError
from tests import small
from tests.small import ended

BASE: dict[str, Any] = {"name": "x", "dataset": "d", "primary": "RR", "measures": ["RR"]}
BM25 = {"name": "words", "kind": "bm25"}
DENSE = {"name": "dense", "encoder": {"kind": "hashing", "dimensions": 64}, "color": "#0b6e4f"}
HYBRID = {"name": "hybrid", "kind": "fusion", "of": ["words", "dense"]}
SWEEP = """
[sweep]
default = "bm25"
of = ["hashing", "hybrid"]
"encoder.dimensions" = [32, 64]
"chunk.size" = [0, 20]
"hybrid.weights" = [[1, 1], [1, 2]]
"""


def written_out(sweep: dict[str, Any], *blocks: dict[str, Any]) -> dict[str, dict[str, Any]]:
    experiment = parse({**BASE, "retrievers": list(blocks or (BM25, DENSE, HYBRID)), "sweep": sweep})
    return {block.name: block.model_dump() for block in experiment.retrievers}


def test_a_grid_is_written_out_and_what_is_made_of_it_too() -> None:
    sweep = {"default": "words", "of": "hybrid", "dense.encoder.dimensions": [64, 128], "dense.chunk.size": [0, 50]}
    blocks = written_out(sweep)
    assert list(blocks)[3:] == [  # a configuration that is the retriever as it is written is that retriever
        "dense[64, 50]", "hybrid[64, 50]", "dense[128, whole]", "hybrid[128, whole]", "dense[128, 50]",
        "hybrid[128, 50]",
    ]  # fmt: skip
    assert blocks["hybrid[128, 50]"]["of"] == ("words", "dense[128, 50]")
    assert blocks["dense[128, 50]"]["chunk"]["size"] == 50
    assert blocks["dense[128, whole]"]["chunk"] is None
    assert blocks["dense[128, whole]"]["encoder"]["dimensions"] == 128
    assert blocks["dense[128, whole]"]["color"] == ""  # two retrievers of one colour could not be told apart


def test_the_cells_say_which_value_each_has() -> None:
    experiment = parse(
        {**BASE, "retrievers": [BM25], "sweep": {"default": "words", "of": "words", "k1": [0.9, 2], "b": [0.4]}}
    )
    assert experiment.sweep is not None
    assert experiment.baseline == "words"
    assert experiment.sweep.cells == {"words[0.9, 0.4]": {"k1": 0, "b": 0}, "words[2, 0.4]": {"k1": 1, "b": 0}}
    assert experiment.sweep.words == {"k1": ("0.9", "2"), "b": ("0.4",)}
    assert parse({**BASE, "retrievers": [BM25]}).sweep is None


@pytest.mark.parametrize(
    ("sweep", "told"),
    [
        ({"of": "words", "k1": [1]}, "sweep.default: is missing"),
        ({"default": "word", "of": "words", "k1": [1]}, r"sweep.default 'word' is no retriever; did you mean"),
        ({"default": "words", "of": "word", "k1": [1]}, "sweep.of: 'word' is no retriever"),
        ({"default": "words", "of": "words"}, "sweep: has no axis"),
        ({"default": "dense", "of": "dense", "chunk": {"size": [1]}}, r'quote the whole key: "chunk.size" ='),
        ({"default": "words", "of": "words", "k1": 1}, "sweep.k1: 1 is no list of values"),
        ({"default": "words", "of": "words", "k1": [1, 1]}, "sweep.k1: 1 stands twice"),
        ({"default": "words", "of": "words", "dense.chunk.size": [1]}, "words is not made of 'dense'"),
        ({"default": "words", "of": "words", "k2": [1]}, r"sweep: words\[1\].k2: unknown key 'k2'"),
        ({"default": "words", "of": "words", "name": ["a"]}, "sweep.name: cannot be swept"),
        ({"default": "dense", "of": "dense", "encoder.dimensions": [64]}, "the default is its only configuration"),
        ({"default": "words", "of": "words", "k1": list(range(30)), "b": [i / 20 for i in range(20)]},
         "sweep: stands for 600 configurations, and at most 500 are run"),
    ],
)  # fmt: skip
def test_a_sweep_that_cannot_be_is_refused(sweep: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError, match=told):
        written_out(sweep)


def test_another_baseline_beside_the_default_is_refused() -> None:
    tables = {**BASE, "baseline": "dense", "retrievers": [BM25, DENSE],
              "sweep": {"default": "words", "of": "words", "k1": [1]}}  # fmt: skip
    with pytest.raises(InputError, match=r"baseline 'dense' is not sweep.default"):
        parse(tables)


def test_what_a_value_would_use_is_told_before_somebody_elses_sweep_runs() -> None:
    encoder = {"kind": "openai", "model": "m", "base_url": "http://localhost:1/v1"}
    sweep = {"default": "m", "of": "m", "encoder.base_url": ["https://elsewhere.example/v1"]}
    told = uses({"retrievers": [{"name": "m", "encoder": encoder}], "sweep": sweep})
    assert any("sends texts to https://elsewhere.example/v1" in line for line in told)


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> tuple[RunPlan, Results]:
    """A sweep with its report, planned before anything was embedded."""
    folder = tmp_path_factory.mktemp("swept")
    path = small.experiment(folder, retrievers=small.RETRIEVERS + SWEEP, report=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HARNESS_CACHE", str(folder / "cache"))
        return plan(path, results=folder), run(path, Options(folder / "out"))


def test_a_sweep_runs_resumes_and_comes_out_again(
    tmp_path: Path, swept: tuple[RunPlan, Results], capsys: pytest.CaptureFixture[str]
) -> None:
    planned, results = swept
    by_key = {(row.axis, row.value): (row.configurations, row.texts) for row in planned.axes}
    embedded = {row.texts for row in planned.rows if row.stage == "embed-queries"}
    assert len([row for row in planned.rows if row.stage == "embed-queries"]) == 2  # one for each model
    assert embedded == {6}
    assert by_key["hybrid.weights", "1-2"][0] == 4
    assert by_key["encoder.dimensions", "32"][1] < planned.total()["texts"]
    assert "hybrid[32, whole, 1-2]" in results.retrievers
    assert results.manifest.resolved.baseline == "bm25"
    costs = results.costs[results.costs["stage"] == "embed-documents"]
    assert costs["texts"].sum() - costs["cached"].sum() == planned.total()["texts"] - 12
    choice = evaluation_of(results).conclusion.sweep
    assert choice is not None
    assert choice.configurations == 12
    assert choice.chosen in choice.alike
    (row,) = results.tests[results.tests["family"] == "sweep"].to_dict("records")
    assert (row["a"], row["b"], row["p_value"]) == (choice.chosen, "bm25", choice.p_value)
    assert reproduce(results.folder, trust=True).differing == ()
    path = small.experiment(tmp_path, retrievers=small.RETRIEVERS + SWEEP)
    assert ended("run", path, "--results", tmp_path / "out", "--json") == 0
    told = json.loads(capsys.readouterr().out)["sweep"]
    assert (told["chosen"], told["configurations"]) == (choice.chosen, 12)
    assert (results.folder / "scores.csv").read_bytes() == (tmp_path / "out" / "small" / "scores.csv").read_bytes()


def test_the_page_shows_the_grid_and_the_chosen_cell(swept: tuple[RunPlan, Results]) -> None:
    _, results = swept
    choice = evaluation_of(results).conclusion.sweep
    assert choice is not None
    page, plain = ((results.folder / name).read_text(encoding="utf-8") for name in ("report.html", "report.md"))
    assert 'id="sweep"' in page
    place = f"{'ahead of' if choice.gain > 0 else 'behind'} {choice.default} by {abs(choice.gain):.4f}"
    assert f"Chosen on these queries, {choice.chosen} is {place}" in page
    figures = {file.stem: file.read_text(encoding="utf-8") for file in (results.folder / "figures").glob("sweep-*.svg")}
    assert {"sweep-encoder.dimensions-chunk.size", "sweep-of-hybrid.weights"} <= figures.keys()
    grid = figures["sweep-encoder.dimensions-chunk.size"]
    cells = {(d, c): [m for n, m in evaluation_of(results).conclusion.means.items() if n in names]
             for d in (32, 64) for c in ("whole", "20")
             for names in [[f"hashing[{d}, {c}]", *(f"hybrid[{d}, {c}, 1-{w}]" for w in (1, 2))]
                           + (["hashing"] if (d, c) == (64, "whole") else [])]}  # fmt: skip
    for (dimensions, size), means in cells.items():
        assert len(means) == 3
        assert f"<title>{dimensions}, {size}: {sum(means) / 3:.4f}</title>" in grid
    assert grid.count('font-weight="bold"') == 1  # the chosen cell
    assert choice.chosen in plain.replace("\\", "")


def test_more_retrievers_than_colours_and_shapes_are_drawn_all_the_same() -> None:
    assert len(marks({f"r{i}": f"r{i}" for i in range(120)})) == 120
    assert len(marks({f"r{i}": "" for i in range(20)}, {f"r{i}": "#0b6e4f" for i in range(20)})) == 20

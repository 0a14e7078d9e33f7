"""Progress: each stage is told once, and how far it is while it lasts."""

import io
from itertools import count
from types import SimpleNamespace

import pytest
from rich.console import Console

from harness.console import progress
from harness.console.progress import Progress
from retrievers import meter
from retrievers.meter import Budget, Meter
from tests.support import small, tiny
from tests.support.small import told


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """The clock of progress, which stands still, and of meters, by which everything takes a thousandth of a second."""
    still, ticks = SimpleNamespace(now=100.0, monotonic=lambda: still.now), count(0, 0.001)
    monkeypatch.setattr(progress, "time", still)
    monkeypatch.setattr(meter, "time", SimpleNamespace(perf_counter=lambda: next(ticks)))
    return still


def log() -> Console:
    return Console(file=io.StringIO(), width=100, force_terminal=False)


def lines(console: Console) -> list[str]:
    return console.file.getvalue().splitlines()  # type: ignore[attr-defined]


def watched(shown: Progress, name: str, budget: Budget | None = None) -> Meter:
    return Meter(watch=lambda counted: shown.watch(name, counted), budget=budget)


def dense(counted: Meter, windows: int = 3) -> None:
    """What a dense retriever counts: two stages take turns, window by window."""
    for _ in range(windows):
        with counted.stage("embed-documents", total=30):
            counted.count(texts=10, cached=5)
        with counted.stage("index", total=30):
            counted.count(texts=10)
    with counted.stage("index"):
        pass
    with counted.stage("embed-queries", total=4):
        counted.count(texts=4, cached=4)
    with counted.stage("search", total=4):
        counted.count(texts=4)


def test_a_log_has_one_line_for_each_stage_of_each_retriever() -> None:
    console = log()
    with Progress(console) as shown:
        dense(watched(shown, "minilm"))
        with watched(shown, "hybrid").stage("fuse"):
            pass
    told = lines(console)
    stages = ["minilm: embed-documents", "minilm: index", "minilm: embed-queries", "minilm: search", "hybrid: fuse"]
    assert [line.rpartition(": ")[0] for line in told] == stages
    assert told[0].startswith("minilm: embed-documents: 30 texts in 0.0 s, ")
    assert told[0].endswith("/s, 50 % cached") and told[2].endswith("all cached")
    assert told[4] == "hybrid: fuse: 0.0 s"


def test_a_log_hears_now_and_then_how_far_a_long_stage_is(clock: SimpleNamespace) -> None:
    console, budget = log(), Budget()
    with Progress(console) as shown:
        counted = watched(shown, "openai", budget)
        with counted.stage("embed-documents", total=10_000):
            for _ in range(10):
                clock.now += 7
                budget.take(0.001)
                counted.count(texts=110, cached=40)
    assert lines(console)[:2] == [
        "openai: embed-documents: 550 of 10,000, 10/s, 15:45 left, 36 % cached, $0.0050",
        "openai: embed-documents: 1,100 of 10,000, 10/s, 14:50 left, 36 % cached, $0.0100",
    ]


def test_latency_is_told_in_steps_with_the_time_left(clock: SimpleNamespace) -> None:
    console = log()
    with Progress(console) as shown:
        counted = watched(shown, "minilm")
        with counted.stage("latency", total=103):
            for _ in range(5):
                clock.now += 8
                counted.step()
    assert lines(console) == ["minilm: latency: 4 of 103, 0.1/s, 13:12 left", "minilm: latency: 0.0 s"]
    assert counted.counts("latency") == {}, "steps reach no table"


def test_a_stage_that_counts_nothing_says_how_long_it_has_lasted(clock: SimpleNamespace) -> None:
    console = log()
    with Progress(console) as shown:
        counted = watched(shown, "x")
        with counted.stage("judge"):
            clock.now += 40
            counted.count(calls=1)
    assert lines(console)[0] == "x: judge: for 0:40"


def test_a_terminal_has_bars_and_none_of_a_stage_that_began_again(monkeypatch):
    monkeypatch.setattr(progress, "REFRESH", 0)
    console = Console(file=io.StringIO(), width=100, force_terminal=True, color_system=None)
    with Progress(console) as shown:
        for name in ("one", "two"):
            with watched(shown, name).stage("search", total=4):
                pass
            together = watched(shown, "")
            for stage in ("scoring", "reporting"):
                with together.stage(stage):
                    pass
        with watched(shown, "three").stage("fuse"):
            pass
        assert [task.description for task in shown._bars.tasks] == ["three: fuse"]
        dense(watched(shown, "minilm"))
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert "━" in text and "10 of 30" in text and "minilm: search: 4 texts in 0.0 s" in text


def test_the_pairs_of_a_large_comparison_are_counted(tmp_path, monkeypatch, capsys):
    rows = [f"r{name},q{query},nDCG@10,{(name * query) % 7 / 7}" for name in range(16) for query in range(9)]
    (tmp_path / "scores.csv").write_text("retriever,query_id,measure,value\n" + "\n".join(rows), encoding="utf-8")
    monkeypatch.setattr(progress, "SILENCE", 0.0)
    assert "of 120 pairs" in told(capsys, "compare", tmp_path / "scores.csv")


def test_a_model_that_is_loaded_is_named(tmp_path, capsys, own_cache):
    model = tiny.bi_encoder(tmp_path / "tiny").as_posix()
    block = f'[[retrievers]]\nname = "m"\nencoder = {{ kind = "sentence-transformers", model = "{model}" }}\n'
    path = small.experiment(tmp_path, retrievers=block)
    assert "loading model\n" in small.ends(capsys, 0, "run", path, "--results", tmp_path / "out").err
    assert "loading model" not in small.ends(capsys, 0, "run", path, "--results", tmp_path / "out").err

"""Tables fit any terminal, whatever the names; the order is that of the numbers; progress tells each stage once."""

import io
from collections.abc import Iterable
from dataclasses import replace
from itertools import count
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from harness.console import columns, progress, result_tables
from harness.console.forest import leaderboard_in_letters
from harness.console.progress import Progress
from harness.console.results_text import verdict_text
from harness.console.score_tables import means_table, query_scores_table
from harness.evaluation.evaluate import evaluate_scores
from harness.evaluation.evaluation import Evaluation
from harness.evaluation.verdict import Comparison
from harness.stats.settings import Settings
from retrievers import meter
from retrievers.meter import Budget, Meter
from retrievers.types import Floats
from tests.support.scored import finding, scored

MEASURES = [
    "nDCG@10",
    "P@5",
    "R@10",
    "F1@10",
    "RR@10",
    "AP@10",
    "Success@10",
    "nDCG(dcg='exp-log2', ideal='retrieved')@10",
]
NAMES = [
    "bm25",
    "titan-embed-text-v1",
    "多言語埋め込みモデル",
    "text-embedding-3-small-reranked-by-a-cross-encoder-10",
]


def rendered(parts: Iterable[Any], width: int) -> list[str]:
    console = Console(width=width, force_terminal=False, color_system=None)
    with console.capture() as capture:
        for part in parts:
            console.print(part)
    return capture.get().split("\n")[:-1]


def summary(
    names: Iterable[str], measures: Iterable[str] = MEASURES
) -> list[dict[str, Any]]:
    interval = {"count": 138, "ci_low": 0.5, "ci_high": 0.9, "ci_method": "t"}
    return [
        {"retriever": name, "measure": measure, "mean": 0.9 - 0.1 * i, **interval}
        for i, name in enumerate(names)
        for measure in measures
    ]


def board(names: Iterable[str], width: int, **options: Any) -> list[str]:
    return rendered(
        result_tables.leaderboard_table(
            summary(names), "nDCG@10", width=width, **options
        ),
        width,
    )


def pairs(rows: list[Comparison], width: int, **options: Any) -> list[str]:
    return rendered(
        result_tables.comparisons_table(
            rows, settings=Settings(), width=width, **options
        ),
        width,
    )


def evaluated(
    margin: float | None = None, baseline: str | None = None, **values: Floats
) -> Evaluation:
    return evaluate_scores(
        scored(values, "nDCG@10"), baseline=baseline, settings=Settings(margin=margin)
    )


def comparison(
    a: str, b: str, verdict: str = "undecided: no difference shown"
) -> Comparison:
    return Comparison(
        "nDCG@10",
        a,
        b,
        n=138,
        zeros=6,
        wins=27,
        ties=6,
        losses=105,
        mean_difference=-0.1,
        ci_low=-0.237,
        ci_high=-0.147,
        w_plus=1.0,
        w_minus=2.0,
        statistic=1.0,
        p_value=1e-14,
        p_adjusted=1.89e-14,
        p_minimum=1e-30,
        method="exact",
        effect_size=-0.5,
        finding=finding(verdict),
        role="confirmatory",
        p_minimum_adjusted=1e-30,
        p_randomization=1e-5,
        ci_method="t",
        p_randomization_adjusted=1e-5,
        clusters=None,
        p_wilcoxon=0.2,
        p_wilcoxon_adjusted=0.216,
    )


names = st.lists(
    st.text(st.sampled_from("abc-_.1言語モデ"), min_size=1, max_size=64),
    min_size=1,
    max_size=6,
    unique=True,
)


@settings(max_examples=30)
@given(names=names.filter(lambda names: len(names) > 1), width=st.integers(50, 160))
def test_the_leaderboard_and_the_comparisons_fit(names: list[str], width: int) -> None:
    lines = board(names, width)
    assert max(map(cell_len, lines)) <= width
    assert sum(
        "0.500 … 0.900" in line or line.rstrip().endswith("000") for line in lines
    ) == len(names)
    rows = [comparison(a, b) for a in names for b in names if a < b]
    lines = pairs(rows, width)
    assert max(map(cell_len, lines)) <= width
    assert sum("undecided" in line for line in lines) == len(rows)


@pytest.mark.parametrize("width", [30, 40, 80, 200])
def test_the_narrowest_terminal_still_has_name_mean_and_verdict_and_what_has_no_room_is_named(
    width: int,
) -> None:
    lines, comparison_lines = (
        board(NAMES, width),
        pairs([comparison(NAMES[0], NAMES[1])], width),
    )
    assert max(map(cell_len, lines)) <= width
    assert sum("0.9000" in line for line in lines) == 1 and any(
        "undecided" in line for line in comparison_lines
    )
    leaderboard_text = " ".join(" ".join(lines).split())
    assert (
        ("Too wide for this terminal:" in leaderboard_text)
        == ("A wider one or --json shows them." in leaderboard_text)
        == (width < 200)
    )
    assert width < 200 or any(NAMES[3] in line for line in lines)
    assert width > 40 or "wins/ties/losses" in " ".join(comparison_lines)


def test_of_many_pairs_those_of_the_leader_stand_first_then_the_closest() -> None:
    means = {f"r{i:02}": i / 20 for i in range(12)}
    comparisons = [
        replace(comparison(a, b), mean_difference=means[a] - means[b])
        for a in means
        for b in means
        if a < b
    ]
    lines = pairs(comparisons, 80, leader="r11")
    rows = [line.split()[:2] for line in lines if line.startswith("r")]
    assert len(rows) == 20
    assert rows[:11] == [[f"r{i:02}", "r11"] for i in range(10, -1, -1)]
    assert all(means[b] - means[a] == pytest.approx(0.05) for a, b in rows[11:])
    text = " ".join(" ".join(lines).split())
    assert text.endswith(
        "Here are 20 of 66 comparisons: those of r11, then the closest. --json shows them all."
    )
    assert max(map(cell_len, lines)) <= 80


def test_the_best_stands_first_whatever_the_order_of_the_rows() -> None:
    lines = rendered(
        result_tables.leaderboard_table(
            summary(["a", "b"], ["nDCG@10", "RR"])[::-1], "nDCG@10", width=80
        ),
        80,
    )
    assert [line.split()[0] for line in lines[4:6]] == ["a", "b"]
    assert lines[0] == "nDCG@10 over 138 queries"
    low = result_tables.leaderboard_table(
        summary(["a", "b"], ["nDCG@10"]), "nDCG@10", width=80, low_is_good={"nDCG@10"}
    )
    assert [line.split()[0] for line in rendered(low, 80)[-2:]] == ["b", "a"]


@settings(max_examples=40)
@given(names=names, width=st.integers(8, 70))
def test_long_names_go_on_in_the_next_line_and_nothing_of_them_is_lost(
    names: list[str], width: int
) -> None:
    column = columns.TextColumn("", names, left_aligned=True, wraps=True)
    lines = rendered(
        [
            columns.build_grid(
                columns.columns_that_fit(
                    [column, columns.TextColumn("", ["0.5"] * len(names))], width
                )
            )
        ],
        width,
    )
    assert max(map(cell_len, lines)) <= width
    assert "".join(
        "".join(line.replace("0.5", "").split()) for line in lines[2:]
    ) == "".join(names)


@pytest.mark.parametrize("width", [30, 40, 60, 80, 120])
@pytest.mark.parametrize("length", [5, 60])
def test_the_forest_keeps_names_and_wins_at_every_width(
    width: int, length: int
) -> None:
    random = np.random.default_rng(3)
    names = [f"{'a' * length}{i}" for i in range(3)]
    values: dict[str, Floats] = {
        name: random.random(40) / 2 + i / 5 for i, name in enumerate(names)
    }
    for baseline, direction in ((None, "behind"), (names[1], "ahead")):
        board = evaluated(0.02, baseline, **values).board
        lines = rendered(leaderboard_in_letters(board, width=width), width)
        assert max(map(cell_len, lines)) <= width
        text = "".join("".join(line.split()) for line in lines)
        assert text.count("■") == (2 if width >= 110 and length == 5 else 0)
        for row in board.rows:
            assert row.wins is None or f"{row.wins}–{row.losses}" in text
            assert (
                row.difference is None
                or width < 80
                or length > 5
                or f"({row.low:z.3f}" in text.replace("−", "-")
            )
        assert width < 80 or length > 5 or f"{direction}(95%CI)" in text


def test_a_run_is_told_in_sixty_words_and_what_all_names_begin_with_once() -> None:
    random, kinds = np.random.default_rng(3), ("dense-of-all", "sparse", "colbert")
    values: dict[str, Floats] = {
        f"bge-m3-{kind}": random.random(90) + i / 4 for i, kind in enumerate(kinds)
    }
    notes = [
        "bge-m3-sparse reads half.",
        *(f"warning {i} says in ten words what may be wrong here." for i in range(2)),
    ]
    every, few = (
        rendered(
            verdict_text(evaluated(**values), width=80, explain=more, notes=notes), 80
        )
        for more in (True, False)
    )
    assert len(" ".join(few).split()) <= 60 + 20
    assert [line[:22] for line in few if line.startswith("!")] == [
        "! …sparse reads half.",
        "! warning 0 says in te",
    ]
    assert sum(line.startswith("!") for line in every) == 3
    assert "\n".join(few).count("bge-m3-") == "\n".join(few).count("bge-m3-…") == 1


@pytest.mark.parametrize("width", [40, 80])
def test_the_scoreboard_leaves_nothing_out(width: int) -> None:
    names = [f"run-{i}" for i in range(17)]
    lines = rendered(means_table(summary(names), width=width), width)
    heads = sum(line.startswith("─") for line in lines)
    first = [line.split()[0] for line in lines if line.startswith("run-")]
    assert first == names * heads  # a run a line, in one order
    assert "".join(lines).count("Success") == 1
    rows = [
        {"query_id": f"問{i}", "measure": measure, "value": 0.5}
        for i in range(3)
        for measure in MEASURES
    ]
    lines = rendered(query_scores_table(rows, "run", width=width), width)
    assert max(map(cell_len, lines)) <= width
    assert "".join(lines).count("0.5000") == 3 * len(MEASURES)


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """The clock of progress, which stands still, and of meters, by which everything takes a thousandth of a second."""
    still, ticks = (
        SimpleNamespace(now=100.0, monotonic=lambda: still.now),
        count(0, 0.001),
    )
    monkeypatch.setattr(progress, "time", still)
    monkeypatch.setattr(
        meter, "time", SimpleNamespace(perf_counter=lambda: next(ticks))
    )
    return still


def log() -> Console:
    return Console(file=io.StringIO(), width=100, force_terminal=False)


def lines(console: Console) -> list[str]:
    return console.file.getvalue().splitlines()  # type: ignore[attr-defined]


def watched(progress: Progress, name: str, budget: Budget | None = None) -> Meter:
    return Meter(on_change=lambda counted: progress.watch(name, counted), budget=budget)


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
    with Progress(console) as progress:
        dense(watched(progress, "minilm"))
        with watched(progress, "hybrid").stage("fuse"):
            pass
    log_lines = lines(console)
    stages = [
        "minilm: embed-documents",
        "minilm: index",
        "minilm: embed-queries",
        "minilm: search",
        "hybrid: fuse",
    ]
    assert [line.rpartition(": ")[0] for line in log_lines] == stages
    assert log_lines[0].startswith("minilm: embed-documents: 30 texts in 0.0 s, ")
    assert log_lines[0].endswith("/s, 50 % cached") and log_lines[2].endswith(
        "all cached"
    )
    assert log_lines[4] == "hybrid: fuse: 0.0 s"


def test_a_log_hears_now_and_then_how_far_a_long_stage_is(
    clock: SimpleNamespace,
) -> None:
    console, budget = log(), Budget()
    with Progress(console) as progress:
        stage_meter = watched(progress, "openai", budget)
        with stage_meter.stage("embed-documents", total=10_000):
            for _ in range(10):
                clock.now += 7
                budget.reserve(0.001)
                stage_meter.count(texts=110, cached=40)
    assert lines(console)[:2] == [
        "openai: embed-documents: 550 of 10,000, 10/s, 15:45 left, 36 % cached, $0.0050",
        "openai: embed-documents: 1,100 of 10,000, 10/s, 14:50 left, 36 % cached, $0.0100",
    ]


def test_a_terminal_has_bars_and_none_of_a_stage_that_began_again(monkeypatch):
    monkeypatch.setattr(progress, "REFRESH_SECONDS", 0)
    console = Console(
        file=io.StringIO(), width=100, force_terminal=True, color_system=None
    )
    with Progress(console) as bars:
        for name in ("one", "two"):
            with watched(bars, name).stage("search", total=4):
                pass
            shared_meter = watched(bars, "")
            for stage in ("scoring", "reporting"):
                with shared_meter.stage(stage):
                    pass
        with watched(bars, "three").stage("fuse"):
            pass
        assert [task.description for task in bars._bars.tasks] == ["three: fuse"]
        dense(watched(bars, "minilm"))
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert (
        "━" in text
        and "10 of 30" in text
        and "minilm: search: 4 texts in 0.0 s" in text
    )

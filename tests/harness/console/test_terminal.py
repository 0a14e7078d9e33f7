"""Tables that fit any terminal, and progress on a terminal and in a log."""

import io
import re
from collections.abc import Iterable
from dataclasses import replace
from itertools import combinations, count
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
from harness.console.output import rendered_text
from harness.console.progress import Progress
from harness.console.results_text import verdict_text
from harness.console.score_tables import means_table, query_scores_table
from harness.evaluation.costs import RetrieverCost, StagePercentiles
from harness.evaluation.evaluate import evaluate_scores
from harness.evaluation.evaluation import Evaluation
from harness.evaluation.verdict import Comparison
from harness.scoring.scores import ScoreRow
from harness.stats.settings import Settings
from harness.stats.summary import ScoreSummary
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
) -> dict[str, dict[str, ScoreSummary]]:
    return {
        measure: {name: summary_of(0.9 - 0.1 * i) for i, name in enumerate(list(names))}
        for measure in measures
    }


def summary_of(mean: float) -> ScoreSummary:
    quantiles = {"min": 0.0, "q25": 0.2, "median": 0.4, "q75": 0.6, "max": 1.0}
    return ScoreSummary(
        count=138,
        mean=mean,
        ci_low=0.5,
        ci_high=0.9,
        std=0.1,
        ci_method="t",
        **quantiles,
    )


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
def test_the_leaderboard_fits_any_terminal(names: list[str], width: int) -> None:
    lines = board(names, width)
    assert max(map(cell_len, lines)) <= width
    means = re.findall(r"\b0\.\d000\b", "\n".join(lines))
    assert means == [f"{0.9 - 0.1 * row:.4f}" for row in range(len(names))]


@settings(max_examples=30)
@given(names=names.filter(lambda names: len(names) > 1), width=st.integers(50, 160))
def test_the_comparisons_fit_any_terminal(names: list[str], width: int) -> None:
    rows = [comparison(a, b) for a, b in combinations(sorted(names), 2)]
    lines = pairs(rows, width)
    assert max(map(cell_len, lines)) <= width
    assert sum("undecided" in line for line in lines) == len(rows)


@pytest.mark.parametrize("width", [30, 40, 80])
def test_a_narrow_leaderboard_has_the_mean_and_names_the_omitted_columns(
    width: int,
) -> None:
    lines = board(NAMES, width)
    text = " ".join(" ".join(lines).split())
    assert max(map(cell_len, lines)) <= width
    assert sum("0.9000" in line for line in lines) == 1
    assert "Too wide for this terminal:" in text
    assert text.endswith("A wider one or --json shows them.")
    omitted = "".join(text.partition("Too wide for this terminal:")[2].split())
    assert "Success@10and" + MEASURES[-1].replace(" ", "") in omitted


def test_a_wide_leaderboard_has_every_column_and_every_name_in_one_line() -> None:
    lines = board(NAMES, 200)
    assert "Too wide" not in " ".join(lines)
    assert lines[-1].split() == [
        NAMES[3],
        "0.6000",
        *("0.500", "…", "0.900"),
        *["0.600"] * (len(MEASURES) - 1),
    ]


@pytest.mark.parametrize("width", [30, 40, 80])
def test_narrow_comparisons_have_the_verdict_and_name_the_omitted_columns(
    width: int,
) -> None:
    lines = pairs([comparison(NAMES[0], NAMES[1])], width)
    text = " ".join(" ".join(lines).split())
    table, _, omitted = text.partition("Too wide for this terminal:")
    assert table.split()[-1] == "undecided"
    assert "won/tied/lost" in omitted
    assert omitted.endswith("exact Wilcoxon p. A wider one or --json shows them.")


def test_wide_comparisons_have_every_column() -> None:
    lines = pairs([comparison(NAMES[0], NAMES[1])], 200)
    assert "Too wide" not in " ".join(lines)
    assert " ".join(lines[-1].split()) == (
        "bm25 titan-embed-text-v1 −0.1000 −0.237 … −0.147 27/6/105 < 10⁻¹² 0.216 "
        "undecided: no difference shown"
    )


def test_of_many_pairs_those_of_the_leader_are_first_then_the_closest() -> None:
    means = {f"r{i:02}": i / 20 for i in range(12)}
    comparisons = [
        replace(comparison(a, b), mean_difference=means[a] - means[b])
        for a, b in combinations(means, 2)
    ]
    lines = pairs(comparisons, 80, leader="r11")
    rows = [line.split()[:2] for line in lines if line.startswith("r")]
    assert len(rows) == 66
    assert rows[:11] == [[f"r{i:02}", "r11"] for i in range(10, -1, -1)]
    gaps = [means[b] - means[a] for a, b in rows[11:]]
    assert gaps == sorted(gaps)
    assert max(map(cell_len, lines)) <= 80


def test_the_best_is_first_in_any_order_of_the_rows() -> None:
    rows = {
        measure: dict(reversed(by_retriever.items()))
        for measure, by_retriever in summary(["a", "b"], ["nDCG@10", "RR"]).items()
    }
    lines = rendered(result_tables.leaderboard_table(rows, "nDCG@10", width=80), 80)
    assert [line.split()[0] for line in lines[4:6]] == ["a", "b"]
    assert lines[0] == "nDCG@10 over 138 queries"


def test_the_lowest_is_first_if_low_is_good() -> None:
    rows = summary(["a", "b"], ["nDCG@10"])
    table = result_tables.leaderboard_table(
        rows, "nDCG@10", width=80, low_is_good={"nDCG@10"}
    )
    assert [line.split()[0] for line in rendered(table, 80)[-2:]] == ["b", "a"]


@settings(max_examples=40)
@given(names=names, width=st.integers(8, 70))
def test_long_names_continue_in_the_next_line(names: list[str], width: int) -> None:
    name_column = columns.TextColumn("", names, left_aligned=True, wraps=True)
    means = columns.TextColumn("", ["0.5"] * len(names))
    fitting = columns.columns_that_fit([name_column, means], width)
    lines = rendered([columns.build_grid(fitting)], width)
    assert max(map(cell_len, lines)) <= width
    text = "".join(lines[2:]).replace("0.5", "")
    assert "".join(text.split()) == "".join(names)


@pytest.mark.parametrize("has_baseline", [False, True], ids=["leader", "baseline"])
@pytest.mark.parametrize("width", [30, 40, 60, 80, 120])
@pytest.mark.parametrize("length", [5, 60])
def test_the_forest_has_names_and_counts_at_every_width(
    width: int, length: int, has_baseline: bool
) -> None:
    names = [f"{'a' * length}{i}" for i in range(3)]
    baseline = names[1] if has_baseline else None
    board = evaluated(0.02, baseline, **random_scores(names)).board
    lines = rendered(leaderboard_in_letters(board, width=width), width)
    text = "".join("".join(line.split()) for line in lines)
    assert max(map(cell_len, lines)) <= width
    assert text.count("■") == (2 if width >= 110 and length == 5 else 0)
    counts = [f"{row.wins}–{row.losses}" for row in board.rows if row.wins is not None]
    assert len(counts) == 2  # the row that is compared with has none
    assert all(count in text for count in counts)


@pytest.mark.parametrize(
    ("has_baseline", "heading"), [(False, "gaptoleader"), (True, "gaptoaaaaa1")]
)
@pytest.mark.parametrize("width", [80, 120])
def test_a_wide_forest_has_the_differences_with_their_intervals(
    width: int, has_baseline: bool, heading: str
) -> None:
    names = ["aaaaa0", "aaaaa1", "aaaaa2"]
    baseline = names[1] if has_baseline else None
    board = evaluated(0.02, baseline, **random_scores(names)).board
    lines = rendered(leaderboard_in_letters(board, width=width), width)
    text = "".join("".join(line.split()) for line in lines).replace("−", "-")
    assert heading in text
    assert "(95%CI)" in text
    intervals = [
        f"{row.difference:.3f}({row.low:.3f},{row.high:.3f})"
        for row in board.rows
        if row.difference is not None
    ]
    assert len(intervals) == 2  # the row that is compared with has none
    assert re.findall(r"-?0\.\d+\(.*?\d\)", text) == intervals


COSTS = {
    "aaaaa0": RetrieverCost(0.0, 0.0, (), "", 1.0, 279_552.0),
    "aaaaa1": RetrieverCost(
        0.0, 12.3, (StagePercentiles("search", 1.0, 9.51, 12.0),), "", 1.0, None
    ),
    "aaaaa2": RetrieverCost(0.0, None, (), "", 1.0, 0.0),
}


@pytest.mark.parametrize("width", [80, 120])
def test_the_forest_has_the_costs_that_are_known(width: int) -> None:
    board = evaluated(0.02, None, **random_scores(list(COSTS))).board
    lines = rendered(leaderboard_in_letters(board, width=width, costs=COSTS), width)
    last_rows = {line.split()[1]: line for line in lines if "aaaaa" in line}
    text = " ".join(" ".join(lines).split())
    assert max(map(cell_len, lines)) <= width
    assert "p95 $/million" in text
    assert "– $0 280 kB" in " ".join(last_rows["aaaaa0"].split())
    assert "9.5 $12.30 –" in " ".join(last_rows["aaaaa1"].split())
    assert "– ?" in " ".join(last_rows["aaaaa2"].split())
    tables = 1 if width == 120 else 2
    assert sum("aaaaa0" in line for line in lines) == tables


def test_without_a_latency_there_is_no_column_of_it() -> None:
    board = evaluated(0.02, None, **random_scores(list(COSTS))).board
    costs = dict.fromkeys(COSTS, COSTS["aaaaa0"])
    lines = rendered(leaderboard_in_letters(board, width=120, costs=costs), 120)
    assert "p95" not in "".join(lines)
    assert "280 kB" in "".join(lines)


def test_without_vectors_there_is_no_column_of_them() -> None:
    board = evaluated(0.02, None, **random_scores(list(COSTS))).board
    costs = {name: COSTS["aaaaa1"]._replace(vector_bytes=0.0) for name in COSTS}
    lines = rendered(leaderboard_in_letters(board, width=80, costs=costs), 80)
    assert "$/million" in "".join(lines)
    assert "vectors" not in "".join(lines)


@pytest.mark.parametrize("explain", [False, True])
def test_of_many_rows_those_shown_worse_are_a_number(explain: bool) -> None:
    """Two are near the leader, fifteen are not: 18 rows are more than 16."""
    random = np.random.default_rng(5)
    base = random.random(60) / 2
    scores = {"best": base + 0.4}
    for number in range(2):
        scores[f"near{number}"] = base + 0.4 - 0.01 * random.random(60)
    for number in range(15):
        scores[f"far{number}"] = base + 0.05 * random.random(60)
    evaluation = evaluated(**scores)
    lines = rendered(verdict_text(evaluation, width=80, explain=explain), 80)
    board = evaluation.board
    worse = sum(row.standing == "worse" for row in board.rows)
    text = "\n".join(lines)
    names = [row.retriever for row in board.rows if row.retriever not in board.folded]
    assert worse >= 15
    assert all(name in text for name in names)
    assert (f"{worse} more, all worse" in text) is not explain
    assert ("far0" in text) is explain
    assert "--explain" not in text


@pytest.mark.parametrize("rows", [16, 17])
def test_up_to_sixteen_rows_all_are_shown(rows: int) -> None:
    base = np.random.default_rng(6).random(60) / 2
    scores = {f"r{number:02}": base - number / 100 for number in range(rows)}
    board = evaluated(**scores).board
    assert len(board.folded) == (0 if rows == 16 else 16)


def random_scores(names: list[str]) -> dict[str, Floats]:
    random = np.random.default_rng(3)
    return {name: random.random(40) / 2 + i / 5 for i, name in enumerate(names)}


def verdict_lines(explain: bool) -> list[str]:
    """The verdict on retrievers whose names have the same start, with three notes."""
    random = np.random.default_rng(3)
    scores: dict[str, Floats] = {
        f"bge-m3-{kind}": random.random(90) + i / 4
        for i, kind in enumerate(["dense-of-all", "sparse", "colbert"])
    }
    notes = [
        "bge-m3-sparse reads half.",
        "warning 0 says in ten words what may be wrong here.",
        "warning 1 says in ten words what may be wrong here.",
    ]
    evaluation = evaluated(**scores)
    parts = verdict_text(evaluation, width=80, explain=explain, notes=notes)
    return rendered(parts, 80)


def test_a_run_is_printed_in_sixty_words_and_two_warnings() -> None:
    lines = verdict_lines(explain=False)
    assert len(" ".join(lines).split()) <= 60 + 20
    assert [line[:22] for line in lines if line.startswith("!")] == [
        "! …sparse reads half.",
        "! warning 0 says in te",
    ]


def test_explain_prints_all_warnings() -> None:
    lines = verdict_lines(explain=True)
    assert sum(line.startswith("!") for line in lines) == 3


def test_the_shared_start_of_all_names_is_printed_once() -> None:
    text = "\n".join(verdict_lines(explain=False))
    assert text.count("bge-m3-") == text.count("bge-m3-…") == 1


def test_the_shared_start_is_that_of_the_printed_rows() -> None:
    scores = random_scores([f"settings-of-bm25-{i:02}" for i in range(20)])
    lines = rendered(verdict_text(evaluated(**scores), width=80), 80)
    assert lines[1].startswith("Use settings-of-bm25-19.")
    assert "● settings-of-bm25-19" in "\n".join(lines)


@pytest.mark.parametrize("width", [40, 80])
def test_the_table_of_means_has_every_run_and_every_measure(width: int) -> None:
    names = [f"run-{i}" for i in range(17)]
    lines = rendered(means_table(summary(names), width=width), width)
    heads = sum(line.startswith("─") for line in lines)
    first_words = [line.split()[0] for line in lines if line.startswith("run-")]
    assert first_words == names * heads  # one line per run, in one order
    assert "".join(lines).count("Success") == 1


@pytest.mark.parametrize("width", [40, 80])
def test_the_table_of_queries_has_every_score(width: int) -> None:
    rows = [
        ScoreRow("run", f"問{i}", measure, 0.5)
        for i in range(3)
        for measure in MEASURES
    ]
    lines = rendered(query_scores_table(rows, "run", width=width), width)
    assert max(map(cell_len, lines)) <= width
    assert "".join(lines).count("0.5000") == 3 * len(MEASURES)


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """The clock of progress, which a test sets.

    For meters everything takes a thousandth of a second.
    """
    progress_clock = SimpleNamespace(now=100.0, monotonic=lambda: progress_clock.now)
    ticks = count(0, 0.001)
    meter_clock = SimpleNamespace(perf_counter=lambda: next(ticks))
    monkeypatch.setattr(progress, "time", progress_clock)
    monkeypatch.setattr(meter, "time", meter_clock)
    return progress_clock


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
    with Progress(console) as log_progress:
        dense(watched(log_progress, "minilm"))
        with watched(log_progress, "hybrid").stage("fuse"):
            pass
    log_lines = lines(console)
    assert [line.rpartition(": ")[0] for line in log_lines] == [
        "minilm: embed-documents",
        "minilm: index",
        "minilm: embed-queries",
        "minilm: search",
        "hybrid: fuse",
    ]
    assert log_lines[0].startswith("minilm: embed-documents: 30 texts in 0.0 s, ")
    assert log_lines[0].endswith("/s, 50 % cached")
    assert log_lines[2].endswith("all cached")
    assert log_lines[4] == "hybrid: fuse: 0.0 s"


def test_a_log_has_the_progress_of_a_long_stage_now_and_then(
    clock: SimpleNamespace,
) -> None:
    console = log()
    budget = Budget()
    with Progress(console) as log_progress:
        stage_meter = watched(log_progress, "openai", budget)
        with stage_meter.stage("embed-documents", total=10_000):
            for _ in range(10):
                clock.now += 7
                budget.reserve(0.001)
                stage_meter.count(texts=110, cached=40)
    first, second = lines(console)[:2]
    stage = "openai: embed-documents: "
    assert first == f"{stage}550 of 10,000, 10/s, 15:45 left, 36 % cached, $0.0050"
    assert second == f"{stage}1,100 of 10,000, 10/s, 14:50 left, 36 % cached, $0.0100"


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Console:
    """A terminal with bars that are always redrawn."""
    monkeypatch.setattr(progress, "REFRESH_SECONDS", 0)
    return Console(
        file=io.StringIO(), width=100, force_terminal=True, color_system=None
    )


def test_a_terminal_has_no_bar_of_a_stage_that_began_again(terminal: Console) -> None:
    with Progress(terminal) as bars:
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


def test_a_terminal_has_bars_and_a_line_for_each_finished_stage(
    terminal: Console,
) -> None:
    with Progress(terminal) as bars:
        dense(watched(bars, "minilm"))
    text = terminal.file.getvalue()  # type: ignore[attr-defined]
    assert "━" in text
    assert "10 of 30" in text
    assert "minilm: search: 4 texts in 0.0 s" in text


def test_a_command_stays_one_line_in_rendered_text():
    command = "harness pool " + "x" * 200
    text = rendered_text(lambda width: [columns.command_line(command)], width=100)
    assert text == command

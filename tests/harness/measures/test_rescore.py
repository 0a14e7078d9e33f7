"""Scoring TREC files: which queries count, notes about the others, refusals."""

from __future__ import annotations

import gzip
import os
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from harness.evaluation.evaluate import summarize_retrievers
from harness.measures import parse_measure
from harness.scoring.conventions import RunConventions
from harness.scoring.scores import Scores
from harness.scoring.trec_runs import score_trec_runs
from tests.support.small import refusal

QRELS = Path("qrels.txt")
RUN = Path("bm25.trec")
LINES = """\
q1 Q0 b 1 0.9 t
q1 Q0 x 2 0.8 t
q2 Q0 a 1 0.7 t
q3 Q0 x 1 0.6 t
q9 Q0 a 1 0.5 t
"""
"""q1: one of two hits is relevant; q2: no document is; q3: missed; q9: not judged.

q4 is not in the run.
"""
FIRST_LINE, *OTHER_LINES = LINES.splitlines(keepends=True)
MIXED_LINES = "".join([*OTHER_LINES, FIRST_LINE])
"""The lines of q1 are not next to each other."""


@pytest.fixture(autouse=True)
def judgments_and_run(in_tmp: None) -> None:
    """Judgments and a run in the working directory."""
    QRELS.write_text("q1 0 a 1\nq1 0 b 2\nq2 0 a 0\nq3 0 c 1\nq4 0 d 1\n")
    RUN.write_text(LINES)


def scored(run: Path = RUN, measure: str = "P@1", **conventions: Any) -> Scores:
    return score_trec_runs(
        QRELS,
        [run],
        [parse_measure(measure)],
        conventions=RunConventions(**conventions),
    )


def notes(scores: Scores) -> tuple[str, ...]:
    """Return the notes on the one run, without its name."""
    (run,) = scores.retrievers
    return tuple(note.removeprefix(f"{run}: ") for note in scores.notes)


LACKED = "judged queries that the run lacks: 1"
EMPTY = "judged queries without a relevant document: 1"
COUNT = "they score 0 and count;"


@pytest.mark.parametrize(
    ("conventions", "queries", "expected_notes"),
    [
        (
            {},
            ["q1", "q2", "q3", "q4"],
            [
                f"{EMPTY} ({COUNT} --skip-no-relevant leaves them out)",
                f"{LACKED} ({COUNT} harness score --intersection leaves them out)",
                "queries of the run without labels: 1 (ignored)",
            ],
        ),
        ({"skip_no_relevant": True}, ["q1", "q3", "q4"], [f"{EMPTY} (left out)"]),
        ({"intersection": True}, ["q1", "q2", "q3"], [f"{LACKED} (left out)"]),
        (
            {"skip_no_relevant": True, "intersection": True},
            ["q1", "q3"],
            [f"{EMPTY} (left out)", f"{LACKED} (left out)"],
        ),
        ({"queries": {"q4", "q1"}}, ["q1", "q4"], []),
    ],
)
def test_which_queries_count_and_what_a_reader_must_know_is_said(
    conventions, queries, expected_notes
):
    result = scored(**conventions)
    values = {row.query_id: row.value for row in result.rows()}
    assert values == {**dict.fromkeys(queries, 0.0), "q1": 1.0}
    (run,) = result.retrievers
    summary = summarize_retrievers(result, 0.95)["P@1"][run]
    assert summary.mean == 1 / len(queries)
    assert set(expected_notes) <= set(notes(result))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("mixed", MIXED_LINES.encode()),
        ("packed.gz", gzip.compress(LINES.encode())),
        ("pipe", LINES.encode()),
        ("pipe", gzip.compress(LINES.encode())),
    ],
    ids=["mixed lines", "packed", "pipe", "packed pipe"],
)
def test_a_run_scores_the_same_in_any_form(name: str, content: bytes) -> None:
    """The shell makes a pipe of <(cat bm25.trec), which is read once."""
    path = Path(name)
    if name == "pipe":
        write_into_pipe(path, content)
    else:
        path.write_bytes(content)
    result = scored(path)
    plain = scored()
    assert [row.value for row in result.rows()] == [row.value for row in plain.rows()]
    assert notes(result) == notes(plain)
    assert result.retrievers == (path.name.removesuffix(".gz"),)


def test_a_relevance_level_changes_hits_but_not_which_queries_count() -> None:
    """trec_eval -l 2: q3 and q4 have no document of grade 2; they score 0 and stay."""
    result = scored(measure="R(rel=2)@5", skip_no_relevant=True)
    assert [(row.query_id, row.value) for row in result.rows()] == [
        ("q1", 1.0),
        ("q3", 0.0),
        ("q4", 0.0),
    ]


def test_the_g_of_err_is_that_of_all_qrels() -> None:
    result = scored(measure="ERR", queries=["q3"])
    assert "ERR: the largest grade of the qrels is G = 2" in notes(result)
    assert result.retrievers == ("bm25",)


@pytest.mark.parametrize(
    ("files", "names"),
    [
        (["a/bm25.trec", "b/bm25.trec"], ["a/bm25", "b/bm25"]),
        (["input.bm25.gz", "input.dense.v2.gz"], ["bm25", "dense.v2"]),
        (["input.bm25.gz"], ["bm25"]),
    ],
)
def test_runs_are_called_by_their_files(
    files: list[str], names: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    paths = [Path(file) for file in files]
    for path in paths:
        path.parent.mkdir(exist_ok=True)
        content = LINES.encode()
        path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    result = score_trec_runs(QRELS, paths, [parse_measure("P@1")])
    assert list(result.retrievers) == names


def test_problems_of_all_files_come_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a").write_text("q1 Q0 x 1 high t\n")
    Path("b").write_text("q1 Q0 x 1 1 t\nq1 Q0 x 2 1 t\n")
    Path("c").write_text("7 Q0 x 1 1 t\n")
    runs = [Path("a"), Path("b"), Path("c")]
    error = refusal(score_trec_runs, QRELS, runs, [parse_measure("P@1")])
    assert [problem.where for problem in error.problems] == ["a:1", "b:2", "c"]
    assert (
        "none of its queries is judged: ids look like '7' here and 'q1' in the qrels"
        in str(error)
    )


@pytest.mark.parametrize(
    ("conventions", "message"),
    [
        (
            {"queries": ["q1", "q5"]},
            "query 'q5': is not judged (the qrels judge 4 queries, such as 'q1')",
        ),
        ({"queries": ["q2"], "skip_no_relevant": True}, "no query is left to score"),
    ],
)
def test_queries_that_cannot_be_scored_are_refused(
    conventions: dict[str, Any], message: str
) -> None:
    assert message in str(refusal(scored, **conventions))


def write_into_pipe(path: Path, content: bytes) -> None:
    """Make a named pipe, into which the content is written once."""

    def write() -> None:
        with suppress(BrokenPipeError):
            path.write_bytes(content)

    os.mkfifo(path)
    threading.Thread(target=write, daemon=True).start()

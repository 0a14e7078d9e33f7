"""Scoring anyone's TREC files: which queries count, what is said about the others, what is refused."""

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

QRELS, RUN = Path("qrels.txt"), Path("bm25.trec")
LINES = "q1 Q0 b 1 0.9 t\nq1 Q0 x 2 0.8 t\nq2 Q0 a 1 0.7 t\nq3 Q0 x 1 0.6 t\nq9 Q0 a 1 0.5 t\n"
"""q1: one of two; q2: nothing is relevant; q3: missed; q4: not in the run; q9: not judged."""
FIRST, *OTHERS = LINES.splitlines(keepends=True)
MIXED = "".join([*OTHERS, FIRST])
"""The lines of q1 do not stand together."""


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
    """What is told of the one run, without its name."""
    return tuple(
        note.removeprefix(f"{scores.retrievers[0]}: ") for note in scores.notes
    )


LACKED = "judged queries that the run lacks: 1 "
EMPTY = "judged queries without a relevant document: 1 "


@pytest.mark.parametrize(
    ("conventions", "queries", "expected_notes"),
    [
        (
            {},
            ["q1", "q2", "q3", "q4"],
            [
                f"{EMPTY}(they score 0 and count; --skip-no-relevant leaves them out)",
                f"{LACKED}(they score 0 and count; harness score --intersection leaves them out)",
                "queries of the run without labels: 1 (ignored)",
            ],
        ),
        ({"skip_no_relevant": True}, ["q1", "q3", "q4"], [f"{EMPTY}(left out)"]),
        ({"intersection": True}, ["q1", "q2", "q3"], [f"{LACKED}(left out)"]),
        (
            {"skip_no_relevant": True, "intersection": True},
            ["q1", "q3"],
            [f"{EMPTY}(left out)", f"{LACKED}(left out)"],
        ),
        ({"queries": {"q4", "q1"}}, ["q1", "q4"], []),
    ],
)
def test_which_queries_count_and_what_a_reader_must_know_is_said(
    conventions, queries, expected_notes
):
    result = scored(**conventions)
    assert [(row.query_id, row.value) for row in result.rows()] == [
        (q, 1.0 if q == "q1" else 0.0) for q in queries
    ]
    assert [
        summary.mean
        for of in summarize_retrievers(result, 0.95).values()
        for summary in of.values()
    ] == [1 / len(queries)]
    assert set(expected_notes) <= set(notes(result))


@pytest.mark.parametrize("way", ["mixed", "packed.gz", "pipe", "packed pipe"])
def test_a_run_scores_the_same_however_it_comes(way: str) -> None:
    """A pipe is what the shell makes of <(cat bm25.trec): it is read once."""
    content = (
        gzip.compress(LINES.encode())
        if "packed" in way
        else (MIXED if way == "mixed" else LINES).encode()
    )
    path = piped(content) if "pipe" in way else Path(way)
    if "pipe" not in way:
        path.write_bytes(content)
    result, plain = scored(path), scored()
    assert ([row.value for row in result.rows()], notes(result)) == (
        [row.value for row in plain.rows()],
        notes(plain),
    )
    assert result.retrievers == (path.name.removesuffix(".gz"),)


def test_a_relevance_level_changes_hits_and_not_which_queries_count_nor_the_g_of_err() -> (
    None
):
    """trec_eval -l 2: q3 and q4 have relevant documents, but none of grade 2; they score 0 and stay."""
    result = scored(measure="R(rel=2)@5", skip_no_relevant=True)
    assert [(row.query_id, row.value) for row in result.rows()] == [
        ("q1", 1.0),
        ("q3", 0.0),
        ("q4", 0.0),
    ]
    result = scored(measure="ERR", queries=["q3"])
    assert "ERR: the largest grade of the qrels is G = 2" in notes(result)
    assert result.retrievers == (
        "bm25",
    )  # they were all called ERR, and one of them was left


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
    for file in map(Path, files):
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(
            gzip.compress(LINES.encode()) if file.suffix == ".gz" else LINES.encode()
        )
    assert (
        list(
            score_trec_runs(
                QRELS, list(map(Path, files)), [parse_measure("P@1")]
            ).retrievers
        )
        == names
    )


def test_problems_of_all_files_come_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in (
        ("a", "q1 Q0 x 1 high t\n"),
        ("b", "q1 Q0 x 1 1 t\nq1 Q0 x 2 1 t\n"),
        ("c", "7 Q0 x 1 1 t\n"),
    ):
        Path(name).write_text(text)
    error = refusal(
        score_trec_runs, QRELS, list(map(Path, "abc")), [parse_measure("P@1")]
    )
    assert [problem.where for problem in error.problems] == ["a:1", "b:2", "c"]
    assert (
        "none of its queries is judged: ids look like '7' here and 'q1' in the qrels"
        in str(error)
    )


def test_queries_that_cannot_be_scored_are_refused() -> None:
    for conventions, message in (
        (
            {"queries": ["q1", "q5"]},
            "query 'q5': is not judged (the qrels judge 4 queries, such as 'q1')",
        ),
        ({"queries": ["q2"], "skip_no_relevant": True}, "no query is left to score"),
    ):
        assert message in str(refusal(scored, **conventions))


def piped(content: bytes) -> Path:
    """A named pipe into which something is written once."""

    def write() -> None:
        with suppress(BrokenPipeError):
            pipe.write_bytes(content)

    pipe = Path("pipe")
    os.mkfifo(pipe)
    threading.Thread(target=write, daemon=True).start()
    return pipe

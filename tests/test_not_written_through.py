"""Folders of somebody else that are not results: no link in them is written through, and no pipe is waited for."""

import os
import sys

import numpy as np
import pytest

from harness.answers.systems import read_systems
from harness.answers.work import AnswerScores, write_tables
from harness.evaluation.evaluation import evaluate
from harness.evaluation.scores import scores_from_rows
from harness.overview import write_index
from harness.records.readings import By, append_claims, write_passages
from harness.stats.settings import Settings
from retrievers.errors import InputError

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="links and pipes are rare there")


@pytest.fixture
def precious(tmp_path):
    (tmp_path / "precious").write_text("precious")
    yield tmp_path / "precious"
    assert (tmp_path / "precious").read_text() == "precious"


@pytest.fixture
def answers(tmp_path):
    (tmp_path / "answers").mkdir()
    return tmp_path / "answers"


def test_tables_of_answers_take_the_place_of_a_link(answers, precious):
    for name in ("scores", "summary", "comparisons"):
        (answers / f"{name}.csv").symlink_to(precious)
    rows = {(system, query, "F1"): float(i) for i, system in enumerate("ab") for query in ("q", "r")}
    evaluation = evaluate(scores_from_rows(rows), baseline=None, settings=Settings())
    write_tables(answers, AnswerScores(evaluation, (), {}))
    assert (answers / "scores.csv").read_text().startswith("retriever,query_id,measure,value\na,q,F1,0.0\n")
    assert not (answers / "scores.csv").is_symlink()


def test_passages_take_the_place_of_a_link(answers, precious):
    (answers / "passages.jsonl").symlink_to(precious)
    write_passages(answers, {"d": "text"})
    assert '"id": "d"' in (answers / "passages.jsonl").read_text()


def test_readings_are_not_added_to_what_a_link_leads_to(answers, precious):
    by = By("judge", "digest")
    (answers / "claims.jsonl").symlink_to(precious)
    with pytest.raises(InputError, match=r"claims.jsonl: is a link or no file"):
        append_claims(answers, by, {"text": ["claim"]})
    (answers / "claims.jsonl").unlink()
    os.mkfifo(answers / "claims.jsonl")
    with pytest.raises(InputError, match=r"claims.jsonl: is a link or no file"):
        append_claims(answers, by, {"text": ["claim"]})


def test_a_pipe_among_answers_is_no_system(answers):
    os.mkfifo(answers / "system.jsonl")
    with pytest.raises(InputError, match=r"system.jsonl: is not a file"):
        read_systems(answers, {"q"})


def test_a_pipe_in_the_place_of_the_overview_is_none_of_ours(tmp_path):
    os.mkfifo(tmp_path / "index.html")
    with pytest.raises(InputError, match="is not one of ours"):
        write_index(tmp_path)


def test_undefined_scores_are_empty_cells(answers):
    rows = {(system, query, "F1"): np.nan if query == "r" else 1.0 for system in "ab" for query in ("q", "r")}
    evaluation = evaluate(scores_from_rows(rows), baseline=None, settings=Settings())
    write_tables(answers, AnswerScores(evaluation, (), {}))
    assert "a,r,F1,\n" in (answers / "scores.csv").read_text()

"""A file of another kind than was expected is one message that says what it looks like."""

import json

import pytest

from harness.dataset.judgments import read_judgments
from harness.dataset.rows import read_jsonl
from harness.dataset.trec import read_qrels
from retrievers.errors import InputError

CONTENTS = {
    'name = "e"\ndataset = "d"\n\n[[retrievers]]\nkind = "bm25"\n': "an experiment file (TOML)",
    "# what\n[dataset]\n": "an experiment file (TOML)",
    "when,query\n" + "2026,a question of words\n" * 30: "a table (CSV)",
    "<!doctype html>\n<p>text</p>\n": "a web page, or XML",
}


@pytest.mark.parametrize("content", CONTENTS)
def test_a_file_of_another_kind_is_called_so_once(tmp_path, content):
    path = tmp_path / "file"
    path.write_text(content)
    with pytest.raises(InputError) as told:
        read_judgments([path])
    assert [problem.what for problem in told.value.problems] == [
        f"is not JSON Lines: it looks like {CONTENTS[content]}"
    ]
    with pytest.raises(InputError) as told:
        read_qrels(path)
    assert [problem.what for problem in told.value.problems] == [
        f"holds no TREC judgments: it looks like {CONTENTS[content]}"
    ]


def test_json_is_no_trec_file(tmp_path):
    path = tmp_path / "file"
    path.write_text('{"query_id": "q", "document_id": "d"}\n')
    with pytest.raises(InputError, match="it looks like JSON"):
        read_qrels(path)


def test_a_first_line_that_is_cut_hides_no_other_problem(tmp_path):
    problems = []
    path = tmp_path / "file"
    path.write_text('{"a": \n{"a": 1}\n{"b"\n')
    assert [row for _, row in read_jsonl(path, problems)] == [{"a": 1}]
    assert len(problems) == 2


def test_a_pool_holds_no_judgments(tmp_path):
    path = tmp_path / "my pool.jsonl"
    path.write_text(json.dumps({"pool": 1, "digest": "x", "drawn": {}}) + "\n" + '{"query_id": "q"}\n' * 30)
    with pytest.raises(InputError) as told:
        read_judgments([path])
    [problem] = told.value.problems
    assert (problem.what, problem.remedy) == (
        "is a pool: what is to be judged, and nothing that was", f"judge it first: harness judge '{path}'"
    )  # fmt: skip


def test_equal_problems_of_one_file_are_one_line(tmp_path):
    path = tmp_path / "judgments.jsonl"
    path.write_text('{"query_id": "q"}\n' * 30)
    with pytest.raises(InputError) as told:
        read_judgments([path])
    [problem] = told.value.problems
    assert str(problem).startswith(f"{path}:1: 'document_id' is missing, as at 29 more places (")

"""A run knows the runs beside it that tested the same question on some of its queries."""

import json
from pathlib import Path

import pytest

from harness.pipeline import run
from harness.running.forecast import Options
from tests.support import small

pytestmark = pytest.mark.slow


def ask(
    folder: Path, queries: int, *, name: str = "small", more: str = "", retext: str = "", report: bool = False
) -> tuple[int, ...]:
    """The earlier looks of a run with the first so many queries."""
    path = small.experiment(folder, name=name, more=more, report=report)
    said = [
        {"id": id_, "query": text + retext, "relevant_documents": docs} for id_, text, docs in small.QUERIES[:queries]
    ]
    (folder / "data" / "queries.json").write_text(json.dumps(said), encoding="utf-8")
    return run(path, Options(folder / "out")).manifest.earlier_looks


def test_a_second_run_with_more_queries_is_a_second_look(tmp_path: Path) -> None:
    assert ask(tmp_path, 3, report=True) == ()
    assert "This is look number" not in (tmp_path / "out" / "small" / "report.md").read_text(encoding="utf-8")
    assert ask(tmp_path, 5, report=True) == (3,)
    assert "This is look number 2: earlier runs" in (tmp_path / "out" / "small" / "report.md").read_text("utf-8")
    assert ask(tmp_path, 5) == (3,), "the same again is no further look"


def test_runs_of_another_name_count_too_and_others_do_not(tmp_path: Path) -> None:
    assert ask(tmp_path, 3, name="first") == ()
    assert ask(tmp_path, 4, name="second") == (3,)
    assert ask(tmp_path, 6, name="third") == (3, 4)
    assert ask(tmp_path, 6, name="baseline", more='baseline = "bm25"') == (), "another question"
    assert ask(tmp_path, 6, name="words", retext="?") == (), "other queries with the same ids"
    assert ask(tmp_path, 2, name="fewer") == ()
    (tmp_path / "data" / "apple.md").write_text("# apple\n\nanother text\n", encoding="utf-8")
    assert ask(tmp_path, 6, name="documents") == (), "other documents"


def test_damaged_folders_are_passed_over(tmp_path: Path) -> None:
    for name, number in (("cut", 1), ("unread", 2), ("whole", 3), ("bare", 4)):
        ask(tmp_path, number, name=name)
    out = tmp_path / "out"
    (out / "cut" / "manifest.json").write_text("{", encoding="utf-8")
    (out / "unread" / "labels.jsonl").write_text("", encoding="utf-8")
    (out / "bare" / "scores.csv").unlink()
    (out / "notes").mkdir()
    assert ask(tmp_path, 6, name="last") == (3,)

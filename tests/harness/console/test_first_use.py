"""What somebody meets who uses the program for the first time, and gives it the wrong thing."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

import pytest

from harness.running.check import MEANINGS
from tests.support.small import call

PROJECT = Path(__file__).parents[3]


def trec(folder: Path) -> list[Path]:
    """Judgments and two runs over three queries."""
    qrels = "".join(f"q{q} 0 d{d} {int(d == q)}\n" for q in range(3) for d in range(4))
    (folder / "qrels.txt").write_text(qrels, encoding="utf-8")
    for name, shift in (("one", 0), ("two", 1)):
        lines = [f"q{q} Q0 d{(q + i + shift) % 4} {i + 1} {9 - i} {name}\n" for q in range(3) for i in range(4)]
        (folder / f"input.{name}.gz").write_text("".join(lines), encoding="utf-8")
    return [folder / "qrels.txt", folder / "input.one.gz", folder / "input.two.gz"]


def beir(folder: Path, judgments: list[str]) -> Path:
    """Ten documents and ten queries, of which the last asks what the first asks."""
    (folder / "qrels").mkdir(parents=True)
    documents = [json.dumps({"_id": f"d{n}", "text": f"text {n}"}) for n in range(10)]
    queries = [json.dumps({"_id": f"q{n}", "text": f"question {n % 9}"}) for n in range(10)]
    (folder / "corpus.jsonl").write_text("\n".join(documents), encoding="utf-8")
    (folder / "queries.jsonl").write_text("\n".join(queries), encoding="utf-8")
    (folder / "qrels" / "test.tsv").write_text("\n".join(judgments), encoding="utf-8")
    return folder


def test_every_list_of_errors_stops_at_20(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Grades in a BEIR folder that are not numbers: 3,941 mistakes, and no two of them equal."""
    folder = beir(tmp_path / "b", [f"q{n % 10}\td{n % 10}\tgrade{n}" for n in range(3941)])
    code, _, err = call(capsys, "check", folder)
    lines = err.rstrip("\n").split("\n")
    assert (code, len(lines), lines[0], lines[-1]) == (2, 22, "error: 3,941 problems", "  and 3,921 more")


def test_everything_that_reading_counts_has_its_words() -> None:
    kinds = set[str]()
    for file in (PROJECT / "harness" / "dataset").glob("*.py"):
        kinds |= set(re.findall(r'\.note\("([a-z-]+)"', file.read_text(encoding="utf-8")))
    assert kinds
    assert kinds <= MEANINGS.keys()


@pytest.mark.parametrize(
    "words", [("report",), ("reproduce",), ("gate", "--baseline", "a", "--challenger", "b", "--margin", "0.02")]
)
def test_a_file_where_a_folder_is_meant(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    file = tmp_path / "report.html"
    file.write_text("<html>", encoding="utf-8")
    code, _, err = call(capsys, words[0], file, *words[1:])
    assert (code, err) == (2, f"error: {file}: is a file, not a results folder (give the folder that `harness run` "
                              "wrote)\n")  # fmt: skip


def test_compare_prints_every_comparison_as_csv(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = trec(tmp_path)
    code, out, _ = call(capsys, "compare", *files, "-m", "RR", "-m", "AP", "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(out)))
    assert code == 0
    assert [(row["measure"], row["a"], row["b"], row["n"]) for row in rows] == [
        ("RR", "one", "two", "3"), ("AP", "one", "two", "3"),
    ]  # fmt: skip

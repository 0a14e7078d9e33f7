"""What somebody meets who uses the program for the first time, and gives it the wrong thing."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest

from harness.cli import main


def call(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
    """The exit code, standard output and standard error of one command."""
    with pytest.raises(SystemExit) as stopped:
        main([str(word) for word in words])
    told = capsys.readouterr()
    return int(stopped.value.code or 0), told.out, told.err


def trec(folder: Path) -> list[Path]:
    """Judgments and two runs over three queries."""
    qrels = "".join(f"q{q} 0 d{d} {int(d == q)}\n" for q in range(3) for d in range(4))
    (folder / "qrels.txt").write_text(qrels, encoding="utf-8")
    for name, shift in (("one", 0), ("two", 1)):
        lines = [f"q{q} Q0 d{(q + i + shift) % 4} {i + 1} {9 - i} {name}\n" for q in range(3) for i in range(4)]
        (folder / f"input.{name}.gz").write_text("".join(lines), encoding="utf-8")
    return [folder / "qrels.txt", folder / "input.one.gz", folder / "input.two.gz"]


@pytest.mark.parametrize(
    "words",
    [("report",), ("reproduce",), ("gate", "--baseline", "a", "--challenger", "b", "--margin", "0.02")],
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
    code, _, err = call(capsys, "compare", *files, "--format", "csv", "--json")
    assert (code, err) == (2, "error: --json: cannot go with --format csv (choose one of them)\n")

"""Problems that reach Python name no option of the command line."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import harness
from retrievers.errors import InputError
from tests.support import small

PROJECT = Path(harness.__file__).parents[1]
COMMANDS_ONLY = (
    "harness/console/",
    "harness/labels/",
    "harness/init/",
    "harness/without_labels/",
    "harness/export/",
    "harness/cli.py",
    "harness/evaluation/gate.py",
    "harness/evaluation/score_paths.py",
    "harness/evaluation/compare_sets.py",
    "harness/evaluation/judging_effort.py",
    "harness/wording/looks.py",
    "harness/scoring/conventions.py",
    "harness/scoring/rescore.py",
    "harness/running/ray_embedding.py",
    "harness/records/environment.py",
    "retrievers/files/parquet_vectors.py",
)
"""Modules whose messages only the command line prints."""
FLAG = re.compile(r"(?<![\w-])--[a-z]")


def texts_outside_options(path: Path) -> Iterator[str]:
    """The texts of a module that are no docstrings and stand in no `Option`."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    skipped: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            skipped.add(id(node.value))
        if isinstance(node, ast.Call) and is_option(node.func):
            skipped.update(map(id, ast.walk(node)))
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            if id(node) not in skipped:
                yield node.value


def names_option(text: str) -> bool:
    """Whether a text names an option, and not what Python has in its place."""
    return bool(FLAG.search(text)) and "in Python" not in text


def is_option(function: ast.expr) -> bool:
    return isinstance(function, ast.Name) and function.id == "Option"


def test_options_of_the_command_line_are_told_apart_in_remedies() -> None:
    named: list[str] = []
    for package in ("harness", "retrievers"):
        for path in sorted((PROJECT / package).rglob("*.py")):
            file = path.relative_to(PROJECT).as_posix()
            if not file.startswith(COMMANDS_ONLY):
                texts = texts_outside_options(path)
                named += [f"{file}: {text}" for text in texts if names_option(text)]
    assert named == []


def test_only_of_an_unknown_retriever_names_the_parameter(tmp_path: Path) -> None:
    experiment = small.experiment(tmp_path)
    options = harness.RunOptions(tmp_path / "out", only=("bm52",))
    with pytest.raises(InputError, match=r"^only: there is no retriever 'bm52'"):
        harness.run(experiment, options)


def test_a_run_without_the_results_of_the_others_names_no_option(
    tmp_path: Path,
) -> None:
    experiment = small.experiment(tmp_path)
    options = harness.RunOptions(tmp_path / "out", only=("bm25",))
    with pytest.raises(InputError) as refused:
        harness.run(experiment, options)
    assert "run all retrievers once" in str(refused.value)
    assert "--" not in str(refused.value)


def test_a_data_set_without_queries_names_no_option(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "log.csv").write_text("x,y\n1,2\n", encoding="utf-8")
    with pytest.raises(InputError) as refused:
        harness.load_dataset(folder)
    assert "--" not in str(refused.value)

"""Experiments and ids of other people.

What they use is shown, and needs a confirmation; nothing in them is run.
"""

import csv
import io
import json
import re
import sys
from pathlib import Path

import pytest
import typer

import harness
from harness.cli import app
from harness.records import escape_cell
from tests.support import small
from tests.support.small import call

FORMULA = "=HYPERLINK(1)"


def test_reproduce_asks_unless_it_is_trusted(tmp_path, capsys, monkeypatch):
    folder = small.ran(tmp_path).folder
    code, out, err = call(capsys, "reproduce", folder)
    assert (code, out) == (2, "")
    assert "--trust" in err
    for stream in ("stdin", "stderr"):
        monkeypatch.setattr(f"sys.{stream}.isatty", lambda: True)
    monkeypatch.setattr("typer.confirm", lambda *_, **__: False)
    assert "not confirmed" in call(capsys, "reproduce", folder)[2]
    monkeypatch.setattr("typer.confirm", lambda *_, **__: True)
    assert call(capsys, "reproduce", folder)[0] == 0
    assert call(capsys, "reproduce", folder, "--trust")[0] == 0


OWN_TABLE = '[[retrievers]]\nname = "own"\n'
OWN_CODE = {
    "call": OWN_TABLE + 'kind = "python"\ncall = "{}"\n',
    "encoder.call": OWN_TABLE + 'encoder = {{ kind = "python", call = "{}" }}\n',
    "chunk.call": (
        OWN_TABLE + 'encoder = {{ kind = "hashing" }}\nchunk = {{ call = "{}" }}\n'
    ),
    "chunk.call of BM25": OWN_TABLE + 'kind = "bm25"\nchunk = {{ call = "{}" }}\n',
}


@pytest.mark.parametrize("block", OWN_CODE.values(), ids=OWN_CODE)
def test_check_imports_no_code_of_an_experiment(tmp_path, capsys, monkeypatch, block):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "evil_package").mkdir()
    for name in ("evil.py", "evil_package/__init__.py", "evil_package/part.py"):
        (tmp_path / name).write_text("raise SystemExit('it ran')")
    for module in (
        "evil",
        "evil_package.part",
        "nobody",
        "evil_package.nobody",
        "evil.nobody",
    ):
        path = small.experiment(
            tmp_path, retrievers=block.format(f"{module}:ask") + small.BM25
        )
        code, _, err = call(capsys, "check", path)
        assert (code, f"there is no module '{module}'" in err) == (
            (2, True) if "nobody" in module else (0, False)
        )


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """Results over a query and fields that are formulas or rows in a spreadsheet."""
    folder = tmp_path_factory.mktemp("hostile")
    data = small.dataset(folder / "data")
    queries = json.loads((data / "queries.json").read_text())
    queries[0] |= {
        "id": FORMULA,
        "query": f"trees;{FORMULA}\n{FORMULA}",
        "fields": {"kind": f"a\rb;{FORMULA}"},
    }
    (data / "queries.json").write_text(json.dumps(queries))
    options = harness.RunOptions(results=folder / "out")
    return harness.run(small.experiment(folder, report=True), options).folder


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("name", ["scores.csv", "tests.csv", "tables/queries.csv"])
def test_no_cell_is_a_formula_and_no_character_makes_a_row(hostile, name, delimiter):
    raw = (hostile / name).read_text(encoding="utf-8-sig")
    assert "\r" not in raw
    for row in csv.reader(io.StringIO(raw, newline=""), delimiter=delimiter):
        assert not any(cell.lstrip(' "').startswith(("=", "@")) for cell in row), row


def test_ids_come_back_as_they_were_in_other_programs_as_the_documentation_says(
    hostile, capsys
):
    assert FORMULA in set(harness.open_results(hostile).scores["query_id"])
    code, out, _ = call(capsys, "score", hostile, "-q", "--format", "csv")
    assert (code, escape_cell(FORMULA) in out, f",{FORMULA}" in out) == (0, True, False)
    page = (Path(__file__).parents[3] / "docs" / "results-folder.md").read_text(
        encoding="utf-8"
    )
    (documented,) = re.findall(r"^re\.sub\(.*\)$", page, re.MULTILINE)
    with (hostile / "scores.csv").open(encoding="utf-8", newline="") as file:
        cells = [row["query_id"] for row in csv.DictReader(file)]
    undone = {eval(documented, {"re": re, "cell": cell}) for cell in cells}
    lines = (hostile / "labels.jsonl").read_text("utf-8").splitlines()
    assert undone == {json.loads(line)["query_id"] for line in lines}
    assert set(cells) - undone == {escape_cell(FORMULA)}


THEIR_TABLE = '[[retrievers]]\nname = "theirs"\n'
EVIL = {
    "[0]: runs code: call = evil:run": (
        THEIR_TABLE + 'kind = "python"\ncall = "evil:run"\n'
    ),
    "[0]: runs code: kind = evil, of another package": THEIR_TABLE + 'kind = "evil"\n',
    "[0]: runs code: encoder.kind = evil": (
        THEIR_TABLE + 'encoder = { kind = "evil" }\n'
    ),
    "[0]: runs code: encoder.trust_remote_code": """[[retrievers]]\nname = "m"
encoder = { kind = "sentence-transformers", model = "x", trust_remote_code = true }""",
    "judge: runs code: encoder.kind = evil": small.BM25
    + '[judge]\nkind = "lexical"\nencoder = { kind = "evil" }\n',
}


def _reading_experiments(group, name=""):
    """Yield the commands that read an experiment, and the one that repeats a run."""
    for part, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from _reading_experiments(command, f"{name}{part} ")
        elif (
            any(
                parameter.name in ("experiment", "target")
                for parameter in command.params
            )
            or part == "reproduce"
        ):
            yield f"{name}{part}", command


COMMANDS = dict(_reading_experiments(typer.main.get_command(app)))


def test_every_command_that_reads_an_experiment_can_refuse_code():
    assert set(COMMANDS) >= {
        "run",
        "check",
        "reproduce",
        "embed",
        "answers judge",
        "answers score",
    }


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_that_reads_an_experiment_has_the_option_no_code(name):
    options = set()
    for parameter in COMMANDS[name].params:
        options.update(parameter.opts)
    assert "--no-code" in options


@pytest.mark.parametrize(
    ("name", "evil"),
    [
        *(
            (name, next(iter(EVIL)))
            for name in COMMANDS
            if name not in ("check", "reproduce")
        ),
        *(("check", evil) for evil in EVIL),
    ],
)
def test_no_code_refuses_with_one_message_and_imports_nothing(
    tmp_path, capsys, monkeypatch, name, evil
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "cache"))
    (tmp_path / "evil.py").write_text("raise SystemExit('it ran')")
    path = small.experiment(tmp_path, retrievers=EVIL[evil])
    answers = str(tmp_path / "answers")
    more = {"embed": ["--to", answers]}.get(
        name, [answers] if name.startswith("answers") else []
    )
    takes_option = any(
        parameter.name == "experiment" and "--experiment" in parameter.opts
        for parameter in COMMANDS[name].params
    )
    words = [*more, "--experiment", path] if takes_option else [path, *more]
    code, _, message = call(capsys, *name.split(), *words, "--no-code")
    assert code == 2
    assert evil in message and "no code is allowed (--no-code)" in message
    assert "Traceback" not in message and "it ran" not in message
    assert "evil" not in sys.modules

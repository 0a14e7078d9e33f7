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


@pytest.fixture
def evil_modules(tmp_path, monkeypatch):
    """A folder whose modules end the process when they are imported."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "evil_package").mkdir()
    for name in ("evil.py", "evil_package/__init__.py", "evil_package/part.py"):
        (tmp_path / name).write_text("raise SystemExit('it ran')")
    return tmp_path


@pytest.mark.parametrize("module", ["evil", "evil_package.part"])
@pytest.mark.parametrize("block", OWN_CODE.values(), ids=OWN_CODE)
def test_check_imports_no_code_of_an_experiment(capsys, evil_modules, block, module):
    retrievers = block.format(f"{module}:ask") + small.BM25
    path = small.experiment(evil_modules, retrievers=retrievers)
    assert call(capsys, "check", path).code == 0


@pytest.mark.parametrize("module", ["nobody", "evil_package.nobody", "evil.nobody"])
@pytest.mark.parametrize("block", OWN_CODE.values(), ids=OWN_CODE)
def test_check_finds_that_a_module_is_missing_and_imports_no_other(
    capsys, evil_modules, block, module
):
    retrievers = block.format(f"{module}:ask") + small.BM25
    path = small.experiment(evil_modules, retrievers=retrievers)
    code, _, message = call(capsys, "check", path)
    assert code == 2
    assert f"there is no module '{module}'" in message


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
    # As bytes: reading as text would turn a carriage return into a line feed.
    content = (hostile / name).read_bytes()
    assert b"\r" not in content
    text = content.decode("utf-8-sig")
    for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter):
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
EVIL = {  # what the refusal says -> the tables that it refuses
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


EVIL_CALL = next(iter(EVIL))
ARGUMENTS = {
    "run": ["small.toml"],
    "check": ["small.toml"],
    "embed": ["small.toml", "--to", "vectors"],
    "answers check": ["small.toml", "answers"],
    "answers judge": ["small.toml", "answers"],
    "answers score": ["small.toml", "answers"],
}
"""Every command that reads an experiment file -> its arguments.

`reproduce` reads the experiment of a results folder: it has a test of its own.
"""


def _commands(group, name=""):
    """Yield the name of each command, and the command."""
    for part, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from _commands(command, f"{name}{part} ")
        else:
            yield f"{name}{part}", command


def _reads_an_experiment(command):
    return any(
        parameter.name in ("experiment", "target") for parameter in command.params
    )


COMMANDS = dict(_commands(typer.main.get_command(app)))


def test_the_commands_that_read_an_experiment_file_are_all_tested_here():
    reading = {
        name for name, command in COMMANDS.items() if _reads_an_experiment(command)
    }
    assert reading == set(ARGUMENTS)


@pytest.mark.parametrize("name", [*ARGUMENTS, "reproduce"])
def test_a_command_that_reads_an_experiment_has_the_option_no_code(name):
    options = set()
    for parameter in COMMANDS[name].params:
        options.update(parameter.opts)
    assert "--no-code" in options


@pytest.mark.parametrize(
    ("name", "evil"),
    [
        *((name, EVIL_CALL) for name in ARGUMENTS if name != "check"),
        *(("check", evil) for evil in EVIL),
    ],
)
def test_no_code_refuses_with_one_message_and_imports_nothing(
    tmp_path, capsys, monkeypatch, name, evil
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "cache"))
    (tmp_path / "evil.py").write_text("raise SystemExit('it ran')")
    small.experiment(tmp_path, retrievers=EVIL[evil])
    code, _, message = call(capsys, *name.split(), *ARGUMENTS[name], "--no-code")
    assert code == 2
    assert evil in message and "no code is allowed (--no-code)" in message
    assert "Traceback" not in message and "it ran" not in message
    assert "evil" not in sys.modules


def test_reproduce_refuses_the_code_of_the_experiment_that_was_run(
    tmp_path, capsys, monkeypatch
):
    (tmp_path / "tool_of_theirs.py").write_text("def run(query):\n    return ['cat']\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    table = THEIR_TABLE + 'kind = "python"\ncall = "tool_of_theirs:run"\n'
    folder = small.ran(tmp_path, retrievers=table + small.BM25).folder
    code, _, message = call(capsys, "reproduce", folder, "--trust", "--no-code")
    assert code == 2
    assert "runs code: call = tool_of_theirs:run" in message
    assert "no code is allowed (--no-code)" in message

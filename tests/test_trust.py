"""Experiments and ids of somebody else: what they use is shown and asked for, and nothing they hold is run."""

import csv
import io
import json
import re
import sys
from pathlib import Path
from typing import get_args

import pytest
import typer

import harness
from harness.cli import app
from harness.console import printing
from harness.experiment import uses
from harness.experiment.option_tables import options_of
from harness.pipeline import run
from harness.records import as_cell
from harness.reproduce import reproduce
from harness.running.options import Options
from retrievers import ENCODERS, RERANKERS, encoder_class, reranker_class
from retrievers.errors import InputError
from retrievers.rerankers.http_reranker import Dialect
from tests import small
from tests.servers import OpenAIProvider, serving
from tests.small import call

FORMULA = "=HYPERLINK(1)"
STEERS = ["\x1b[31m", "\x9b31m", "\x07", "\u202e", "\u2066", "\u200e", "\u200b", "\u200d", "\u2060", "\ufeff",
          "\xad", "\u2028", "\U000e0041", "\udc80"]  # fmt: skip


@pytest.mark.parametrize(
    ("block", "shown"),
    [
        ({"encoder": {"kind": "openai", "model": "m", "base_url": "https://me:word@x.org"}}, "sends texts to https://x.org"),
        ({"encoder": {"kind": "openai", "model": "m"}}, "sends texts to OpenAI's server, at your cost"),
        ({"encoder": {"kind": "cohere", "model": "m"}}, "sends texts to Cohere's server, at your cost"),
        ({"encoder": {"kind": "gemini", "model": "m"}}, "sends texts to Google's server, at your cost"),
        ({"of": "b", "rerank": {"kind": "http", "dialect": "jina"}}, "sends texts to Jina's server, at your cost"),
        ({"encoder": {"kind": "hashing"}, "store": "http://x.org:6333"}, "sends texts to http://x.org:6333"),
        ({"encoder": {"kind": "hashing"}, "store": {"location": "/var/precious"}}, "uses the path /var/precious"),
        ({"encoder": {"kind": "hashing"}, "store": "../../precious"}, "uses the path ../../precious"),
        ({"encoder": {"kind": "openai", "model": "m", "base_url": "https://x.org/${AWS_SECRET_ACCESS_KEY}"}},
         "uses the environment variable AWS_SECRET_ACCESS_KEY"),
        ({"encoder": {"kind": "openai", "model": "m", "base_url": " https://x.org"}}, "sends texts to https://x.org"),
        ({"encoder": {"kind": "openai", "model": "m", "base_url": "x.org/v1"}}, "sends texts to x.org/v1"),
        ({"encoder": {"kind": "openai", "model": "m", "base_url": "https://x.org\n  all is well"}},
         "sends texts to https://x.org all is well"),
        ({"encoder": {"kind": "openai", "model": "m", "base_url": "http://127.0.0.1"},
          "variants": {"v": {"base_url": ""}}}, "sends texts to OpenAI's server, at your cost"),
        ({"encoder": {"kind": "bedrock", "model": "m", "endpoint_url": "https://x.org"}},
         "uses your credentials for AWS"),
        ({"kind": "http", "url": "\thttps://x.org", "ids": "hits"}, "sends texts to https://x.org"),
        ({"encoder": {"kind": "hashing"}, "store": "vectors"}, "uses the path vectors"),
        ({"kind": "python", "call": "theirs:ask"}, "runs code: call = theirs:ask"),
        ({"encoder": {"kind": "sentence-transformers", "model": "m", "trust_remote_code": True}}, "runs code"),
    ],
)  # fmt: skip
def test_what_an_experiment_uses_is_shown(block, shown):
    found = uses({"name": "x", "dataset": "data", "retrievers": [{"name": "a", **block}]})
    assert any(line.startswith(shown) for line in found), found
    assert not any("word" in line for line in found)


@pytest.mark.parametrize(
    ("more", "shown"),
    [
        ({"judge": {"kind": "openai", "model": "m", "base_url": "https://x.org", "key_name": "AWS_SECRET_ACCESS_KEY"}},
         "uses the environment variable AWS_SECRET_ACCESS_KEY (judge.key_name)"),
        ({"judge": {"kind": "openai", "model": "m"}}, "sends texts to OpenAI's server, at your cost (judge)"),
        ({"judge": {"kind": "nli", "model": "../precious"}}, "uses the path ../precious (judge.model)"),
        ({"vectors": {"from": "simplecache::https://x.org/parts"}},
         "reads vectors at simplecache::https://x.org/parts (vectors.from)"),
        ({"vectors": {"from": "../precious"}}, "reads vectors at ../precious (vectors.from)"),
        ({"vectors": {"from": "s3://me:word@bucket/parts"}}, "reads vectors at s3://bucket/parts (vectors.from)"),
    ],
)  # fmt: skip
def test_what_an_experiment_uses_beside_its_retrievers_is_shown(more, shown):
    assert shown in uses({"name": "x", "dataset": "data", "retrievers": [{"name": "a", "kind": "bm25"}], **more})


def test_models_of_a_folder_are_shown_where_something_else_is(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model").mkdir()
    local = {"name": "a", "encoder": {"kind": "sentence-transformers", "model": "model"}}
    assert uses({"name": "x", "dataset": "data", "retrievers": [local]}) == []
    found = uses({"name": "x", "dataset": "data", "retrievers": [local], "vectors": {"from": "../precious"}})
    assert "loads the model model (retrievers[0].encoder.model)" in found


@pytest.mark.parametrize("dataset", ["hf:somebody/data@main", {"path": "irds:beir/scifact"}, ["data", "hf:a/b"]])
def test_a_data_set_of_a_hub_is_asked_for(dataset):
    [line] = uses({"name": "x", "dataset": dataset, "retrievers": [{"name": "a", "kind": "bm25"}]})
    assert line.startswith("fetches the data set ")


def test_reproduce_asks_before_it_loads_a_model_of_a_hub(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    folder = run(small.experiment(tmp_path), Options(tmp_path / "out")).folder
    path = folder / "manifest.json"
    hub = {"kind": "sentence-transformers", "model": "somebody/something"}
    manifest = json.loads(path.read_text(encoding="utf-8"))
    manifest["experiment"]["retrievers"][1]["encoder"] = hub
    path.write_text(json.dumps(manifest), encoding="utf-8")
    code, _, err = call(capsys, "reproduce", folder)
    assert code == 2
    assert "loads the model somebody/something from the hub" in err
    assert "--trust" in err


def test_an_address_with_a_space_around_it_is_asked_by_nobody(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "cache"))
    with serving(OpenAIProvider()) as server:
        block = '[[retrievers]]\nname = "a"\nencoder = {{ kind = "openai", model = "m", price = 0, base_url = "{}" }}\n'
        folder = small.ran(tmp_path, retrievers=block.format(server.url)).folder
        asked = len(server.requests)
        manifest = folder / "manifest.json"
        manifest.write_text(manifest.read_text().replace(f'"{server.url}"', f'" {server.url}"'))
        code, _, err = call(capsys, "reproduce", folder, "--fresh")
        assert (code, f"sends texts to {server.url}" in err) == (2, True)
        code, _, err = call(capsys, "reproduce", folder, "--fresh", "--trust")
        assert (code, "has a space around it" in err) == (2, True)
        assert len(server.requests) == asked


def test_data_that_lie_beside_the_file_of_the_experiment_are_shown_with_their_place(tmp_path, monkeypatch, capsys):
    """A manifest says where its experiment lay: from there every folder above is looked into."""
    mine = small.dataset(tmp_path / "home" / "precious")
    (tmp_path / "home" / "mine.trec").write_text("q-rails Q0 train 1 1.0 t\n")
    folder = harness.run(small.experiment(tmp_path), harness.Options(results=tmp_path / "out")).folder
    content = json.loads((folder / "manifest.json").read_text())
    content["experiment_file"] = str(tmp_path / "home" / "deeper" / "x.toml")
    content["experiment"]["dataset"] = "precious"
    content["experiment"]["retrievers"] += [
        {"name": "far", "encoder": {"kind": "openai", "model": "m"}},
        {"name": "saved", "kind": "run", "path": "mine.trec"},
    ]
    (folder / "manifest.json").write_text(json.dumps(content))
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    code, _, err = call(capsys, "reproduce", folder)
    assert code == 2
    assert f"reads the data at {mine} (dataset)" in err
    assert f"uses the path {tmp_path / 'home' / 'mine.trec'} (retrievers[4].path)" in err
    monkeypatch.chdir(tmp_path)
    assert "reads the data" not in call(capsys, "reproduce", folder)[2]


def test_what_stays_on_this_machine_needs_no_yes(project):
    import tomllib

    text = (project / "experiments" / "quickstart.toml").read_text(encoding="utf-8")
    assert uses(tomllib.loads(text)) == []


@pytest.fixture(scope="module")
def foreign(tmp_path_factory):
    """A results folder whose experiment writes its vectors somewhere else."""
    place = tmp_path_factory.mktemp("foreign")
    block = '[[retrievers]]\nname = "a"\nencoder = {{ kind = "hashing" }}\nstore = "{}"\n'
    retrievers = block.format((place / "vectors").as_posix())
    return harness.run(small.experiment(place, retrievers=retrievers), harness.Options(results=place / "out")).folder


def test_reproduce_asks_before_it_does_what_somebody_else_wrote(foreign, capsys, monkeypatch):
    code, out, err = call(capsys, "reproduce", foreign)
    assert (code, out) == (2, "")
    assert "uses the path" in err
    assert "--trust" in err
    monkeypatch.setattr(printing, "asked", lambda: True)
    monkeypatch.setattr("typer.confirm", lambda *_, **__: False)
    assert call(capsys, "reproduce", foreign)[0] == 2
    assert call(capsys, "reproduce", foreign, "--trust")[0] == 0


def test_from_python_too_it_takes_a_yes(foreign):
    with pytest.raises(InputError, match="would do what somebody wrote: it uses the path"):
        reproduce(foreign)
    assert reproduce(foreign, trust=True).differing == ()


def test_data_outside_are_shown_where_something_could_carry_them_away():
    tables = {"name": "x", "dataset": {"path": "../precious"}, "retrievers": [{"name": "a", "kind": "bm25"}]}
    assert uses(tables) == []
    tables["retrievers"].append({"name": "b", "encoder": {"kind": "openai", "model": "m"}})
    assert "reads the data at ../precious (dataset.path)" in uses(tables)


def test_check_shows_the_same_list(foreign, capsys, tmp_path):
    experiment = Path(json.loads((foreign / "manifest.json").read_text())["experiment_file"])
    assert "uses the path" in call(capsys, "check", experiment)[1]
    assert json.loads(call(capsys, "check", experiment, "--json")[1])["uses"]


@pytest.mark.parametrize("steering", STEERS)
def test_nothing_steers_the_terminal(capsys, steering, tmp_path):
    printing.say(f"a{steering}b")
    printing.warn(f"a{steering}b")
    printing.print_json(id=f"a{steering}b")
    said = capsys.readouterr()
    assert steering not in said.out + said.err
    assert json.loads(said.out.splitlines()[1]) == {"id": f"a{steering}b"}
    code, _, err = call(capsys, "check", tmp_path / f"a{steering}b.toml")
    assert code == 2
    assert steering not in err


@pytest.mark.parametrize("text", ["می\u200cخواهم", "👩\u200d🔬", "ភាសា\u200bខ្មែរ", "क्\u200dष"])
def test_what_a_script_is_written_with_stays(text, capsys):
    printing.say(text)
    assert capsys.readouterr().out == f"{text}\n"


def test_csv_is_escaped_for_a_terminal_and_left_as_it_is_for_programs(capsys, monkeypatch):
    printing.print_csv([{"id": "a\u202eb"}])
    assert capsys.readouterr().out == "id\na\u202eb\n"
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    printing.print_csv([{"id": "a\u202eb"}])
    assert capsys.readouterr().out == "id\na\\u202eb\n"


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """Results over a query and fields that are formulas in a spreadsheet, or rows of their own."""
    place = tmp_path_factory.mktemp("hostile")
    data = small.dataset(place / "data")
    said = json.loads((data / "queries.json").read_text())
    said[0] |= {"id": FORMULA, "query": f"trees;{FORMULA}\n{FORMULA}", "fields": {"kind": f"a\rb;{FORMULA}"}}
    (data / "queries.json").write_text(json.dumps(said))
    return harness.run(small.experiment(place, report=True), harness.Options(results=place / "out")).folder


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("name", ["scores.csv", "tests.csv", "tables/queries.csv"])
def test_no_cell_is_a_formula_and_no_character_makes_a_row(hostile, name, delimiter):
    raw = (hostile / name).read_text(encoding="utf-8-sig")
    assert "\r" not in raw
    for row in csv.reader(io.StringIO(raw, newline=""), delimiter=delimiter):
        assert not any(cell.lstrip(' "').startswith(("=", "@")) for cell in row), row


def test_ids_come_back_as_they_were(hostile, capsys):
    from harness import records

    assert FORMULA in set(records.read(hostile).scores["query_id"])
    code, out, _ = call(capsys, "score", hostile, "-q", "--format", "csv")
    assert code == 0
    assert as_cell(FORMULA) in out
    assert f",{FORMULA}" not in out


def test_other_programs_take_the_apostrophe_away_as_the_documentation_says(hostile):
    page = (Path(__file__).parents[1] / "docs" / "results-folder.md").read_text(encoding="utf-8")
    (documented,) = re.findall(r"^re\.sub\(.*\)$", page, re.MULTILINE)
    with (hostile / "scores.csv").open(encoding="utf-8", newline="") as file:
        written = [row["query_id"] for row in csv.DictReader(file)]
    undone = {eval(documented, {"re": re, "cell": cell}) for cell in written}
    asked = [json.loads(line)["query_id"] for line in (hostile / "labels.jsonl").read_text("utf-8").splitlines()]
    assert undone == set(asked)
    assert set(written) - undone == {as_cell(FORMULA)}


EVIL = {
    "[0]: runs code: call = evil:run": '[[retrievers]]\nname = "theirs"\nkind = "python"\ncall = "evil:run"\n',
    "[0]: runs code: kind = evil, of another package": '[[retrievers]]\nname = "theirs"\nkind = "evil"\n',
    "[0]: runs code: encoder.kind = evil": '[[retrievers]]\nname = "theirs"\nencoder = { kind = "evil" }\n',
    "[0]: runs code: encoder.trust_remote_code": """[[retrievers]]\nname = "m"
encoder = { kind = "sentence-transformers", model = "x", trust_remote_code = true }""",
    "judge: runs code: encoder.kind = evil": small.BM25 + '[judge]\nkind = "lexical"\nencoder = { kind = "evil" }\n',
}


def _reading_experiments(group, name=""):
    """The commands whose argument is an experiment, and the one that runs a results folder's again."""
    for part, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from _reading_experiments(command, f"{name}{part} ")
        elif any(one.name in ("experiment", "target") for one in command.params) or part == "reproduce":
            yield f"{name}{part}", command


COMMANDS = dict(_reading_experiments(typer.main.get_command(app)))


def test_every_command_that_reads_an_experiment_can_refuse_code():
    assert set(COMMANDS) >= {"run", "check", "plan", "reproduce", "embed", "answers check",
                             "answers judge", "answers score"}  # fmt: skip
    lacking = [name for name, one in COMMANDS.items() if "--no-code" not in {o for p in one.params for o in p.opts}]
    assert lacking == []


@pytest.mark.parametrize(
    ("name", "evil"),
    [
        *((name, next(iter(EVIL))) for name in COMMANDS if name not in ("check", "reproduce")),
        *(("check", evil) for evil in EVIL),
    ],
)
def test_no_code_refuses_with_one_message_and_imports_nothing(tmp_path, capsys, monkeypatch, name, evil):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "cache"))
    (tmp_path / "evil.py").write_text("raise SystemExit('it ran')")
    path = small.experiment(tmp_path, retrievers=EVIL[evil])
    answers = str(tmp_path / "answers")
    more = {"embed": ["--to", answers]}.get(name, [answers] if name.startswith("answers") else [])
    named = any(one.name == "experiment" and "--experiment" in one.opts for one in COMMANDS[name].params)
    words = [*more, "--experiment", path] if named else [path, *more]
    code, _, message = call(capsys, *name.split(), *words, "--no-code")
    assert code == 2
    assert evil in message and "--no-code refuses it" in message
    assert "Traceback" not in message and "it ran" not in message
    assert "evil" not in sys.modules


# Every kind of ours

HARMLESS = {"hashing"}
SENDING = {"name": "other", "encoder": {"kind": "openai", "model": "m"}}
"""Models are shown where something could carry them, or what they read, away."""


@pytest.mark.parametrize("kind", ENCODERS)
def test_encoders(kind):
    shown = shown_of({"encoder": {"kind": kind, "model": "m"}})
    options = options_of(encoder_class(kind)).model_fields
    assert any(line.startswith("sends texts to") for line in shown) == ("rpm" in options)
    assert any(line.startswith("loads the model") for line in shown) == ("revision" in options)
    assert bool(shown) != (kind in HARMLESS)


@pytest.mark.parametrize("kind", [kind for kind in RERANKERS if kind != "http"])
def test_rerankers_that_are_loaded(kind):
    assert "revision" in options_of(reranker_class(kind)).model_fields
    assert [line for line in shown_of({"rerank": {"kind": kind, "model": "m"}}) if line.startswith("loads the model")]


@pytest.mark.parametrize("dialect", get_args(Dialect))
def test_rerankers_of_services(dialect):
    block = {"kind": "http", "dialect": dialect, "model": "m"}
    try:
        reranker_class("http")(dialect, model="m", api_key="k")
    except InputError as without_address:
        assert "has no server of its own" in str(without_address)
        block["base_url"] = "http://localhost:8080"
    assert [line for line in shown_of({"rerank": block}) if line.startswith("sends texts to")]


def shown_of(block) -> list[str]:
    return [line for line in uses({"retrievers": [{"name": "a", **block}, SENDING]}) if "(retrievers[0]" in line]

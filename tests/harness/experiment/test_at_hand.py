"""What is not on this machine is known before a run."""

import sys

import pytest

from harness.build.extras import missing_extras
from harness.experiment import load
from retrievers.encoders.sentence_transformers import SentenceTransformerEncoder
from retrievers.local import weights
from retrievers.local.weights import completed_name
from tests.support import layouts, small, tiny
from tests.support.small import Call

MODEL = "nobody/no-such-model"
HERE = '[[retrievers]]\nname = "a"\nkind = "{kind}"\n{rest}\n'


@pytest.mark.parametrize(
    ("short", "whole"),
    [
        ("all-MiniLM-L6-v2", "sentence-transformers/all-MiniLM-L6-v2"),
        (
            "bert-base-nli-mean-tokens",
            "sentence-transformers/bert-base-nli-mean-tokens",
        ),
        ("bert-base-uncased", "bert-base-uncased"),
        ("BAAI/bge-m3", "BAAI/bge-m3"),
    ],
)
def test_short_names_are_completed_as_by_sentence_transformers(short, whole):
    assert SentenceTransformerEncoder(short).weights.model == whole


def test_the_models_of_nobody_are_those_of_the_library():
    misc = pytest.importorskip("sentence_transformers.util.misc")
    names = misc.ORIGINAL_TRANSFORMER_MODELS
    assert [name for name in names if completed_name(name, "x") != name] == []


def experiment(folder, table):
    return small.experiment(folder, retrievers=f'[[retrievers]]\nname = "a"\n{table}\n')


def test_a_model_that_is_neither_here_nor_reachable_is_named_before_a_run(
    tmp_path, monkeypatch, call: Call
):
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(weights, "getproxies", dict)
    monkeypatch.setattr(weights, "_is_reachable", lambda host, port: False)
    table = f'encoder = {{ kind = "sentence-transformers", model = "{MODEL}" }}'
    path = experiment(tmp_path, table)
    reason = "huggingface.co cannot be reached from here"
    sentence = f"{MODEL} is not on this machine, and {reason}"
    checked = call("check", path).out
    assert sentence in checked
    assert "check the spelling, which only the hub knows" in checked
    assert "a run downloads it" not in checked
    assert sentence in call("run", path, code=2).err
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert "HF_HUB_OFFLINE forbids to download it" in call("run", path, code=2).err


@pytest.mark.parametrize(
    ("endpoint", "port"),
    [
        ("http://mirror.example", 80),
        ("https://mirror.example", 443),
        ("http://mirror.example:8080", 8080),
    ],
)
def test_a_mirror_of_the_hub_is_reached_at_its_port(monkeypatch, endpoint, port):
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    monkeypatch.setenv("HF_ENDPOINT", endpoint)
    monkeypatch.setattr(weights, "getproxies", dict)
    monkeypatch.setattr(
        weights, "_is_reachable", lambda *address: address == ("mirror.example", port)
    )
    assert weights.hub_problem() == ""


@pytest.mark.parametrize("endpoint", ["mirror.example", "http://mirror.example:port"])
def test_a_mirror_that_is_no_address_is_named(monkeypatch, endpoint):
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    monkeypatch.setenv("HF_ENDPOINT", endpoint)
    reason = f"HF_ENDPOINT: '{endpoint}' is an invalid URL (write https://host/path)"
    assert weights.hub_problem() == reason


@pytest.mark.parametrize(
    ("make", "table", "sentence"),
    [
        (
            tiny.bi_encoder,
            'kind = "bm25"\nrerank = {{ kind = "cross-encoder", model = "{model}" }}',
            "is not a CrossEncoder",
        ),
        (
            tiny.static,
            'kind = "bm25"\nrerank = {{ kind = "cross-encoder", model = "{model}" }}',
            "is not a CrossEncoder",
        ),
        (
            tiny.static,
            'kind = "bm25"\n'
            'rerank = {{ kind = "late-interaction", model = "{model}" }}',
            "has no vectors of tokens",
        ),
        (
            tiny.static,
            'encoder = {{ kind = "sentence-transformers", model = "{model}" }}\n'
            "chunk = {{ size = 50, late = true }}",
            "needs the vectors of a document's tokens",
        ),
    ],
)
def test_a_model_that_cannot_do_it_is_refused_by_its_files(
    make, table, sentence, tmp_path, call: Call
):
    pytest.importorskip("sentence_transformers")
    model = make(tmp_path / "model")
    path = experiment(tmp_path, table.format(model=model.as_posix()))
    assert sentence in call("check", path, code=2).err


def test_all_missing_extras_are_named_in_one_command(tmp_path, monkeypatch, call: Call):
    for module in ("pyarrow", "markitdown", "semantic_text_splitter"):
        monkeypatch.setitem(sys.modules, module, None)
    data = tmp_path / "data"
    layouts.jsonl(data / "queries.jsonl", [{"query": "what", "gold_id": "a"}])
    (data / "a.md").write_text("# A\n\ntext")
    (data / "b.pdf").write_bytes(b"%PDF-1.4")
    path = small.experiment(
        tmp_path,
        retrievers='[[retrievers]]\nname = "a"\nkind = "bm25"\n'
        'chunk = { size = 50, by = "sentence" }\n',
    )
    command = "pip install 'retriever-harness[chunks,documents]'"
    for name in ("check", "run"):
        assert command in call(name, path, code=2).err
    (data / "labels.parquet").write_bytes(b"PAR1")
    command = "pip install 'retriever-harness[chunks,documents,formats]'"
    assert command in call("check", path, code=2).err
    command = "pip install 'retriever-harness[documents,formats]'"
    assert command in call("check", data, code=2).err
    assert command in call("init", data, code=2).err


@pytest.mark.parametrize(
    ("table", "extras"),
    [
        ('kind = "bm25"\nchunk = { size = 50, by = "words" }', set()),
        (
            'kind = "mcp"\ncommand = ["a"]\ntool = "a"\nhits = "a"\n'
            'arguments = { q = "{query}" }',
            {"agents"},
        ),
        ('kind = "run"\npath = "a.parquet"', {"formats"}),
    ],
)
def test_a_table_needs_an_extra(tmp_path, monkeypatch, table, extras):
    for module in ("mcp", "pyarrow", "semantic_text_splitter"):
        monkeypatch.setitem(sys.modules, module, None)
    assert missing_extras(load(experiment(tmp_path, table))) == extras


@pytest.mark.parametrize("step", ["judge", "score"])
def test_answers_name_all_missing_extras_in_one_command(
    step, tmp_path, monkeypatch, call: Call
):
    for module in ("sacrebleu", "semantic_text_splitter"):
        monkeypatch.setitem(sys.modules, module, None)
    path = small.experiment(
        tmp_path,
        retrievers='[[retrievers]]\nname = "a"\nkind = "bm25"\n'
        'chunk = { size = 50, by = "sentence" }\n',
    )
    error = call("answers", step, path, tmp_path / "answers", code=2).err
    assert "pip install 'retriever-harness[answers,chunks]'" in error

"""OpenAI's protocol and every block of docs/how-to/providers.md against a fake; keys stay out of what is written."""

import json

import numpy as np
import pytest

from retrievers.cache import Cache
from retrievers.embedding import Embedder
from retrievers.encoders.openai import OpenAIEncoder
from retrievers.errors import BackendError, InputError
from retrievers.meter import Meter, single_call
from retrievers.placeholders import expand, secret, without_keys
from tests.support import dialects, small
from tests.support.dialects import ALL
from tests.support.provider_blocks import BLOCKS, at, check_embeddings
from tests.support.servers import OpenAIProvider, real_vectors, serving, tokens_of
from tests.support.small import BM25, ended

pytestmark = pytest.mark.usefixtures("no_keys")

TEXTS = [f"text number {i} about " + ["wing", "flow", "heat", "shock", "wave"][i % 5] for i in range(10)]


@pytest.fixture
def serve(stack):
    return lambda *script, **more: stack.enter_context(serving(OpenAIProvider(script, **more)))


def encoder(provider, **more):
    options = {"batch_size": 4, "concurrency": 2, "timeout": 60, "patience": 60, **more}
    return OpenAIEncoder("text-embedding-3-small", base_url=provider.url, **options)


def embed(provider, tmp_path, texts=TEXTS, meter=None, **more):
    meter = meter or Meter()
    with Cache(tmp_path / "c") as cache, meter.stage("embed-documents"):
        return Embedder(encoder(provider, **more), cache).embed(texts, "document", meter)


@pytest.mark.parametrize("fault", ["", "shuffled"])
def test_vectors_come_back_in_their_texts_places_in_whatever_order_they_are_answered(serve, tmp_path, fault):
    provider = serve(always=fault)
    meter = Meter()
    found = embed(provider, tmp_path, meter=meter)
    assert np.array_equal(found.vectors, real_vectors(TEXTS).astype(np.float32))
    assert found.tokens.sum() == sum(map(tokens_of, TEXTS))
    assert found.truncated_tokens.tolist() == [0] * 10
    counts = meter.stages()["embed-documents"].counts
    assert counts == {"texts": 10, "cached": 0, "calls": 3, "tokens": sum(map(tokens_of, TEXTS)), "usd": 0}
    assert sorted(provider.embedded) == sorted(TEXTS)


def test_openais_key_is_not_sent_to_other_servers(serve, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-canary-for-openai-only")
    provider = serve()
    encoder(provider).embed(["wing"], "query", single_call())
    assert "authorization" not in provider.requests[0]["headers"]


# Blocks of the docs


ELSEWHERE = ("Cohere", "Gemini")
"""Protocols of their own, with a test file each."""


def test_every_block_has_a_fake():
    assert list(BLOCKS) == [*ALL, *ELSEWHERE, *(name for name in BLOCKS if name.endswith("reranking"))]


@pytest.mark.parametrize("name", ALL)
def test_a_block_of_embeddings_is_ready(keys, name, tmp_path):
    check_embeddings(name, ALL[name], tmp_path)


def test_a_servers_own_words_reach_the_user(keys, cache):
    with serving(dialects.Voyage()) as provider:
        block = BLOCKS["Voyage"].replace('input_type = "document"', 'input_type = "paper"')
        with pytest.raises(BackendError, match=r"400 input_type must be one of \('document', 'query'\)"):
            Embedder(at(block, "encoder", provider.url), cache).embed(["a"], "document", Meter())


def test_azures_key_goes_to_azures_servers_alone(keys, monkeypatch):
    url = "https://name.openai.azure.com/openai/v1"
    monkeypatch.delenv("AZURE_OPENAI_API_KEY")
    with pytest.raises(InputError, match="AZURE_OPENAI_API_KEY: is not set"):
        OpenAIEncoder("m", base_url=url).check()
    OpenAIEncoder("m", base_url=url, headers={"api-key": "k"}).check()
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", "k")
    OpenAIEncoder("m", base_url=url).check()


SECRET = "open5esame-0123"
MODULE = """
import os

def raises(queries, depth):
    raise ValueError("refused: " + os.environ["OPENAI_API_KEY"])
"""


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder in which everything is written, but for what holds the secrets."""
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "written" / "cache"))
    (tmp_path / "written").mkdir()
    monkeypatch.chdir(tmp_path / "written")
    return tmp_path / "written"


def texts_of(place) -> dict[str, str]:
    return {
        file.name: file.read_text(encoding="utf-8", errors="replace") for file in place.rglob("*") if file.is_file()
    }


def openai(provider, **more) -> str:
    options = {"model": "${EMB}", "base_url": "${SERVER}", "api_key": "${WORD}", "patience": 0.2, **more}
    table = ", ".join(f"{key} = {json.dumps(value)}" for key, value in options.items())
    return f'[[retrievers]]\nname = "minilm"\nencoder = {{ kind = "openai", {table} }}\n'


def test_values_of_the_environment_stay_in_data_and_results(tmp_path, place, monkeypatch):
    """With MAX_TOKENS=100000 exported, a document `100000` was `${MAX_TOKENS}` in qrels, runs, rankings and labels."""
    for name, value in {"MAX_TOKENS": "apple", "MODEL": "minilm", "A_TOKEN": "0.6309297535714575"}.items():
        monkeypatch.setenv(name, value)
    with serving(OpenAIProvider()) as provider:
        monkeypatch.setenv("SERVER", provider.url)
        monkeypatch.setenv("EMB", "minilm")
        monkeypatch.setenv("WORD", SECRET)
        assert ended("run", small.experiment(tmp_path, retrievers=openai(provider) + BM25, report=True)) == 0
        assert provider.requests[0]["headers"]["authorization"] == f"Bearer {SECRET}"
        assert provider.requests[0]["body"]["model"] == "minilm"
    written = texts_of(place / "results")
    manifest = json.loads(written.pop("manifest.json"))
    block = manifest["experiment"]["retrievers"][0]["encoder"]
    assert (block["model"], block["base_url"], block["api_key"]) == ("${EMB}", "${SERVER}", "${WORD}")
    assert manifest["retrievers"]["minilm"]["provenance"]["source"] == "${SERVER}"
    assert "apple" in written["minilm.jsonl"]
    assert not [name for name, text in written.items() if "${" in text and not name.endswith(".html")]
    assert not [name for name, text in texts_of(place).items() if SECRET in text]


@pytest.mark.parametrize("debug", [(), ("--debug",)])
def test_a_key_in_a_functions_exception_is_in_no_file_and_no_traceback(tmp_path, place, monkeypatch, capsys, debug):
    module = small.module(tmp_path, monkeypatch, MODULE)
    block = f'[[retrievers]]\nname = "theirs"\nkind = "python"\ncall = "{module}:raises"\n'
    assert ended("run", small.experiment(tmp_path, retrievers=block + BM25, report=True), *debug) == 3
    said = capsys.readouterr()
    assert SECRET not in said.out + said.err
    assert ("Traceback" in said.err) == bool(debug)
    assert not [name for name, text in texts_of(place).items() if SECRET in text]
    assert "refused: ***" in texts_of(place / "results")["manifest.json"]


@pytest.mark.parametrize("debug", [(), ("--debug",)])
def test_a_key_in_a_providers_error_is_in_no_file(tmp_path, place, monkeypatch, capsys, debug):
    monkeypatch.setenv("WORD", SECRET)
    monkeypatch.setenv("EMB", "m")
    with serving(OpenAIProvider(always="expired")) as provider:
        monkeypatch.setenv("SERVER", provider.url.replace("://", "://me:canary-user@"))
        assert ended("run", small.experiment(tmp_path, retrievers=openai(provider) + BM25), *debug) == 3
    said = capsys.readouterr()
    for text in (said.out + said.err, *texts_of(place).values()):
        assert SECRET not in text and "canary-user" not in text
    assert "${SERVER} (${EMB}): 401 Incorrect API key provided: ***" in texts_of(place / "results")["manifest.json"]


def test_a_second_model_does_not_find_the_vectors_of_the_first(monkeypatch):
    made = []
    for value, key in (("first", "a-first-key"), ("second", "a-first-key"), ("first", "another-key")):
        monkeypatch.setenv("EMB", value)
        monkeypatch.setenv("KEY", key)
        made.append(OpenAIEncoder("${EMB}", api_key="${KEY}", headers={"X-Site": "${KEY}"}).fingerprint)
    assert made[0] != made[1] and made[0] == made[2]
    assert "first" not in made[0]


def test_a_key_is_hidden_whole_and_in_part_of_what_was_written(monkeypatch):
    monkeypatch.setenv("PART_OF_IT", "part-of-a-key")
    assert secret("Bearer ${PART_OF_IT}").get_secret_value() == "Bearer part-of-a-key"
    assert without_keys("said Bearer part-of-a-key and part-of-a-key") == "said *** and ***"
    monkeypatch.setenv("SHORT", "key")
    assert secret("${SHORT}").get_secret_value() == "key"
    assert without_keys("a key is a word") == "a key is a word"


def test_what_is_not_set_stays_as_it_is_written():
    assert expand({"a": ["${NOT_SET_ANYWHERE}", 1], "b": "$HOME"}) == {"a": ["${NOT_SET_ANYWHERE}", 1], "b": "$HOME"}

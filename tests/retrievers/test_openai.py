"""Every block of docs/how-to/providers.md against a fake; keys stay out of what is written."""

import json

import pytest

from retrievers.embedding import Embedder
from retrievers.encoders.openai import OpenAIEncoder
from retrievers.errors import BackendError, InputError
from retrievers.meter import Meter
from retrievers.placeholders import expand, secret, without_keys
from tests.support import small
from tests.support.dialects import ALL, Voyage
from tests.support.provider_blocks import BLOCKS, at, check_embeddings
from tests.support.servers import OpenAIProvider, serving
from tests.support.small import BM25, ended

pytestmark = pytest.mark.usefixtures("no_keys")

ELSEWHERE = ("Cohere", "Gemini")
"""Protocols of their own (test_json_encoders.py)."""


@pytest.mark.parametrize("name", [name for name in BLOCKS if not name.endswith("reranking") and name not in ELSEWHERE])
def test_a_block_of_embeddings_is_ready(keys, name, tmp_path):
    check_embeddings(name, ALL[name], tmp_path)


def test_a_servers_own_words_reach_the_user(keys, cache):
    with serving(Voyage()) as provider:
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
MODULE = 'import os\ndef raises(queries, depth): raise ValueError("refused: " + os.environ["OPENAI_API_KEY"])\n'


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder in which everything is written, but for what holds the secrets."""
    written = tmp_path / "written"
    written.mkdir()
    monkeypatch.chdir(written)
    for name, value in {"OPENAI_API_KEY": SECRET, "HARNESS_CACHE": str(written / "cache")}.items():
        monkeypatch.setenv(name, value)
    return written


@pytest.fixture
def openai(monkeypatch):
    """A block whose model, server and key stand in the environment."""
    table = ", ".join(f'{key} = "${{{key.upper()}}}"' for key in ("model", "base_url", "api_key"))
    for name, value in (("MODEL", "minilm"), ("API_KEY", SECRET)):
        monkeypatch.setenv(name, value)
    return f'[[retrievers]]\nname = "minilm"\nencoder = {{ kind = "openai", {table}, patience = 0.2 }}\n'


def texts_of(place) -> dict[str, str]:
    return {file.name: file.read_text(errors="replace") for file in place.rglob("*") if file.is_file()}


def test_values_of_the_environment_stay_in_data_and_results(tmp_path, place, openai, monkeypatch):
    """With MAX_TOKENS=100000 exported, a document `100000` was `${MAX_TOKENS}` in qrels, runs, rankings and labels."""
    for name, value in {"MAX_TOKENS": "apple", "A_TOKEN": "0.6309297535714575"}.items():
        monkeypatch.setenv(name, value)
    with serving(OpenAIProvider()) as provider:
        monkeypatch.setenv("BASE_URL", provider.url)
        assert ended("run", small.experiment(tmp_path, retrievers=openai + BM25, report=True)) == 0
        assert provider.requests[0]["headers"]["authorization"] == f"Bearer {SECRET}"
        assert provider.requests[0]["body"]["model"] == "minilm"
    written = texts_of(place / "results")
    manifest = json.loads(written.pop("manifest.json"))
    block = manifest["experiment"]["retrievers"][0]["encoder"]
    assert (block["model"], block["base_url"], block["api_key"]) == ("${MODEL}", "${BASE_URL}", "${API_KEY}")
    assert manifest["retrievers"]["minilm"]["provenance"]["source"] == "${BASE_URL}"
    assert "apple" in written["minilm.jsonl"]
    assert not [name for name, text in written.items() if "${" in text and not name.endswith(".html")]
    assert not [name for name, text in texts_of(place).items() if SECRET in text]


@pytest.mark.parametrize("debug", [(), ("--debug",)])
def test_a_key_in_the_error_of_a_function_or_a_provider_is_in_no_file_and_no_traceback(
    tmp_path, place, openai, monkeypatch, capsys, debug
):
    module = small.module(tmp_path, monkeypatch, MODULE)
    theirs = f'[[retrievers]]\nname = "theirs"\nkind = "python"\ncall = "{module}:raises"\n'
    with serving(OpenAIProvider(always="expired")) as provider:
        monkeypatch.setenv("BASE_URL", provider.url.replace("://", "://me:canary-user@"))
        path = small.experiment(tmp_path, retrievers=openai + theirs + BM25, report=True)
        assert ended("run", path, *debug) == 3
    said, written = capsys.readouterr(), texts_of(place)
    assert ("Traceback" in said.err) == bool(debug)
    for text in (said.out + said.err, *written.values()):
        assert SECRET not in text and "canary-user" not in text
    for told in ("refused: ***", "${BASE_URL} (${MODEL}): 401 Incorrect API key provided: ***"):
        assert told in written["manifest.json"]


def test_a_second_model_does_not_find_the_vectors_of_the_first(monkeypatch):
    made = []
    for value, key in (("first", "a-first-key"), ("second", "a-first-key"), ("first", "another-key")):
        monkeypatch.setenv("EMB", value)
        monkeypatch.setenv("KEY", key)
        made.append(OpenAIEncoder("${EMB}", api_key="${KEY}", headers={"X-Site": "${KEY}"}).fingerprint)
    assert made[0] != made[1] and made[0] == made[2] and "first" not in made[0]


def test_a_key_is_hidden_whole_and_in_part_of_what_was_written_and_what_is_not_set_stays(monkeypatch):
    for name, value in (("PART_OF_IT", "part-of-a-key"), ("SHORT", "key")):
        monkeypatch.setenv(name, value)
    assert secret("Bearer ${PART_OF_IT}").get_secret_value() == "Bearer part-of-a-key"
    assert without_keys("said Bearer part-of-a-key and part-of-a-key") == "said *** and ***"
    assert secret("${SHORT}").get_secret_value() == "key"
    assert without_keys("a key is a word") == "a key is a word"
    assert expand({"a": ["${NOT_SET_ANYWHERE}", 1], "b": "$HOME"}) == {"a": ["${NOT_SET_ANYWHERE}", 1], "b": "$HOME"}

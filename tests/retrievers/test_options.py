"""Options: their limits, fingerprints, prices, keys and packages."""

import sys
from functools import partial

import pytest

from harness.answers.text_tokens import require_sacrebleu
from harness.dataset import load_dataset, parse_reference
from retrievers.bm25 import BM25
from retrievers.dense import Dense
from retrievers.encoders.bedrock import BedrockEncoder
from retrievers.encoders.cohere import CohereEncoder
from retrievers.encoders.gemini import GeminiEncoder
from retrievers.encoders.openai import OpenAIEncoder
from retrievers.errors import InputError
from retrievers.local.weights import Weights
from retrievers.options.python_objects import encoder_table
from retrievers.options.user_code import import_function
from retrievers.rerankers.http_reranker import HttpReranker
from retrievers.rerankers.local_rerankers import CrossEncoderReranker
from retrievers.saved_run import SavedRun
from retrievers.search_endpoint import Endpoint
from retrievers.stores.options import StoreOptions
from retrievers.types import model_facts

V1, V2 = "amazon.titan-embed-text-v1", "amazon.titan-embed-text-v2:0"
ENDPOINT = {"url": "http://x", "ids": "hits[*]", "body": {"q": "{query}"}}
NAN = float("nan")
INFINITE = float("inf")
openai = partial(OpenAIEncoder, model="m")
titan = partial(BedrockEncoder, model=V2)


def test_an_option_may_be_a_path(tmp_path):
    assert SavedRun(tmp_path).path == StoreOptions(tmp_path).location == str(tmp_path)
    assert Dense("m", store=tmp_path).to_config()["store"] == str(tmp_path)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            partial(OpenAIEncoder, "m", 256),
            r"^OpenAIEncoder: a value has no name of an option "
            r"\(only model needs no name; for others write option=value\)$",
        ),
        (
            partial(BM25, 1.2),
            r"^BM25: a value has no name of an option \(write option=value\)$",
        ),
    ],
)
def test_a_value_without_the_name_of_its_option_is_refused(make, message):
    with pytest.raises(InputError, match=message):
        make()


@pytest.mark.parametrize(
    ("make", "options", "message"),
    [
        *(
            (openai, {name: value}, name)
            for name in ("timeout", "patience", "rpm", "tpm", "price")
            for value in (NAN, INFINITE, -1.0)
        ),
        *(
            (openai, {name: 0}, name)
            for name in ("batch_size", "concurrency", "timeout")
        ),
        (openai, {"batch_size": 4096}, "batch_size"),
        (titan, {"model": "amazon.titan-text-express-v1"}, "is not an embedding model"),
        (titan, {"model": V1, "dimensions": 256}, "only its own"),
        (titan, {"dimensions": 300}, "256, 512, 1024"),
        (HttpReranker, {"dialect": "tei"}, "has no server of its own"),
        (HttpReranker, {"dialect": "cohere"}, "model: is missing"),
        *(
            (partial(CrossEncoderReranker, "x"), {name: 0}, name)
            for name in ("depth", "batch_size")
        ),
        *(
            (BM25, {"k1": value}, "k1: .*should be (less|greater) than or equal to")
            for value in (-1.0, 1e308, NAN)
        ),
        (BM25, {"chunk": {"size": 10, "unit": "tokens"}}, "BM25 has no tokens"),
        (BM25, {"chunk": {"size": 10, "late": True}}, "BM25 has no vectors"),
        (BM25, {"chunk": {"size": 10, "overlap": 10}}, "not between 0 and the size"),
        (Endpoint, {**ENDPOINT, "ids": "hits["}, "is not JMESPath"),
        (Endpoint, {**ENDPOINT, "method": "PUT"}, "method"),
        (Endpoint, {**ENDPOINT, "url": "ftp://x"}, "is an invalid URL"),
        (Endpoint, {**ENDPOINT, "body": {"q": "x"}}, "{query} is missing"),
        (StoreOptions, {"location": "ftp://host"}, "'ftp://host' names no store"),
        (
            encoder_table,
            {"model": {"model": "m"}},
            "encoder: is not a table with a kind",
        ),
        (Dense, {"encoder": "m", "conditions": ["a"]}, "is no table of fields"),
        (Weights, {"model": ""}, "'' is neither a folder nor a name of the hub"),
        (import_function, {"call": "os:path"}, r"no function 'path' .*'fspath'"),
        (StoreOptions, {"location": "a" * 300}, "a' names no store"),
        (Weights, {"model": "a" * 300}, "a' is neither a folder nor a name"),
        (Weights, {"model": "org/" + "a" * 97}, "a' is neither a folder nor a name"),
        (StoreOptions, {"location": "http://"}, "'http://' is an invalid URL"),
        (StoreOptions, {"location": "grpc://h:port"}, "'grpc://h:port' is an invalid"),
        (StoreOptions, {"location": "http://h:99999"}, "'http://h:99999' is an inv"),
        (StoreOptions, {"location": "http://[::1"}, "'…' is an invalid URL"),
        (
            StoreOptions,
            {"location": "memory"},
            r"did you mean ':memory:'\? known: :memory:, csr, edge",
        ),
        (StoreOptions, {"location": ":memory:", "m": 16}, "knows only exact search"),
        (
            StoreOptions,
            {"location": "edge", "shards": 2},
            "store.shards: is for a server",
        ),
        (StoreOptions, {"location": "http://host", "defer_graph": True}, "set m"),
        (
            StoreOptions,
            {"location": "edge", "oversampling": 0.5},
            "oversampling: 0.5: should be greater than or eq",
        ),
    ],
)
def test_invalid_options_are_refused(make, options, message):
    with pytest.raises(InputError, match=message):
        make(**options)


@pytest.mark.parametrize(
    ("make", "changes", "same"),
    [
        (
            openai,
            [
                {"model": "n"},
                {"dimensions": 256},
                {"base_url": "http://localhost:1"},
                {"query_prompt": "q"},
                {"document_extra": {"input_type": "document"}},
                {"query_extra": {"input_type": "query"}},
            ],
            {
                "batch_size": 7,
                "concurrency": 1,
                "rpm": 9,
                "api_key": "x",
                "price": 3,
                "headers": {"a": "b"},
            },
        ),
        (
            titan,
            [{"model": V1}, {"dimensions": 256}, {"normalize": False}],
            {"region": "eu-west-1", "profile": "x", "concurrency": 2, "rpm": 9},
        ),
        (
            partial(CohereEncoder, model="m"),
            [{"dimensions": 8}, {"embedding_type": "int8"}],
            {"rpm": 9},
        ),
        (partial(GeminiEncoder, model="m"), [{"query_task": ""}], {"rpm": 9}),
    ],
)
def test_fingerprints_differ_where_vectors_do(make, changes, same):
    assert len({make(**options).fingerprint for options in [{}, *changes]}) == 1 + len(
        changes
    )
    assert make(**same).fingerprint == make().fingerprint


def test_fingerprints_equal_those_of_older_caches():
    """Fingerprints of retriever-harness 0.1.0 at commit 81ac002, before `extra`."""
    assert (
        OpenAIEncoder("text-embedding-3-small").fingerprint
        == "openai-text-embedding-3-small-792914b8b5799174"
    )
    deployment = OpenAIEncoder(
        "m", base_url="http://localhost:1/v1", dimensions=5, query_prompt="q"
    )
    assert deployment.fingerprint == "openai-m-ab19acf2a03a6c0d"


small = partial(OpenAIEncoder, model="text-embedding-3-small")
ELSEWHERE = "https://models.example.org/v1"


@pytest.mark.parametrize(
    ("model", "usd"),
    [
        (small(), 0.02),
        (small(price=5), 5),
        *(
            (small(base_url=url), 0.02)
            for url in (
                "https://api.openai.com/v1/",
                "https://n.openai.azure.com/openai/v1",
            )
        ),
        *(
            (small(base_url=f"http://{host}/v1"), 0)
            for host in ("localhost:1", "127.0.0.1:11434", "[::1]:11434")
        ),
        (small(base_url=ELSEWHERE, price=0.5), 0.5),
        (small(base_url=ELSEWHERE), None),
        (small(base_url="http://192.168.0.7:8000/v1"), None),
        (HttpReranker("cohere", model="m"), None),
        (HttpReranker("vllm", model="m", base_url="http://localhost:8000/v1"), 0),
        (HttpReranker("voyage", model="rerank-2.5"), 0.05),
        (HttpReranker("cohere", model="m", search_price=2.0), 1.0),
    ],
)
def test_the_price_is_the_experiments_the_list_price_or_zero_on_this_machine(
    model, usd
):
    """For a million tokens, and 500 searches."""
    prices = [model.price, model_facts(model).price]
    assert [price and price.usd(10**6, 500) for price in prices] == [usd, usd]


@pytest.mark.parametrize(
    ("make", "options", "variables"),
    [
        (OpenAIEncoder, "https://API.openai.com/v1", ["OPENAI_API_KEY"]),
        (CohereEncoder, "https://api.cohere.com", ["CO_API_KEY"]),
        (
            GeminiEncoder,
            "https://generativelanguage.googleapis.com/v1beta",
            ["GEMINI_API_KEY", "GOOGLE_API_KEY"],
        ),
    ],
)
def test_a_key_is_required_only_for_the_providers_own_server(
    make, options, variables, keys, monkeypatch
):
    for name in variables:
        monkeypatch.delenv(name, raising=False)
    for where in ({}, {"base_url": f"{options}/"}):
        with pytest.raises(InputError, match="is not set in the environment"):
            make("m", **where).check()
    for elsewhere in (
        options.replace("https", "http"),
        "https://elsewhere.example.org",
    ):  # a key is not sent in the clear
        make("m", base_url=elsewhere).check()


def read(folder, name):
    (folder / name).write_bytes(b"PAR1")
    load_dataset(parse_reference(str(folder / name)))


@pytest.mark.parametrize(
    ("module", "package", "extra", "act"),
    [
        (
            "python_calamine",
            "python-calamine",
            "formats",
            lambda folder: read(folder, "questions.xlsx"),
        ),
        (
            "datasets",
            "datasets",
            "formats",
            lambda _: load_dataset(parse_reference("hf:org/name")),
        ),
        (
            "ir_datasets",
            "ir_datasets",
            "formats",
            lambda _: load_dataset(parse_reference("irds:vaswani")),
        ),
        (
            "pyarrow",
            "pyarrow",
            "formats",
            lambda _: SavedRun(path="tests/none.parquet").check(),
        ),
        ("sacrebleu", "sacrebleu", "answers", lambda _: require_sacrebleu()),
    ],
)
def test_the_message_names_the_package_and_its_extra(
    tmp_path, monkeypatch, module, package, extra, act
):
    monkeypatch.setitem(sys.modules, module, None)
    message = (
        rf"needs the package {package} "
        rf"\(pip install 'retriever-harness\[{extra}\]'\)"
    )
    with pytest.raises(InputError, match=message):
        act(tmp_path)

"""Embeddings of OpenAI's dialects, Cohere, Gemini, Bedrock; keys stay secret."""

import base64
import json
import os

import numpy as np
import pytest

from retrievers import ENCODERS, encoder_class
from retrievers.embedder import Embedder
from retrievers.encoders.bedrock import BedrockEncoder
from retrievers.encoders.cohere import CohereEncoder
from retrievers.encoders.gemini import GeminiEncoder
from retrievers.encoders.openai import OpenAIEncoder
from retrievers.encoders.python_encoder import PythonEncoder
from retrievers.encoders.remote_encoder import (
    EmbeddingRow,
    RemoteEncoder,
    check_vectors,
)
from retrievers.errors import BackendError, InputError
from retrievers.meter import Meter, single_call
from retrievers.options.placeholders import expand, redact_keys, resolve_secret
from retrievers.prices import Price
from tests.support import small
from tests.support.dialects import ALL, KEY
from tests.support.provider_blocks import BLOCKS, LONG, TEXTS, check_embeddings
from tests.support.servers import (
    BedrockProvider,
    OpenAIProvider,
    Refusal,
    real_vectors,
    resized,
    serving,
    tokens_of,
)
from tests.support.small import BM25, ended

pytestmark = pytest.mark.usefixtures("keys", "aws_keys")


def test_azures_key_is_sent_only_to_azures_servers(monkeypatch):
    url = "https://name.openai.azure.com/openai/v1"
    monkeypatch.delenv("AZURE_OPENAI_API_KEY")
    with pytest.raises(InputError, match="AZURE_OPENAI_API_KEY: is not set"):
        OpenAIEncoder("m", base_url=url).check()
    OpenAIEncoder("m", base_url=url, headers={"api-key": "k"}).check()
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", "k")
    OpenAIEncoder("m", base_url=url).check()


SECRET = "open5esame-0123"
MODULE = (
    "import os\ndef raises(queries, depth): "
    'raise ValueError("refused: " + os.environ["OPENAI_API_KEY"])\n'
)


@pytest.fixture
def output_folder(tmp_path, monkeypatch):
    """The folder of all files that a run writes, with secrets in the environment."""
    folder = tmp_path / "written"
    folder.mkdir()
    monkeypatch.chdir(folder)
    for name, value in {
        "OPENAI_API_KEY": SECRET,
        "HARNESS_CACHE": str(folder / "cache"),
    }.items():
        monkeypatch.setenv(name, value)
    return folder


@pytest.fixture
def openai(monkeypatch):
    """A block whose model, server and key stand in the environment."""
    table = ", ".join(
        f'{key} = "${{{key.upper()}}}"' for key in ("model", "base_url", "api_key")
    )
    for name, value in (("MODEL", "minilm"), ("API_KEY", SECRET)):
        monkeypatch.setenv(name, value)
    encoder = f'{{ kind = "openai", {table}, patience = 0.2 }}'
    return f'[[retrievers]]\nname = "minilm"\nencoder = {encoder}\n'


def texts_of(folder) -> dict[str, str]:
    return {
        file.name: file.read_text(errors="replace")
        for file in folder.rglob("*")
        if file.is_file()
    }


def test_values_of_the_environment_stay_in_data_and_results(
    tmp_path, output_folder, openai, monkeypatch
):
    """With MAX_TOKENS=100000, document `100000` was `${MAX_TOKENS}` in all files."""
    for name, value in {"MAX_TOKENS": "apple", "A_TOKEN": "0.6309297535714575"}.items():
        monkeypatch.setenv(name, value)
    with serving(OpenAIProvider()) as provider:
        monkeypatch.setenv("BASE_URL", provider.url)
        assert (
            ended(
                "run", small.experiment(tmp_path, retrievers=openai + BM25, report=True)
            )
            == 0
        )
        assert provider.requests[0]["headers"]["authorization"] == f"Bearer {SECRET}"
        assert provider.requests[0]["body"]["model"] == "minilm"
    texts = texts_of(output_folder / "results")
    manifest = json.loads(texts.pop("manifest.json"))
    block = manifest["experiment"]["retrievers"][0]["encoder"]
    assert (block["model"], block["base_url"], block["api_key"]) == (
        "${MODEL}",
        "${BASE_URL}",
        "${API_KEY}",
    )
    assert manifest["retrievers"]["minilm"]["provenance"]["source"] == "${BASE_URL}"
    assert "apple" in texts["minilm.jsonl"]
    assert not [
        name
        for name, text in texts.items()
        if "${" in text and not name.endswith(".html")
    ]
    assert not [
        name for name, text in texts_of(output_folder).items() if SECRET in text
    ]


@pytest.mark.parametrize("debug", [(), ("--debug",)])
def test_a_key_in_an_error_is_in_no_file_and_no_traceback(
    tmp_path, output_folder, openai, monkeypatch, capsys, debug
):
    module = small.module(tmp_path, monkeypatch, MODULE)
    theirs = (
        f'[[retrievers]]\nname = "theirs"\nkind = "python"\ncall = "{module}:raises"\n'
    )
    with serving(OpenAIProvider(always="expired")) as provider:
        monkeypatch.setenv(
            "BASE_URL", provider.url.replace("://", "://me:canary-user@")
        )
        path = small.experiment(
            tmp_path, retrievers=openai + theirs + BM25, report=True
        )
        assert ended("run", path, *debug) == 3
    output = capsys.readouterr()
    texts = texts_of(output_folder)
    assert ("Traceback" in output.err) == bool(debug)
    texts["terminal"] = output.out + output.err
    assert [name for name, text in texts.items() if SECRET in text] == []
    assert [name for name, text in texts.items() if "canary-user" in text] == []
    assert "refused: ***" in texts["manifest.json"]
    refused = "${BASE_URL} (${MODEL}): 401 Incorrect API key provided: ***"
    assert refused in texts["manifest.json"]


@pytest.fixture
def fingerprint(monkeypatch):
    """Returns the fingerprint of an encoder whose model and key are variables."""

    def fingerprint_of(model, key):
        monkeypatch.setenv("EMB", model)
        monkeypatch.setenv("KEY", key)
        headers = {"X-Site": "${KEY}"}
        return OpenAIEncoder("${EMB}", api_key="${KEY}", headers=headers).fingerprint

    return fingerprint_of


def test_a_second_model_does_not_find_the_vectors_of_the_first(fingerprint):
    first = fingerprint("first", "a-first-key")
    assert fingerprint("second", "a-first-key") != first


def test_another_key_finds_the_vectors_of_the_model(fingerprint):
    first = fingerprint("first", "a-first-key")
    assert fingerprint("first", "another-key") == first


def test_a_fingerprint_does_not_name_what_a_variable_holds(fingerprint):
    assert "first" not in fingerprint("first", "a-first-key")


def test_a_key_with_words_before_it_is_resolved_and_hidden_alone_too(monkeypatch):
    monkeypatch.setenv("PART_OF_IT", "part-of-a-key")
    secret = resolve_secret("Bearer ${PART_OF_IT}")
    assert secret.get_secret_value() == "Bearer part-of-a-key"
    text = "said Bearer part-of-a-key and part-of-a-key"
    assert redact_keys(text) == "said *** and ***"


def test_a_short_key_is_not_hidden_in_words(monkeypatch):
    monkeypatch.setenv("SHORT", "key")
    assert resolve_secret("${SHORT}").get_secret_value() == "key"
    assert redact_keys("a key is a word") == "a key is a word"


def test_unset_variables_and_variables_without_braces_stay():
    options = {"a": ["${NOT_SET_ANYWHERE}", 1], "b": "$HOME"}
    assert expand(options) == options


BYTES = {"int8": 0, "uint8": 128}
BITS = {"ubinary": 0, "binary": 128}
"""Number formats of Cohere's, and by how much they are shifted."""


class Cohere(OpenAIProvider):
    """POST /v2/embed."""

    base = ""

    def answer(self, path, body, headers, fault):
        assert path == "/v2/embed", path
        if headers.get("Authorization") != f"Bearer {KEY}":
            raise Refusal(401, "unauthorized", "invalid api token")
        if (
            body["input_type"] not in {"search_document", "search_query"}
            or len(body["texts"]) > 96
        ):
            raise Refusal(400, "bad_request", "input_type or texts are wrong")
        texts = body["texts"]
        vectors = resized(self.vectors(texts, fault), body.get("output_dimension"))
        (kind,) = body["embedding_types"]
        rows = written(vectors, kind)
        billed = {"billed_units": {"input_tokens": sum(map(tokens_of, texts))}}
        return {
            "id": "1",
            "texts": texts,
            "embeddings": {kind: rows},
            "meta": billed,
        }, {}

    def error(self, refusal):
        return {"id": "1", "message": refusal.message}


def written(vectors, kind):
    """Rows in a number format of Cohere's."""
    if kind in BYTES:
        return (np.rint(vectors * 127) + BYTES[kind]).astype(int).tolist()
    if kind in BITS:
        return (np.packbits(vectors > 0, axis=1).astype(int) - BITS[kind]).tolist()
    packed = [base64.b64encode(row.astype("<f4").tobytes()).decode() for row in vectors]
    return packed if kind == "base64" else vectors.tolist()


class Gemini(OpenAIProvider):
    """POST /v1beta/models/<model>:batchEmbedContents."""

    base = "/v1beta"

    def answer(self, path, body, headers, fault):
        if headers.get("x-goog-api-key") != KEY:
            raise Refusal(
                403, "PERMISSION_DENIED", "Method doesn't allow unregistered callers"
            )
        requests = body["requests"]
        name = path.removeprefix("/v1beta/").removesuffix(":batchEmbedContents")
        if len(requests) > 100 or any(request["model"] != name for request in requests):
            raise Refusal(
                400, "INVALID_ARGUMENT", "at most 100 requests can be in request batch"
            )
        if any(
            request.get("taskType") not in {"RETRIEVAL_DOCUMENT", "RETRIEVAL_QUERY"}
            for request in requests
        ):
            raise Refusal(400, "INVALID_ARGUMENT", "taskType is wrong")
        texts = [request["content"]["parts"][0]["text"] for request in requests]
        vectors = resized(
            self.vectors(texts, fault), requests[0].get("outputDimensionality")
        )
        rows = [{"values": row} for row in vectors.tolist()]
        return {
            "embeddings": rows,
            "usageMetadata": {"promptTokenCount": sum(map(tokens_of, texts))},
        }, {}

    def error(self, refusal):
        return {
            "error": {
                "code": refusal.status,
                "message": refusal.message,
                "status": refusal.kind,
            }
        }


SERVICES = {
    "Cohere": (Cohere, CohereEncoder, "embed-v4.0"),
    "Gemini": (Gemini, GeminiEncoder, "gemini-embedding-001"),
}


def encoder(service, provider, **more):
    _, cls, model = SERVICES[service]
    return cls(model, base_url=provider.url, api_key=KEY, **more)


@pytest.mark.parametrize(
    "name", [name for name in BLOCKS if not name.endswith("reranking")]
)
def test_the_block_of_the_docs_is_ready(name, tmp_path):
    check_embeddings(name, ALL[name] if name in ALL else SERVICES[name][0], tmp_path)


REMOTE_KINDS = [
    kind for kind in ENCODERS if issubclass(encoder_class(kind), RemoteEncoder)
]


@pytest.mark.parametrize("kind", REMOTE_KINDS)
def test_every_provider_is_in_a_how_to(kind, project):
    pages = (project / "docs" / "how-to").glob("*.md")
    texts = [page.read_text(encoding="utf-8") for page in pages]
    assert any(f'kind = "{kind}"' in text for text in texts)


def test_a_server_on_this_machine_costs_nothing_however_it_is_named(monkeypatch):
    url = "http://localhost:8000/v1"
    named = OpenAIEncoder("text-embedding-3-small", base_url=url)
    monkeypatch.setenv("OPENAI_BASE_URL", url)
    by_environment = OpenAIEncoder("text-embedding-3-small")
    assert named.price == by_environment.price == Price(0.0, "a server on this machine")


@pytest.mark.parametrize("kind", ["float", "base64", *BYTES, *BITS])
def test_every_number_format_keeps_the_neighbours(kind):
    with serving(Cohere()) as provider:
        vectors = (
            encoder("Cohere", provider, embedding_type=kind)
            .embed(TEXTS, "document", single_call())
            .vectors
        )
    real = real_vectors(TEXTS)
    meant = (
        np.rint(real * 127)
        if kind in BYTES
        else np.where(real > 0, 1, -1)
        if kind in BITS
        else real
    )
    assert np.array_equal(vectors, meant)


def test_cohere_is_sent_the_role_and_the_dimensions_and_must_not_cut():
    with serving(Cohere()) as provider:
        cohere = encoder("Cohere", provider, dimensions=16)
        embedded = cohere.embed(["a"], "query", single_call())
        body = provider.requests[0]["body"]
    assert embedded.vectors.shape == (1, 16)
    sent = (body["input_type"], body["output_dimension"], body["truncate"])
    assert sent == ("search_query", 16, "NONE")


def test_gemini_is_sent_the_role_and_the_dimensions_and_its_vectors_are_scaled():
    with serving(Gemini()) as provider:
        gemini = encoder("Gemini", provider, dimensions=16)
        embedded = gemini.embed(["wing flow"], "query", single_call())
        (request,) = provider.requests[0]["body"]["requests"]
    assert np.linalg.norm(embedded.vectors) == pytest.approx(1)
    sent = (request["taskType"], request["outputDimensionality"])
    assert sent == ("RETRIEVAL_QUERY", 16)


def test_tokens_that_gemini_drops_silently_are_counted():
    """By estimate: of about 120 tokens it reads 50."""
    with serving(Gemini()) as provider:
        gemini = encoder("Gemini", provider, max_tokens=50)
        lost = gemini.embed(["a", LONG], "document", single_call()).truncated_tokens
    assert lost[0] == 0
    assert lost[1] >= 70


NUMBERED = [
    f"text number {i} about " + ["wing", "flow", "heat", "shock", "wave"][i % 5]
    for i in range(10)
]
V1 = "amazon.titan-embed-text-v1"
V2 = "amazon.titan-embed-text-v2:0"
COHERE_MODEL = "cohere.embed-multilingual-v3"


@pytest.fixture
def serve(stack):
    return lambda *script, **more: stack.enter_context(
        serving(BedrockProvider(script, **more))
    )


def bedrock(provider, model=V1, **more):
    options = {
        "region": "us-east-1",
        "concurrency": 2,
        "timeout": 60,
        "patience": 60,
        **more,
    }
    return BedrockEncoder(model, endpoint_url=provider.url, **options)


def embed(provider, cache, texts=NUMBERED, meter=None, **more):
    return Embedder(bedrock(provider, **more), cache).embed(
        texts, "document", meter or Meter()
    )


def test_titan_takes_one_text_a_call(serve, cache):
    provider = serve(dimensions=1536)
    meter = Meter()
    embedded = embed(provider, cache, meter=meter)
    assert np.array_equal(embedded.vectors, resized(real_vectors(NUMBERED), 1536))
    assert embedded.tokens.tolist() == [tokens_of(text) for text in NUMBERED]
    counts = meter.counts("")
    assert (counts["calls"], counts["tokens"]) == (10, sum(map(tokens_of, NUMBERED)))
    assert counts["usd"] == pytest.approx(counts["tokens"] * 0.1e-6)
    sent = sorted(request["body"]["inputText"] for request in provider.requests)
    assert sent == NUMBERED
    assert {tuple(request["body"]) for request in provider.requests} == {("inputText",)}


def test_the_second_titan_is_sent_dimensions_and_normalisation(serve):
    provider = serve(dimensions=1024)
    embedded = bedrock(provider, model=V2, dimensions=256, normalize=False).embed(
        ["wing"], "query", single_call()
    )
    assert embedded.vectors.shape == (1, 256)
    bedrock(provider, model=V2).embed(["wing"], "query", single_call())
    assert [request["body"] for request in provider.requests] == [
        {"inputText": "wing", "dimensions": 256, "normalize": False},
        {"inputText": "wing", "normalize": True},
    ]


def test_requests_to_cohere_have_the_role_and_96_texts(serve, cache):
    provider = serve(dimensions=1024)
    texts = [f"text {i}" for i in range(100)]
    embedded = embed(provider, cache, texts, model=COHERE_MODEL)
    assert np.array_equal(embedded.vectors, resized(real_vectors(texts), 1024))
    assert embedded.tokens.sum() == sum(map(tokens_of, texts))
    assert sorted(len(request["body"]["texts"]) for request in provider.requests) == [
        4,
        96,
    ]
    bedrock(provider, model=COHERE_MODEL).embed(["wing"], "query", single_call())
    roles = [request["body"]["input_type"] for request in provider.requests]
    assert roles == ["search_document", "search_document", "search_query"]


def test_texts_are_cut_to_the_limit_of_characters_before_they_are_sent(serve, cache):
    provider = serve(max_tokens=10**6)
    embedded = embed(provider, cache, ["x y " * 20_000], model=V1)
    assert [len(request["body"]["inputText"]) for request in provider.requests] == [
        50_000
    ]
    assert (embedded.tokens.tolist(), embedded.truncated_tokens.tolist()) == (
        [25_000],
        [15_000],
    )


def test_tokens_of_a_text_that_is_cut_and_then_halved_are_counted_once(serve, cache):
    provider = serve(max_tokens=15_000)
    embedded = embed(provider, cache, ["x y " * 20_000], model=V1)
    assert embedded.tokens.tolist() == [12_500]
    assert embedded.truncated_tokens.tolist() == [40_000 - 12_500]


@pytest.mark.parametrize("source", ["environment", "profile"])
def test_no_secret_reaches_a_message_or_the_cache(
    serve, cache, monkeypatch, tmp_path_factory, source
):
    if source == "profile":  # whose secrets no variable of the environment holds
        profile = tmp_path_factory.mktemp("aws") / "credentials"
        names = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
        profile.write_text(
            "[default]\n"
            + "".join(f"{name.lower()} = {os.environ[name]}\n" for name in names)
        )
        monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(profile))
        for name in names:
            monkeypatch.delenv(name)
    with pytest.raises(BackendError) as caught:
        embed(serve("", always="expired"), cache, concurrency=1)
    encoder = bedrock(serve())
    messages = (
        f"{caught.value} {caught.value.__cause__} {encoder.fingerprint} "
        f"{dict(encoder.provenance)}"
    )
    cache_bytes = b"".join(
        path.read_bytes() for path in cache.path.parent.iterdir() if path.is_file()
    )
    assert "canary" not in messages.lower()
    assert b"canary" not in cache_bytes.lower()


def test_missing_credentials_are_told_before_the_first_request(monkeypatch):
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    with pytest.raises(InputError, match="credentials: were not found"):
        BedrockEncoder(V1, region="us-east-1").check()
    monkeypatch.setenv("AWS_BEARER_TOKEN_BEDROCK", "x")
    BedrockEncoder(V1, region="us-east-1").check()


@pytest.mark.parametrize(
    ("options", "message"),
    [({}, r"encoder\.region"), ({"profile": "nobody"}, "profile")],
)
def test_missing_options_are_told_before_the_first_request(options, message):
    with pytest.raises(InputError, match=message):
        BedrockEncoder(V1, **options).check()


def test_a_number_beyond_all_floats_is_no_vector():
    with pytest.raises(BackendError, match="returned no vectors of numbers"):
        check_vectors("it", [EmbeddingRow(0, [10**400])], 1, None)


@pytest.mark.parametrize("number", [10**400, 1j])
def test_a_function_that_returns_no_real_numbers_is_refused(number):
    encoder = PythonEncoder(lambda texts: [[number] for _ in texts])
    with pytest.raises(BackendError, match="returned no array of numbers"):
        encoder.embed(["a"], "document", single_call())


@pytest.mark.parametrize("value", [None, ""])
def test_a_key_whose_variable_is_not_set_is_missing(monkeypatch, value):
    monkeypatch.delenv("KEY_OF_TEST", raising=False)
    if value is not None:
        monkeypatch.setenv("KEY_OF_TEST", value)
    encoder = OpenAIEncoder(
        "m", base_url="http://127.0.0.1:9", api_key="${KEY_OF_TEST}"
    )
    with pytest.raises(InputError, match=r"^KEY_OF_TEST: is not set in"):
        encoder.check()


def test_an_object_that_embeds_documents_alone_is_refused_by_check():
    class Half:
        def encode_document(self, texts):
            return [[1.0] for _ in texts]

    with pytest.raises(InputError, match="is not a function, and has no encode"):
        PythonEncoder(Half()).check()

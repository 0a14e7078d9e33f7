"""Answers that lie, leak, never end or never fit: one message, that retriever's alone, and nothing of it is kept."""

import base64
import gzip
import importlib
import json
import signal
import subprocess
import sys
import textwrap
import time
from datetime import UTC, datetime
from itertools import chain, repeat

import httpx
import numpy as np
import pytest
from pydantic import BaseModel
from retrievers.remote.bounded_transport import unpacked_body
from retrievers.remote.http_client import AnswerPart, HttpClient, Server
from retrievers.remote.redaction import Expanded, redacted

from harness.experiment import JudgeOptions
from retrievers.cache import Cache
from retrievers.embedding import Embedder
from retrievers.encoders.openai import OpenAIEncoder
from retrievers.errors import BackendError, InputError
from retrievers.meter import Budget, Meter, single_call
from retrievers.remote import bounded_transport, http_client
from retrievers.remote.chat_model import ChatOptions
from retrievers.retrying import TooLong, Transient, retry_after
from tests.mortal import heed_interrupts
from tests.servers import (
    BROKEN_BODIES,
    BROKEN_PARTS,
    BROKEN_ROWS,
    BROKEN_USAGE,
    OpenAIProvider,
    Refusal,
    bomb,
    real_vectors,
    serving,
    stored,
    tokens_of,
)

pytestmark = pytest.mark.usefixtures("no_keys")

TEXTS = [f"text number {i}" for i in range(8)]


def encoder(url, **more):
    return OpenAIEncoder(
        "m", base_url=url, **{"batch_size": 4, "concurrency": 1, "timeout": 60, "patience": 0.1, **more}
    )


def embed(provider, tmp_path, meter=None, **more):
    with Cache(tmp_path / "c") as cache:
        return Embedder(encoder(provider.url, **more), cache).embed(TEXTS, "document", meter or Meter())


LASTING = [*(set(BROKEN_BODIES) - {"nothing", "deep"}), *BROKEN_ROWS, *BROKEN_USAGE, *BROKEN_PARTS]


@pytest.mark.parametrize("fault", sorted(LASTING))
def test_an_answer_that_is_not_of_the_protocol_is_one_message_and_is_not_kept(tmp_path, fault):
    with serving(OpenAIProvider(["", fault])) as provider:
        with pytest.raises(BackendError) as caught:
            embed(provider, tmp_path)
        assert len(provider.requests) == 2
        assert "\n" not in str(caught.value)
        assert len(str(caught.value)) < 600
        assert stored(tmp_path) == 4
        assert np.array_equal(embed(provider, tmp_path).vectors, real_vectors(TEXTS))


def test_the_message_says_what_came_instead(tmp_path):
    with (
        serving(OpenAIProvider(always="page")) as provider,
        pytest.raises(BackendError, match=r"is a page, not JSON.*Sign"),
    ):
        embed(provider, tmp_path)
    with serving(OpenAIProvider(always="error-with-200")) as provider, pytest.raises(BackendError, match="being moved"):
        embed(provider, tmp_path)


@pytest.mark.parametrize("said", [0, 1, 3])
def test_usage_below_a_token_a_text_is_estimated(tmp_path, said, monkeypatch):
    monkeypatch.setitem(BROKEN_USAGE, "usage-low", said)
    with serving(OpenAIProvider(always="usage-low")) as provider:
        meter = Meter()
        embed(provider, tmp_path, meter, price=1e6)
        assert meter.counts("")["tokens"] >= sum(map(tokens_of, TEXTS))
        assert meter.budget.spent >= sum(map(tokens_of, TEXTS))


@pytest.mark.parametrize("fault", ["drip", "drip-headers"])
def test_the_time_limit_bounds_the_whole_answer(tmp_path, fault):
    with serving(OpenAIProvider(always=fault)) as provider:
        with pytest.raises(BackendError, match=r"no whole answer came within 0.5 s \(timeout\)"):
            embed(provider, tmp_path, timeout=0.5)
        assert len(provider.requests) == 1
        assert provider.hung_up.wait(600)


def test_ctrl_c_does_not_wait_for_answers(tmp_path):
    code = textwrap.dedent("""
        import sys
        from pathlib import Path
        from retrievers.cache import Cache
        from retrievers.embedding import Embedder
        from retrievers.encoders.openai import OpenAIEncoder
        from retrievers.meter import Meter
        encoder = OpenAIEncoder("m", base_url=sys.argv[1], timeout=600, patience=600, batch_size=1)
        with Cache(Path(sys.argv[2])) as cache:
            Embedder(encoder, cache).embed(["a", "b", "c"], "document", Meter())
    """)
    with serving(OpenAIProvider(always="drip")) as provider:
        words = [sys.executable, "-c", code, provider.url, tmp_path / "c"]
        process = subprocess.Popen(words, stderr=subprocess.PIPE, preexec_fn=heed_interrupts)
        while len(provider.requests) < 3 and process.poll() is None:
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=300)
        assert b"KeyboardInterrupt" in err
        assert provider.hung_up.wait(600)


def test_an_answer_is_not_unpacked_beyond_the_limit(tmp_path, monkeypatch):
    monkeypatch.setattr(bounded_transport, "MOST_BYTES", 4 << 20)
    with serving(OpenAIProvider(always="bomb")) as provider:
        provider.bomb = bomb(64 << 20)
        assert len(provider.bomb) < 1 << 20
        with pytest.raises(BackendError, match="larger than 4 MiB"):
            embed(provider, tmp_path)


def test_a_packed_answer_is_read(tmp_path):
    with serving(OpenAIProvider(always="packed")) as provider:
        assert np.array_equal(embed(provider, tmp_path).vectors, real_vectors(TEXTS))


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirection_is_not_followed(tmp_path, status):
    with serving(OpenAIProvider()) as other, serving(OpenAIProvider(always=f"redirect-{status}")) as provider:
        provider.elsewhere = f"{other.url.replace('://', '://me:word@')}/embeddings?key=abc"
        with pytest.raises(BackendError, match=r"redirects to http://127\.0\.0\.1:\d+/v1/embeddings, which") as caught:
            embed(provider, tmp_path, api_key="k-0123456789")
        assert other.requests == []
        assert "word" not in str(caught.value)
        assert "abc" not in str(caught.value)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [*((none, None) for none in ("nan", "-nan", "x", "", "Fri, 31 Foo 9999 23:59:59 GMT")),
     *((long, 86_400) for long in ("inf", "1e308", "Fri, 31 Dec 9999 23:59:59 GMT"))],
)  # fmt: skip
def test_a_wait_is_a_day_at_most_and_what_is_none_is_not_kept(value, seconds):
    assert retry_after({"retry-after": value}) == seconds


@pytest.mark.parametrize("value", ["nan", "Fri, 31 Dec 9999 23:59:59 GMT", "inf"])
def test_what_a_server_asks_to_wait_ends_with_patience(tmp_path, value, monkeypatch):
    refusal = Refusal(429, "rate_limit_exceeded", "slowly", {"Retry-After": value})
    monkeypatch.setattr(OpenAIProvider, "refusal", lambda self, fault, headers: refusal)
    with serving(OpenAIProvider()) as provider:
        with pytest.raises(BackendError, match="gave up after"):
            embed(provider, tmp_path, patience=0.3, concurrency=2)
        assert len(provider.requests) < 20


def test_a_plain_server_behind_https_is_said_at_once(tmp_path):
    with serving(OpenAIProvider()) as provider:
        url = provider.url.replace("http://", "https://")
        with Cache(tmp_path / "c") as cache, pytest.raises(BackendError, match="does not speak TLS"):
            Embedder(encoder(url, patience=60), cache).embed(TEXTS, "document", Meter())


@pytest.mark.parametrize("url", ["ftp://host/v1", "https://", "host:80", "http://host:99999999/v1", "http://[::1"])
def test_an_address_that_is_none(url, monkeypatch):
    with pytest.raises(InputError, match="base_url"):
        OpenAIEncoder("m", base_url=url)
    monkeypatch.setenv("OPENAI_BASE_URL", url)
    for make in (OpenAIEncoder, ChatOptions):
        with pytest.raises(InputError, match="OPENAI_BASE_URL"):
            make("m")


@pytest.mark.parametrize("option", ["timeout", "patience", "rpm", "tpm", "price"])
@pytest.mark.parametrize("value", [float("nan"), float("inf"), -1.0])
def test_numbers_that_are_none(option, value):
    with pytest.raises(InputError, match=f"encoder.{option}"):
        OpenAIEncoder("m", **{option: value})


def test_what_a_variable_stood_for_is_not_shown(tmp_path):
    with serving(OpenAIProvider(always="expired")) as provider:
        secret = provider.url.replace("://", "://me:word-of-mine@")
        own = encoder(Expanded(secret, "${EMB_URL}"), document_prompt=Expanded("canary prompt: ", "${PROMPT}: "))
        assert own.provenance == {"model": "m", "source": "${EMB_URL}", "document_prompt": "${PROMPT}: "}
        with Cache(tmp_path / "c") as cache, pytest.raises(BackendError) as caught:
            Embedder(own, cache).embed(TEXTS, "document", Meter())
    assert "${EMB_URL} (m): 401" in str(caught.value)
    assert "word-of-mine" not in str(caught.value)
    assert "canary" not in str(caught.value)
    assert own.fingerprint == encoder(secret, document_prompt="canary prompt: ").fingerprint


def test_the_user_of_an_address_is_sent_and_not_shown():
    with serving(OpenAIProvider()) as provider:
        encoder(provider.url.replace("://", "://me:w%2Frd@")).embed(["a"], "query", single_call())
        assert provider.requests[0]["headers"]["authorization"] == "Basic " + base64.b64encode(b"me:w/rd").decode()
    own = encoder("https://me:word-of-mine@example.org/v1?key=abc")
    assert own.provenance["source"] == "https://example.org/v1"


@pytest.mark.parametrize(
    "words",
    [
        "batch size 256 > maximum allowed batch size 32",
        "look at https://docs.example.org/api/v1/models/text-embedding-3-small-2024/errors#long",
        "model sentence-transformers/paraphrase-multilingual-MiniLM-L12-v2 is not loaded",
        "request id 3f2504e0-4f89-11d3-9a0c-0305e82c3301",
        "basic authentication is off",
    ],
)
def test_a_servers_own_words_are_kept(words):
    assert redacted(words) == words


@pytest.mark.parametrize(
    "key",
    [
        "sk-proj-abcdefghijklmnop",
        "pa-AbCdEf0123456789",
        "hf_abcdefghijklmnopqrst",
        "AIzaSyA1234567890abcdefghijklmnopqrstuv",
        "AKIAIOSFODNN7EXAMPLE",
        "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
        "0123456789abcdef0123456789abcdef",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc123",
        "Bearer abcdefghijklmnopqrstuvwx",
    ],
)
def test_a_key_is_hidden(key):
    assert key.removeprefix("Bearer ") not in redacted(f"the key {key} is wrong")


def test_the_limits_in_a_servers_words_are_read():
    assert TooLong("batch size 256 > maximum allowed batch size 32").texts == 32
    assert TooLong("total number of texts must be at most 96 texts - received 100").texts == 96
    assert TooLong("at most 100 requests can be in one batch").texts == 100
    assert TooLong("maximum context length is 512 tokens, however you requested 900 tokens").limit == 512
    assert TooLong("max " + "9" * 5000).limit is None
    assert TooLong("maximum allowed batch size 0").texts is None  # no request can have no texts


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """A certificate of this machine's own name, and its key: two files."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    folder = tmp_path_factory.mktemp("tls")
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    start = datetime(2020, 1, 1, tzinfo=UTC)
    made = x509.CertificateBuilder(name, name, key.public_key(), 1, start, start.replace(year=2120))
    made = made.add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
    made = made.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    (folder / "own.pem").write_bytes(made.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
    plain = serialization.NoEncryption()
    private = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
    (folder / "key.pem").write_bytes(private)
    return folder / "own.pem", folder / "key.pem"


def test_a_certificate_that_nobody_knows_is_refused_at_once_and_one_that_is_known_works(certificate, monkeypatch):
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    with serving(OpenAIProvider(), certificate=certificate) as provider:
        with pytest.raises(BackendError, match="certificate is refused: self-signed certificate; set SSL_CERT_FILE"):
            encoder(provider.url, patience=60).embed(["a"], "query", single_call())
        assert provider.requests == []
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate[0]))
        own = encoder(provider.url)
        for text in ("a", "long " * 100_000):
            assert np.array_equal(
                own.embed([text], "query", single_call()).vectors, real_vectors(provider.embedded[-1:])
            )
        provider.always = "drip"
        with pytest.raises(BackendError, match="no whole answer came within"):
            encoder(provider.url, timeout=0.5).embed(["a"], "query", single_call())


class _Vectors(AnswerPart):
    rows: list[float]


@pytest.mark.parametrize("status", [200, 500])
def test_no_half_of_a_key_is_shown_where_an_answer_is_cut(monkeypatch, status):
    key = "purple-monkey-dishwasher"
    client = HttpClient(Server("http://127.0.0.1:1", "m", {"X-Key": Expanded(key, "${X}")}))
    for before in range(40, 330, 7):
        body = b'["' + b"- " * (before // 2) + key.encode() + b'"]'
        with pytest.raises((BackendError, Transient)) as caught:
            client.exchange(lambda body=body: httpx.Response(status, content=body), _Vectors)
        assert "purp" not in str(caught.value)


def lists_of(schema):
    """Every list in a pydantic core schema."""
    if isinstance(schema, dict):
        if schema.get("type") == "list":
            yield schema
        for value in schema.values():
            yield from lists_of(value)
    elif isinstance(schema, list | tuple):
        for value in schema:
            yield from lists_of(value)


@pytest.mark.parametrize("module", ["encoders.openai", "encoders.cohere", "encoders.gemini", "encoders.bedrock",
                                    "rerankers.http_reranker", "remote.chat_model"])  # fmt: skip
def test_of_a_list_of_faults_one_is_told(module):
    """Four megabytes of {} took three gigabytes of memory, as four million faults."""
    own = vars(importlib.import_module(f"retrievers.{module}")).values()
    parts = [one for one in own if isinstance(one, type) and issubclass(one, BaseModel)]
    lists = [found for part in parts for found in lists_of(part.__pydantic_core_schema__)]
    assert lists
    assert all(found.get("fail_fast") for found in lists)


def test_what_follows_a_packed_answer_is_not_kept():
    packed = gzip.compress(b"{}")
    assert unpacked_body([packed], {"content-encoding": "gzip"}, 100) == b"{}"
    endless = chain([packed], repeat(bytes(1000)))
    with pytest.raises(Transient, match="goes on after its end"):
        unpacked_body(endless, {"content-encoding": "gzip"}, 100)


def test_a_long_refusal_is_not_read_as_json(tmp_path, monkeypatch):
    monkeypatch.setattr(http_client, "_LONGEST_REFUSAL", 100)
    monkeypatch.setattr(json, "loads", None)
    assert http_client.error_in(b"[" * 101) == ("", "")


@pytest.mark.parametrize("dollars", [float("nan"), float("inf"), -1.0])
def test_what_is_no_number_of_dollars_is_no_limit_and_no_price(dollars):
    with pytest.raises(InputError, match="is not a number of dollars"):
        Budget(dollars)
    with pytest.raises(ValueError, match="input_price"):
        JudgeOptions(kind="openai", model="m", input_price=dollars, output_price=0)


def test_what_lies_behind_an_answer_is_not_taken_for_the_next_one():
    """A server, or a proxy, that answers once too often: the connection is not used again."""
    with serving(OpenAIProvider(["surplus", "", ""])) as provider:
        own = encoder(provider.url, patience=60)
        for text in ("first", "second", "third"):
            assert np.array_equal(own.embed([text], "query", single_call()).vectors, real_vectors([text]))
        assert len(provider.requests) == 4  # one was asked again


def test_a_server_of_the_environment_is_asked_with_its_key_and_without_the_names_of_the_account(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "key-0123456789")
    monkeypatch.setenv("OPENAI_ORG_ID", "org-1")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "X-Account: 7")
    with serving(OpenAIProvider()) as provider:
        monkeypatch.setenv("OPENAI_BASE_URL", provider.url)
        own = OpenAIEncoder("m")
        own.embed(["a"], "query", single_call())
        assert own.fingerprint == encoder(provider.url).fingerprint
        assert own.provenance["source"] == provider.url
        headers = provider.requests[0]["headers"]
        assert headers["authorization"] == "Bearer key-0123456789"
        assert not {"openai-organization", "openai-project", "x-account"} & headers.keys()

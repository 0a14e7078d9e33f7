"""Requests to providers: patience, pace, cancelling, addresses, faults."""

import asyncio
import signal
import subprocess
import sys
import time
from contextlib import suppress

import httpx2
import numpy as np
import pytest

from harness import records
from retrievers.embedder import Embedder
from retrievers.encoders.bedrock import BedrockEncoder
from retrievers.encoders.openai import OpenAIEncoder
from retrievers.errors import BackendError, InputError
from retrievers.meter import Meter, Stop, single_call
from retrievers.services import caller
from retrievers.services.caller import RequestCost, Retries, ServiceCaller
from retrievers.services.clients import request_address
from retrievers.services.concurrency import run_request
from retrievers.services.service_errors import TransientFailure, retry_after
from retrievers.types import Limits
from tests.support import small
from tests.support.mortal import heed_interrupts
from tests.support.servers import (
    BedrockProvider,
    OpenAIProvider,
    real_vectors,
    serving,
    tokens_of,
)
from tests.support.small import BM25, ended

pytestmark = pytest.mark.usefixtures("no_keys", "aws_keys")
NOTHING = RequestCost(0, 0.0)
LIMITS = {"concurrency": 1, "rpm": 0, "tpm": 0, "patience": 60, "tokens": 0}
BUSY = 5
"""Seconds that a busy machine may take for what takes none."""


def send_request(attempt, call=None, timeout=60, **policy):
    """Send one request, and return its answer and the seconds that it took."""
    caller = ServiceCaller(Limits(**{**LIMITS, **policy}), timeout, lambda: "it")
    call = call or single_call()
    started = time.monotonic()
    try:
        answer = run_request(caller.call(attempt, NOTHING, call, 0), call.stopped)
    except BackendError as failure:
        answer = str(failure)
    return answer, time.monotonic() - started


@pytest.mark.parametrize("pause", [None, 0.1, 3600.0])
def test_patience_is_kept_to_its_end(pause):
    async def fails():
        raise TransientFailure("away", retry_after=pause)

    message, took = send_request(fails, patience=0.4)
    assert message.startswith("away (tried ") and message.endswith("patience = 0.4)")
    assert 0.4 <= took < BUSY


def test_equal_errors_end_the_tries_before_patience_does_and_say_so():
    async def fails():
        raise TransientFailure("500 lost", retry_after=0.0, is_server_error=True)

    message, _ = send_request(fails, patience=60)
    assert message == "500 lost (the same error 3 times)"


@pytest.mark.parametrize(
    ("policy", "tokens"), [({"rpm": 3000}, 0), ({"tpm": 30_000}, 10)]
)
def test_a_declared_rate_is_kept(policy, tokens):
    async def now():
        return time.monotonic(), NOTHING

    caller = ServiceCaller(Limits(**{**LIMITS, **policy}), 60, lambda: "it")
    started = time.monotonic()
    sent = [
        run_request(caller.call(now, NOTHING, single_call(), tokens), Stop())
        for _ in range(4)
    ]
    assert all(at - started >= 0.02 * number for number, at in enumerate(sent))


@pytest.mark.parametrize("presses", [1, 2])
def test_ctrl_c_answers_within_two_seconds_and_a_second_one_ends_without_a_traceback(
    tmp_path, presses
):
    code = (
        "import sys; sys.argv[0] = 'harness'; "
        "from harness.__main__ import start; start()"
    )
    with serving(OpenAIProvider(always="slow")) as provider:
        table = (
            f'kind = "openai", model = "m", base_url = "{provider.url}", '
            "timeout = 600, batch_size = 1"
        )
        path = small.experiment(
            tmp_path,
            retrievers=f'[[retrievers]]\nname = "a"\nencoder = {{ {table} }}\n',
        )
        words = [
            sys.executable,
            "-c",
            code,
            "run",
            str(path),
            "--results",
            str(tmp_path / "out"),
        ]
        process = subprocess.Popen(
            words, stderr=subprocess.PIPE, preexec_fn=heed_interrupts
        )
        while len(provider.requests) < 3 and process.poll() is None:
            time.sleep(0.02)
        started = time.monotonic()
        for _ in range(presses):
            process.send_signal(signal.SIGINT)
            time.sleep(0.1)
        _, err = process.communicate(timeout=60)
        assert time.monotonic() - started < 2 + BUSY
        assert b"Traceback" not in err and process.returncode in (
            130,
            -signal.SIGINT,
        ), err


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("0", 0),
        ("7", 7),
        ("-3", 0),
        ("Wed, 21 Oct 2015 07:28:00 GMT", 0),
        ("soon", None),
    ],
)
def test_the_seconds_in_retry_after_are_read(value, seconds):
    assert retry_after({"retry-after": value}) == seconds


def test_a_servers_retry_after_is_obeyed_and_counted():
    meter = Meter()
    with serving(OpenAIProvider(["429-after"])) as provider:
        Embedder(encoder("openai", provider), None).embed(["a"], "document", meter)
    first, second = (request["at"] for request in provider.requests)
    assert second - first >= 0.5
    counts = meter.counts("")
    assert (counts["retries"], counts["calls"], counts["tokens"]) == (1, 1, 1)


def test_the_port_of_https_changes_no_server(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "its-key")
    encoder = OpenAIEncoder("m", base_url="https://api.openai.com:443/v1")
    assert encoder._headers().has_any("authorization")


@pytest.mark.parametrize("host", ["bücher.example", "xn--bcher-kva.example"])
def test_a_host_with_other_letters_is_reached(host):
    url = httpx2.URL(request_address(f"https://{host}/süche?q=ü"))
    assert url.raw_host == b"xn--bcher-kva.example"
    assert url.raw_path == b"/s%C3%BCche?q=%C3%BC"


@pytest.mark.parametrize(
    "url",
    ["ftp://host/v1", "https://", "host:80", "http://host:99999999/v1", "http://[::1"],
)
def test_invalid_addresses_are_refused(url, monkeypatch):
    with pytest.raises(InputError, match=r"encoder\.base_url"):
        OpenAIEncoder("m", base_url=url)
    monkeypatch.setenv("OPENAI_BASE_URL", url)
    with pytest.raises(InputError, match="OPENAI_BASE_URL"):
        OpenAIEncoder("m")


@pytest.mark.parametrize(
    ("is_named", "user", "environment", "sent"),
    [
        (True, "me:w%2Frd@", {}, "Basic bWU6dy9yZA=="),
        (True, "", {"API_KEY": "sk-of-openai"}, None),
        (
            False,
            "",
            {"API_KEY": "its-key", "ORG_ID": "an-organisation"},
            "Bearer its-key",
        ),
    ],
)
def test_a_server_receives_only_its_own_key_and_messages_show_none(
    monkeypatch, is_named, user, environment, sent
):
    with serving(OpenAIProvider(["expired"])) as provider:
        url = provider.url.replace("://", f"://{user}")
        for name, value in {
            **environment,
            **({} if is_named else {"BASE_URL": url}),
        }.items():
            monkeypatch.setenv(f"OPENAI_{name}", value)
        encoder = OpenAIEncoder("m", **({"base_url": url} if is_named else {}))
        with pytest.raises(BackendError) as caught:
            encoder.embed(["a"], "query", single_call())
        headers = provider.requests[0]["headers"]
    assert (
        headers.get("authorization") == sent
        and "an-organisation" not in headers.values()
    )
    assert not [
        secret
        for secret in ("w%2Frd", "its-key")
        if secret in f"{caught.value} {encoder.provenance}"
    ]


def test_an_invalid_proxy_is_one_message_without_its_password(monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "sockets://me:canary@nowhere")
    with pytest.raises(InputError, match="HTTP_PROXY") as caught:
        OpenAIEncoder("m", base_url="http://192.0.2.1/v1").embed(
            ["a"], "query", single_call()
        )
    assert "canary" not in str(caught.value)


TEXTS = [
    "a wing in a flow of heat",
    "the shock wave of a body",
    "plates and shells",
    "a slender cone at rest",
]
FAKES = {"openai": OpenAIProvider, "bedrock": BedrockProvider}
ONCE = {
    "openai": "429 429 429 429 429 429, 500 503 500, reset, drop, half, "
    "garbage, cut-gzip, nothing, null, deep, page, error-with-200",
    "bedrock": "429 429 429, 500, model-timeout, reset, drop, half, garbage, nothing",
}
"""Faults of requests, after which the vectors are those that the provider meant."""
STALLING = [
    ("openai", "slow"),
    ("openai", "drip"),
    ("openai", "drip-headers"),
    ("bedrock", "slow"),
    ("bedrock", "drip"),
]
"""Replies that never are complete: the request's time ends."""
NO_VECTORS = "returned no vectors of numbers"
SECOND = {
    ("openai", "few"): "returned 1 vectors for 2 texts",
    ("openai", "empty"): "returned no vectors for 2 texts",
    ("openai", "twice"): "not one for each",
    ("openai", "unindexed"): "a row of the reply has no `index`",
    **{
        ("openai", fault): "the server returned (NaN|infinity) for text"
        for fault in ("nan", "embedding-huge", "embedding-holed")
    },
    **{
        ("openai", f"embedding-{fault}"): NO_VECTORS
        for fault in ("null", "words", "unpacked")
    },
    ("openai", "narrow"): "127 dimensions instead of 128",
    ("openai", "other-model"): "'another' answers now, and 'm' did before",
    ("openai", "quota"): "429 You exceeded your current quota; the quota is used up",
    ("openai", "unpaid"): "402 The balance is used up; the quota is used up",
    ("openai", "expired"): "401 Incorrect API key provided: .*; the key was refused",
    ("openai", "missing"): "404 The model does not exist; look at the model's name",
    ("bedrock", "quota"): "the quota is used up",
    ("bedrock", "expired"): r"is expired: \*\*\*; renew the credentials",
    ("bedrock", "denied"): "ask for access to the model",
}
"""What is told of a fault of the second request, which ends all."""
ALWAYS = {
    ("openai", "429"): r"429 Rate limit.* \(tried ",
    (
        "openai",
        "503",
    ): r"503 Overloaded.* \(tried \d+ times in \d s; patience = 0.5\)",
    ("openai", "slow"): r"no complete response within 0.5 s \(timeout\)",
    ("openai", "page"): "expected JSON, got .* check the URL",
    ("openai", "error-with-200"): "the model is being moved",
    ("bedrock", "503"): r"Bedrock is unable.* \(tried ",
}
"""What is told of a fault of every request."""


def encoder(service, provider, **more):
    options = {"timeout": 60, "patience": 60, "concurrency": 1, "batch_size": 2, **more}
    if service == "openai":
        return OpenAIEncoder("m", base_url=provider.url, **options)
    return BedrockEncoder(
        "amazon.titan-embed-text-v1",
        region="us-east-1",
        endpoint_url=provider.url,
        **options,
    )


def embedded_with_retries(provider, service, cache, **more):
    """Embed the texts, and return their vectors and the number of retries."""
    meter = Meter()
    embedder = Embedder(encoder(service, provider, **more), cache)
    embedded = embedder.embed(TEXTS, "document", meter)
    return embedded.vectors, meter.counts("").get("retries", 0)


@pytest.mark.parametrize(
    ("service", "faults"),
    [
        (service, faults)
        for service, all_faults in ONCE.items()
        for faults in all_faults.split(", ")
    ],
)
def test_faults_that_pass_end_in_the_same_vectors_after_a_retry_for_each(
    service, faults, cache
):
    script = faults.split()
    with serving(FAKES[service](script)) as provider:
        vectors, retries = embedded_with_retries(provider, service, cache)
    assert np.array_equal(vectors, real_vectors(TEXTS))
    assert retries == len(script)


@pytest.mark.parametrize(("service", "fault"), STALLING)
def test_a_reply_that_stalls_is_asked_for_again(service, fault, cache):
    with serving(FAKES[service]([fault])) as provider:
        vectors, retries = embedded_with_retries(provider, service, cache, timeout=0.5)
    assert np.array_equal(vectors, real_vectors(TEXTS))
    assert retries >= 1  # more, if a busy machine lets a good reply come late


@pytest.mark.parametrize(
    "oddities",
    [
        {"script": ["packed"]},
        {"script": ["batch"]},
        {"always": "shuffled"},
        {"always": "usage-word"},
    ],
    ids=lambda oddities: str(*oddities.values()),
)
def test_an_odd_reply_with_all_vectors_is_taken(oddities, cache):
    with serving(OpenAIProvider(**oddities)) as provider:
        vectors, retries = embedded_with_retries(provider, "openai", cache)
    assert np.array_equal(vectors, real_vectors(TEXTS))
    assert retries == 0


def refused_embedding(model, message, cache):
    """Check what is refused: one line, without the key; return the retries."""
    meter = Meter()
    started = time.monotonic()
    with pytest.raises(BackendError, match=message) as caught:
        Embedder(model, cache).embed(TEXTS, "document", meter)
    assert time.monotonic() - started < 2 + BUSY
    assert "\n" not in str(caught.value)
    assert "canary" not in str(caught.value)
    return meter.counts("").get("retries", 0)


@pytest.mark.parametrize(
    ("service", "fault", "message"),
    [(*provider_fault, message) for provider_fault, message in SECOND.items()],
)
def test_a_fault_that_cannot_pass_ends_in_one_message_without_a_retry(
    service, fault, message, cache
):
    with serving(FAKES[service](["", fault])) as provider:
        assert refused_embedding(encoder(service, provider), message, cache) == 0


@pytest.mark.parametrize(
    ("service", "fault", "message"),
    [(*provider_fault, message) for provider_fault, message in ALWAYS.items()],
)
def test_a_fault_that_stays_ends_in_one_message_when_patience_does(
    service, fault, message, cache
):
    with serving(FAKES[service](always=fault)) as provider:
        model = encoder(
            service, provider, patience=0.5, timeout=0.5 if fault == "slow" else 60
        )
        refused_embedding(model, message, cache)
        assert provider.requests


def test_a_server_without_index_is_refused_at_its_first_reply():
    with serving(OpenAIProvider(always="unindexed")) as provider:
        with pytest.raises(BackendError, match="use a server that sends `index`"):
            Embedder(encoder("openai", provider), None).embed(
                TEXTS, "document", Meter()
            )
        assert len(provider.requests) == 1


@pytest.mark.parametrize("service", FAKES)
def test_refused_texts_are_halved_and_counted_and_others_continue(service):
    long = "many words of a long text " * 20  # 120 of the servers' tokens
    with serving(FAKES[service](max_tokens=50)) as provider:
        embedded = Embedder(encoder(service, provider), None).embed(
            [TEXTS[0], long], "document", Meter()
        )
        assert tokens_of(provider.embedded[-1]) == 30
        assert np.array_equal(
            embedded.vectors, real_vectors([TEXTS[0], long[: len(long) // 4]])
        )
        assert embedded.truncated_tokens[0] == 0
        assert 85 <= embedded.truncated_tokens[1] <= 95  # 120 less 30, by estimate


@pytest.mark.parametrize("service", FAKES)
def test_a_text_that_cannot_be_halved_enough_is_told_in_its_first_words(service):
    with serving(FAKES[service](max_tokens=0)) as provider:
        with pytest.raises(BackendError, match=r"400 .*6"):
            Embedder(encoder(service, provider), None).embed(
                ["one two three four five six"], "document", Meter()
            )
        assert len(provider.requests) == 5  # of 27 characters, 13, 6, 3 and 1


@pytest.mark.parametrize("service", FAKES)
def test_a_vector_without_direction_is_handed_on(service):
    with serving(FAKES[service](["zero"])) as provider:
        embedder = Embedder(encoder(service, provider), None)
        embedded = embedder.embed(TEXTS[:1], "document", Meter())
    assert embedded.vectors.tolist() == [[0.0] * 128]


HERE = "http://127.0.0.1:9"
"""Where nothing listens, on this machine."""
BLOCKS = {
    "openai": 'encoder = { kind = "openai", model = "m", '
    f'base_url = "{HERE}/v1", dimensions = 4 }}',
    "cohere": f'encoder = {{ kind = "cohere", model = "m", base_url = "{HERE}" }}',
    "gemini": f'encoder = {{ kind = "gemini", model = "m", base_url = "{HERE}" }}',
    "bedrock": 'encoder = { kind = "bedrock", model = "amazon.titan-embed-text-v2:0", '
    'region = "eu-west-1", '
    f'endpoint_url = "{HERE}" }}',
    "reranker": 'of = "bm25"\nrerank = { kind = "http", dialect = "tei", '
    f'base_url = "{HERE}" }}',
    "endpoint": f'kind = "http"\nids = "[*]"\nurl = "{HERE}/?q={{query}}"',
    "store": f'encoder = {{ kind = "hashing" }}\nstore = "{HERE}"',
}


def test_servers_on_this_machine_that_were_not_started_are_final_after_two_tries(
    tmp_path, in_tmp, caplog
):
    blocks = "".join(
        f'[[retrievers]]\nname = "{name}"\n{record}\n'
        for name, record in BLOCKS.items()
    )
    assert ended("run", small.experiment(tmp_path, retrievers=BM25 + blocks)) == 3
    failed = dict(records.read_results(tmp_path / "results" / "small").manifest.failed)
    assert failed.keys() == BLOCKS.keys()
    for message in failed.values():
        assert "onnection refused" in message and "is the service running?" in message
        # Patience had not ended.
        assert "patience =" not in message
    # They end within a second: nothing is worth waiting for.
    assert "waiting for" not in caplog.text


def tries_of(retries: Retries, *failures: TransientFailure) -> int:
    """Ask a service that fails so before it answers, and return the number of tries."""
    left = list(failures)
    tries = []

    async def once() -> str:
        tries.append(1)
        if left:
            raise left.pop(0)
        return "answer"

    with suppress(BackendError):
        assert asyncio.run(retries.ask(once, Meter(), Stop())) == "answer"
    return len(tries)


def test_only_a_service_that_has_answered_is_retried_for_long(
    monkeypatch,
):
    monkeypatch.setattr(caller, "FIRST_PAUSE", 0.001)
    monkeypatch.setattr(caller, "LONGEST_PAUSE", 0.002)
    refused = [
        TransientFailure("api.example.org: connection refused", unlikely_to_pass=True)
    ] * 20
    retries = Retries(300)
    assert [
        tries_of(retries, *failures) for failures in (refused, refused, [], refused)
    ] == [
        2,
        2,
        1,
        21,
    ]


@pytest.mark.parametrize("name", ["ключ", "a b", "", "a:b"])
def test_a_header_with_an_impossible_name_is_one_sentence(name):
    with pytest.raises(InputError, match=f"headers.*{name!r} is not the name of a"):
        OpenAIEncoder("m", base_url="http://127.0.0.1:9/v1", headers={name: "x"})

"""What stands around the SDKs: patience, pace, cancelling, dollars, addresses and headers."""

import asyncio
import signal
import subprocess
import sys
import textwrap
import threading
import time

import pytest

from retrievers.encoders.openai import OpenAIEncoder
from retrievers.errors import BackendError, InputError
from retrievers.meter import Call, Meter, Stop, single_call
from retrievers.remote.calling import Caller, Charge, in_thread, wait_for
from retrievers.retrying import Transient, retry_after
from retrievers.types import Limits
from tests.support.mortal import heed_interrupts
from tests.support.servers import OpenAIProvider, serving

pytestmark = pytest.mark.usefixtures("no_keys")
NOTHING = Charge(0, 0.0)
LIMITS = {"concurrency": 1, "rpm": 0, "tpm": 0, "patience": 60, "tokens": 0}


def asked(attempt, call=None, timeout=60, **policy):
    """Let one request be tried, and return its answer and how long it took."""
    caller = Caller(Limits(**{**LIMITS, **policy}), timeout, lambda: "it")
    call, started = call or single_call(), time.monotonic()
    try:
        answer = wait_for(caller.call(attempt, NOTHING, call, 0), call.stopped)
    except BackendError as failure:
        answer = str(failure)
    return answer, time.monotonic() - started


@pytest.mark.parametrize("pause", [None, 0.3, 3600.0])
def test_patience_is_kept_to_its_end(pause):
    async def fails():
        raise Transient("away", retry_after=pause)

    said, took = asked(fails, patience=1)
    assert said.startswith("gave up after") and said.endswith("(patience = 1): away")
    assert 1 <= took < 4


def test_a_wait_that_the_provider_asks_for_holds_its_own_request_alone():
    times = []

    async def busy():
        times.append(time.monotonic())
        if len(times) == 1:
            raise Transient("busy", retry_after=0.5)
        return "answer", NOTHING

    meter = Meter()
    answer, _ = asked(busy, Call(meter, Stop()))
    assert answer == "answer" and times[1] - times[0] >= 0.5
    assert meter.counts("") == {"tokens": 0, "usd": 0.0, "retries": 1, "calls": 1}


@pytest.mark.parametrize(("policy", "tokens"), [({"rpm": 300}, 0), ({"tpm": 3000}, 10)])
def test_a_declared_rate_is_kept(policy, tokens):
    async def now():
        return time.monotonic(), NOTHING

    caller, started = Caller(Limits(**{**LIMITS, **policy}), 60, lambda: "it"), time.monotonic()
    sent = [wait_for(caller.call(now, NOTHING, single_call(), tokens), Stop()) for _ in range(4)]
    assert all(at - started >= 0.2 * number for number, at in enumerate(sent))


def test_an_attempt_ends_in_time_and_its_thread_is_left_behind():
    release = threading.Event()

    async def blocks():
        return await in_thread(lambda: release.wait(60)), NOTHING

    said, took = asked(blocks, timeout=0.3, patience=0.1)
    release.set()
    assert "it: no complete response within 0.3 s (timeout)" in said and took < 5


def test_what_waits_for_another_try_stops_with_the_others():
    stopped = Stop()
    threading.Timer(0.3, stopped.set).start()

    async def away():
        raise Transient("away", retry_after=50)

    assert asked(away, Call(Meter(), stopped))[1] < 5


def test_a_request_under_way_is_cancelled_where_the_run_is_interrupted():
    stopped, cancelled = Stop(), threading.Event()
    threading.Timer(0.3, stopped.interrupt).start()

    async def hangs():
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.set()
            raise

    said, took = asked(hangs, Call(Meter(), stopped))
    assert "stopped" in said and took < 5 and cancelled.wait(5)


@pytest.mark.parametrize("presses", [1, 2])
def test_ctrl_c_answers_within_two_seconds_and_a_second_one_ends_without_a_traceback(tmp_path, presses):
    code = textwrap.dedent("""
        import sys
        sys.argv[0] = "harness"
        from harness.__main__ import start
        start()
    """)
    from tests.support import small

    with serving(OpenAIProvider(always="slow")) as provider:
        table = f'kind = "openai", model = "m", base_url = "{provider.url}", timeout = 600, batch_size = 1'
        path = small.experiment(tmp_path, retrievers=f'[[retrievers]]\nname = "a"\nencoder = {{ {table} }}\n')
        words = [sys.executable, "-c", code, "run", str(path), "--results", str(tmp_path / "out")]
        process = subprocess.Popen(words, stderr=subprocess.PIPE, preexec_fn=heed_interrupts)
        while len(provider.requests) < 3 and process.poll() is None:
            time.sleep(0.02)
        started = time.monotonic()
        for _ in range(presses):
            process.send_signal(signal.SIGINT)
            time.sleep(0.1)
        _, err = process.communicate(timeout=60)
        assert time.monotonic() - started < 2 + 3  # a busy machine
        assert b"Traceback" not in err and process.returncode in (130, -signal.SIGINT), err


@pytest.mark.parametrize(
    ("value", "seconds"), [("0", 0), ("7", 7), ("-3", 0), ("Wed, 21 Oct 2015 07:28:00 GMT", 0), ("soon", None)]
)
def test_what_a_server_asks_to_wait(value, seconds):
    assert retry_after({"retry-after": value}) == seconds


@pytest.mark.parametrize("url", ["ftp://host/v1", "https://", "host:80", "http://host:99999999/v1", "http://[::1"])
def test_an_address_that_is_none(url, monkeypatch):
    with pytest.raises(InputError, match=r"encoder\.base_url"):
        OpenAIEncoder("m", base_url=url)
    monkeypatch.setenv("OPENAI_BASE_URL", url)
    with pytest.raises(InputError, match="OPENAI_BASE_URL"):
        OpenAIEncoder("m")


@pytest.mark.parametrize("option", ["timeout", "patience", "rpm", "tpm", "price"])
@pytest.mark.parametrize("value", [float("nan"), float("inf"), -1.0])
def test_numbers_that_are_none(option, value):
    with pytest.raises(InputError, match=option):
        OpenAIEncoder("m", **{option: value})


def test_the_user_of_an_address_is_sent_and_not_shown(monkeypatch):
    with serving(OpenAIProvider(["expired"])) as provider:
        own = OpenAIEncoder("m", base_url=provider.url.replace("://", "://me:w%2Frd@"))
        with pytest.raises(BackendError) as caught:
            own.embed(["a"], "query", single_call())
        assert provider.requests[0]["headers"]["authorization"] == "Basic bWU6dy9yZA=="
    assert "w%2Frd" not in f"{caught.value} {own.provenance}"


def test_a_server_of_the_environment_is_asked_with_its_key_and_without_the_names_of_the_account(monkeypatch):
    with serving(OpenAIProvider()) as provider:
        monkeypatch.setenv("OPENAI_BASE_URL", provider.url)
        monkeypatch.setenv("OPENAI_API_KEY", "its-key")
        monkeypatch.setenv("OPENAI_ORG_ID", "an-organisation")
        OpenAIEncoder("m").embed(["a"], "query", single_call())
        sent = provider.requests[0]["headers"]
    assert sent["authorization"] == "Bearer its-key"
    assert "an-organisation" not in sent.values()


@pytest.mark.parametrize("name", ["HTTP_PROXY", "ALL_PROXY"])
def test_a_proxy_that_is_none_is_one_message_without_its_password(monkeypatch, name):
    monkeypatch.setenv(name, "sockets://me:canary@nowhere")
    with pytest.raises(InputError, match="HTTP_PROXY") as caught:
        OpenAIEncoder("m", base_url="http://192.0.2.1/v1").embed(["a"], "query", single_call())
    assert "canary" not in str(caught.value)

"""How fast and how long a provider is asked, by a clock that only the tests move."""

import threading
from contextlib import ExitStack
from types import SimpleNamespace

import numpy as np
import pytest
import tenacity
from retrievers.remote.remote_model import RateLimiter, RequestSender

from retrievers import retrying
from retrievers.errors import BackendError
from retrievers.meter import Call, Meter
from retrievers.remote import remote_model
from retrievers.retrying import Transient
from retrievers.types import Limits


class Clock(threading.Event):
    """A clock, and the event that waits are made with: to wait moves the clock at once."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now

    def wait(self, timeout: float | None = None) -> bool:
        self.now += timeout or 0.0
        return self.is_set()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    for module in (remote_model, tenacity, retrying):
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=made.monotonic))
    return made


def opened(concurrency: int = 8, rpm: float = 0, tpm: float = 0) -> RateLimiter:
    return RateLimiter(concurrency, rpm=rpm, tpm=tpm)


def sent(limiter: RateLimiter, clock: Clock, tokens: list[int]) -> list[float]:
    """When each of some requests was sent, in seconds since the first was asked for."""
    started, found = clock.now, []
    for count in tokens:
        with limiter.turn(count, clock):
            found.append(clock.now - started)
    return found


def fail(limiter: RateLimiter, clock: Clock, *, throttled: bool, retry_after: float | None = None) -> None:
    with pytest.raises(Transient), limiter.turn(1, clock):
        raise Transient("no", throttled=throttled, retry_after=retry_after)


def at_once(limiter: RateLimiter, clock: Clock) -> int:
    """How many requests pass before one would have to wait for room."""
    with ExitStack() as turns:
        for number in range(1, 100):
            turns.enter_context(limiter.turn(1, clock))
            if limiter._running >= int(limiter._width):
                return number
    raise AssertionError("no end")


def test_requests_a_minute(clock: Clock) -> None:
    assert sent(opened(rpm=600), clock, [1] * 21) == pytest.approx([0.105 * number for number in range(21)])


def test_tokens_a_minute_are_waited_for_after_each_request(clock: Clock) -> None:
    assert sent(opened(tpm=600), clock, [20, 40, 1, 1]) == pytest.approx([0, 2.1, 6.3, 6.405])


def test_time_that_passed_is_not_saved_up(clock: Clock) -> None:
    paced = opened(rpm=60)
    sent(paced, clock, [1])
    clock.now += 100
    assert sent(paced, clock, [1, 1, 1]) == pytest.approx([0, 1.05, 2.1])


def test_without_limits_nothing_waits(clock: Clock) -> None:
    assert sent(opened(), clock, [1000] * 50) == [0] * 50


def test_half_as_many_at_once_after_a_throttle_and_one_more_for_each_round_of_successes(clock: Clock) -> None:
    narrowed = opened()
    assert at_once(narrowed, clock) == 8
    clock.now += 1
    fail(narrowed, clock, throttled=True)
    assert narrowed._width == 4
    for _ in range(4):
        sent(narrowed, clock, [1])
    assert 4.8 < narrowed._width < 5
    for _ in range(100):
        sent(narrowed, clock, [1])
    assert at_once(narrowed, clock) == 8


def test_those_that_were_under_way_together_halve_once(clock: Clock) -> None:
    narrowed = opened()
    clock.now += 1
    turns = [narrowed.turn(1, clock), narrowed.turn(1, clock)]
    for turn in turns:
        turn.__enter__()
    for turn in turns:
        assert not turn.__exit__(Transient, Transient("no", throttled=True), None)  # the failure goes on to the caller
    assert narrowed._width == 4


def test_a_fault_that_is_no_throttle_narrows_nothing(clock: Clock) -> None:
    kept = opened()
    fail(kept, clock, throttled=False)
    assert at_once(kept, clock) == 8


def test_nothing_is_sent_before_what_the_provider_asked_for(clock: Clock) -> None:
    asked = opened()
    fail(asked, clock, throttled=True, retry_after=30)
    assert sent(asked, clock, [1, 1]) == [30, 30]


def tries(clock: Clock, failure: Transient, *, seconds: float, limit: float) -> tuple[list[float], BackendError]:
    """When each try of a request was made that always fails after some seconds, and the message in the end."""
    meter, made, started = Meter(), [], clock.now

    def send() -> None:
        made.append(clock.now - started)
        clock.now += seconds
        raise failure

    with pytest.raises(BackendError) as caught, meter.stage("s"):
        RequestSender(Limits(8, 0, 0, limit, 1)).ask(send, 1, Call(meter, clock))
    assert meter.counts("s").get("retries", 0) == len(made) - 1
    return made, caught.value


def test_patience_ends_before_a_wait_that_is_longer_than_it(clock: Clock) -> None:
    made, message = tries(clock, Transient("no", retry_after=1), seconds=0, limit=0.5)
    assert made == [0]
    assert "gave up after 1 try in 0 s (patience = 0.5): no" in str(message)


def test_waits_grow_and_end_with_patience(clock: Clock) -> None:
    made, message = tries(clock, Transient("no"), seconds=0.01, limit=60)
    assert 4 < len(made) < 100
    assert made[-1] <= 60
    assert f"gave up after {len(made)} tries" in str(message)


def test_a_wait_that_the_provider_asks_for_is_kept(clock: Clock) -> None:
    made, _ = tries(clock, Transient("no", retry_after=10), seconds=0, limit=35)
    waits = np.diff(made)
    assert len(made) == 4
    assert all(10 <= wait <= 10.25 for wait in waits)


def test_a_slow_request_uses_patience_up(clock: Clock) -> None:
    assert len(tries(clock, Transient("no"), seconds=100, limit=60)[0]) == 1

"""What a run observes while it works.

A `Meter` has the times, counts and notes of one retriever, a `Budget` the dollars that
all of them may spend. A `Call` passes a meter to a model, with the signal to stop.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from retrievers.errors import InputError, OverBudget, Problem


class Budget:
    """Dollars that one run may spend, shared by its retrievers, for many threads."""

    def __init__(self, limit: float | None = None) -> None:
        """Set the most dollars; None for no limit.

        Raises:
            InputError: the limit is not a finite number of 0 or more.
        """
        # A sum is never above NaN or infinity: such a limit would not limit anything.
        if limit is not None and not 0 <= limit < math.inf:
            problem = f"{limit} is not a number of dollars"
            remedy = "0 or more, or none for no limit"
            raise InputError(Problem("max_cost", problem, remedy))
        self.limit = limit
        self.refused = False
        """Whether a request was not sent because it would have exceeded the limit."""
        self.spent = 0.0
        """Dollars spent or reserved so far."""
        self._lock = threading.Lock()

    def reserve(self, usd: float) -> None:
        """Reserve dollars for a request.

        Raises:
            OverBudget: it would exceed the limit; nothing is reserved.
        """
        with self._lock:
            if self.limit is not None and usd > 0 and self.spent + usd > self.limit:
                self.refused = True
                raise OverBudget(
                    f"the next request costs about ${usd:.6f}; "
                    f"${self.spent:.6f} of ${self.limit:.6f} are spent; "
                    "what was paid for is kept in the cache: "
                    "raise the limit (--max-cost, in Python max_cost) and run again"
                )
            self.spent += usd

    def check(self, stored_in: str) -> None:
        """Check, at the end, that the bill is within the limit.

        A service may bill more than was expected.

        Args:
            stored_in: where paid results are stored, in the words of the message.

        Raises:
            OverBudget: more was billed.
        """
        if self.limit is not None and self.spent > self.limit:
            raise OverBudget(
                f"${self.spent:.6f} is billed, more than the ${self.limit:.6f} of the "
                "limit (--max-cost, in Python max_cost): "
                "requests cost more than was expected of them; "
                f"{stored_in}"
            )

    def release(self, usd: float) -> None:
        """Return reserved dollars that were not spent; negative: spend more."""
        with self._lock:
            self.spent -= usd


@dataclass(slots=True)
class StageTotals:
    """The sums of one stage."""

    seconds: float = 0.0
    counts: dict[str, float] = field(default_factory=dict)
    total: int | None = None
    """Texts or steps that are expected, for progress."""
    steps: int = 0
    """Steps that are done, if `total` is in steps."""


class Meter:
    """The observations of one retriever, passed to every call that works for it.

    The stages of a retriever are "load", "embed-documents", "index", "embed-queries",
    "search", "search-exact" (for the recall of an approximate search), "fuse",
    "rerank", "collapse", "count-tokens" and "latency"; a run has further ones, such as
    "judge" and "scoring". Counts belong to the innermost open stage. The names in
    costs.csv are calls, texts, cached, tokens, usd; any other count (retries,
    lost_tokens, …) goes to the data quality of the manifest. Safe for many threads.
    """

    def __init__(
        self,
        budget: Budget | None = None,
        on_change: Callable[[Meter], None] | None = None,
    ) -> None:
        self.budget = budget or Budget()
        self._on_change = on_change
        self._lock = threading.RLock()
        self._open_stages: list[str] = []
        self._default_stage = ""
        self._entry_count = 0
        self._stages: dict[str, StageTotals] = {}
        self._notes: dict[str, dict[str, None]] = {}
        """Kind -> the noted ids, in their order."""
        self._request_seconds: dict[str, list[float]] = {}

    @contextmanager
    def stage(self, name: str, total: int | None = None) -> Iterator[None]:
        """Time the code inside, and add its counts to a stage.

        Stages may be within each other: the time of the inner one counts in both.

        Args:
            name: the stage.
            total: expected texts or steps, for progress.
        """
        started = time.perf_counter()
        with self._lock:
            self._open_stages.append(name)
            self._entry_count += 1
            stage = self._stages.setdefault(name, StageTotals())
            if total is not None:
                stage.total = total
        self._notify()
        try:
            yield
        finally:
            with self._lock:
                self._open_stages.pop()
                stage.seconds += time.perf_counter() - started
            self._notify()

    @contextmanager
    def loading(self) -> Iterator[None]:
        """Time the loading of a model as stage "load", and take it off the open stage.

        >>> meter = Meter()
        >>> with meter.stage("rerank"), meter.loading():
        ...     time.sleep(0.02)
        >>> meter.totals("load").seconds > 0.02 > meter.totals("rerank").seconds
        True
        """
        open_stage = self._stages.get(self.current, StageTotals())
        started = time.perf_counter()
        try:
            with self.stage("load"):
                yield
        finally:
            with self._lock:
                open_stage.seconds -= time.perf_counter() - started

    @contextmanager
    def stage_by_default(self, name: str) -> Iterator[None]:
        """Add counts outside any stage to stage `name`, and the time if none is opened.

        For code of other packages, which may open no stage.

        >>> meter = Meter()
        >>> with meter.stage_by_default("search"):
        ...     meter.count(calls=1)
        >>> list(meter.stages())
        ['search']
        """
        started = time.perf_counter()
        entries_before = self._entry_count
        self._default_stage = name
        try:
            yield
        finally:
            self._default_stage = ""
            if self._entry_count == entries_before:
                stage = self._stages.setdefault(name, StageTotals())
                stage.seconds += time.perf_counter() - started

    def count(self, **numbers: float) -> None:
        """Add numbers to the sums of the open stage."""
        with self._lock:
            counts = self._stages.setdefault(self.current, StageTotals()).counts
            for name, number in numbers.items():
                counts[name] = counts.get(name, 0) + number
        self._notify()

    def time_request(self, seconds: float) -> None:
        """Add the time of a request of one query to the open stage."""
        with self._lock:
            self._request_seconds.setdefault(self.current, []).append(seconds)

    def request_seconds(self) -> dict[str, tuple[float, ...]]:
        """Return the times of requests of one query by stage."""
        with self._lock:
            return {
                stage: tuple(seconds)
                for stage, seconds in self._request_seconds.items()
            }

    def step(self) -> None:
        """Go one step on in the open stage, whose `total` is in steps, for progress."""
        with self._lock:
            self._stages.setdefault(self.current, StageTotals()).steps += 1
        self._notify()

    def note(self, kind: str, id: str) -> None:
        """Note the id of a document or query for the data quality of the manifest.

        An id that was noted before, by another part or in another trial, counts once.
        Kinds are, for documents, "empty", "truncated", "not-in-corpus" and others; for
        queries "truncated-query", "no-hit-query" and others; "matched-hit" has a text
        with two ids. A query's id is never noted under a documents' kind.
        """
        with self._lock:
            self._notes.setdefault(kind, {})[id] = None

    @property
    def current(self) -> str:
        """The innermost open stage; outside any the default one, or ""."""
        return self._open_stages[-1] if self._open_stages else self._default_stage

    def totals(self, stage: str) -> StageTotals:
        """Return the sums of one stage so far."""
        with self._lock:
            totals = self._stages.get(stage, StageTotals())
            return replace(totals, counts=dict(totals.counts))

    def counts(self, stage: str) -> dict[str, float]:
        """Return the counts of one stage so far."""
        return self.totals(stage).counts

    def stages(self) -> dict[str, StageTotals]:
        """Return the sums by stage, in the order of first entry."""
        return {name: self.totals(name) for name in list(self._stages)}

    def notes(self) -> dict[str, tuple[str, ...]]:
        """Return the noted ids by kind, each once."""
        with self._lock:
            return {kind: tuple(ids) for kind, ids in self._notes.items()}

    def _notify(self) -> None:
        if self._on_change is not None:
            self._on_change(self)


class Stop(threading.Event):
    """Set when no further request is sent."""

    def __init__(self) -> None:
        super().__init__()
        self.interrupted = False
        """Whether open requests are abandoned as well."""

    def interrupt(self) -> None:
        """Stop, and abandon the open requests."""
        self.interrupted = True
        self.set()


class Call(NamedTuple):
    """The meter and the stop signal of one call of an encoder or a reranker."""

    meter: Meter
    """The meter of the retriever that makes the call."""
    stopped: Stop
    """Set by the loop of requests (`retrievers.services.concurrency`) when another
    request failed for good or the run was interrupted: a call that waits for its next
    try gives up."""


def single_call(meter: Meter | None = None) -> Call:
    """Return a call outside any loop of requests, which nothing stops.

    Without a meter its counts are not read.
    """
    return Call(meter or Meter(), Stop())

"""What a run observes while it works."""

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
    """Dollars that one run may spend, shared by its retrievers; safe for many threads."""

    def __init__(self, limit: float | None = None) -> None:
        """Take the most dollars; None for no limit. Raises InputError where they are no finite number of 0 or more."""
        if (
            limit is not None and not 0 <= limit < math.inf
        ):  # no sum is above NaN, or infinity
            what = f"{limit} is not a number of dollars"
            raise InputError(
                Problem("max_cost", what, "0 or more, or none for no limit")
            )
        self.limit = limit
        self.refused = False
        """Whether something was not sent, since it would have cost more than there was."""
        self.spent = 0.0
        """Dollars spent or promised so far."""
        self._lock = threading.Lock()

    def reserve(self, usd: float) -> None:
        """Promise `usd` dollars, or raise OverBudget and leave the budget as it was."""
        with self._lock:
            if self.limit is not None and usd > 0 and self.spent + usd > self.limit:
                self.refused = True
                raise OverBudget(
                    f"the next request costs about ${usd:.6f}; ${self.spent:.6f} of ${self.limit:.6f} are spent "
                    "(--max-cost); what was paid for is kept in the cache: raise the limit and run again"
                )
            self.spent += usd

    def check(self, stored_in: str) -> None:
        """See, when all is done, that no more was billed than there was: a service may bill more than was expected.

        Args:
            stored_in: where what was paid for is, as messages say it.

        Raises:
            OverBudget: more was billed.
        """
        if self.limit is not None and self.spent > self.limit:
            more = f"${self.spent:.6f} is billed, more than the ${self.limit:.6f} of --max-cost"
            raise OverBudget(
                f"{more}: requests cost more than was expected of them; {stored_in}"
            )

    def release(self, usd: float) -> None:
        """Return what was promised and not spent (negative: what was spent beyond the promise)."""
        with self._lock:
            self.spent -= usd


@dataclass(slots=True)
class StageTotals:
    """The sums of one stage."""

    seconds: float = 0.0
    counts: dict[str, float] = field(default_factory=dict)
    total: int | None = None
    """Texts or steps that are expected."""
    steps: int = 0


class Meter:
    """The observations of one retriever, passed to every call that does work for it; the runner reads it.

    A stage is one of "embed-documents", "index", "embed-queries", "search", "search-exact" (the recall of an
    approximate search is found with it), "fuse", "rerank", "latency". Counts go to
    the innermost open stage. The names that reach costs.csv are calls, texts, cached, tokens, usd; any other
    count (retries, lost_tokens, …) goes to the integrity ledger. Safe for many threads.
    """

    def __init__(
        self,
        budget: Budget | None = None,
        on_change: Callable[[Meter], None] | None = None,
    ) -> None:
        self.budget = budget or Budget()
        self._watch = on_change
        self._lock = threading.RLock()
        self._open: list[str] = []
        self._default = ""
        self._entered = 0
        self._stages: dict[str, StageTotals] = {}
        self._notes: dict[str, list[str]] = {}

    @contextmanager
    def stage(self, name: str, total: int | None = None) -> Iterator[None]:
        """Time a block and send its counts to stage `name`; `total` texts or steps are expected, for progress."""
        started = time.perf_counter()
        with self._lock:
            self._open.append(name)
            self._entered += 1
            stage = self._stages.setdefault(name, StageTotals())
            stage.total = stage.total if total is None else total
        self._notify()
        try:
            yield
        finally:
            with self._lock:
                self._open.pop()
                stage.seconds += time.perf_counter() - started
            self._notify()

    @contextmanager
    def stage_by_default(self, name: str) -> Iterator[None]:
        """Book a block on stage `name` as far as it opens none: counts outside any, and its time where it opened none.

        >>> meter = Meter()
        >>> with meter.stage_by_default("search"):
        ...     meter.count(calls=1)
        >>> list(meter.stages())
        ['search']
        """
        started, entered, self._default = time.perf_counter(), self._entered, name
        try:
            yield
        finally:
            self._default = ""
            if self._entered == entered:
                self._stages.setdefault(name, StageTotals()).seconds += (
                    time.perf_counter() - started
                )

    def count(self, **numbers: float) -> None:
        """Add numbers to the sums of the stage that is open."""
        with self._lock:
            sums = self._stages.setdefault(self.current, StageTotals()).counts
            for name, number in numbers.items():
                sums[name] = sums.get(name, 0) + number
        self._notify()

    def step(self) -> None:
        """Go one step on in the stage that is open, whose `total` is in steps: seen as progress, summed nowhere."""
        with self._lock:
            self._stages.setdefault(self.current, StageTotals()).steps += 1
        self._notify()

    def note(self, kind: str, id: str) -> None:
        """Keep the id of a document or query in the integrity ledger.

        Of documents: "empty", "truncated", "zero-vector", "not-in-corpus"; of queries: "truncated-query",
        "zero-vector-query", "truncated-pair", "no-hit-query", "nothing-matches-query", "not-answered-query",
        "repeated-hit-query". An id of a query is never noted under a kind of documents.
        """
        with self._lock:
            self._notes.setdefault(kind, []).append(id)

    @property
    def current(self) -> str:
        """The innermost open stage; outside any the one by default, else ""."""
        return self._open[-1] if self._open else self._default

    def totals(self, stage: str) -> StageTotals:
        """The sums of one stage so far."""
        with self._lock:
            found = self._stages.get(stage, StageTotals())
            return replace(found, counts=dict(found.counts))

    def counts(self, stage: str) -> dict[str, float]:
        """What was counted in one stage so far."""
        return self.totals(stage).counts

    def stages(self) -> dict[str, StageTotals]:
        """The sums by stage, in the order in which they were first entered."""
        return {name: self.totals(name) for name in list(self._stages)}

    def notes(self) -> dict[str, tuple[str, ...]]:
        """The noted ids by kind."""
        with self._lock:
            return {kind: tuple(ids) for kind, ids in self._notes.items()}

    def _notify(self) -> None:
        if self._watch is not None:
            self._watch(self)


class Stop(threading.Event):
    """Set when no further request is sent; `interrupted` when those under way are not waited for either."""

    def __init__(self) -> None:
        super().__init__()
        self.interrupted = False

    def interrupt(self) -> None:
        """Stop, and give up what is under way."""
        self.interrupted = True
        self.set()


class Call(NamedTuple):
    """What one call of an encoder or a reranker reports to, and what may stop it."""

    meter: Meter
    """Of the retriever for which the call is made."""
    stopped: Stop
    """Set by the loop of requests that makes the call (`retrievers.services.caller`), when another request failed for good
    or the run was interrupted: who waits for another try gives up."""


def single_call(meter: Meter | None = None) -> Call:
    """Return the call of a request that no loop makes and nothing stops; without a meter its counts are not read."""
    return Call(meter or Meter(), Stop())

"""What a run observes while it works: time, counts, notes, and money before it is spent."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from retrievers.errors import OverBudget


class Budget:
    """Dollars that one run may spend, shared by its retrievers; safe for many threads."""

    def __init__(self, limit: float | None = None) -> None:
        self.limit = limit
        self._spent = 0.0
        self._lock = threading.Lock()

    @property
    def spent(self) -> float:
        """Dollars spent or promised so far."""
        return self._spent

    def take(self, usd: float) -> None:
        """Promise `usd` dollars, or raise OverBudget and leave the budget as it was."""
        with self._lock:
            if self.limit is not None and usd > 0 and self._spent + usd > self.limit:
                raise OverBudget(
                    f"the next request costs about ${usd:.6f}; ${self._spent:.6f} of ${self.limit:.6f} are spent "
                    "(--max-cost); what was embedded is kept in the cache: raise the limit and run again"
                )
            self._spent += usd

    def give_back(self, usd: float) -> None:
        """Return what was promised and not spent (negative: what was spent beyond the promise)."""
        with self._lock:
            self._spent -= usd


class StageTotals(NamedTuple):
    """The sums of one stage."""

    seconds: float
    counts: dict[str, float]


class Meter:
    """The observations of one retriever: retrievers write to it, the runner reads it.

    A stage is one of "embed-documents", "index", "embed-queries", "search", "search-exact" (the recall of an
    approximate search is found with it), "fuse", "rerank", "latency". Counts go to
    the innermost open stage. The names that reach costs.csv are calls, texts, cached, tokens, usd; any other
    count (retries, lost_tokens, …) goes to the integrity ledger. Safe for the threads of one encoder.
    """

    def __init__(
        self,
        usd_per_million_tokens: float = 0.0,
        budget: Budget | None = None,
        watch: Callable[[Meter], None] | None = None,
    ) -> None:
        self.price = usd_per_million_tokens / 1e6
        self.budget = budget or Budget()
        self._watch = watch
        self._lock = threading.RLock()
        self._open: list[str] = []
        self._totals: dict[str, int] = {}
        self._seconds: dict[str, float] = {}
        self._counts: dict[str, dict[str, float]] = {}
        self._notes: dict[str, list[str]] = {}
        self.stopped = threading.Event()
        """Set when the retriever gives up: requests that wait for another try give up too."""

    @contextmanager
    def stage(self, name: str, total: int | None = None) -> Iterator[None]:
        """Time a block and send its counts to stage `name`; `total` texts are expected, for progress."""
        started = time.perf_counter()
        with self._lock:
            self._open.append(name)
            if total is not None:
                self._totals[name] = total
        self._tell()
        try:
            yield
        finally:
            with self._lock:
                self._open.pop()
                self._seconds[name] = self._seconds.get(name, 0.0) + time.perf_counter() - started
            self._tell()

    def count(self, **numbers: float) -> None:
        """Add numbers to the sums of the stage that is open."""
        with self._lock:
            sums = self._counts.setdefault(self.current, {})
            for name, number in numbers.items():
                sums[name] = sums.get(name, 0) + number
        self._tell()

    def note(self, kind: str, id: str) -> None:
        """Remember that something of a kind ("truncated", "empty", "zero-vector", …) befell a document or query."""
        with self._lock:
            self._notes.setdefault(kind, []).append(id)

    def before(self, tokens: int) -> None:
        """Promise the price of `tokens` tokens before they are sent; raises OverBudget."""
        self.budget.take(tokens * self.price)

    def after(self, promised: int, tokens: int) -> None:
        """Settle a promise: `tokens` tokens were billed of `promised`; counts tokens and dollars."""
        self.budget.give_back((promised - tokens) * self.price)
        self.count(tokens=tokens, usd=tokens * self.price)

    @property
    def current(self) -> str:
        """The innermost open stage, "" outside any."""
        return self._open[-1] if self._open else ""

    def expected(self, stage: str) -> int | None:
        """How many texts a stage said it will treat."""
        return self._totals.get(stage)

    def counts(self, stage: str) -> dict[str, float]:
        """The sums of one stage so far."""
        with self._lock:
            return dict(self._counts.get(stage, {}))

    def stages(self) -> dict[str, StageTotals]:
        """The sums by stage, in the order in which they were first entered."""
        with self._lock:
            names = dict.fromkeys([*self._seconds, *self._counts])
            return {n: StageTotals(self._seconds.get(n, 0.0), dict(self._counts.get(n, {}))) for n in names}

    def notes(self) -> dict[str, tuple[str, ...]]:
        """The noted ids by kind."""
        with self._lock:
            return {kind: tuple(ids) for kind, ids in self._notes.items()}

    def _tell(self) -> None:
        if self._watch is not None:
            self._watch(self)

"""Progress while retrievers work: bars on a terminal, one line in a notebook; elsewhere a line a finished stage."""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from harness.console.printing import Told, console_of
from harness.english import counted
from harness.running.forecast import Watch
from retrievers.meter import Meter

if TYPE_CHECKING:
    from rich.console import Console

REFRESH = 0.1
"""Seconds between two redraws of the bars."""
SILENCE = 30.0
"""Seconds without a line after which a log says how far a stage is."""
STEPS = {"comparing": "pairs"}
"""What is counted in a stage that treats no texts, where it has a name."""
FED_BY = {"index": "embed-documents"}
"""Stages that take turns with another, window by window: neither is finished before both are."""

LOADING = logging.getLogger("retrievers.local_models")
"""Tells that a model is loaded."""
StageKey = tuple[str, str]
"""Retriever and stage."""


class StageProgress(NamedTuple):
    """How far a stage is."""

    texts: int
    """Texts, or steps of what treats none."""
    expected: int | None
    cached: int
    seconds: float
    spent: float
    """Dollars of the whole run so far."""
    unit: str = ""
    """What is counted, where it is not texts and has a name."""

    def share(self) -> str:
        """Texts done, of those expected; the time that has passed where nothing is counted.

        >>> StageProgress(500, 1000, 0, 40.0, 0.0).share(), StageProgress(0, None, 0, 40.0, 0.0).share()
        ('500 of 1,000', 'for 0:40')
        >>> StageProgress(412, 1330, 0, 4.0, 0.0, "pairs").share()
        '412 of 1,330 pairs'
        """
        if not self.texts and not self.expected:
            return f"for {_clock(self.seconds)}"
        return f"{self.texts:,}" + (
            f" of {self.expected:,} {self.unit}".rstrip() if self.expected else ""
        )

    def details(self) -> list[str]:
        """Rate, remaining time where it is known how much there is, cached share, dollars.

        >>> StageProgress(500, 1000, 100, 40.0, 0.0123).details()
        ['10/s', '0:50 left', '20 % cached', '$0.0123']
        >>> StageProgress(0, None, 100, 40.0, 0.0).details()  # no texts
        ['100 cached']
        """
        made = max(0, self.texts - self.cached)
        rate = made / self.seconds if self.seconds > 0 else 0.0
        details = []
        if rate:
            details.append(f"{rate:,.0f}/s" if rate >= 10 else f"{rate:.1f}/s")
            if self.expected and self.expected > self.texts:
                details.append(f"{_clock((self.expected - self.texts) / rate)} left")
        if self.cached and not self.texts:
            details.append(f"{self.cached:,} cached")
        elif self.cached:
            details.append(
                "all cached"
                if not made
                else f"{100 * self.cached / self.texts:.0f} % cached"
            )
        if self.spent:
            details.append(
                f"${self.spent:.4f}" if self.spent < 1 else f"${self.spent:,.2f}"
            )
        return details


class Progress:
    """Watches meters and shows what they say; safe for the threads that count."""

    def __init__(
        self, console: Console, *, quiet: bool = False, line: bool = False
    ) -> None:
        from rich import progress
        from rich.table import Column

        self._console, self._quiet = console, quiet
        self._bars = progress.Progress(
            progress.TextColumn(
                "{task.description}", table_column=Column(no_wrap=True)
            ),
            progress.BarColumn(bar_width=12),
            progress.TextColumn(
                "{task.fields[details]}",
                table_column=Column(no_wrap=True, overflow="ellipsis"),
            ),
            console=console,
            transient=True,
            disable=quiet or line or not console.is_terminal,
        )
        self._line, self._written = line, 0
        """Whether one line is written over, and how long it is by now."""
        self._loading = Told(lambda record: self.say(record.getMessage()))
        self._lock = threading.Lock()
        self._started: dict[StageKey, float] = {}
        self._unreported: dict[StageKey, Meter] = {}
        self._tasks: dict[StageKey, Any] = {}
        self._drawn = self._spoken = time.monotonic()
        self.spent = 0.0
        """Dollars of the whole run so far."""

    def __enter__(self) -> Self:
        self._bars.start()
        LOADING.addHandler(self._loading)
        LOADING.setLevel(logging.INFO)
        return self

    def __exit__(
        self, *_: type[BaseException] | BaseException | TracebackType | None
    ) -> None:
        LOADING.removeHandler(self._loading)
        with self._lock:
            self._report_finished(but="")
        self._bars.stop()
        if self._written:
            self._overwrite("", "\r")

    def watch(self, name: str, meter: Meter) -> None:
        """Show what a retriever's meter has counted by now."""
        stage, now = meter.current, time.monotonic()
        self.spent = meter.budget.spent
        if self._quiet or not stage:
            return
        with self._lock:
            key = (name, stage)
            if key not in self._started:
                self._report_finished(but=FED_BY.get(stage, ""))
                self._started[key], self._unreported[key] = now, meter
            elif now - self._drawn < REFRESH:
                return
            self._drawn, reading = now, _reading(meter, stage, now - self._started[key])
            told = ", ".join([reading.share(), *reading.details()])
            if not self._bars.disable:
                self._draw(key, reading)
            elif self._line:
                self._overwrite(f"{_called(key)}: {told}", "")
            elif now - self._spoken >= SILENCE:
                self._print(key, told)

    def say(self, text: str) -> None:
        """Print a line beside the bars."""
        if not self._quiet:
            self._console.print(
                text, highlight=False, markup=False, style="dim", soft_wrap=True
            )

    def _draw(self, key: StageKey, reading: StageProgress) -> None:
        for ended in [
            other
            for other in self._tasks
            if other != key and other not in self._unreported
        ]:
            self._bars.remove_task(
                self._tasks.pop(ended)
            )  # it began again, and has ended again
        if key not in self._tasks:
            self._tasks[key] = self._bars.add_task(_called(key), total=None, details="")
        details = [reading.share()] if reading.texts or reading.expected else []
        self._bars.update(
            self._tasks[key],
            completed=reading.texts,
            total=reading.expected,
            details=", ".join(details + reading.details()),
        )

    def _report_finished(self, *, but: str) -> None:
        """Say a line for every stage that is finished, but for one that may go on."""
        for key, meter in list(self._unreported.items()):
            totals = meter.totals(key[1])
            if key[1] == but or not totals.seconds:
                continue
            del self._unreported[key]
            if key in self._tasks:
                self._bars.remove_task(self._tasks.pop(key))
            reading = _reading(meter, key[1], totals.seconds)._replace(expected=None)
            if totals.steps:
                reading = reading._replace(texts=0)
            took = f"{totals.seconds:.1f} s"
            details = [
                f"{counted(reading.texts, 'text')} in {took}" if reading.texts else took
            ]
            self._print(key, ", ".join(details + reading.details()))

    def _print(self, key: StageKey, text: str) -> None:
        self._spoken, said = time.monotonic(), f"{_called(key)}: {text}"
        if self._line:
            self._overwrite(said, "\n")
        else:
            self.say(said)

    def _overwrite(self, text: str, end: str) -> None:
        """Write in place of the line that is there: notebooks know no other control character than this one."""
        file = self._console.file
        file.write("\r" + text.ljust(self._written) + end)
        file.flush()
        self._written = 0 if end else len(text)


@contextmanager
def progress_shown(wanted: bool | None) -> Iterator[Watch]:
    """Yield what shows progress on standard error; None: where somebody sees it, in a terminal or a notebook."""
    notebook = "ipykernel" in sys.modules
    seen = sys.stderr.isatty() or notebook
    with Progress(
        console_of(stderr=True),
        quiet=not (seen if wanted is None else wanted),
        line=notebook,
    ) as shown:
        yield shown.watch


def _reading(meter: Meter, stage: str, seconds: float) -> StageProgress:
    totals = meter.totals(stage)
    texts, cached = (
        int(totals.counts.get("texts", 0)) or totals.steps,
        int(totals.counts.get("cached", 0)),
    )
    return StageProgress(
        texts, totals.total, cached, seconds, meter.budget.spent, STEPS.get(stage, "")
    )


def _called(key: StageKey) -> str:
    """A stage by its retriever; of what is done for all of them together, the stage alone.

    >>> _called(("bm25", "search")), _called(("", "scoring"))
    ('bm25: search', 'scoring')
    """
    return ": ".join(filter(None, key))


def _clock(seconds: float) -> str:
    """Hours, minutes and seconds.

    >>> _clock(50), _clock(3725)
    ('0:50', '1:02:05')
    """
    minutes, rest = divmod(round(seconds), 60)
    return (
        f"{minutes}:{rest:02}"
        if minutes < 60
        else f"{minutes // 60}:{minutes % 60:02}:{rest:02}"
    )

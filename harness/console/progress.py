"""Progress on a terminal."""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from harness.console.messages import CallbackHandler
from harness.console.output import open_console
from harness.console.stage_progress import (
    StageKey,
    StageProgress,
    read_stage_progress,
    stage_label,
)
from harness.english import count_of
from harness.running.context import OnProgress
from retrievers.meter import Meter

if TYPE_CHECKING:
    from rich.console import Console

REFRESH_SECONDS = 0.1
"""Seconds between two redraws of the bars."""
LOG_SECONDS = 30.0
"""Seconds without a line after which a log says how far a stage is."""


ALTERNATING_STAGES = {"index": "embed-documents"}
"""Stages that take turns with another, window by window: neither is finished before both are."""

MODEL_LOADING_LOG = logging.getLogger("retrievers.local.local_model")
"""Tells that a model is loaded."""


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
        self._loading = CallbackHandler(
            lambda record: self.print_line(record.getMessage())
        )
        self._lock = threading.Lock()
        self._started: dict[StageKey, float] = {}
        self._unreported: dict[StageKey, Meter] = {}
        self._tasks: dict[StageKey, Any] = {}
        self._drawn = self._spoken = time.monotonic()
        self.spent = 0.0
        """Dollars of the whole run so far."""

    def __enter__(self) -> Self:
        self._bars.start()
        MODEL_LOADING_LOG.addHandler(self._loading)
        MODEL_LOADING_LOG.setLevel(logging.INFO)
        return self

    def __exit__(
        self, *_: type[BaseException] | BaseException | TracebackType | None
    ) -> None:
        MODEL_LOADING_LOG.removeHandler(self._loading)
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
                self._report_finished(but=ALTERNATING_STAGES.get(stage, ""))
                self._started[key], self._unreported[key] = now, meter
            elif now - self._drawn < REFRESH_SECONDS:
                return
            self._drawn, reading = (
                now,
                read_stage_progress(meter, stage, now - self._started[key]),
            )
            told = ", ".join([reading.share(), *reading.details()])
            if not self._bars.disable:
                self._draw(key, reading)
            elif self._line:
                self._overwrite(f"{stage_label(key)}: {told}", "")
            elif now - self._spoken >= LOG_SECONDS:
                self._print(key, told)

    def print_line(self, text: str) -> None:
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
            self._tasks[key] = self._bars.add_task(
                stage_label(key), total=None, details=""
            )
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
            reading = read_stage_progress(meter, key[1], totals.seconds)._replace(
                expected=None
            )
            if totals.steps:
                reading = reading._replace(texts=0)
            took = f"{totals.seconds:.1f} s"
            details = [
                f"{count_of(reading.texts, 'text')} in {took}"
                if reading.texts
                else took
            ]
            self._print(key, ", ".join(details + reading.details()))

    def _print(self, key: StageKey, text: str) -> None:
        self._spoken, said = time.monotonic(), f"{stage_label(key)}: {text}"
        if self._line:
            self._overwrite(said, "\n")
        else:
            self.print_line(said)

    def _overwrite(self, text: str, end: str) -> None:
        """Write in place of the line that is there: notebooks know no other control character than this one."""
        file = self._console.file
        file.write("\r" + text.ljust(self._written) + end)
        file.flush()
        self._written = 0 if end else len(text)


@contextmanager
def progress_display(enabled: bool | None) -> Iterator[OnProgress]:
    """Yield what shows progress on standard error; None: where somebody sees it, in a terminal or a notebook."""
    notebook = "ipykernel" in sys.modules
    seen = sys.stderr.isatty() or notebook
    with Progress(
        open_console(stderr=True),
        quiet=not (seen if enabled is None else enabled),
        line=notebook,
    ) as shown:
        yield shown.watch

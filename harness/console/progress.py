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
from harness.running.options import OnProgress
from retrievers.meter import Meter

if TYPE_CHECKING:
    from rich.console import Console

REFRESH_SECONDS = 0.1
"""Seconds between two redraws of the bars."""
LOG_SECONDS = 30.0
"""After so many seconds without a line, a log reports how far a stage is."""
ALTERNATING_STAGES = {"index": "embed-documents"}
"""Stage -> the stage with which it takes turns, window by window.

Neither is finished before both are.
"""
LOADING_STAGE = "load"
"""The stage within another in which a model is imported and its weights are read."""
MODEL_LOADING_LOG = logging.getLogger("retrievers.local.local_model")
"""Has a message for each model that is loaded."""


class Progress:
    """Watches meters and shows their counts; safe for the threads that count.

    A terminal has a bar for each stage, another file a line every half minute, and
    each a line for a finished stage.
    """

    def __init__(
        self, console: Console, *, quiet: bool = False, line: bool = False
    ) -> None:
        """Show progress on a console.

        Args:
            console: of standard error.
            quiet: whether nothing is shown; `spent` is counted all the same.
            line: whether one line is overwritten again and again, for notebooks.
        """
        from rich import progress
        from rich.table import Column

        self._console = console
        self._quiet = quiet
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
        self._line = line
        self._line_length = 0
        """Characters of that line."""
        self._loading = CallbackHandler(
            lambda record: self.print_line(record.getMessage())
        )
        self._lock = threading.Lock()
        self._started: dict[StageKey, float] = {}
        self._unreported: dict[StageKey, Meter] = {}
        self._tasks: dict[StageKey, Any] = {}
        self._was_loading = False
        self._drawn_at = time.monotonic()
        self._printed_at = self._drawn_at
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
            self._report_finished()
        self._bars.stop()
        if self._line_length:
            self._overwrite("", "\r")

    def watch(self, name: str, meter: Meter) -> None:
        """Show the counts of a meter.

        Args:
            name: of the retriever; "" if all share the stage.
            meter: with its current stage.
        """
        stage = meter.current
        now = time.monotonic()
        self.spent = meter.budget.spent
        if self._quiet or not stage:
            return
        with self._lock:
            key = (name, stage)
            if self._was_loading and stage != LOADING_STAGE and key in self._started:
                # The time in which the model was loaded is not part of the rate.
                self._started[key] = now
            self._was_loading = stage == LOADING_STAGE
            if key not in self._started:
                self._report_finished(except_stage=ALTERNATING_STAGES.get(stage, ""))
                self._started[key] = now
                self._unreported[key] = meter
            elif now - self._drawn_at < REFRESH_SECONDS:
                return
            self._drawn_at = now
            progress = read_stage_progress(meter, stage, now - self._started[key])
            text = ", ".join([progress.share(), *progress.details()])
            if not self._bars.disable:
                self._draw(key, progress)
            elif self._line:
                self._overwrite(f"{stage_label(key)}: {text}", "")
            elif now - self._printed_at >= LOG_SECONDS:
                self._print(key, text)

    def print_line(self, text: str) -> None:
        """Print a line beside the bars."""
        if not self._quiet:
            self._console.print(
                text, highlight=False, markup=False, style="dim", soft_wrap=True
            )

    def _draw(self, key: StageKey, progress: StageProgress) -> None:
        self._remove_finished_bars(key)
        if key not in self._tasks:
            self._tasks[key] = self._bars.add_task(
                stage_label(key), total=None, details=""
            )
        details = progress.details()
        if progress.texts or progress.expected:
            details.insert(0, progress.share())
        self._bars.update(
            self._tasks[key],
            completed=progress.texts,
            total=progress.expected,
            details=", ".join(details),
        )

    def _remove_finished_bars(self, current: StageKey) -> None:
        """Remove bars of stages that began again, and are finished again."""
        finished = [
            key for key in self._tasks if key != current and key not in self._unreported
        ]
        for key in finished:
            self._bars.remove_task(self._tasks.pop(key))

    def _report_finished(self, *, except_stage: str = "") -> None:
        """Print a line for every stage that is finished, except one that may go on."""
        for key, meter in list(self._unreported.items()):
            _, stage = key
            totals = meter.totals(stage)
            # A stage under way has no seconds yet.
            if stage == except_stage or not totals.seconds:
                continue
            del self._unreported[key]
            if key in self._tasks:
                self._bars.remove_task(self._tasks.pop(key))
            progress = read_stage_progress(meter, stage, totals.seconds)
            progress = progress._replace(expected=None)
            if totals.steps:  # pairs or runs, which are no texts
                progress = progress._replace(texts=0)
            duration = f"{totals.seconds:.1f} s"
            if progress.texts:
                duration = f"{count_of(progress.texts, 'text')} in {duration}"
            self._print(key, ", ".join([duration, *progress.details()]))

    def _print(self, key: StageKey, text: str) -> None:
        self._printed_at = time.monotonic()
        line = f"{stage_label(key)}: {text}"
        if self._line:
            self._overwrite(line, "\n")
        else:
            self.print_line(line)

    def _overwrite(self, text: str, end: str) -> None:
        """Overwrite the line by a carriage return, which notebooks support."""
        file = self._console.file
        file.write("\r" + text.ljust(self._line_length) + end)
        file.flush()
        self._line_length = 0 if end else len(text)


@contextmanager
def progress_display(enabled: bool | None) -> Iterator[OnProgress]:
    """Yield a function that shows progress on standard error.

    Args:
        enabled: whether it is shown; None: only in a terminal or a notebook.
    """
    in_notebook = "ipykernel" in sys.modules
    if enabled is None:
        enabled = sys.stderr.isatty() or in_notebook
    console = open_console(stderr=True)
    with Progress(console, quiet=not enabled, line=in_notebook) as progress:
        yield progress.watch

"""What the command line shows: tables that fit 80 columns, and progress. It builds; cli.py prints."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from retrievers.meter import Meter

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console
    from rich.table import Table

REFRESH = 0.1
"""Seconds between two redraws of the progress."""


def probability(p: float | None) -> str:
    """A p-value for people: three significant digits, never 0.

    >>> probability(0.0625), probability(1.5575e-9), probability(0.0), probability(None)
    ('0.0625', '1.56e-09', '< 1e-300', '')
    """
    if p is None or p != p:
        return ""
    return "< 1e-300" if p < 1e-300 else f"{p:.3g}"


def leaderboard(summary: pd.DataFrame, measures: Sequence[str], primary: str) -> Table:
    """Means by retriever, best first by the primary measure, which has its interval."""
    means = summary.pivot(index="retriever", columns="measure", values="mean")
    table = _table("", "retriever", *(m for m in (primary, *measures) if m == primary), "95 % interval")
    others = [measure for measure in measures if measure != primary]
    for measure in others:
        table.add_column(measure, justify="right", overflow="fold")
    rows = summary[summary["measure"] == primary].set_index("retriever")
    for retriever in means.sort_values(primary, ascending=False).index:
        row = rows.loc[retriever]
        interval = f"{row['ci_low']:.3f} … {row['ci_high']:.3f}"
        table.add_row(str(retriever), f"{row['mean']:.4f}", interval,
                      *(f"{means.loc[retriever, measure]:.3f}" for measure in others))  # fmt: skip
    return table


def comparisons(rows: pd.DataFrame, measure: str) -> Table:
    """The tests of one measure."""
    table = _table(f"{measure}: every pair", "a", "b", "a - b", "wins/ties/losses", "p", "adjusted", "verdict")
    for _, row in rows[rows["measure"] == measure].iterrows():
        table.add_row(
            row["a"], row["b"], f"{row['mean_difference']:+.4f}", f"{row['wins']}/{row['ties']}/{row['losses']}",
            probability(row["p_value"]), probability(row["p_adjusted"]), row["verdict"],
        )  # fmt: skip
    return table


def rows_table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> Table:
    """Any rows: numbers to the right, four decimals."""
    table = _table("", *columns)
    for row in rows:
        table.add_row(*(f"{cell:.4f}" if isinstance(cell, float) else str(cell) for cell in row))
    return table


class Progress:
    """Bars while retrievers work: on a terminal redrawn in place, elsewhere one line per finished stage."""

    def __init__(self, console: Console, *, quiet: bool = False) -> None:
        from rich import progress

        self._console, self._quiet = console, quiet
        self._bars = progress.Progress(
            progress.TextColumn("{task.description}"),
            progress.BarColumn(bar_width=20),
            progress.MofNCompleteColumn(),
            progress.TextColumn("{task.fields[told]}"),
            progress.TimeRemainingColumn(),
            console=console,
            transient=True,
            disable=quiet or not console.is_terminal,
        )
        self._tasks: dict[tuple[str, str], Any] = {}
        self._open: dict[str, str] = {}
        self._drawn = 0.0

    def __enter__(self) -> Self:
        self._bars.start()
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._bars.stop()

    def watch(self, name: str, meter: Meter) -> None:
        """Redraw after something was counted."""
        stage = meter.current
        before = self._open.get(name, "")
        if stage != before:
            self._open[name] = stage
            if before:
                self._finished(name, before, meter)
        elif time.monotonic() - self._drawn < REFRESH:
            return
        self._drawn = time.monotonic()
        if stage and not self._bars.disable:
            self._draw(name, stage, meter)

    def _draw(self, name: str, stage: str, meter: Meter) -> None:
        counts = meter.counts(stage)
        task = self._tasks.get((name, stage))
        if task is None:
            task = self._bars.add_task(f"{name}: {stage}", total=meter.expected(stage), told="")
            self._tasks[name, stage] = task
        self._bars.update(task, completed=counts.get("texts", 0), total=meter.expected(stage), told=_told(counts))

    def _finished(self, name: str, stage: str, meter: Meter) -> None:
        task = self._tasks.pop((name, stage), None)
        if task is not None:
            self._bars.remove_task(task)
        if not self._quiet:
            totals = meter.stages()[stage]
            told = f"{int(totals.counts.get('texts', 0))} texts, {totals.seconds:.1f} s {_told(totals.counts)}"
            self._console.print(f"{name}: {stage}: {told.strip()}", highlight=False, markup=False, style="dim")


def _told(counts: dict[str, float]) -> str:
    cached = f"({int(counts['cached'])} cached)" if counts.get("cached") else ""
    spent = f"${counts['usd']:.4f}" if counts.get("usd") else ""
    return " ".join(filter(None, (cached, spent)))


def _table(title: str, *columns: str) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(title=title or None, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False, expand=False)
    for number, column in enumerate(columns):
        named = column in {"retriever", "a", "b", "verdict", "measure", "query_id", "where", "what", "run"}
        table.add_column(column, justify="left" if named or not number else "right", overflow="fold")
    return table

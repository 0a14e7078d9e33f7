"""The options of a run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from retrievers.meter import Meter

OnProgress = Callable[[str, Meter], None]
"""Called with a retriever's name and its meter whenever something was counted.

The name is "" for a stage that serves all retrievers, such as scoring.
"""


class RunOptions(NamedTuple):
    """The options of one run.

    >>> RunOptions(results="out", only=("bm25",)).fresh
    False
    """

    results: Path | str = Path("results")
    """The folder under which `<name>/` is written."""
    only: tuple[str, ...] = ()
    """Retrievers to run; the others' rankings come from the existing folder.

    Empty: all run.
    """
    fresh: bool = False
    """Embed, score and request all again, and replace it in the cache."""
    max_cost: float | None = None
    """Dollars that the run may spend; None for no limit."""
    allow_code: bool = True
    """Whether the experiment may name code that is run."""
    on_message: Callable[[str], None] = lambda line: None
    """Called with each message, such as where other results of the same name went."""
    on_progress: OnProgress = lambda name, meter: None
    """Called whenever something was counted."""
    looks: tuple[int, ...] | None = None
    """Queries of the earlier looks; None: those of the runs beside the results."""

    def with_progress_prefix(self, name: str) -> RunOptions:
        """The options of one run among several; its progress begins with the name."""

        def report(retriever: str, meter: Meter) -> None:
            self.on_progress(f"{name}: {retriever}" if retriever else name, meter)

        return self._replace(on_progress=report)

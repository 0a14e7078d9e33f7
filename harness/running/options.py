"""What is decided on the command line, not in the experiment."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from retrievers.meter import Meter

Watch = Callable[[str, Meter], None]
"""Called with the retriever's name and its meter whenever something was counted; the name is "" where a stage, such as
scoring, is for all of them."""


class Options(NamedTuple):
    """How one run is made.

    >>> Options(results="out", only=("bm25",)).fresh
    False
    """

    results: Path | str = Path("results")
    """The folder under which `<name>/` is written."""
    only: tuple[str, ...] = ()
    """Retrievers to run; the others' rankings are taken from the existing folder."""
    fresh: bool = False
    """Embed this run's texts anew and replace them in the cache."""
    max_cost: float | None = None
    """Dollars."""
    code: bool = True
    """Whether the experiment may name code that is run."""
    on_message: Callable[[str], None] = lambda line: None
    """Called with each message: how many of a folder's files are not read, and where earlier results went that say
    something else."""
    live: bool = False
    """Write the page whenever a retriever has answered, into `<name>.unfinished`."""
    watch: Watch = lambda name, meter: None

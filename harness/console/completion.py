"""What the shell completes beside commands and options.

A shell that completes shows no message: a file that cannot be read ends in no suggestion.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import get_args

from typer import Context

from retrievers.errors import HarnessError


def beginning(names: Iterable[str], incomplete: str) -> list[str]:
    """The names that begin as what was typed, each once."""
    return list(dict.fromkeys(name for name in names if name.startswith(incomplete)))


def measures(incomplete: str) -> list[str]:
    """Measures."""
    from harness.measures.table import MEASURES

    return beginning(MEASURES, incomplete)


def tests(incomplete: str) -> list[str]:
    """Tests that may decide."""
    from harness.stats.settings import Test

    return beginning(get_args(Test), incomplete)


def corrections(incomplete: str) -> list[str]:
    """Corrections for several comparisons."""
    from harness.stats.settings import Correction

    return beginning(get_args(Correction), incomplete)


def fingerprints(incomplete: str) -> list[str]:
    """Models of which the cache holds vectors."""
    from retrievers.cache import Cache, default_path

    with suppress(HarnessError), Cache(default_path()) as cache:
        return beginning((one.fingerprint for one in cache.info()), incomplete)
    return []


def retrievers_of_experiment(ctx: Context, incomplete: str) -> list[str]:
    """Retrievers of the experiment file that was typed."""
    names: list[str] = []
    for path in _typed(ctx):
        with suppress(OSError, ValueError, AttributeError, TypeError, RecursionError):
            content = tomllib.loads(path.read_text(encoding="utf-8") if path.is_file() else "")
            names += (str(block["name"]) for block in content["retrievers"])
    return beginning(names, incomplete)


def retrievers_of_results(ctx: Context, incomplete: str) -> list[str]:
    """Retrievers of the results folders that were typed."""
    from harness.records import read_manifest

    names: list[str] = []
    for path in _typed(ctx):
        with suppress(HarnessError):
            names += read_manifest(path).retrievers
    return beginning(names, incomplete)


def _typed(ctx: Context) -> Sequence[Path]:
    """The files and folders of a line that is not finished: while an option lacks its value, they are in `args`."""
    source = ctx.params.get("source")
    return [Path(path) for path in ([source] if source else ctx.args)]

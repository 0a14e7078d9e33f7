"""Completions for a shell.

While a shell completes, no message is shown: an unreadable file gives no suggestions.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import get_args

from typer import Context

from retrievers.errors import HarnessError


def completions(names: Iterable[str], incomplete: str) -> list[str]:
    """The names that begin as what was typed, each once."""
    return list(dict.fromkeys(name for name in names if name.startswith(incomplete)))


def complete_measures(incomplete: str) -> list[str]:
    """Measures."""
    from harness.measures.table import MEASURES

    return completions(MEASURES, incomplete)


def complete_tests(incomplete: str) -> list[str]:
    """Tests that may decide."""
    from harness.stats.settings import TestName

    return completions(get_args(TestName), incomplete)


def complete_corrections(incomplete: str) -> list[str]:
    """Corrections for several comparisons."""
    from harness.stats.settings import CorrectionMethod

    return completions(get_args(CorrectionMethod), incomplete)


def complete_fingerprints(incomplete: str) -> list[str]:
    """Models whose vectors are in the cache."""
    from retrievers.cache import Cache, default_cache_path

    with suppress(HarnessError), Cache(default_cache_path()) as cache:
        fingerprints = (model.fingerprint for model in cache.info())
        return completions(fingerprints, incomplete)
    return []


def complete_experiment_retrievers(ctx: Context, incomplete: str) -> list[str]:
    """Retrievers of the experiment file that was typed."""
    names: list[str] = []
    for path in _typed_paths(ctx):
        with suppress(OSError, ValueError, LookupError, TypeError, RecursionError):
            text = path.read_text(encoding="utf-8") if path.is_file() else ""
            tables = tomllib.loads(text)["retrievers"]
            names += (str(table["name"]) for table in tables)
    return completions(names, incomplete)


def complete_results_retrievers(ctx: Context, incomplete: str) -> list[str]:
    """Retrievers of the results folders that were typed."""
    from harness.records import read_manifest

    names: list[str] = []
    for path in _typed_paths(ctx):
        with suppress(HarnessError):
            names += read_manifest(path).retrievers
    return completions(names, incomplete)


def _typed_paths(ctx: Context) -> Sequence[Path]:
    """The files and folders of a line that is not finished.

    While an option lacks its value, they are in `args`. A baseline of `gate` is in the
    folder of `--from`.
    """
    source = ctx.params.get("source")
    return [Path(path) for path in ([source] if source else ctx.args)]

"""The harness asks retrievers, judges their rankings, and reports.

    results = harness.run("experiments/quickstart.toml")
    results.comparisons

`results.scores`, `results.summary` and `results.comparisons` are pandas frames.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harness.pipeline import Options, run
    from harness.records import Results

__all__ = ["Options", "Results", "run"]

_HOMES = {"Options": "harness.pipeline", "Results": "harness.records", "run": "harness.pipeline"}


def __getattr__(name: str) -> Any:
    """Import on first use, so that `harness --help` does not wait for pandas."""
    import importlib

    if name not in _HOMES:
        raise AttributeError(f"module 'harness' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)

"""The harness asks retrievers, scores their rankings, and reports.

    results = harness.run("experiments/quickstart.toml")
    results.comparisons

`results.scores`, `results.summary` and `results.comparisons` are pandas frames.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harness.pipeline import run
    from harness.records import Results
    from harness.running.options import Options

__all__ = ["Options", "Results", "run"]

_HOMES = {"Options": "harness.running.options", "Results": "harness.records", "run": "harness.pipeline"}


def __getattr__(name: str) -> Any:
    """Import on first use, so that `harness --help` does not wait for pandas."""
    import importlib

    if name not in _HOMES:
        raise AttributeError(f"module 'harness' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)

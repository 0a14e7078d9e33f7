"""The harness asks retrievers, scores their rankings, and reports.

    results = harness.run("experiments/quickstart.toml")    # a file, a dict, or an Experiment
    results = harness.open("results/quickstart")            # what an earlier run found
    harness.compare({"a": run_a, "b": run_b}, qrels)        # rankings that are at hand

`results.scores`, `results.summary` and `results.comparisons` are pandas frames; docs/python.md tells more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harness.api import compare, run
    from harness.dataset import load as load_dataset
    from harness.experiment import Experiment
    from harness.records import Results
    from harness.records import read as open  # noqa: A004 - harness.open("results/x"), as one says it
    from harness.running.options import Options

__all__ = ["Experiment", "Options", "Results", "compare", "load_dataset", "open", "run"]

_HOMES = {
    "Experiment": "harness.experiment:Experiment",
    "Options": "harness.running.options:Options",
    "Results": "harness.records:Results",
    "compare": "harness.api:compare",
    "load_dataset": "harness.dataset:load",
    "open": "harness.records:read",
    "run": "harness.api:run",
}


def __getattr__(name: str) -> Any:
    """Import on first use, so that `harness --help` does not wait for pandas."""
    import importlib

    if name not in _HOMES:
        raise AttributeError(f"module 'harness' has no attribute {name!r}")
    module, _, attribute = _HOMES[name].partition(":")
    return getattr(importlib.import_module(module), attribute)

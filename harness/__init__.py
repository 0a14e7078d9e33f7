"""The Python interface, loaded on first use.

    # collections in memory
    results = harness.evaluate(documents, queries, qrels, {"mine": model})
    # a file, a dict, or an Experiment
    results = harness.run("experiments/quickstart.toml")
    # an earlier run
    results = harness.open_results("results/quickstart")
    # rankings
    harness.compare({"a": run_a, "b": run_b}, qrels)

`results.scores`, `results.summary` and `results.comparisons` are pandas frames.
See docs/python.md.
"""

import typing as _typing

if _typing.TYPE_CHECKING:
    from harness.dataset import load_dataset as load_dataset
    from harness.experiment import Experiment
    from harness.measures.measure import measure
    from harness.notebook.compare import compare
    from harness.notebook.evaluate import evaluate
    from harness.notebook.results import NotebookResults as Results
    from harness.notebook.run import open_results, run, run_sets
    from harness.running.options import RunOptions
    from retrievers.errors import BackendError, InputError

__all__ = ["BackendError", "Experiment", "InputError", "Results", "RunOptions"]
__all__ += [
    "compare",
    "evaluate",
    "load_dataset",
    "measure",
    "open_results",
    "run",
    "run_sets",
]

_HOMES = {
    "BackendError": "retrievers.errors:BackendError",
    "Experiment": "harness.experiment:Experiment",
    "InputError": "retrievers.errors:InputError",
    "Results": "harness.notebook.results:NotebookResults",
    "RunOptions": "harness.running.options:RunOptions",
    "compare": "harness.notebook.compare:compare",
    "evaluate": "harness.notebook.evaluate:evaluate",
    "load_dataset": "harness.notebook.load_dataset:load_dataset",
    "measure": "harness.measures.measure:measure",
    "open_results": "harness.notebook.run:open_results",
    "run": "harness.notebook.run:run",
    "run_sets": "harness.notebook.run:run_sets",
}


def __getattr__(name: str) -> _typing.Any:
    """Import on first use, so that `harness --help` does not wait for pandas."""
    import importlib

    if name not in __all__:
        raise AttributeError(f"module 'harness' has no attribute {name!r}")
    module, _, attribute = _HOMES[name].partition(":")
    return getattr(importlib.import_module(module), attribute)


def __dir__() -> list[str]:
    """The public names only."""
    return __all__

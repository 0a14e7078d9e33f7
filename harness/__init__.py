"""The harness asks retrievers, scores their rankings, and reports.

    results = harness.evaluate(documents, queries, qrels, {"bm25": "bm25", "mine": model})    # what is in memory
    results = harness.run("experiments/quickstart.toml")    # a file, a dict, or an Experiment
    results = harness.open("results/quickstart")            # what an earlier run found
    harness.compare({"a": run_a, "b": run_b}, qrels)        # rankings that are at hand

`results.scores`, `results.summary` and `results.comparisons` are pandas frames; docs/python.md tells more.
"""

import typing as _typing

if _typing.TYPE_CHECKING:
    from harness.dataset import load as load_dataset
    from harness.experiment import Experiment
    from harness.measures.measure import measure
    from harness.notebook.notebook_results import NotebookResults as Results
    from harness.notebook.notebook_results import compare
    from harness.notebook.running import evaluate, run, run_sets
    from harness.notebook.running import open_results as open  # noqa: A004 - harness.open("results/x"), as one says it
    from harness.running.forecast import Options
    from retrievers.errors import BackendError, InputError

__all__ = ["BackendError", "Experiment", "InputError", "Options", "Results"]
__all__ += ["compare", "evaluate", "load_dataset", "measure", "open", "run", "run_sets"]

_HOMES = {
    "BackendError": "retrievers.errors:BackendError",
    "Experiment": "harness.experiment:Experiment",
    "InputError": "retrievers.errors:InputError",
    "Options": "harness.running.forecast:Options",
    "Results": "harness.notebook.notebook_results:NotebookResults",
    "compare": "harness.notebook.notebook_results:compare",
    "evaluate": "harness.notebook.running:evaluate",
    "load_dataset": "harness.dataset:load",
    "measure": "harness.measures.measure:measure",
    "open": "harness.notebook.running:open_results",
    "run": "harness.notebook.running:run",
    "run_sets": "harness.notebook.running:run_sets",
}

_RETIRED = {
    "Encoder": "Dense",
    "Fusion": "Fused",
    "OpenAI": "Dense",
    "Reranked": "Reranked",
    "Search": "Function",
}


def __getattr__(name: str) -> _typing.Any:
    """Import on first use, so that `harness --help` does not wait for pandas."""
    import importlib

    if name not in __all__:
        instead = _RETIRED.get(name, "")
        raise AttributeError(
            f"module 'harness' has no attribute {name!r}{instead and f': use retrievers.{instead}'}"
        )
    module, _, attribute = _HOMES[name].partition(":")
    return getattr(importlib.import_module(module), attribute)


def __dir__() -> list[str]:
    """What there is, and nothing else."""
    return __all__

"""Results logged to experiment trackers.

A run of MLflow or Weights & Biases gets parameters, the mean of each retriever by each
measure, and the page of the report.
"""

import importlib.util
import re
import shlex
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from harness.records.results import Results
from harness.records.staging import REPORT_FILE
from retrievers.errors import (
    BackendError,
    InputError,
    Problem,
    did_you_mean,
    require_package,
)

MLFLOW_REFUSED_CHARACTERS = re.compile(r"[^\w./ -]")
"""Characters that MLflow does not allow in the name of a parameter or a metric."""


def unreadable_report_file(results: Results, path: Path) -> InputError:
    """Return the error that a file of the report is missing or damaged."""
    remedy = f"harness report {shlex.quote(str(results.folder))} writes it anew"
    return InputError(Problem(str(path), "is missing or damaged", remedy))


def log_to_tracker(results: Results, tracker: str, **options: Any) -> str:
    """Log results into the active run of a tracker, else into a new one.

    Their report must have been written.

    Args:
        results: of one folder.
        tracker: one of `TRACKERS`.
        options: of a new run; without effect in an active one.

    Returns:
        The id of the run.

    Raises:
        InputError: there is no such tracker; its package is not installed, or not
            complete; the report has not been written.
        BackendError: the tracker failed, such as for want of a server.
    """
    if tracker not in TRACKERS:
        problem = f"unknown tracker {tracker!r}"
        remedy = did_you_mean(str(tracker), TRACKERS)
        raise InputError(Problem("tracker", problem, remedy))
    with require_package("--as", tracker):
        package = importlib.import_module(tracker)
    if not (results.folder / REPORT_FILE).is_file():
        raise unreadable_report_file(results, results.folder / REPORT_FILE)
    try:
        return TRACKERS[tracker](package, results, options)
    except ModuleNotFoundError as error:
        # mlflow-skinny lacks packages that some of its stores need.
        problem = f"{tracker} needs the package {error.name}"
        raise InputError(Problem("--as", problem, f"pip install {tracker}")) from None
    except Exception as error:
        if type(error).__module__.partition(".")[0] != tracker:
            raise
        message, *_ = str(error).strip().splitlines() or [type(error).__name__]
        raise BackendError(f"{tracker}: {message}") from error


def _parameters(results: Results) -> dict[str, str]:
    """Return the parameters of a run, the same for every tracker."""
    manifest = results.manifest
    parameters = {
        "primary": manifest.resolved.primary,
        "baseline": manifest.resolved.baseline or "",
        "documents": str(manifest.dataset.documents),
        "queries": str(manifest.dataset.queries),
        "dataset_digest": manifest.dataset.digest,
    }
    for name, outcome in manifest.retrievers.items():
        model = outcome.provenance.model.model or outcome.provenance.model.call
        if model:
            parameters[_tracker_name(f"{name}.model")] = model
    return parameters


def _means(results: Results) -> dict[str, float]:
    """Return retriever/measure -> mean."""
    means: dict[str, float] = {}
    table = results.summary[["retriever", "measure", "mean"]]
    for retriever, measure, mean in table.itertuples(index=False, name=None):
        name = f"{retriever}/{measure.replace('@', '_at_')}"
        means[_tracker_name(name)] = mean
    return means


def _tracker_name(name: str) -> str:
    """Return a name in characters that every tracker allows."""
    return MLFLOW_REFUSED_CHARACTERS.sub("_", name)


def _log_to_mlflow(mlflow: Any, results: Results, options: Mapping[str, Any]) -> str:
    active_run = mlflow.active_run()
    context = nullcontext(active_run)
    if not active_run:
        context = mlflow.start_run(**{"run_name": results.manifest.name, **options})
    with context as run:
        mlflow.log_params(_parameters(results))
        mlflow.log_metrics(_means(results))
        mlflow.log_artifact(str(results.folder / REPORT_FILE))
        return str(run.info.run_id)


def _log_to_wandb(wandb: Any, results: Results, options: Mapping[str, Any]) -> str:
    page = (results.folder / REPORT_FILE).read_text(encoding="utf-8")
    context = nullcontext(wandb.run)
    if not wandb.run:
        context = wandb.init(**{"name": results.manifest.name, **options})
    with context as run:
        run.config.update(_parameters(results))
        run.log({**_means(results), "report": wandb.Html(page, inject=False)})
        return str(run.id)


TRACKERS: Mapping[str, Callable[[Any, Results, Mapping[str, Any]], str]] = {
    "mlflow": _log_to_mlflow,
    "wandb": _log_to_wandb,
}

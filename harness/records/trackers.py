"""Results in a tracker of experiments: parameters, means, and the page as an artifact, through its own package."""

from __future__ import annotations

import importlib
import re
import shlex
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from typing import Any

from harness.records.atomic_write import LAST_FILE
from harness.records.results import Results
from retrievers.errors import InputError, Problem, did_you_mean

REFUSED = re.compile(r"[^\w./ -]")
"""Characters that no name of a figure has in MLflow."""


def log_to(results: Results, tracker: str, **options: Any) -> str:
    """Log results, whose page has to be written, into the run that is active, else a new one.

    Args:
        results: of one folder.
        tracker: one of `TRACKERS`.
        options: of a new run.

    Returns:
        The id of the run.

    Raises:
        InputError: there is no such tracker, or its package is not installed.
    """
    if tracker not in TRACKERS:
        raise InputError(Problem("tracker", f"unknown tracker {tracker!r}", did_you_mean(tracker, TRACKERS)))
    try:
        package = importlib.import_module(tracker)
    except ImportError:
        raise InputError(Problem("tracker", f"needs the package {tracker}", f"pip install {tracker}")) from None
    if not (results.folder / LAST_FILE).is_file():
        remedy = f"harness report {shlex.quote(str(results.folder))} writes it"
        raise InputError(Problem(str(results.folder / LAST_FILE), "is missing", remedy))
    return TRACKERS[tracker](package, results, options)


def _parameters(results: Results) -> dict[str, str]:
    """What was asked of what: the same for every tracker."""
    manifest = results.manifest
    models = {
        f"{name}.model": str(facts.provenance.get("model") or facts.provenance.get("call") or name)
        for name, facts in manifest.retrievers.items()
    }
    asked = {"primary": manifest.resolved.primary, "baseline": manifest.resolved.baseline or ""}
    size = {"documents": str(manifest.dataset.documents), "queries": str(manifest.dataset.queries)}
    return {**asked, **size, "dataset_digest": manifest.dataset.digest, **models}


def _means(results: Results) -> dict[str, float]:
    """retriever/measure -> mean, in characters that every tracker takes."""
    rows = results.summary[["retriever", "measure", "mean"]].itertuples(index=False, name=None)
    return {REFUSED.sub("_", f"{name}/{measure.replace('@', '_at_')}"): mean for name, measure, mean in rows}


def _mlflow(mlflow: Any, results: Results, options: Mapping[str, Any]) -> str:
    active = mlflow.active_run()
    with nullcontext(active) if active else mlflow.start_run(**{"run_name": results.manifest.name, **options}) as run:
        mlflow.log_params(_parameters(results))
        mlflow.log_metrics(_means(results))
        mlflow.log_artifact(str(results.folder / LAST_FILE))
        return str(run.info.run_id)


def _wandb(wandb: Any, results: Results, options: Mapping[str, Any]) -> str:
    page = (results.folder / LAST_FILE).read_text(encoding="utf-8")
    with nullcontext(wandb.run) if wandb.run else wandb.init(**{"name": results.manifest.name, **options}) as run:
        run.config.update(_parameters(results))
        run.log({**_means(results), "report": wandb.Html(page, inject=False)})
        return str(run.id)


TRACKERS: Mapping[str, Callable[[Any, Results, Mapping[str, Any]], str]] = {"mlflow": _mlflow, "wandb": _wandb}

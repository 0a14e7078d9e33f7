"""Results logged to experiment trackers."""

import importlib.util
import re
import shlex
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from harness.records.results import Results
from harness.records.staging import REPORT_FILE
from retrievers.errors import InputError, Problem, did_you_mean, require_package


def unreadable_report_file(results: Results, path: Path) -> InputError:  # noqa: D103
    remedy = f"harness report {shlex.quote(str(results.folder))} writes it anew"
    return InputError(Problem(str(path), "is missing or damaged", remedy))


MLFLOW_REFUSED_CHARACTERS = re.compile(r"[^\w./ -]")
"""Characters that no name of a figure has in MLflow."""


def log_to_tracker(results: Results, tracker: str, **options: Any) -> str:
    """Log results, whose page has to be written, into the run that is active, else a new one.

    Args:
        results: of one folder.
        tracker: one of `TRACKERS`.
        options: of a new run.

    Returns:
        The id of the run.

    Raises:
        InputError: there is no such tracker, or its package is not installed, or not whole.
    """
    if tracker not in TRACKERS:
        raise InputError(
            Problem(
                "tracker",
                f"unknown tracker {tracker!r}",
                did_you_mean(tracker, TRACKERS),
            )
        )
    with require_package("--as", tracker):
        package = importlib.import_module(tracker)
    if not (results.folder / REPORT_FILE).is_file():
        raise unreadable_report_file(results, results.folder / REPORT_FILE)
    try:
        return TRACKERS[tracker](package, results, options)
    except (
        ModuleNotFoundError
    ) as error:  # mlflow-skinny leaves out what some of its stores need
        what = f"{tracker} needs the package {error.name}"
        raise InputError(Problem("--as", what, f"pip install {tracker}")) from None


def _parameters(results: Results) -> dict[str, str]:
    """What was asked of what: the same for every tracker."""
    manifest = results.manifest
    models = {
        f"{name}.model": str(
            facts.provenance.get("model") or facts.provenance.get("call") or name
        )
        for name, facts in manifest.retrievers.items()
    }
    asked = {
        "primary": manifest.resolved.primary,
        "baseline": manifest.resolved.baseline or "",
    }
    size = {
        "documents": str(manifest.dataset.documents),
        "queries": str(manifest.dataset.queries),
    }
    return {**asked, **size, "dataset_digest": manifest.dataset.digest, **models}


def _means(results: Results) -> dict[str, float]:
    """retriever/measure -> mean, in characters that every tracker takes."""
    rows = results.summary[["retriever", "measure", "mean"]].itertuples(
        index=False, name=None
    )
    return {
        MLFLOW_REFUSED_CHARACTERS.sub(
            "_", f"{name}/{measure.replace('@', '_at_')}"
        ): mean
        for name, measure, mean in rows
    }


def _mlflow(mlflow: Any, results: Results, options: Mapping[str, Any]) -> str:
    active = mlflow.active_run()
    with (
        nullcontext(active)
        if active
        else mlflow.start_run(**{"run_name": results.manifest.name, **options}) as run
    ):
        mlflow.log_params(_parameters(results))
        mlflow.log_metrics(_means(results))
        mlflow.log_artifact(str(results.folder / REPORT_FILE))
        return str(run.info.run_id)


def _wandb(wandb: Any, results: Results, options: Mapping[str, Any]) -> str:
    page = (results.folder / REPORT_FILE).read_text(encoding="utf-8")
    with (
        nullcontext(wandb.run)
        if wandb.run
        else wandb.init(**{"name": results.manifest.name, **options}) as run
    ):
        run.config.update(_parameters(results))
        run.log({**_means(results), "report": wandb.Html(page, inject=False)})
        return str(run.id)


TRACKERS: Mapping[str, Callable[[Any, Results, Mapping[str, Any]], str]] = {
    "mlflow": _mlflow,
    "wandb": _wandb,
}

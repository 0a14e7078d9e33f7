"""The file evaluation.json."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from weakref import WeakKeyDictionary

from pydantic import ValidationError

from harness.evaluation.costs import price_points
from harness.evaluation.evaluate_run import EvaluationInput, evaluate_run
from harness.evaluation.evaluation import Evaluation
from harness.measures import parse_measure
from harness.records import Manifest, Results, new_text_file
from harness.scoring.grades import grade_labels
from harness.scoring.rescore import relevance_by_rule, rescore
from harness.scoring.stored_scores import (
    averaged_retrievers,
    stored_judged_shares,
    stored_scores,
)
from retrievers.errors import HarnessError
from retrievers.files.text_files import file_digest

EVALUATION_FILE = "evaluation.json"


_EVALUATIONS: WeakKeyDictionary[Results, Evaluation] = WeakKeyDictionary()
"""Kept as long as their results are: a notebook's temporary folder goes with them."""


def read_or_evaluate(results: Results) -> Evaluation:
    """Return the evaluation of a results folder, read once.

    It is computed again from the scores if the file is missing, changed, or of another
    version.

    Raises:
        InputError: then, if the folder has no scores, or they cannot be read.
    """
    if results not in _EVALUATIONS:
        _EVALUATIONS[results] = _read_or_evaluate(results)
    return _EVALUATIONS[results]


def _read_or_evaluate(results: Results) -> Evaluation:
    """Return the stored evaluation, else compute it from what the folder has."""
    stored = read_evaluation(results.folder, results.manifest)
    if stored is not None:
        return stored
    scores = stored_scores(results)
    judged_shares = stored_judged_shares(results, scores.primary)
    trial_means: Mapping[str, tuple[float, ...]] = {}
    if averaged_retrievers(results.manifest):
        # scores.csv has averages of the trials: their means are scored again.
        primary = [parse_measure(scores.primary)]
        relevance = relevance_by_rule(results)
        trial_means = rescore(results, primary, relevance=relevance).trial_means
    labels = {query_id: judged.labels for query_id, judged in results.queries.items()}
    queries = {query_id: judged.query for query_id, judged in results.queries.items()}
    evaluation = evaluate_run(
        EvaluationInput(
            manifest=results.manifest,
            scores=replace(
                scores, judged_shares=judged_shares, trial_means=trial_means
            ),
            graded=grade_labels(labels, relevance_by_rule(results)),
            queries=queries,
            prices=price_points(results.manifest, results.cost_rows),
            rankings={
                retriever: partial(results.iter_rankings, retriever)
                for retriever in results.retrievers
            },
            properties=results.query_properties,
        )
    )
    return evaluation.model_copy(update={"recomputed": True})


def write_evaluation(folder: Path, evaluation: Evaluation) -> None:
    """Write evaluation.json."""
    with new_text_file(folder / EVALUATION_FILE) as file:
        file.write(evaluation.model_dump_json(indent=1, exclude={"recomputed"}) + "\n")


def read_evaluation(folder: Path, manifest: Manifest) -> Evaluation | None:
    """Read evaluation.json; None if it is missing, changed, or of another version."""
    path = folder / EVALUATION_FILE
    try:
        if manifest.digest_of(EVALUATION_FILE) != file_digest(path):
            return None
        evaluation = Evaluation.model_validate_json(path.read_bytes())
    except (OSError, ValidationError, HarnessError):
        return None
    return evaluation.model_copy(update={"failed": manifest.failed})

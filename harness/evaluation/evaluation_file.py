"""The file evaluation.json."""

from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path

from pydantic import ValidationError

from harness.evaluation.costs import price_points
from harness.evaluation.evaluate_run import EvaluationInput, evaluate_run
from harness.evaluation.evaluation import Evaluation
from harness.records import Manifest, Results, new_text_file
from harness.scoring.grades import grade_labels
from harness.scoring.rescore import relevance_by_rule
from harness.scoring.stored_scores import stored_judged_shares, stored_scores
from retrievers.errors import HarnessError
from retrievers.files.text_files import file_digest

EVALUATION_FILE = "evaluation.json"


@lru_cache(maxsize=1)
def read_or_evaluate(results: Results) -> Evaluation:
    """Return the evaluation of a results folder; what was read last is kept.

    It is computed again from the scores where none of this version is there as it was written.
    """
    if (written := read_evaluation(results.folder, results.manifest)) is not None:
        return written
    labels = {query: labelled.labels for query, labelled in results.queries.items()}
    queries = {query: labelled.query for query, labelled in results.queries.items()}
    scores = stored_scores(results)
    scores = replace(
        scores, judged_shares=stored_judged_shares(results, scores.primary)
    )
    graded = grade_labels(labels, relevance_by_rule(results))
    prices = price_points(results.manifest, results.cost_rows)
    answers = {
        name: partial(results.iter_rankings, name) for name in results.retrievers
    }
    found = evaluate_run(
        EvaluationInput(results.manifest, scores, graded, queries, prices, answers)
    )
    return found.model_copy(update={"recomputed": True})


def write_evaluation(folder: Path, evaluation: Evaluation) -> None:
    """Write evaluation.json."""
    with new_text_file(folder / EVALUATION_FILE) as file:
        file.write(evaluation.model_dump_json(indent=1, exclude={"recomputed"}) + "\n")


def read_evaluation(folder: Path, manifest: Manifest) -> Evaluation | None:
    """Read evaluation.json; None where it is missing, damaged, or of another version."""
    try:
        if manifest.file_digests.get(EVALUATION_FILE) != file_digest(
            folder / EVALUATION_FILE
        ):
            return None
        written = Evaluation.model_validate_json(
            (folder / EVALUATION_FILE).read_bytes()
        )
    except (OSError, ValidationError, HarnessError):
        return None
    return written.model_copy(update={"failed": manifest.failed})

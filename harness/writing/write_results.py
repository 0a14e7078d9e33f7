"""The files of a results folder."""

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from harness import records
from harness.dataset import Dataset
from harness.evaluation.costs import price_points
from harness.evaluation.evaluate_run import EvaluationInput, evaluate_run
from harness.evaluation.evaluation_file import write_evaluation
from harness.experiment import LoadedExperiment
from harness.records import Manifest, Run
from harness.scoring.grades import GradedLabels, exponential_gains
from harness.scoring.score_rankings import ScoringSetup, score_rankings
from harness.writing.evaluation_tables import evaluation_tables
from retrievers.files.trec_files import write_trec_qrels
from retrievers.meter import Meter


class RunMaterial(NamedTuple):
    """The inputs of a run."""

    loaded: LoadedExperiment
    dataset: Dataset
    graded: GradedLabels
    folder: Path
    """Where the results will be."""
    meter: Meter
    """Of what is done for all retrievers together."""
    started: datetime
    clock: float


def write_qrels_files(folder: Path, graded: GradedLabels) -> None:
    """Write the judgments after the grade rule: first of all, so that a stopped run's rankings can be scored."""
    write_trec_qrels(folder / "qrels.trec", graded.grades)
    exponential = exponential_gains(graded.grades)
    if exponential is not None:
        write_trec_qrels(folder / "qrels.gains.trec", exponential)


def write_score_files(
    folder: Path, work: RunMaterial, runs: Sequence[Run], manifest: Manifest
) -> None:
    """Write what follows from rankings and labels: the scores, their evaluation, and the tables that show it."""
    graded, meter = work.graded, work.meter
    question, queries = (
        work.loaded.question,
        {query.id: query for query in work.dataset.stored_queries},
    )
    judged = ScoringSetup(
        question.measures,
        question.primary,
        graded,
        queries,
        question.experiment.statistics,
    )
    with meter.stage("scoring"):
        scores = score_rankings(
            judged, {one.retriever: one.ranked_ids for one in runs if not one.error}
        )
    prices = price_points(manifest, records.read_table_rows(folder / "costs.csv"))
    with meter.stage("comparing"):
        evaluation = None
        answers = {one.retriever: one.rankings.items for one in runs if not one.error}
        if scores.n:
            evaluation = evaluate_run(
                EvaluationInput(manifest, scores, graded, queries, prices, answers)
            )
            write_evaluation(folder, evaluation)
    for name, table in evaluation_tables(scores, evaluation).items():
        records.write_table(folder, name, table)

"""The files of a results folder, written one by one."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from harness import records
from harness.dataset import Dataset
from harness.evaluation.evaluation import Evaluation
from harness.evaluation.evaluation_file import write_evaluation
from harness.records import Manifest, QueryProperty, Results, Run
from harness.scoring.grades import GradedLabels, exponential_gains
from harness.scoring.scores import Scores
from harness.writing.evaluation_tables import evaluation_tables
from retrievers.files.trec_files import write_trec_qrels


class EvaluatedRun(NamedTuple):
    """The scores of a run with what they show."""

    scores: Scores
    evaluation: Evaluation | None
    """None if no query has a score."""
    properties: Sequence[QueryProperty]
    """Properties of all queries."""


def write_qrels_files(folder: Path, labels: GradedLabels) -> None:
    """Write the graded labels as qrels, and again with the gains 2^grade - 1.

    The second file, for trec_eval, is left out if a grade is too high for them. Both
    are the first files: the rankings of a stopped run can then be scored.
    """
    write_trec_qrels(folder / "qrels.trec", labels.grades)
    gains = exponential_gains(labels.grades)
    if gains is not None:
        write_trec_qrels(folder / "qrels.gains.trec", gains)


class RunOutput(NamedTuple):
    """What one run has to write."""

    manifest: Manifest
    """Complete but for the digests of the other files."""
    dataset: Dataset
    runs: Sequence[Run]
    evaluated: EvaluatedRun


def write_results(folder: Path, output: RunOutput) -> Results:
    """Write every missing file of a run, and read the folder back.

    The manifest is last: it has the digests of the others.

    Args:
        folder: the staging folder, which has the qrels and the rankings of this run.
        output: the run.
    """
    # New rankings were written as each retriever finished; those of an earlier run,
    # which --only leaves out, are not here yet.
    for run in output.runs:
        rankings_file = folder / "rankings" / f"{run.retriever}.jsonl"
        if not run.error and not rankings_file.exists():
            records.write_run_files(folder, run)
    records.write_labels_and_documents(folder, output.dataset, output.runs)
    evaluated = output.evaluated
    records.write_properties(folder, evaluated.properties)
    if evaluated.evaluation is not None:
        write_evaluation(folder, evaluated.evaluation)
    tables = evaluation_tables(evaluated.scores, evaluated.evaluation)
    for name, table in tables.items():
        records.write_table(folder, name, table)
    digests = records.file_digests(folder)
    records.write_manifest(folder, replace(output.manifest, file_digests=digests))
    return records.read_results(folder)

"""The manifest of a run."""

from collections.abc import Sequence
from pathlib import Path

from harness import records
from harness.dataset import Dataset
from harness.experiment import LoadedExperiment
from harness.records import (
    Commit,
    DataQuality,
    DatasetFacts,
    Manifest,
    RetrieverOutcome,
    Run,
)
from harness.records.environment import describe_machine, git_commit, installed_versions
from harness.scoring.grades import GradedLabels


def describe_run(
    loaded: LoadedExperiment,
    dataset: Dataset,
    graded: GradedLabels,
    runs: Sequence[Run],
) -> Manifest:
    """The record of a run, but for its times and the digests of its tables."""
    resolved = loaded.experiment.resolved()
    resolved |= {
        "measures": map(str, loaded.question.measures),
        "primary": str(loaded.question.primary),
    }
    return Manifest(
        name=loaded.experiment.name,
        experiment=loaded.tables,
        resolved=records.resolved_experiment(resolved),
        experiment_file=loaded.path.as_posix(),
        dataset=DatasetFacts(
            path=loaded.experiment.dataset.path,
            format=dataset.format,
            digest=dataset.digest,
            corpus_digest=dataset.corpus_digest,
            documents=dataset.document_count,
            queries=len(dataset.queries),
            judged=len(dataset.labels),
            scored=len(graded.grades),
        ),
        warnings=(graded.warning,) if graded.warning else (),
        ledger=DataQuality(
            dataset=dataset.data_quality,
            retrievers={one.retriever: records.quality_of_run(one) for one in runs},
        ),
        retrievers={
            one.retriever: RetrieverOutcome(
                error=one.error, provenance=dict(one.provenance)
            )
            for one in runs
        },
        started="",
        seconds=0.0,
        versions=installed_versions(),
        machine=describe_machine(),
        git=Commit(**git_commit(Path.cwd())),
    )

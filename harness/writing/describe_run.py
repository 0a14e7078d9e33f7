"""The manifest of a run."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from harness import records
from harness.build.build import BuiltExperiment
from harness.build.shared_words import note_unshared_queries
from harness.dataset import Dataset, Labels
from harness.experiment import LoadedExperiment
from harness.identity import query_identity
from harness.records import (
    DataQuality,
    DatasetFacts,
    Manifest,
    RetrieverOutcome,
    Run,
)
from harness.records.environment import describe_machine, git_commit, installed_versions
from harness.scoring.grades import GradedLabels
from harness.stats.looks import nested_look_sizes


def describe_run(
    loaded: LoadedExperiment,
    built: BuiltExperiment,
    runs: Sequence[Run],
    folder: Path,
    *,
    looks: tuple[int, ...] | None = None,
) -> Manifest:
    """Return the manifest of a run without its times, its judge and digests of files.

    Args:
        loaded: the experiment.
        built: its data set, graded labels and retrievers.
        runs: the rankings.
        folder: of the results; earlier runs are in the same parent folder, or here.
        looks: queries of the earlier looks; None: those of these runs are counted.
    """
    resolved = built.resolved
    labels = built.labels
    dataset = note_unshared_queries(built.dataset, built.retrievers)
    manifest = Manifest(
        name=resolved.name,
        experiment=loaded.tables,
        resolved=resolved,
        experiment_file=loaded.path.as_posix(),
        dataset=_describe_dataset(resolved.dataset.path, dataset, labels),
        warnings=(labels.warning,) if labels.warning else (),
        ledger=DataQuality(
            dataset=dataset.data_quality,
            retrievers={run.retriever: records.quality_of_run(run) for run in runs},
        ),
        retrievers={
            run.retriever: RetrieverOutcome(error=run.error, provenance=run.facts)
            for run in runs
        },
        started="",
        seconds=0.0,
        versions=installed_versions(),
        machine=describe_machine(),
        git=git_commit(Path.cwd()),
    )
    if looks is None:
        looks = _count_earlier_looks(folder, manifest, dataset, labels)
    return replace(manifest, earlier_looks=looks)


def _describe_dataset(
    path: str, dataset: Dataset, labels: GradedLabels
) -> DatasetFacts:
    return DatasetFacts(
        path=path,
        format=dataset.format,
        digest=dataset.digest,
        corpus_digest=dataset.corpus_digest,
        documents=dataset.document_count,
        queries=len(dataset.queries),
        judged=len(dataset.labels),
        scored=len(labels.grades),
    )


def _count_earlier_looks(
    folder: Path, manifest: Manifest, dataset: Dataset, labels: GradedLabels
) -> tuple[int, ...]:
    """Return how many queries each earlier look scored, fewest first.

    That is a run on the same documents, with the same primary measure and labels, that
    scored some of these queries, and no others; runs of the same queries are one look.
    """
    scored = [
        records.LabelledQuery(query, dataset.labels.get(query.id, Labels()))
        for query in dataset.stored_queries
        if query.id in labels.grades
    ]
    earlier = records.earlier_scored_queries(folder, manifest, scored)
    identities = frozenset(query_identity(row.query) for row in scored)
    return nested_look_sizes(earlier, identities)

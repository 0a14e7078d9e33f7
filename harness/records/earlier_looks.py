"""Queries that earlier runs of an experiment scored."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from harness.dataset import Labels
from harness.identity import query_identity
from harness.records.csv_table import read_table_columns
from harness.records.jsonl import read_json_lines
from harness.records.labels_file import LabelledQuery, labelled_query_from_json
from harness.records.manifest import Manifest
from harness.records.manifest_file import read_manifest
from harness.records.read_artifact import refuse_changed_file
from retrievers.errors import InputError

ScoredQueries = frozenset[tuple[str, ...]]
"""Queries that were scored: (id, text, earlier turns …): ids alone may be reused."""


def earlier_scored_queries(
    results_folder: Path, manifest: Manifest, labelled: Sequence[LabelledQuery]
) -> Iterator[ScoredQueries]:
    """Yield the queries of each earlier look.

    That is a run with fewer scored queries, over the same documents, decided by the
    same measure, with the same labels of the queries that both scored; whatever
    retrievers ran. Damaged folders are ignored: they are not a part of this run.

    Args:
        results_folder: the folder of this run's results; earlier runs are in the same
            parent folder, or in its place.
        manifest: of this run.
        labelled: the queries that this run scored, with their labels.
    """
    labels_by_query = {row.query.id: row.labels for row in labelled}
    siblings = results_folder.parent.iterdir()
    for folder in sorted(path for path in siblings if path.is_dir()):
        try:
            earlier = read_manifest(folder)
            if not _asks_the_same(earlier, manifest, len(labelled)):
                continue
            rows = _read_scored_queries(folder, earlier)
        except (InputError, OSError, ValueError):
            continue
        if _have_same_labels(rows, labels_by_query):
            yield frozenset(query_identity(row.query) for row in rows)


def _asks_the_same(earlier: Manifest, manifest: Manifest, queries: int) -> bool:
    """Whether a run has the same documents and measure, and fewer queries."""
    if earlier.dataset.corpus_digest != manifest.dataset.corpus_digest:
        return False
    if earlier.dataset.scored >= queries:
        return False
    return earlier.resolved.primary == manifest.resolved.primary


def _have_same_labels(
    rows: Sequence[LabelledQuery], labels_by_query: Mapping[str, Labels]
) -> bool:
    """Whether the queries that both runs scored have the same labels."""
    for row in rows:
        labels = labels_by_query.get(row.query.id)
        if labels is not None and _scored_labels(labels) != _scored_labels(row.labels):
            return False
    return True


def _scored_labels(labels: Labels) -> tuple[object, ...]:
    """Return the labels without what changes from look to look: a sample's size."""
    return labels.grades, labels.ranked, labels.groups


def _read_scored_queries(folder: Path, manifest: Manifest) -> list[LabelledQuery]:
    scored_ids = set(read_table_columns(folder / "scores.csv")["query_id"])
    refuse_changed_file(folder, manifest, "labels.jsonl")
    labelled = read_json_lines(folder / "labels.jsonl", labelled_query_from_json)
    return [row for row in labelled if row.query.id in scored_ids]

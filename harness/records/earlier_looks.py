"""Queries that earlier runs of an experiment scored."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from harness.identity import query_identity
from harness.records.csv_table import read_table_columns
from harness.records.jsonl import read_json_lines
from harness.records.labels_file import labelled_query_from_json
from harness.records.manifest import Manifest
from harness.records.manifest_file import read_manifest
from harness.records.read_artifact import refuse_changed_file
from retrievers.errors import InputError

ScoredQueries = frozenset[tuple[str, ...]]
"""Queries that were scored: (id, text), since another query may have the same id."""


def earlier_scored_queries(
    results_folder: Path, manifest: Manifest, queries: ScoredQueries
) -> Iterator[ScoredQueries]:
    """Yield the queries of each earlier run of the same question with fewer queries.

    Over the same documents. Damaged folders are ignored: they are not a part of this
    run.

    Args:
        results_folder: the folder of this run's results; earlier runs are in the same
            parent folder, or in its place.
        manifest: of this run.
        queries: those that this run scored.
    """
    siblings = results_folder.parent.iterdir()
    for folder in sorted(path for path in siblings if path.is_dir()):
        try:
            earlier = read_manifest(folder)
            if _is_earlier_look(earlier, manifest, len(queries)):
                yield _read_scored_queries(folder, earlier)
        except (InputError, OSError, ValueError):
            continue


def _is_earlier_look(earlier: Manifest, manifest: Manifest, queries: int) -> bool:
    """Whether a run has the same question and documents, and fewer queries."""
    if earlier.dataset.corpus_digest != manifest.dataset.corpus_digest:
        return False
    if earlier.dataset.scored >= queries:
        return False
    return earlier.question_identity == manifest.question_identity


def _read_scored_queries(folder: Path, manifest: Manifest) -> ScoredQueries:
    scored_ids = set(read_table_columns(folder / "scores.csv")["query_id"])
    refuse_changed_file(folder, manifest, "labels.jsonl")
    labelled = read_json_lines(folder / "labels.jsonl", labelled_query_from_json)
    return frozenset(
        query_identity(row.query) for row in labelled if row.query.id in scored_ids
    )

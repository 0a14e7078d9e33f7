"""Queries that earlier runs of an experiment scored."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from harness.identity import query_identity
from harness.records.csv_table import read_table_columns
from harness.records.documents_file import labelled_query_from_json
from harness.records.jsonl import read_json_lines
from harness.records.manifest import Manifest
from harness.records.manifest_file import read_manifest
from harness.records.read_artifact import refuse_changed_file
from retrievers.errors import InputError

ScoredQueries = frozenset[tuple[str, ...]]
"""Queries that were scored: (id, text), since another query may have the same id."""


def earlier_scored_queries(
    place: Path, manifest: Manifest, queries: ScoredQueries
) -> Iterator[ScoredQueries]:
    """Yield the queries of each whole results folder that asked the same of the same documents, with fewer queries.

    A folder that is damaged says nothing of what it tested, and is passed over: it is not a part of this run.

    Args:
        place: where this run's results go; the folders beside it are looked through, and what is there now.
        manifest: of this run.
        queries: those that this run scored.
    """
    for folder in sorted(path for path in place.parent.iterdir() if path.is_dir()):
        try:
            earlier = read_manifest(folder)
            same = earlier.dataset.corpus_digest == manifest.dataset.corpus_digest
            if (
                same
                and earlier.dataset.scored < len(queries)
                and earlier.question_identity == manifest.question_identity
            ):
                yield _scored(folder, earlier)
        except (InputError, OSError, ValueError):
            continue


def _scored(folder: Path, manifest: Manifest) -> ScoredQueries:
    scored = set(read_table_columns(folder / "scores.csv")["query_id"])
    refuse_changed_file(folder, manifest, "labels.jsonl")
    labelled = read_json_lines(folder / "labels.jsonl", labelled_query_from_json)
    return frozenset(
        query_identity(row.query) for row in labelled if row.query.id in scored
    )

"""Earlier runs beside this one: those that tested the same question on some of its queries."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from harness.records import rows
from harness.records.folder import regular
from harness.records.lines import read_jsonl
from harness.records.manifest import Manifest, ResolvedExperiment
from harness.records.manifest_file import read_manifest
from harness.records.tables import read_table
from retrievers.errors import InputError
from retrievers.types import Query

ScoredQueries = frozenset[tuple[str, str]]
"""Queries that were scored: (id, text), since another query may have the same id."""


def earlier_queries(place: Path, manifest: Manifest, queries: ScoredQueries) -> Iterator[ScoredQueries]:
    """Yield the queries of each whole results folder that asked the same of the same documents, with fewer queries.

    A folder that is damaged says nothing of what it tested, and is passed over: it is no part of this run.

    Args:
        place: where this run's results go; the folders beside it are looked through, and what is there now.
        manifest: of this run.
        queries: those that this run scored.
    """
    question = _question(manifest.resolved)
    for folder in sorted(path for path in place.parent.iterdir() if path.is_dir()):
        try:
            earlier = read_manifest(folder)
            same = earlier.dataset.corpus_digest == manifest.dataset.corpus_digest
            if same and (earlier.dataset.scored or 0) < len(queries) and _question(earlier.resolved) == question:
                yield _scored(folder, earlier)
        except (InputError, OSError, ValueError):
            continue


def asked_by(query: Query) -> tuple[str, str]:
    """Return what makes a query the same in two runs."""
    return query.id, query.text


def _question(resolved: ResolvedExperiment) -> dict[str, Any]:
    """Which retrievers are compared by what, as it is read back from a file."""
    kept = {"primary": resolved.primary, "baseline": resolved.baseline, "retrievers": resolved.retrievers}
    question: dict[str, Any] = json.loads(json.dumps(kept, default=str))
    return question


def _scored(folder: Path, manifest: Manifest) -> ScoredQueries:
    scored = set(read_table(regular(folder / "scores.csv"))["query_id"])
    labelled = read_jsonl(folder / "labels.jsonl", rows.labelled, digest=manifest.tables.get("labels.jsonl", ""))
    return frozenset(asked_by(row.query) for row in labelled if row.query.id in scored)

"""What the parts of a results folder must agree on."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from harness.records.csv_table import FIRST_LINE
from harness.records.manifest import Manifest, ResolvedExperiment


def manifest_conflicts(manifest: Manifest) -> Iterator[str]:
    """Yield what parts of a manifest do not agree on; of unknown names, the first."""
    resolved = manifest.resolved
    names = [retriever.name for retriever in resolved.retrievers]
    if len(set(names)) < len(names):
        yield "resolved.retrievers: two have the same name"
        return
    unknown = [name for name in manifest.retrievers if name not in names]
    unknown += [name for name in manifest.ledger.retrievers if name not in names]
    if unknown:
        yield f"{unknown[0]!r} is not among resolved.retrievers"
    yield from _part_conflicts(resolved)
    for name in manifest.retrievers:
        if name not in manifest.ledger.retrievers:
            yield f"ledger: has no {name!r}"
    if resolved.baseline is not None and resolved.baseline not in names:
        yield f"resolved.baseline: {resolved.baseline!r} is not a retriever"
    if resolved.primary not in resolved.measures:
        yield f"resolved.primary: {resolved.primary!r} is not among the measures"


def _part_conflicts(resolved: ResolvedExperiment) -> Iterator[str]:
    """Yield the first retriever that uses an unknown one, or itself."""
    retrievers = resolved.retriever_by_name
    for name, retriever in retrievers.items():
        for part in retriever.uses:
            if part not in retrievers:
                yield f"{name!r} uses {part!r}, which is not a retriever"
                return
    for name in retrievers:
        if _uses_itself(name, resolved):
            yield f"{name!r} uses itself"
            return


def _uses_itself(name: str, resolved: ResolvedExperiment) -> bool:
    """Whether a retriever is one of its own parts."""
    retrievers = resolved.retriever_by_name
    visited: set[str] = set()
    parts = [*retrievers[name].uses]
    while parts:
        part = parts.pop()
        if part == name:
            return True
        if part not in visited:
            visited.add(part)
            parts += retrievers[part].uses
    return False


def refuse_unknown_scores(
    columns: Mapping[str, Sequence[Any]],
    retrievers: Collection[str],
    queries: Collection[str],
) -> None:
    """Refuse a row of scores.csv of an unknown retriever or query.

    Args:
        columns: of scores.csv.
        retrievers: those that finished.
        queries: the ids in labels.jsonl.

    Raises:
        ValueError: there is one.
    """
    unknown_retrievers = set(columns["retriever"]) - set(retrievers)
    unknown_queries = set(columns["query_id"]) - set(queries)
    if not unknown_retrievers and not unknown_queries:
        return
    rows = zip(columns["retriever"], columns["query_id"], strict=True)
    for line, (retriever, query_id) in enumerate(rows, start=FIRST_LINE):
        if retriever in unknown_retrievers:
            raise ValueError(f"line {line}: {retriever!r} did not finish in this run")
        if query_id in unknown_queries:
            raise ValueError(f"line {line}: {query_id!r} is not in labels.jsonl")

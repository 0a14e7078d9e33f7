"""The judgments that stand beside a data set's queries, and what becomes of its labels with them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from harness.dataset.judgments import NAME, Judgment, read_file, settle, text_digest
from harness.dataset.merging import merge
from harness.dataset.model import Labels
from harness.dataset.reference import DatasetReference
from harness.dataset.source import Findings, Source
from retrievers.errors import Problem
from retrievers.types import Query


def judgments_beside(reference: DatasetReference, seen: Findings) -> list[Judgment] | None:
    """Read `judgments.jsonl` of a folder; None where there is none."""
    if reference.scheme or not reference.folder.is_dir() or not (reference.folder / NAME).is_file():
        return None
    problems: list[Problem] = []
    settled = settle(list(read_file(reference.folder / NAME, problems)), problems)
    seen.extend(problems)
    return settled


def with_judgments(
    labels: Mapping[str, Labels],
    judgments: list[Judgment],
    queries: Mapping[str, Query],
    documents: Collection[str],
    seen: Findings,
) -> dict[str, Labels]:
    """The labels of the files, with those of the judgments in the place of them where a query was judged.

    Judgments of queries that are not asked here are counted: several files of queries may share a folder.
    """
    known: list[Judgment] = []
    for one in judgments:
        if one.query_id not in queries:
            seen.note("judged-elsewhere", one.query_id)
        elif one.document_id not in documents:
            what = f"judges document {one.document_id!r} for query {one.query_id!r}, which does not exist"
            seen.wrong(NAME, what, "restore the document, or remove the line")
        else:
            known.append(one)
    merged = merge(known)
    kept = dict(labels)
    for query, given in merged.items():
        if given.grades is None and query in labels:
            kept[query] = replace(labels[query], chosen=given.chosen)
            continue
        if query in labels:
            seen.note("replaced-labels", query)
        kept[query] = given
    return {query: kept[query] for query in queries if query in kept}


def note_changes(source: Source, judgments: list[Judgment], queries: Mapping[str, Query], seen: Findings) -> None:
    """Count the pairs whose question or document is not what was judged: a pass over the corpus."""
    judged: dict[str, dict[str, str]] = {}
    for one in judgments:
        if one.query_id in queries:
            judged.setdefault(one.document_id, {})[one.query_id] = one.text
    if not judged:
        return
    for _, document in source.documents(Findings()):
        for query, digest in judged.get(document.id, {}).items():
            if text_digest(queries[query].text, document) != digest:
                seen.note("changed-text", f"{query} {document.id}")

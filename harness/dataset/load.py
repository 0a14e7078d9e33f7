"""From files to a checked Dataset: every fault found in one pass, before anything is embedded."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from harness.dataset import beir, markdown
from harness.dataset.model import Dataset, Labels
from harness.dataset.source import Source, id_problem
from retrievers.errors import InputError, Problem, did_you_mean
from retrievers.types import Query

FORMATS: dict[str, ModuleType] = {"beir": beir, "markdown": markdown}
"""Tried in this order where no format is named."""


@dataclass(frozen=True, slots=True)
class DatasetReference:
    """Where a data set lies, and which part of it is meant."""

    path: Path
    split: str | None = None
    queries: tuple[str, ...] = ()
    format: str | None = None


@dataclass(slots=True)
class _Seen:
    """What one pass over the files has found."""

    problems: list[Problem] = field(default_factory=list)
    ledger: dict[str, list[str]] = field(default_factory=dict)

    def note(self, kind: str, id_: str) -> None:
        self.ledger.setdefault(kind, []).append(id_)

    def wrong(self, place: object, what: str, remedy: str = "") -> None:
        self.problems.append(Problem(str(place), what, remedy))


def load(reference: DatasetReference, *, drop_dangling: bool = False) -> Dataset:
    """Read and check a data set.

    Args:
        reference: where it lies.
        drop_dangling: count judgments of absent documents or queries instead of refusing them.

    Raises:
        InputError: with every problem that was found.
    """
    name, source = _open(reference)
    seen = _Seen()
    documents = _check_documents(source, seen)
    queries = _check_queries(source, seen)
    labels = _check_labels(source, seen, documents, queries, drop_dangling)
    asked = tuple(query for query in queries.values() if query.id in labels and labels[query.id].relevant)
    _check_asked(asked, documents, seen, reference)
    if seen.problems:
        raise InputError(seen.problems)

    digest = hashlib.sha256(f"{documents.digest}\n".encode())
    for query in queries.values():
        said = labels.get(query.id)
        digest.update(_line([query.id, query.text, dict(query.fields), said and said.as_json()]))
    return Dataset(
        path=reference.path.as_posix(),
        format=name,
        queries=asked,
        judged=tuple(query for query in queries.values() if query.id in labels),
        labels=labels,
        count=len(documents.ids),
        digest=digest.hexdigest(),
        corpus_digest=documents.digest,
        ledger={kind: tuple(ids) for kind, ids in seen.ledger.items()},
        read_documents=lambda: (document for _, document in source.documents([])),
    )


def _open(reference: DatasetReference) -> tuple[str, Source]:
    path = reference.path
    if not path.is_dir():
        what = "is a file, not a folder" if path.exists() else "no such folder"
        raise InputError(Problem(str(path), what, "a dataset is a folder of documents, or one in BEIR's format"))
    if reference.format is not None and reference.format not in FORMATS:
        raise InputError(Problem("dataset.format", f"unknown format {reference.format!r}",
                                 did_you_mean(reference.format, FORMATS)))  # fmt: skip
    for name, reader in FORMATS.items():
        if reference.format == name or (reference.format is None and reader.matches(path)):
            source: Source = reader.read(path, queries=reference.queries, split=reference.split)
            return name, source
    raise InputError(Problem(str(path), "holds no documents", "corpus.jsonl, or files *.md or *.txt"))


@dataclass(slots=True)
class _Documents:
    """What is kept of a corpus while it streams by: ids, and digests of texts."""

    ids: set[str] = field(default_factory=set)
    texts: dict[bytes, str] = field(default_factory=dict)
    """Digest of the normalised title or content -> the first document that has it."""
    digest: str = ""


def _check_documents(source: Source, seen: _Seen) -> _Documents:
    found, digest = _Documents(), hashlib.sha256()
    contents: dict[bytes, str] = {}
    for place, document in source.documents(seen.problems):
        if reason := id_problem(document.id):
            seen.wrong(place, f"document id {document.id!r} {reason}", "give it another id")
            continue
        if document.id in found.ids:
            seen.wrong(place, f"document id {document.id!r} stands twice", "ids must be unique")
            continue
        found.ids.add(document.id)
        digest.update(_line([document.id, document.title, document.text, dict(document.fields)]))
        if not document.content.strip():
            seen.note("empty-document", document.id)
            continue
        key = _key(document.content)
        if contents.setdefault(key, document.id) != document.id:
            seen.note("duplicate-text", document.id)
        for text in (document.title, document.text, document.content):
            if text.strip():
                found.texts.setdefault(_key(text), document.id)
    if not found.ids and not seen.problems:
        seen.wrong("documents", "the corpus is empty")
    found.digest = digest.hexdigest()
    return found


def _check_queries(source: Source, seen: _Seen) -> dict[str, Query]:
    queries: dict[str, Query] = {}
    for place, query in source.queries(seen.problems):
        if reason := id_problem(query.id):
            seen.wrong(place, f"query id {query.id!r} {reason}", "give it another id")
        elif query.id in queries:
            seen.wrong(place, f"query id {query.id!r} stands twice", "ids must be unique")
        else:
            queries[query.id] = query
    return queries


def _check_labels(
    source: Source, seen: _Seen, documents: _Documents, queries: dict[str, Query], drop_dangling: bool
) -> dict[str, Labels]:
    labels: dict[str, Labels] = {}
    remedy = 'correct the id, or set dangling = "drop" under [relevance]'
    for place, query_id, said in source.labels(seen.problems):
        dangling = dict.fromkeys(doc for doc in said.documents if doc not in documents.ids)
        if query_id not in queries:
            if not drop_dangling and queries:
                seen.wrong(place, f"judgments name query {query_id!r}, which does not exist", remedy)
            seen.note("dangling-query", query_id)
            continue
        for doc in dangling:
            if not drop_dangling and documents.ids:
                seen.wrong(place, f"query {query_id!r} names document {doc!r}, which does not exist", remedy)
            seen.note("dangling-document", f"{query_id} {doc}")
        if not queries[query_id].text.strip():
            seen.wrong(place, f"judged query {query_id!r} is blank")
        if said.grades is not None and min(said.grades.values(), default=0) < 0:
            seen.note("negative-grade", query_id)
        named = said.documents
        if said.groups is None and len(set(named)) < len(named):
            seen.note("duplicate-label", query_id)
        labels[query_id] = said.keeping(documents.ids.__contains__) if dangling else said
        if not labels[query_id].relevant:
            seen.note("no-relevant-document", query_id)
    for query_id in queries.keys() - labels.keys() if not seen.problems else ():
        seen.note("unjudged-query", query_id)
    if "unjudged-query" in seen.ledger:
        seen.ledger["unjudged-query"].sort()
    return labels


def _check_asked(asked: tuple[Query, ...], documents: _Documents, seen: _Seen, reference: DatasetReference) -> None:
    if not asked and not seen.problems:
        seen.wrong(reference.path, "no query has a relevant document", "nothing could be compared")
    for query in asked:
        if _key(query.text) in documents.texts:
            seen.note("query-is-document", query.id)


def _key(text: str) -> bytes:
    """A digest that is equal for texts that differ in white space or case only."""
    return hashlib.blake2b(" ".join(text.split()).casefold().encode(), digest_size=12).digest()


def _line(row: list[Any]) -> bytes:
    return json.dumps(row, ensure_ascii=False, sort_keys=True).encode("utf-8", "surrogatepass") + b"\n"

"""From files to a checked Dataset: every fault found in one pass, before anything is embedded."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from harness.dataset import expected
from harness.dataset.beside import judgments_beside, note_changes, with_judgments
from harness.dataset.formats import open_source
from harness.dataset.model import Dataset, Labels
from harness.dataset.reference import DatasetReference
from harness.dataset.source import Findings, Source, id_problem
from retrievers.errors import DataChanged, InputError, Problem, did_you_mean
from retrievers.types import Document, Query

COMPARABLE = 2_000
"""Ids, at most, among which the nearest is looked for where a label names one that does not exist."""


def load(reference: DatasetReference, *, drop_dangling: bool = False) -> Dataset:
    """Read and check a data set.

    Args:
        reference: where it lies.
        drop_dangling: count judgments of absent documents or queries instead of refusing them.

    Raises:
        InputError: with every problem that was found.
    """
    name, source = open_source(reference)
    seen = Findings()
    queries = _check_queries(source, seen)
    documents = _check_documents(source, seen, reference.match, {_key(query.text) for query in queries.values()})
    labels = _check_labels(source, seen, documents, queries, drop_dangling)
    judgments = judgments_beside(reference, seen)
    if judgments is not None:
        labels = with_judgments(labels, judgments, queries, documents.ids, seen)
        note_changes(source, judgments, queries, seen)
    # Questions without any label are a beginning, and so are those that people are judging: all are answered.
    beginning = judgments is not None or not labels
    asked = tuple(query for query in queries.values() if _is_asked(query, labels.get(query.id), beginning))
    _note_labels(queries, labels, beginning, seen)
    if not queries and not seen:
        seen.wrong(reference.name, "there is no query", "nothing could be asked")
    if not asked and not seen:
        seen.wrong(reference.name, "no query has a relevant document", "nothing could be compared")
    recorded = labels.keys() | {query.id for query in asked}
    for query in asked:
        if _key(query.text) in documents.asked:
            seen.note("query-is-document", query.id)
    if seen:
        raise InputError(seen.problems)

    digest = hashlib.sha256(f"{documents.digest}\n".encode())
    for query in queries.values():
        query_labels = labels.get(query.id)
        row = [query.id, query.text, dict(query.fields), query_labels and query_labels.as_json()]
        answer = expected.as_json(query.reference)
        digest.update(_line([*row, answer] if answer else row))
    return Dataset(
        path=reference.name,
        format=name,
        queries=asked,
        judged=tuple(query for query in queries.values() if query.id in labels),
        recorded=tuple(query for query in queries.values() if query.id in recorded),
        labels=labels,
        count=len(documents.ids),
        digest=digest.hexdigest(),
        corpus_digest=documents.digest,
        ledger={kind: tuple(ids) for kind, ids in seen.ledger.items()},
        field_names=frozenset(documents.field_names),
        same_as=documents.same_as,
        read_documents=partial(_read_again, source, reference.name, documents.digest),
    )


def load_documents(reference: DatasetReference) -> Dataset:
    """Read and check the documents alone, with what queries there are: for those who have none yet.

    Raises:
        InputError: with every problem of the documents.
    """
    name, source = open_source(reference)
    seen = Findings()
    documents = _check_documents(source, seen, (), set())
    if seen:
        raise InputError(seen.problems)
    queries = tuple(query for _, query in source.queries(Findings()))
    return Dataset(
        path=reference.name,
        format=name,
        queries=queries,
        judged=(),
        labels={},
        count=len(documents.ids),
        digest=documents.digest,
        corpus_digest=documents.digest,
        recorded=queries,
        read_documents=partial(_read_again, source, reference.name, documents.digest),
    )


@dataclass(slots=True)
class _Documents:
    """What is kept of a corpus while it streams by: ids, and which of its texts are asked."""

    ids: set[str] = field(default_factory=set)
    asked: set[bytes] = field(default_factory=set)
    """Digests of the queries that are a title or a text, white space and case aside."""
    keys: dict[str, str] = field(default_factory=dict)
    """Where labels name a field: its value -> the first document that has it."""
    same_as: dict[str, str] = field(default_factory=dict)
    """Document -> the first one with the same value of that field."""
    by_field: bool = False
    field_names: set[str] = field(default_factory=set)
    digest: str = ""

    def named(self, label: str) -> str | None:
        """The document that a label names, None where there is none."""
        return self.keys.get(label) if self.by_field else label if label in self.ids else None

    def nearest(self, label: str) -> str:
        """A remedy for a label that names nothing."""
        known = self.keys if self.by_field else self.ids
        otherwise = 'correct the id, or set dangling = "drop" under [relevance]'
        stem = label.rpartition(".")[0]
        if stem in known:
            return f"did you mean {stem!r}? {otherwise}"
        if len(known) > COMPARABLE:
            return otherwise
        remedy = did_you_mean(label, known)
        return f"{remedy} {otherwise}" if remedy.startswith("did you mean") else otherwise

    def take_key(self, document: Document, match: tuple[str, ...]) -> bool:
        """Note the value by which labels name a document; False where it has none."""
        values = [document.fields.get(name, "") for name in match]
        if not all(values):
            return False
        first = self.keys.setdefault(JOINED.join(values), document.id)
        if first != document.id:
            self.same_as[document.id] = first
        return True


_ENCODER = json.JSONEncoder(ensure_ascii=False, sort_keys=True)
JOINED = "#"
"""Between the values of several fields by which labels name documents: `manual.pdf#3`."""


def _check_documents(source: Source, seen: Findings, match: tuple[str, ...], asked: set[bytes]) -> _Documents:
    documents, digest = _Documents(by_field=bool(match)), hashlib.sha256()
    contents: set[bytes] = set()
    for place, document in source.documents(seen):
        if reason := id_problem(document.id):
            seen.wrong(place, f"document id {document.id!r} {reason}", "give it another id")
            continue
        if document.id in documents.ids:
            seen.wrong(place, f"document id {document.id!r} stands twice", "ids must be unique")
            continue
        documents.ids.add(document.id)
        digest.update(_document_line(document))
        if document.fields:
            documents.field_names.update(document.fields)
        if match and not documents.take_key(document, match):
            seen.note("document-without-key", document.id)
        content = document.content
        if not content or content.isspace():
            seen.note("empty-document", document.id)
            continue
        key = _key(content)
        if key in contents:
            seen.note("duplicate-text", document.id)
        contents.add(key)
        keys = {key, *map(_key, (document.title, document.text))} if document.title else {key}
        documents.asked |= keys & asked
    if not documents.ids and not seen:
        seen.wrong("documents", "the corpus is empty", "there must be a document")
    if match and documents.ids and not documents.keys:
        seen.wrong(
            "dataset.match",
            f"no document has {' and '.join(map(repr, match))} among its fields",
            "see how they are spelt",
        )
    documents.digest = digest.hexdigest()
    return documents


def _read_again(source: Source, name: str, digest: str) -> Iterator[Document]:
    """Yield the corpus once more.

    Raises:
        DataChanged: at the end, if it was not what it was at first; or where something can no longer be read.
    """
    seen, current = Findings(), hashlib.sha256()
    try:
        for _, document in source.documents(seen):
            current.update(_document_line(document))
            yield document
    except InputError as error:
        raise DataChanged(error.problems) from None
    if seen:
        raise DataChanged(seen.problems)
    if current.hexdigest() != digest:
        what = "has changed since this run began: documents were added, removed or rewritten"
        raise DataChanged(Problem(name, what, "leave it alone until the run is done, and run again"))


def _document_line(document: Document) -> bytes:
    return _line([document.id, document.title, document.text, dict(document.fields)])


def _check_queries(source: Source, seen: Findings) -> dict[str, Query]:
    queries: dict[str, Query] = {}
    texts: set[bytes] = set()
    for place, query in source.queries(seen):
        if reason := id_problem(query.id):
            seen.wrong(place, f"query id {query.id!r} {reason}", "give it another id")
        elif query.id in queries:
            seen.wrong(place, f"query id {query.id!r} stands twice", "ids must be unique")
        else:
            queries[query.id] = query
            key = _key(query.text)
            if key in texts and query.text.strip():
                seen.note("repeated-query", query.id)
            texts.add(key)
    return queries


def _check_labels(
    source: Source, seen: Findings, documents: _Documents, queries: dict[str, Query], drop_dangling: bool
) -> dict[str, Labels]:
    labels: dict[str, Labels] = {}
    for place, query_id, given in source.labels(seen):
        if query_id not in queries:
            if not drop_dangling and queries:
                remedy = did_you_mean(query_id, queries) if len(queries) <= COMPARABLE else ""
                otherwise = 'correct the id, or set dangling = "drop" under [relevance]'
                remedy = f"{remedy} {otherwise}" if remedy.startswith("did you mean") else otherwise
                seen.wrong(place, f"judgments name query {query_id!r}, which does not exist", remedy)
            seen.note("dangling-query", query_id)
            continue
        dangling = dict[str, int]()
        for position, doc in enumerate(given.documents):
            if documents.named(doc) is None:
                dangling.setdefault(doc, position)
        for doc, position in dangling.items():
            if not drop_dangling and documents.ids:
                what = f"query {query_id!r} names document {doc!r}, which does not exist"
                seen.wrong(place.of(position), what, documents.nearest(doc))
            seen.note("dangling-document", f"{query_id} {doc}")
        if not queries[query_id].text.strip():
            seen.wrong(place, f"judged query {query_id!r} is blank", "write its text, or remove its labels")
        _count(query_id, given, seen)
        kept = given.keeping(lambda doc: documents.named(doc) is not None) if dangling else given
        labels[query_id] = kept.renamed(documents.keys) if documents.by_field else kept
    _note_contradictions(queries, labels, seen)
    return labels


def _note_contradictions(queries: Mapping[str, Query], labels: Mapping[str, Labels], seen: Findings) -> None:
    """Count queries that ask what another asks and were answered otherwise: one of the two labels must be wrong."""
    first: dict[bytes, str] = {}
    for query_id, given in labels.items():
        other = first.setdefault(_key(queries[query_id].text), query_id)
        if set(given.relevant) != set(labels[other].relevant):
            seen.note("contradicting-labels", query_id)


def _is_asked(query: Query, labels: Labels | None, beginning: bool) -> bool:
    if labels is not None and labels.relevant:
        return True
    return (beginning or bool(query.reference.claims)) and query.text.strip() != ""


def _note_labels(queries: dict[str, Query], labels: dict[str, Labels], beginning: bool, seen: Findings) -> None:
    """Count the queries that make no score: without a relevant document, or without labels."""
    for query_id in labels:
        if labels[query_id].judged and not labels[query_id].relevant:
            seen.note("no-relevant-document", query_id)
    unjudged = sorted(query_id for query_id in queries if query_id not in labels or not labels[query_id].judged)
    for query_id in unjudged if not seen else ():
        asked = beginning or queries[query_id].reference.claims
        seen.note("unlabelled-query" if asked else "unjudged-query", query_id)


def _count(query_id: str, given: Labels, seen: Findings) -> None:
    """Count what labels hold that is allowed and worth knowing."""
    if given.grades is not None and min(given.grades.values(), default=0) < 0:
        seen.note("negative-grade", query_id)
    named = given.documents
    if given.grades is None and given.groups is None and len(set(named)) < len(named):
        seen.note("duplicate-label", query_id)


def _key(text: str) -> bytes:
    """A digest that is equal for texts that differ in white space or case only."""
    return hashlib.blake2b(" ".join(text.split()).casefold().encode(), digest_size=12).digest()


def _line(row: list[Any]) -> bytes:
    return _ENCODER.encode(row).encode("utf-8", "surrogatepass") + b"\n"

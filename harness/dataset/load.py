"""From files to a checked Dataset, every fault found in one pass."""

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path

from harness.dataset.candidates import label_column, refuse_overlooked
from harness.dataset.columns import LABELLING, folded
from harness.dataset.corpus import check_documents, digest_line, read_again, text_key
from harness.dataset.dataset_model import Dataset, DatasetReference, Labels, reference_as_json, reference_of
from harness.dataset.formats import open_source
from harness.dataset.judgments import Judgment, note_changes, overlay, read_overlay
from harness.dataset.label_rows import Labelled
from harness.dataset.matched_labels import columns_taken, match_labels
from harness.dataset.source import Findings, Source, SourceLocation, id_problem
from retrievers.errors import DataChanged, InputError, Problem
from retrievers.types import Query

UNLABELLED = "no query has a relevant document", "nothing could be compared"
CLICK = "click"
"""In the name of a column of labels: nobody judged, somebody clicked."""


def load(reference: DatasetReference | str | Path, *, drop_dangling: bool = False, sampled: int = 0) -> Dataset:
    """Read and check a data set.

    Args:
        reference: where it lies: a path, a name (`hf:…`, `irds:…`), or what says more.
        drop_dangling: count judgments of absent documents or queries instead of refusing them.
        sampled: how many documents the data set keeps of this pass, for who looks at their texts.

    Raises:
        InputError: with every problem that was found.

    >>> found = load("datasets/survey-templates-en")
    >>> found.count, len(found.queries)
    (182, 13)
    """
    reference = reference if isinstance(reference, DatasetReference) else reference_of(reference)
    name, source = open_source(reference)
    seen = Findings()
    queries = _check_queries(source, seen)
    asked_texts = {text_key(query.text) for query in queries.values()}
    documents = check_documents(source, seen, reference.match, asked_texts, sampled)
    seen.names_document = lambda cell: bool(documents.match([cell]))
    drop = drop_dangling or reference.drop_dangling
    matched = match_labels(source, seen, documents, queries, drop=drop)
    labels = matched.labels
    refuse_overlooked(seen, reference.columns)
    if labels and any(CLICK in folded(column) for _, column in columns_taken(seen, LABELLING)):
        seen.ledger["clicked-label"] = [*labels]
    if not labels and documents.ids and (found := label_column(seen, documents, reference.columns)):
        named = replace(reference, columns={**reference.columns, **found})
        dataset = load(named, drop_dangling=drop, sampled=sampled)
        return replace(dataset, found_columns=found, ledger={**dataset.ledger, "found-labels": (*found.values(),)})
    judgments = read_overlay(reference, seen)
    if judgments is not None:
        labels = overlay(labels, judgments, queries, documents.ids, seen)
        note_changes(source, judgments, queries, seen)
    # Questions without any label are a beginning, and so are those that people are judging: all are answered.
    beginning = judgments is not None or not labels
    asked = tuple(query for query in queries.values() if _is_asked(query, labels.get(query.id), beginning))
    _note_labels(queries, labels, beginning, seen)
    if not asked and not seen:
        seen.wrong(reference.name, *(UNLABELLED if queries else ("there is no query", "nothing could be asked")))
    recorded = labels.keys() | {query.id for query in asked}
    for query in asked:
        if text_key(query.text) in documents.asked:
            seen.note("query-is-document", query.id)
    if seen:
        raise InputError(seen.problems)

    digest = hashlib.sha256(f"{documents.digest}\n".encode())
    for query in queries.values():
        query_labels = labels.get(query.id)
        row = [query.id, query.text, dict(query.fields), query_labels and query_labels.as_json()]
        more = filter(None, (reference_as_json(query.reference), query.history))
        digest.update(digest_line([*row, *more]))
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
        columns=seen.taken,
        sizes=seen.sizes,
        matched=matched.ways,
        unknown=tuple(doc for *_, doc in matched.absent),
        ledger={kind: tuple(ids) for kind, ids in seen.ledger.items()},
        field_names=frozenset(documents.field_names),
        same_as=documents.same_as,
        sample=documents.sample,
        documents=partial(read_again, source, reference.name, documents.digest),
        refuse_changes=partial(
            _refuse_changes, source, reference, seen.names_document,
            _questions_digest(queries.values(), matched.rows, judgments),
        ),
    )  # fmt: skip


def _questions_digest(
    queries: Iterable[Query], labels: Iterable[Labelled], judgments: Iterable[Judgment] | None
) -> str:
    digest = hashlib.sha256()
    for query in queries:
        digest.update(digest_line([query.id, query.text, *query.history]))
    for _, query_id, given in labels:
        digest.update(digest_line([query_id, given.as_json()]))
    for judgment in judgments or ():
        digest.update(judgment.line().encode())
    return digest.hexdigest()


def _refuse_changes(
    source: Source, reference: DatasetReference, names_document: Callable[[str], bool], digest: str
) -> None:
    """Raise DataChanged if queries or labels are not what they were when the data set was checked."""
    seen = Findings()
    seen.names_document = names_document
    try:
        queries = {query.id: query for _, query in source.queries(seen)}
        found = _questions_digest(queries.values(), source.labels(seen), read_overlay(reference, seen))
    except InputError as error:
        raise DataChanged(error.problems) from None
    if found != digest:
        what = "has changed since this run began: queries or labels were added, removed or rewritten"
        raise DataChanged(Problem(reference.name, what, "leave it alone until the run is done, and run again"))


def load_documents(reference: DatasetReference) -> Dataset:
    """Read and check the documents alone, with what queries there are: for those who have none yet.

    Raises:
        InputError: with every problem of the documents.
    """
    name, source = open_source(reference)
    seen = Findings()
    documents = check_documents(source, seen, (), set())
    if seen:
        raise InputError(seen.problems)
    asked, digest = tuple(query for _, query in source.queries(Findings())), documents.digest
    again = partial(read_again, source, reference.name, digest)
    return Dataset(reference.name, name, asked, (), {}, len(documents.ids), digest, digest, asked, documents=again)


def _check_queries(source: Source, seen: Findings) -> dict[str, Query]:
    queries: dict[str, Query] = {}
    first: dict[str, SourceLocation] = {}
    for place, query in source.queries(seen):
        if reason := id_problem(query.id):
            seen.wrong(place, f"query id {query.id!r} {reason}", "give it another id")
        elif query.id in queries:
            remedy = f"ids must be unique; it is at {first[query.id]} too"
            seen.wrong(place, f"query id {query.id!r} occurs twice", remedy)
        else:
            queries[query.id], first[query.id] = query, place
            if not query.text.strip():
                seen.note("blank-query", query.id)
    return queries


def _is_asked(query: Query, labels: Labels | None, beginning: bool) -> bool:
    if labels is not None and labels.relevant:
        return True
    return (beginning or query.unanswerable or _is_measured_by_claims(query, labels)) and query.text.strip() != ""


def _is_measured_by_claims(query: Query, labels: Labels | None) -> bool:
    """Whether a query has claims; or an answer to take them from, where nobody labelled it."""
    return bool(query.reference.claims or (labels is None and query.reference.answers))


def _note_labels(queries: dict[str, Query], labels: dict[str, Labels], beginning: bool, seen: Findings) -> None:
    """Count the queries that make no score: without a relevant document, or without labels."""
    for query_id in labels:
        if queries[query_id].unanswerable and labels[query_id].relevant:
            what = f"query {query_id!r} is said to have no answer, and has relevant documents"
            seen.wrong("answerable", what, "remove one of the two")
        if labels[query_id].judged and not labels[query_id].relevant and not queries[query_id].unanswerable:
            seen.note("no-relevant-document", query_id)
    asked_of = (query_id for query_id, query in queries.items() if query.text.strip())  # blank ones are counted as such
    unjudged = sorted(query_id for query_id in asked_of if query_id not in labels or not labels[query_id].judged)
    for query_id in unjudged if not seen else ():
        if queries[query_id].unanswerable:
            seen.note("unanswerable-query", query_id)
            continue
        asked = beginning or _is_measured_by_claims(queries[query_id], labels.get(query_id))
        seen.note("unlabelled-query" if asked else "unjudged-query", query_id)

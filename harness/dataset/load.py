"""A reference to a checked data set."""

import hashlib
from dataclasses import replace
from functools import partial
from pathlib import Path

from harness.dataset.check_corpus import check_documents, digest_line, reread_documents
from harness.dataset.check_queries import (
    check_queries,
    is_searched,
    note_unscored_queries,
)
from harness.dataset.choose_reader import open_source
from harness.dataset.dataset import Dataset
from harness.dataset.match_labels import columns_read_as, match_labels
from harness.dataset.merge_judgments import (
    note_changed_texts,
    read_replacing_judgments,
    replace_labels,
)
from harness.dataset.read_problems import ReadProblems
from harness.dataset.reference import DatasetReference, parse_reference
from harness.dataset.reference_answers import reference_as_json
from harness.dataset.unlabelled_columns import guess_label_column, refuse_unused_columns
from harness.dataset.usual_names import LABEL_KINDS, normalised_name
from retrievers.errors import InputError

NO_RELEVANT_PROBLEM = "no query has a relevant document", "nothing could be compared"
CLICK_WORD = "click"
"""In the name of a column of labels: nobody judged, somebody clicked."""


def load_dataset(
    reference: DatasetReference | str | Path,
    *,
    drop_dangling: bool = False,
    sample_size: int = 0,
) -> Dataset:
    """Read and check a data set.

    Args:
        reference: where it is: a path, a name (`hf:…`, `irds:…`), or what says more.
        drop_dangling: count judgments of absent documents or queries instead of refusing them.
        sample_size: how many documents the data set keeps of this pass, for who looks at their texts.

    Raises:
        InputError: with every problem that was found.

    >>> found = load_dataset("datasets/survey-templates-en")
    >>> found.document_count, len(found.queries)
    (182, 13)
    """
    reference = (
        reference
        if isinstance(reference, DatasetReference)
        else parse_reference(reference)
    )
    name, source = open_source(reference)
    seen = ReadProblems()
    queries = check_queries(source, seen)
    documents = check_documents(source, seen, reference.match, sample_size)
    seen.names_document = lambda cell: bool(documents.match([cell]))
    drop = drop_dangling or reference.drop_dangling
    matched = match_labels(source, seen, documents, queries, drop=drop)
    labels = matched.labels
    refuse_unused_columns(seen, reference.columns)
    if labels and any(
        CLICK_WORD in normalised_name(column)
        for _, column in columns_read_as(seen, LABEL_KINDS)
    ):
        seen.notes["clicked-label"] = [*labels]
    if (
        not labels
        and documents.ids
        and (found := guess_label_column(seen, documents, reference.columns))
    ):
        named = replace(reference, columns={**reference.columns, **found})
        dataset = load_dataset(named, drop_dangling=drop, sample_size=sample_size)
        return replace(
            dataset,
            guessed_columns=found,
            data_quality={**dataset.data_quality, "found-labels": (*found.values(),)},
        )
    judgments = read_replacing_judgments(reference, seen)
    if judgments is not None:
        labels = replace_labels(labels, judgments, queries, documents.ids, seen)
        note_changed_texts(source, judgments, queries, seen)
    # Questions without any label are a beginning, and so are those that people are judging: all are answered.
    beginning = judgments is not None or not labels
    asked = tuple(
        query
        for query in queries.values()
        if is_searched(query, labels.get(query.id), beginning)
    )
    note_unscored_queries(queries, labels, beginning, seen)
    if not asked and not seen:
        seen.add(
            reference.name,
            *(
                NO_RELEVANT_PROBLEM
                if queries
                else ("there is no query", "no query to search")
            ),
        )
    recorded = labels.keys() | {query.id for query in asked}
    if seen:
        raise InputError(seen.problems)

    digest = hashlib.sha256(f"{documents.digest}\n".encode())
    for query in queries.values():
        query_labels = labels.get(query.id)
        row = [
            query.id,
            query.text,
            dict(query.fields),
            query_labels and query_labels.as_json(),
        ]
        more = filter(None, (reference_as_json(query.reference), query.history))
        digest.update(digest_line([*row, *more]))
    return Dataset(
        path=reference.name,
        format=name,
        queries=asked,
        judged_queries=tuple(query for query in queries.values() if query.id in labels),
        stored_queries=tuple(
            query for query in queries.values() if query.id in recorded
        ),
        labels=labels,
        document_count=len(documents.ids),
        digest=digest.hexdigest(),
        corpus_digest=documents.digest,
        columns=seen.columns_used,
        table_sizes=seen.table_sizes,
        matched_by=matched.matched_by,
        unknown_documents=tuple(doc for *_, doc in matched.unmatched),
        data_quality={kind: tuple(ids) for kind, ids in seen.notes.items()},
        field_names=frozenset(documents.field_names),
        representatives=documents.representatives,
        sample=documents.sample,
        documents=partial(reread_documents, source, reference.name, documents.digest),
    )


def load_documents(reference: DatasetReference) -> Dataset:
    """Read and check the documents alone, with what queries there are: for those who have none yet.

    Raises:
        InputError: with every problem of the documents.
    """
    name, source = open_source(reference)
    seen = ReadProblems()
    documents = check_documents(source, seen, ())
    if seen:
        raise InputError(seen.problems)
    asked, digest = (
        tuple(query for _, query in source.queries(ReadProblems())),
        documents.digest,
    )
    again = partial(reread_documents, source, reference.name, digest)
    return Dataset(
        reference.name,
        name,
        asked,
        (),
        {},
        len(documents.ids),
        digest,
        digest,
        asked,
        documents=again,
    )

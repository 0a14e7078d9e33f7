"""The data set that a results folder holds itself."""

from harness.dataset import Dataset
from harness.records.results import Results


def stored_dataset(results: Results) -> Dataset:
    """Return a run's queries and labels, with the documents that its folder stores.

    It stands for a data set that was in memory and is gone. Of the documents only those
    in labels or in a top 20 are stored, long ones in part (`documents_file`): so
    `documents` has fewer than `document_count`, and the digests are of all of them.
    """
    facts = results.manifest.dataset
    queries = tuple(row.query for row in results.queries.values())
    labels = {
        query_id: row.labels
        for query_id, row in results.queries.items()
        if row.labels.judged
    }
    return Dataset(
        path=facts.path,
        format=facts.format,
        queries=queries,
        judged_queries=tuple(query for query in queries if query.id in labels),
        labels=labels,
        document_count=facts.documents,
        digest=facts.digest,
        corpus_digest=facts.corpus_digest,
        stored_queries=queries,
        documents=lambda: iter(results.documents.values()),
    )

"""Queries, labels, texts that a results folder keeps."""

from __future__ import annotations

import csv
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from pydantic_core import from_json

from harness.dataset import Dataset, Labels, reference_as_json, reference_from_json
from harness.records.jsonl import write_json_lines
from harness.records.judge_readings import short_digest
from harness.records.run import Run
from retrievers.errors import InputError, Problem
from retrievers.files.text_files import open_text_file
from retrievers.types import Document, Query

TEXT_LIMITS = (20_000, 4_000, 1_000, 300)
"""Characters of a document's text that a results folder keeps: the first of these with which all of them have room."""
CORPUS_FILE = "corpus.csv"
"""Id and digest of every document."""
TEXT_BUDGET = 32_000_000
"""Characters of all kept texts together."""
KEPT_RANKS = 20
"""Documents down to this rank are kept with title and text."""


def write_labels_and_documents(
    folder: Path, dataset: Dataset, runs: Iterable[Run]
) -> None:
    """Keep labels as they are, and title and text of each document that the report may show."""
    write_json_lines(
        folder / "labels.jsonl",
        (
            {
                "query_id": query.id,
                "text": query.text,
                "fields": dict(query.fields),
                **({"history": query.history} if query.history else {}),
                **reference_as_json(query.reference),
                **dataset.labels.get(query.id, Labels()).as_json(),
            }
            for query in dataset.stored_queries
        ),
    )
    shown = {doc for labels in dataset.labels.values() for doc in labels.documents}
    shown.update(
        doc
        for run in runs
        for ranking in run.rankings.values()
        for doc in ranking.doc_ids[:KEPT_RANKS]
    )
    documents = sorted(_corpus(folder, dataset, shown), key=lambda doc: doc.id)
    length = text_limit([len(doc.text) for doc in documents])
    write_json_lines(
        folder / "documents.jsonl",
        (
            {"id": doc.id, "title": doc.title, "text": doc.text[:length]}
            for doc in documents
        ),
    )


def _corpus(folder: Path, dataset: Dataset, shown: Collection[str]) -> list[Document]:
    """Write id and digest of every document, by which a later run knows what changed; return those that are shown."""
    found = []
    with open_text_file(folder / CORPUS_FILE, "w") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(["id", "digest"])
        for doc in dataset.documents():
            rows.writerow([doc.id, short_digest(f"{doc.title}\n{doc.text}")])
            if doc.id in shown:
                found.append(doc)
    return found


def read_corpus_digests(folder: Path) -> dict[str, str]:
    """Return the digest of each document of a run.

    Raises:
        InputError: the folder has none, since an earlier version wrote it.
    """
    try:
        with (folder / CORPUS_FILE).open(encoding="utf-8", newline="") as file:
            return {row["id"]: row["digest"] for row in csv.DictReader(file)}
    except FileNotFoundError:
        what = f"has no {CORPUS_FILE}: an earlier version wrote it"
        raise InputError(
            Problem(str(folder), what, "run the experiment again on its documents")
        ) from None


def text_limit(lengths: Sequence[int]) -> int:
    """Return how many characters of each text are kept, from the lengths of all of them.

    >>> text_limit([500, 30_000]), text_limit([30_000] * 4_000)
    (20000, 4000)
    """
    return next(
        (
            most
            for most in TEXT_LIMITS
            if sum(min(most, length) for length in lengths) <= TEXT_BUDGET
        ),
        TEXT_LIMITS[-1],
    )


class LabelledQuery(NamedTuple):
    """One judged query with its labels as they were given."""

    query: Query
    labels: Labels


def labelled_query_from_json(line: bytes) -> LabelledQuery:
    """Read a line of labels.jsonl."""
    row = from_json(line, cache_strings="keys")
    history = tuple(row.get("history", ()))
    query = Query(
        row["query_id"], row["text"], row["fields"], reference_from_json(row), history
    )
    return LabelledQuery(query, Labels.from_json(row))


def document_from_json(line: bytes) -> Document:
    """Read a line of documents.jsonl."""
    return Document(**from_json(line, cache_strings="keys"))

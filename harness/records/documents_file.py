"""The texts of the documents in a results folder.

Written with the labels (`labels_file` has their form), since labelled documents are
among those that are stored. corpus.csv has a digest of every document.
"""

from __future__ import annotations

import csv
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.dataset import Dataset
from harness.records.jsonl import parse_record, write_json_lines
from harness.records.judge_readings import short_digest
from harness.records.labels_file import labelled_query_row
from harness.records.read_artifact import unreadable_file
from harness.records.run import Run
from retrievers.errors import InputError, Problem
from retrievers.files.text_files import open_text_file
from retrievers.types import Document

TEXT_LIMITS = (20_000, 4_000, 1_000, 300)
"""Characters of a document's text that a results folder stores.

The first of these with which all texts together fit TEXT_BUDGET, else the last.
"""
CORPUS_FILE = "corpus.csv"
"""The file with the id and the digest of every document."""
CORPUS_COLUMNS = ["id", "digest"]
TEXT_BUDGET = 32_000_000
"""Characters of all stored texts together."""
KEPT_RANKS = 20
"""Documents down to this rank are stored with title and text."""


def write_labels_and_documents(
    folder: Path, dataset: Dataset, runs: Iterable[Run]
) -> None:
    """Write the labels, and title and text of each document that a report may show."""
    write_json_lines(
        folder / "labels.jsonl",
        (labelled_query_row(query, dataset) for query in dataset.stored_queries),
    )
    shown_ids: set[str] = set()
    for labels in dataset.labels.values():
        shown_ids.update(labels.documents)
    for run in runs:
        for ranking in run.rankings.values():
            shown_ids.update(ranking.doc_ids[:KEPT_RANKS])
    documents = _write_corpus(folder, dataset, shown_ids)
    documents.sort(key=lambda document: document.id)
    length = text_limit([len(document.text) for document in documents])
    rows = (
        {
            "id": document.id,
            "title": document.title,
            "text": document.text[:length],
        }
        for document in documents
    )
    write_json_lines(folder / "documents.jsonl", rows)


def _write_corpus(
    folder: Path, dataset: Dataset, shown_ids: Collection[str]
) -> list[Document]:
    """Write id and digest of every document, and return those that are shown.

    A later run compares the digests to find the documents that changed.
    """
    shown_documents: list[Document] = []
    with open_text_file(folder / CORPUS_FILE, "w") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(CORPUS_COLUMNS)
        for document in dataset.documents():
            digest = short_digest(f"{document.title}\n{document.text}")
            writer.writerow([document.id, digest])
            if document.id in shown_ids:
                shown_documents.append(document)
    return shown_documents


def read_corpus_digests(folder: Path) -> dict[str, str]:
    """Return the digest of each document of a run.

    Raises:
        InputError: the folder has none, since an earlier version wrote it; or the file
            cannot be read.
    """
    path = folder / CORPUS_FILE
    try:
        return _read_corpus_rows(path)
    except FileNotFoundError:
        problem = f"has no {CORPUS_FILE}: an earlier version wrote it"
        remedy = "run the experiment again on its documents"
        raise InputError(Problem(str(folder), problem, remedy)) from None
    except (OSError, ValueError, csv.Error) as error:
        raise unreadable_file(path, error) from None


def _read_corpus_rows(path: Path) -> dict[str, str]:
    """Read document id -> digest.

    Raises:
        ValueError: a line is no pair of id and digest.
    """
    digests: dict[str, str] = {}
    with path.open(encoding="utf-8", newline="") as file:
        rows = csv.reader(file)
        if next(rows, []) != CORPUS_COLUMNS:
            raise ValueError(f"line 1 is not {','.join(CORPUS_COLUMNS)}")
        for row in rows:
            if len(row) != len(CORPUS_COLUMNS):
                raise ValueError(f"line {rows.line_num} has {len(row)} cells")
            document_id, digest = row
            digests[document_id] = digest
    return digests


def text_limit(lengths: Sequence[int]) -> int:
    """Return how many characters of each text are stored, from the lengths of all.

    >>> text_limit([500, 30_000]), text_limit([30_000] * 4_000)
    (20000, 4000)
    """
    for limit in TEXT_LIMITS:
        if sum(min(limit, length) for length in lengths) <= TEXT_BUDGET:
            return limit
    return TEXT_LIMITS[-1]


@dataclass(frozen=True, slots=True)
class DocumentRow:
    """A line of documents.jsonl."""

    id: str
    title: str
    text: str


def document_from_json(line: bytes) -> Document:
    """Read a line of documents.jsonl.

    Raises:
        ValueError: it is not a document.
    """
    row = parse_record(DocumentRow, line)
    return Document(row.id, row.title, row.text)

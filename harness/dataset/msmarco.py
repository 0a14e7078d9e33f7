"""MS MARCO's files: tables of two columns without a header, and judgments in TREC's form."""

from __future__ import annotations

from dataclasses import replace
from pathlib import PurePosixPath

from harness.dataset.dataset_model import DatasetReference
from harness.dataset.files import File, listing, listing_of, pick
from harness.dataset.source import split_among
from harness.dataset.table_folder import TableSource, rows_of

COLLECTION = "collection.tsv"


def matches(reference: DatasetReference) -> bool:
    """Whether a folder or an archive holds the collection with queries and judgments."""
    files = listing_of(reference)
    return COLLECTION in files and bool(_splits(files, "queries")) and bool(_splits(files, "qrels"))


def read(reference: DatasetReference) -> TableSource:
    """Open `collection.tsv`, `queries.SPLIT.tsv` and `qrels.SPLIT.tsv` (or `queries.tsv` and `qrels.tsv`).

    Raises:
        InputError: the split is none of those that are there, or several are there and none is named.
    """
    files = listing(reference.folder)
    queries, labels = _splits(files, "queries"), _splits(files, "qrels")
    both = sorted(queries.keys() & labels.keys())
    split = split_among(reference.name, both, reference.split)
    texts, judgments = ("_id", "text"), ("query_id", "iteration", "doc_id", "score")
    return TableSource(
        rows_of(replace(pick(files, COLLECTION, reference.folder), header=texts)),
        rows_of(replace(queries[split], header=texts)),
        rows_of(replace(labels[split], header=judgments)),
    )


def _splits(files: dict[str, File], part: str) -> dict[str, File]:
    """The files of a part by their split; "" for one without."""
    found = {}
    for name, file in files.items():
        stem, _, split = PurePosixPath(name).with_suffix("").as_posix().partition(".")
        if stem == part and name.endswith(".tsv"):
            found[split] = file
    return found

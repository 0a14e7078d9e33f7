"""MS MARCO's files: tables of two columns without a header, and judgments in TREC's form."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import PurePosixPath

from harness.dataset.dataset_model import DatasetReference
from harness.dataset.files import File, listing, listing_of
from harness.dataset.rows import Row, read_lines
from harness.dataset.source import Findings, Place
from harness.dataset.table_folder import TableSource
from retrievers.errors import InputError, Problem, did_you_mean

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
    split = reference.split or (both[0] if len(both) == 1 else "")
    if COLLECTION not in files or split not in both:
        what = f"has no split {split!r}" if reference.split else f"has the splits {', '.join(both) or 'of no query'}"
        remedy = did_you_mean(split, both) if reference.split else 'name one: split = "…"'
        raise InputError(Problem(reference.name, what, remedy))
    return TableSource(
        partial(_rows, files[COLLECTION], ("_id", "text")),
        partial(_rows, queries[split], ("_id", "text")),
        partial(_rows, labels[split], ("query_id", "iteration", "doc_id", "score")),
    )


def _splits(files: dict[str, File], part: str) -> dict[str, File]:
    """The files of a part by their split; "" for one without."""
    found = {}
    for name, file in files.items():
        stem, _, split = PurePosixPath(name).with_suffix("").as_posix().partition(".")
        if stem == part and name.endswith(".tsv"):
            found[split] = file
    return found


def _rows(file: File, names: tuple[str, ...], problems: Findings) -> Iterator[tuple[Place, Row]]:
    """The lines of a table without a header."""
    try:
        for number, line in read_lines(file, problems):
            cells = line.split("\t") if "\t" in line else line.split()
            if len(cells) == len(names):
                yield Place(file.path, number), dict(zip(names, cells, strict=True))
            else:
                remedy = f"expected {len(names)}, with tabs between"
                problems.wrong(Place(file.path, number), f"{len(cells)} columns", remedy)
    except InputError as error:
        problems.extend(error.problems)

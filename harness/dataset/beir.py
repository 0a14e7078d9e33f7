"""The BEIR format: corpus.jsonl, queries.jsonl and qrels/<split>.tsv (Thakur et al. 2021), in a folder or a zip."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import PurePosixPath

from harness.dataset.columns import Columns
from harness.dataset.dataset_model import DatasetReference
from harness.dataset.files import File, listing, listing_of, pick
from harness.dataset.rows import Row, read_rows
from harness.dataset.source import Findings, Place, split_among
from harness.dataset.table_folder import TableSource, rows_of

HEADER = ("query-id", "corpus-id", "score")
CORPUS = "corpus.jsonl"


def matches(reference: DatasetReference) -> bool:
    """Whether a folder or an archive looks like BEIR."""
    files = {} if reference.documents or reference.labels else listing_of(reference)
    others = any("/" not in name and PurePosixPath(name).stem == "queries" for name in files)
    return CORPUS in files and ("queries.jsonl" in files or not others)


def read(reference: DatasetReference) -> TableSource:
    """Open a BEIR folder; `split` may be left out where there is one file of qrels, or one named test."""
    files, folder = listing(reference.folder), reference.folder
    splits = sorted(
        pure.stem for pure in map(PurePosixPath, files) if pure.match("qrels/*.tsv") and len(pure.parts) == 2
    )
    unjudged = not splits and reference.split is None
    split = "" if unjudged else split_among(str(folder / "qrels"), splits, reference.split, "test")
    names = reference.queries or ("queries.jsonl",)
    columns = Columns(reference.columns)
    queries = rows_of(*(pick(files, name, folder) for name in names))
    judged = partial(_judged, files.get(f"qrels/{split}.tsv"))
    return TableSource(rows_of(pick(files, CORPUS, folder)), queries, judged, columns)


def _judged(qrels: File | None, problems: Findings) -> Iterator[tuple[Place, Row]]:
    """The rows of qrels/<split>.tsv, with or without a header; none where nobody has judged anything yet."""
    for place, row in read_rows(replace(qrels, header=HEADER), problems) if qrels else ():
        if place.line != 1 or tuple(row.values())[:2] != HEADER[:2]:
            yield place, row

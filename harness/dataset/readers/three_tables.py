"""Collections in three tables.

Documents, queries and labels are each in files whose names follow a pattern: BEIR's,
MS MARCO's, or that of the hub's shards. Labels may have several splits.
"""

import re
import shlex
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from harness.dataset.columns import Columns
from harness.dataset.file import File, Files
from harness.dataset.listing import file_named
from harness.dataset.readers.dataset_folder import (
    LABEL_TABLE_STEMS,
    find_table,
    top_files,
)
from harness.dataset.readers.trec import find_qrels_files
from harness.dataset.reference import DatasetReference
from harness.dataset.rows import TABLE_SUFFIXES
from harness.dataset.source import FormatReader, choose_split
from harness.dataset.table_source import TableSource, rows_of_files
from retrievers.errors import InputError, Problem
from retrievers.remedy import Option, compose_remedy

BEIR_CORPUS_FILE = "corpus.jsonl"
BEIR_QUERY_FILE = "queries.jsonl"
QRELS_FOLDER = "qrels/"
PART_FOLDERS = {
    "corpus": ("corpus",),
    "queries": ("queries", "query"),
    "qrels": ("qrels", "default"),
}
"""Part -> its folders, or its configurations in the hub."""
SHARD_NUMBERS = r"\d{5}-of-\d{5}"
"""The number of a shard, and how many there are."""
FilesBySplit = dict[str, list[File]]
"""The split is empty if files have none."""


class PartFiles(NamedTuple):
    """The files of one part of a collection."""

    pattern: str
    """The form of their names; a group is the split."""
    header: tuple[str, ...] | None = None
    """The columns, if the tables may have no header."""

    def by_split(self, files: Files) -> FilesBySplit:
        """Return the files of this part by their split."""
        splits: FilesBySplit = {}
        for path, file in files.items():
            match = re.fullmatch(self.pattern, path)
            if match is None:
                continue
            split = next(filter(None, match.groups()), "")
            splits.setdefault(split, []).append(replace(file, header=self.header))
        return splits

    def find(self, files: Files, named: Iterable[str], folder: Path) -> "FoundPart":
        """Return the files of this part; a named one may have no header, too.

        Raises:
            InputError: there is no file of a name.
        """
        named_files: list[File] = []
        for name in named:
            file = file_named(files, name, folder)
            if re.fullmatch(self.pattern, name):
                file = replace(file, header=self.header)
            named_files.append(file)
        return FoundPart(named_files, self.by_split(files))


class FoundPart(NamedTuple):
    """The files of one part of a collection that are there."""

    named: list[File]
    """Those that the user named, which are read in place of the others."""
    by_split: FilesBySplit

    @property
    def is_missing(self) -> bool:
        """Whether there is no file."""
        return not self.named and not self.by_split

    def of_split(self, split: str) -> list[File]:
        """Return the files to read: those named, else of the split, else all."""
        if self.named:
            return self.named
        all_files = [file for files in self.by_split.values() for file in files]
        return self.by_split.get(split) or all_files


class TableLayout(NamedTuple):
    """The files of a collection by their names."""

    corpus: PartFiles
    queries: PartFiles
    qrels: PartFiles

    def matches(self, _: DatasetReference, files: Files) -> bool:
        """Whether a folder or an archive has all of the parts."""
        return all(part.by_split(files) for part in self)

    def read(self, reference: DatasetReference, files: Files) -> TableSource:
        """Open the parts; a file that is named for a part is read in its place.

        If qrels have several splits, the requested one is read, by default `test`.

        Raises:
            InputError: there are no documents, no queries, or not the files or the
                split that the reference names; or several splits and none is named.
        """
        folder = reference.folder
        documents = [reference.documents] if reference.documents else []
        labels = [reference.labels] if reference.labels else []
        corpus = self.corpus.find(files, documents, folder)
        queries = self.queries.find(files, reference.queries, folder)
        qrels = self.qrels.find(files, labels, folder)
        if corpus.is_missing:
            raise InputError(_missing_part("corpus", reference, files))
        if queries.is_missing:
            raise InputError(_missing_part("queries", reference, files))
        if qrels.is_missing and _has_qrels_folder(files):
            raise InputError(_missing_part("qrels", reference, files))
        split = ""
        if (qrels.by_split and not qrels.named) or reference.split:
            where = folder / "qrels" if _has_qrels_folder(files) else folder
            split = choose_split(str(where), qrels.by_split, reference.split, "test")
        label_files = qrels.of_split(split)
        return TableSource(
            document_rows=rows_of_files(*corpus.of_split(split)),
            query_rows=rows_of_files(*queries.of_split(split)),
            # Without qrels the queries may have labels.
            label_rows=rows_of_files(*label_files) if label_files else None,
            columns=Columns(reference.columns),
        )


def _has_qrels_folder(files: Iterable[str]) -> bool:
    return any(path.startswith(QRELS_FOLDER) for path in files)


def _missing_part(part: str, reference: DatasetReference, files: Files) -> Problem:
    remedy = compose_remedy("such as corpus.jsonl, queries.jsonl and qrels/test.tsv")
    other_tables = [
        path
        for path, file in files.items()
        if file.suffix in TABLE_SUFFIXES and path != BEIR_CORPUS_FILE
    ]
    if part == "queries" and other_tables:
        example = shlex.quote(other_tables[0])
        remedy = compose_remedy(
            "name the file that has them", Option(f"--queries {example}")
        )
    problem = f"holds no {part} of this format"
    return Problem(str(reference.folder), problem, remedy)


def _is_beir(reference: DatasetReference, files: Files) -> bool:
    """Whether a folder or an archive looks like BEIR.

    If the labels are a table at the top, it is a folder of tables.
    """
    tables = top_files(files)
    if not _has_qrels_folder(files) and _has_label_table(tables):
        return False
    if reference.documents or reference.labels or BEIR_CORPUS_FILE not in files:
        return False
    has_other_queries = any(PurePosixPath(name).stem == "queries" for name in tables)
    return BEIR_QUERY_FILE in files or not has_other_queries


def _has_label_table(files: Files) -> bool:
    if find_table(files, LABEL_TABLE_STEMS) is not None:
        return True
    return bool(find_qrels_files(files))


def _hub_part(part: str) -> PartFiles:
    """Return the shards of a part; `datasets` saves Arrow files with notes on them."""
    folders = "|".join(PART_FOLDERS[part])
    suffixes = "|".join(map(re.escape, TABLE_SUFFIXES))
    return PartFiles(
        rf"(?:[^/]+/)?(?:{folders})/(?!(?:state|dataset_\w+)\.json)"
        rf"(?:(?:([^/]+)/)?data-{SHARD_NUMBERS}\.arrow"
        rf"|([^/]+?)(?:-{SHARD_NUMBERS})?(?:{suffixes}))"
    )


BEIR = FormatReader(
    _is_beir,
    TableLayout(
        corpus=PartFiles(r"corpus\.jsonl"),
        queries=PartFiles(r"queries\.jsonl"),
        qrels=PartFiles(
            r"qrels/([^/]+)\.tsv", header=("query-id", "corpus-id", "score")
        ),
    ).read,
)
MSMARCO = TableLayout(
    corpus=PartFiles(r"collection\.tsv", header=("_id", "text")),
    queries=PartFiles(r"queries(?:\.(.+))?\.tsv", header=("_id", "text")),
    qrels=PartFiles(
        r"qrels(?:\.(.+))?\.tsv", header=("query_id", "iteration", "doc_id", "score")
    ),
)
HUGGINGFACE = TableLayout(
    corpus=_hub_part("corpus"),
    queries=_hub_part("queries"),
    qrels=_hub_part("qrels"),
)
"""Folders of shards."""

"""Collections in three tables."""

import re
import shlex
from collections.abc import Mapping
from dataclasses import replace
from itertools import chain
from pathlib import PurePosixPath
from typing import NamedTuple

from harness.dataset.columns import Columns
from harness.dataset.file import File, Files
from harness.dataset.listing import file_named
from harness.dataset.readers.dataset_folder import LABEL_TABLE_STEMS, find_table
from harness.dataset.readers.trec import find_qrels_files
from harness.dataset.reference import DatasetReference
from harness.dataset.rows import TABLE_SUFFIXES
from harness.dataset.source import FormatReader, choose_split
from harness.dataset.table_source import TableSource, rows_of_files
from retrievers.errors import InputError, Problem

BEIR_CORPUS_FILE = "corpus.jsonl"


PART_FOLDERS = {
    "corpus": ("corpus",),
    "queries": ("queries", "query"),
    "qrels": ("qrels", "default"),
}
SHARD_NUMBERS = r"\d{5}-of-\d{5}"


class TableLayout(NamedTuple):
    """The files of a collection by their names."""

    patterns: Mapping[str, str]
    """Part -> what the names of its files are like; a group is the split."""
    headers: Mapping[str, tuple[str, ...]]
    """Part -> the columns of its tables, where they may have no header."""

    def parts(self, files: Files) -> dict[str, dict[str, list[File]]]:
        """Part -> split, "" where there is none -> files."""
        found: dict[str, dict[str, list[File]]] = {part: {} for part in self.patterns}
        for part, pattern in self.patterns.items():
            for match in filter(None, (re.fullmatch(pattern, name) for name in files)):
                file = replace(files[match[0]], header=self.headers.get(part))
                found[part].setdefault(
                    next(filter(None, match.groups()), ""), []
                ).append(file)
        return found

    def matches(self, _: DatasetReference, files: Files) -> bool:
        """Whether a folder or an archive holds all of the parts."""
        return all(self.parts(files).values())

    def read(self, reference: DatasetReference, files: Files) -> TableSource:
        """Open the parts; of qrels the split that is meant, `test` where several are there and none is named.

        Raises:
            InputError: there are no documents or no queries, or several splits and none is named.
        """
        folder, by_part = reference.folder, self.parts(files)
        asked, qrels = (
            [file_named(files, name, folder) for name in reference.queries],
            by_part["qrels"],
        )
        needed = {
            "corpus": True,
            "queries": not asked,
            "qrels": any(name.startswith("qrels/") for name in files),
        }
        if lacking := [
            part for part in self.patterns if needed[part] and not by_part[part]
        ]:
            remedy = "such as corpus.jsonl, queries.jsonl and qrels/test.tsv"
            others = [
                name
                for name, file in files.items()
                if file.suffix in TABLE_SUFFIXES and name != BEIR_CORPUS_FILE
            ]
            if lacking[0] == "queries" and others:
                remedy = f"which file has them? for example --queries {shlex.quote(others[0])}"
            raise InputError(
                Problem(str(folder), f"holds no {lacking[0]} of this format", remedy)
            )
        split = (
            choose_split(str(folder / "qrels"), qrels, reference.split, "test")
            if qrels or reference.split
            else ""
        )
        corpus, queries = (
            by_part[part].get(split) or [*chain(*by_part[part].values())]
            for part in ("corpus", "queries")
        )
        judged = (
            rows_of_files(*qrels[split]) if split in qrels else None
        )  # then queries may carry their labels themselves
        return TableSource(
            rows_of_files(*corpus),
            rows_of_files(*(asked or queries)),
            judged,
            Columns(reference.columns),
        )


def _is_beir(reference: DatasetReference, files: Files) -> bool:
    """Whether a folder or an archive looks like BEIR; one whose judgments are a table beside the others does not."""
    top = {name: file for name, file in files.items() if "/" not in name}
    others = any(PurePosixPath(name).stem == "queries" for name in top)
    if not any(name.startswith("qrels/") for name in files) and (
        find_table(top, LABEL_TABLE_STEMS) or find_qrels_files(top)
    ):
        return False
    return (
        not (reference.documents or reference.labels)
        and BEIR_CORPUS_FILE in files
        and ("queries.jsonl" in files or not others)
    )


BEIR = FormatReader(
    _is_beir,
    TableLayout(
        {
            "corpus": r"corpus\.jsonl",
            "queries": r"queries\.jsonl",
            "qrels": r"qrels/([^/]+)\.tsv",
        },
        {"qrels": ("query-id", "corpus-id", "score")},
    ).read,
)
MSMARCO = TableLayout(
    {
        "corpus": r"collection\.tsv",
        "queries": r"queries(?:\.(.+))?\.tsv",
        "qrels": r"qrels(?:\.(.+))?\.tsv",
    },
    {
        "corpus": ("_id", "text"),
        "queries": ("_id", "text"),
        "qrels": ("query_id", "iteration", "doc_id", "score"),
    },
)
HUGGINGFACE = TableLayout(
    {
        part: rf"(?:[^/]+/)?(?:{'|'.join(names)})/(?!(?:state|dataset_\w+)\.json)"
        rf"(?:(?:([^/]+)/)?data-{SHARD_NUMBERS}\.arrow|([^/]+?)(?:-{SHARD_NUMBERS})?(?:{'|'.join(map(re.escape, TABLE_SUFFIXES))}))"
        for part, names in PART_FOLDERS.items()
    },
    {},
)
"""Folders of shards; `datasets` saves its own as Arrow, with notes beside them."""

"""A data set of Hugging Face's hub as files on disk: corpus, queries and qrels, as MTEB lays them out.

Each part is a folder of Parquet, JSON Lines or CSV shards (`corpus/test-00000-of-00001.parquet`), or a file. Columns
are `_id` or `id`, `title`, `text`; qrels have `query-id`, `corpus-id`, `score` and may be called `default`
(mteb 2.26.24, `retrieval_dataset_loaders.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath

from harness.dataset.archives import is_zip
from harness.dataset.columns import Columns
from harness.dataset.files import File, listing
from harness.dataset.reference import DatasetReference
from harness.dataset.rows import SUFFIXES
from harness.dataset.tables import TableSource, rows_of
from retrievers.errors import InputError, Problem, did_you_mean

PARTS = {"corpus": ("corpus",), "queries": ("queries", "query"), "qrels": ("qrels", "default")}
SPLIT = re.compile(r"^(.+?)(-\d{5}-of-\d{5})?$")


def matches(reference: DatasetReference) -> bool:
    """Whether a folder holds folders of shards for corpus and queries."""
    if reference.scheme or not (reference.folder.is_dir() or is_zip(reference.folder)):
        return False
    files = listing(reference.folder)
    return bool(shards(files, PARTS["corpus"]) and shards(files, PARTS["queries"]) and shards(files, PARTS["qrels"]))


def read(reference: DatasetReference) -> TableSource:
    """Open the parts; of qrels the split that is meant, `test` where several are there and none is named."""
    files, by_part = listing(reference.folder), {}
    for part, names in PARTS.items():
        splits = shards(files, names)
        if not splits:
            raise InputError(Problem(str(reference.folder / part), "holds no table", "a folder of Parquet or JSONL"))
        by_part[part] = splits
    qrels = by_part["qrels"]
    split = reference.split or (next(iter(qrels)) if len(qrels) == 1 else "test")
    if split not in qrels:
        raise InputError(
            Problem(str(reference.folder / "qrels"), f"has no split {split!r}", did_you_mean(split, qrels))
        )
    corpus, queries = (by_part[part].get(split) or _all(by_part[part].values()) for part in ("corpus", "queries"))
    return TableSource(rows_of(*corpus), rows_of(*queries), rows_of(*qrels[split]), Columns(reference.columns))


def shards(files: Mapping[str, File], names: Iterable[str]) -> dict[str, list[File]]:
    """The shards of one part by split: files in a folder of this name."""
    by_split: dict[str, list[File]] = {}
    for name, file in files.items():
        pure = PurePosixPath(name)
        if pure.suffix.lower() in SUFFIXES and pure.parent.name in names and len(pure.parts) <= 3:
            split = SPLIT.fullmatch(pure.stem)
            by_split.setdefault(split[1] if split else pure.stem, []).append(file)
    return by_split


def _all(splits: Iterable[list[File]]) -> list[File]:
    return [file for shards in splits for file in shards]

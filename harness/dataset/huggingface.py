"""A data set of Hugging Face's hub, by its name or as files on disk: corpus, queries and qrels, as MTEB lays them out.

By its name (`hf:mteb/scifact`, `hf:mteb/scifact@revision`) the hub is asked, through `datasets`, which keeps what it
fetched; code of a data set is never run. On disk each part is a folder of Parquet, JSON Lines or CSV shards
(`corpus/test-00000-of-00001.parquet`), or a file. Columns are `_id` or `id`, `title`, `text`; qrels have `query-id`,
`corpus-id`, `score` and may be called `default` (mteb 2.26.24, `retrieval_dataset_loaders.py`).
"""

from __future__ import annotations

import importlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import Any

from harness.dataset.archives import missing
from harness.dataset.columns import Columns
from harness.dataset.dataset_model import DatasetReference
from harness.dataset.files import File, listing, listing_of
from harness.dataset.one_table import split_of
from harness.dataset.rows import SUFFIXES, Row
from harness.dataset.source import Findings, Place, Reader, split_among
from harness.dataset.table_folder import RowSource, TableSource, rows_of
from retrievers.errors import InputError, Problem

PREFIX = "hf:"
ABOUT = ("state.json", "dataset_info.json", "dataset_dict.json")
"""What `datasets` saves beside the rows."""
PARTS = {"corpus": ("corpus",), "queries": ("queries", "query"), "qrels": ("qrels", "default")}


def read_named(reference: DatasetReference) -> TableSource:
    """Fetch the three parts, or take those that are on this machine."""
    try:
        datasets: Any = importlib.import_module("datasets")
    except ImportError:
        raise InputError(missing(reference.name, "datasets", "formats")) from None
    name, _, revision = str(reference.path).removeprefix(PREFIX).partition("@")
    kwargs: dict[str, Any] = {"revision": revision} if revision else {}
    try:
        configs = datasets.get_dataset_config_names(name, **kwargs)
        rows = {}
        for part, names in PARTS.items():
            config = next((one for one in names if one in configs), None)
            if config is None:
                remedy = f"its parts are {', '.join(configs[:8])}"
                raise InputError(Problem(reference.name, f"has no part {part!r}", remedy))
            table = datasets.load_dataset(name, config, **kwargs)
            rows[part] = _numbered(reference, part, table[_split_of(reference, part, table)])
    except (OSError, ValueError, datasets.exceptions.DatasetsError) as error:
        what = f"cannot be read: {str(error).splitlines()[0]}"
        remedy = "see that the name is right and the hub can be reached, or give a folder with its files"
        raise InputError(Problem(reference.name, what, remedy)) from None
    except RuntimeError as error:  # what `datasets` says of a data set that only its own code can read
        what = f"is not read, since code of a data set is never run: {str(error).splitlines()[0]}"
        raise InputError(Problem(reference.name, what, "give a folder with its files, as Parquet or JSONL")) from None
    return TableSource(rows["corpus"], rows["queries"], rows["qrels"], Columns(reference.columns))


def _split_of(reference: DatasetReference, part: str, splits: Collection[str]) -> str:
    """The split of one part, which may have only one where judgments have several."""
    if len(splits) == 1 and part != "qrels":
        return next(iter(splits))
    return split_among(f"{reference.name}: {part}", splits, reference.split, "test")


def _numbered(reference: DatasetReference, part: str, table: Iterable[Row]) -> RowSource:
    def read_all(problems: Findings) -> Iterator[tuple[Place, Row]]:
        for number, row in enumerate(table, 1):
            yield Place(Path(f"{reference.name}/{part}"), number), row

    return read_all


HUB = Reader(lambda reference: reference.scheme == PREFIX, read_named)
"""By a name."""


def matches(reference: DatasetReference) -> bool:
    """Whether a folder holds folders of shards for corpus, queries and qrels."""
    files = listing_of(reference)
    return all(shards(files, names) for names in PARTS.values())


def read(reference: DatasetReference) -> TableSource:
    """Open the parts; of qrels the split that is meant, `test` where several are there and none is named."""
    files, by_part = listing(reference.folder), {}
    for part, names in PARTS.items():
        splits = shards(files, names)
        if not splits:
            raise InputError(Problem(str(reference.folder / part), "holds no table", "a folder of Parquet or JSONL"))
        by_part[part] = splits
    qrels = by_part["qrels"]
    split = split_among(str(reference.folder / "qrels"), qrels, reference.split, "test")
    corpus, queries = (by_part[part].get(split) or [*chain(*by_part[part].values())] for part in ("corpus", "queries"))
    return TableSource(rows_of(*corpus), rows_of(*queries), rows_of(*qrels[split]), Columns(reference.columns))


def shards(files: Mapping[str, File], names: Iterable[str]) -> dict[str, list[File]]:
    """The shards of one part by split: files in a folder of this name, or in folders of splits as they are saved."""
    by_split: dict[str, list[File]] = {}
    for name, file in files.items():
        pure = PurePosixPath(name)
        folder, split = split_of(name) or (pure.parent.as_posix(), pure.stem)
        if pure.suffix.lower() in SUFFIXES and len(pure.parts) <= 3 and pure.name not in ABOUT:
            if PurePosixPath(folder).name in names:
                by_split.setdefault(split, []).append(file)
            elif not folder and split in names and pure.suffix == ".arrow":  # a part without splits
                by_split.setdefault("", []).append(file)
    return by_split

"""A data set of Hugging Face's hub by its name: `hf:mteb/scifact`, `hf:mteb/scifact@revision`, through `datasets`.

The hub is asked because the name says so; `datasets` keeps what it fetched. Code of a data set is never run.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from harness.dataset.columns import Columns
from harness.dataset.reference import DatasetReference
from harness.dataset.rows import Row
from harness.dataset.source import Findings, Place
from harness.dataset.tables import RowSource, TableSource
from harness.dataset.unpacking import missing
from retrievers.errors import InputError, Problem, did_you_mean

PREFIX = "hf:"
PARTS = {"corpus": ("corpus",), "queries": ("queries", "query"), "qrels": ("qrels", "default")}


def matches(reference: DatasetReference) -> bool:
    """Whether the reference names a data set of the hub."""
    return reference.scheme == PREFIX


def read(reference: DatasetReference) -> TableSource:
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
            rows[part] = _rows(reference, part, _split(reference, part, table))
    except (OSError, ValueError, datasets.exceptions.DatasetsError) as error:
        what = f"cannot be had: {str(error).splitlines()[0]}"
        remedy = "see that the name is right and the hub can be reached, or give a folder with its files"
        raise InputError(Problem(reference.name, what, remedy)) from None
    except RuntimeError as error:  # what `datasets` says of a data set that only its own code can read
        what = f"is not read, since code of a data set is never run: {str(error).splitlines()[0]}"
        raise InputError(Problem(reference.name, what, "give a folder with its files, as Parquet or JSONL")) from None
    return TableSource(rows["corpus"], rows["queries"], rows["qrels"], Columns(reference.columns))


def _split(reference: DatasetReference, part: str, table: Mapping[str, Iterable[Row]]) -> Iterable[Row]:
    wanted = reference.split or "test"
    if wanted in table:
        return table[wanted]
    if len(table) == 1 and (part != "qrels" or reference.split is None):
        return next(iter(table.values()))
    raise InputError(Problem(f"{reference.name}: {part}", f"has no split {wanted!r}", did_you_mean(wanted, table)))


def _rows(reference: DatasetReference, part: str, table: Iterable[Row]) -> RowSource:
    def read_all(problems: Findings) -> Iterator[tuple[Place, Row]]:
        for number, row in enumerate(table, 1):
            yield Place(Path(f"{reference.name}/{part}"), number), row

    return read_all

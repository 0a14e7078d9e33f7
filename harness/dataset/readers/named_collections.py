"""Collections fetched by name."""

import importlib
import logging
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from harness.dataset.columns import Columns
from harness.dataset.file import Files
from harness.dataset.read_problems import ReadProblems
from harness.dataset.readers.three_tables import PART_FOLDERS
from harness.dataset.reference import DatasetReference
from harness.dataset.source import FormatReader, SourceLocation, TableRow, choose_split
from harness.dataset.table_source import TableSource
from retrievers.errors import InputError, Problem, require_package

HUB_PREFIX = "hf:"
CATALOGUE_PREFIX = "irds:"
CATALOGUE_KEYS = {"doc_id", "query_id", "title", "text", "body", "marked_up_doc"}
"""Of a document or a query of ir_datasets."""


def _read_named(reference: DatasetReference, files: Files) -> TableSource:
    """Fetch the three parts, or take those that are on this machine; there are no files."""
    with require_package(reference.name, "datasets", "formats"):
        datasets: Any = importlib.import_module("datasets")
    name, _, revision = str(reference.path).removeprefix(HUB_PREFIX).partition("@")
    if not name:
        raise InputError(
            Problem(reference.name, "names no data set", "hf:NAME, or hf:NAME@REVISION")
        )
    kwargs: dict[str, Any] = {"revision": revision} if revision else {}
    # A hub that is out of reach is one message, not one for each try.
    logging.getLogger("huggingface_hub").setLevel(logging.ERROR)
    try:
        configs = datasets.get_dataset_config_names(name, **kwargs)
        rows = {}
        for part, names in PART_FOLDERS.items():
            config = next((one for one in names if one in configs), None)
            if config is None:
                remedy = f"its parts are {', '.join(configs[:8])}"
                raise InputError(
                    Problem(reference.name, f"has no part {part!r}", remedy)
                )
            table = datasets.load_dataset(name, config, **kwargs)
            where = f"{reference.name}: {part}"
            alone = (
                part != "qrels" and len(table) == 1
            )  # judgments have the split that is asked for
            split = (
                next(iter(table))
                if alone
                else choose_split(where, table, reference.split, "test")
            )
            rows[part] = partial(
                _numbered, f"{reference.name}/{part}", table[split].__iter__, dict
            )
    except InputError:
        raise
    except Exception as error:  # of the network, of files, of a data set that only its own code can read
        what = f"cannot be read: {next(iter(str(error).splitlines()), type(error).__name__)}"
        remedy = "see that the name is right and the hub can be reached, or give a folder with its files"
        raise InputError(Problem(reference.name, what, remedy)) from None
    return TableSource(
        rows["corpus"], rows["queries"], rows["qrels"], Columns(reference.columns)
    )


def _numbered(
    name: str,
    iterate: Callable[[], Iterable[Any]],
    row_of: Callable[[Any], TableRow],
    problems: ReadProblems,
) -> Iterator[tuple[SourceLocation, TableRow]]:
    """The rows that a library gives, each with its number."""
    try:
        for number, one in enumerate(iterate(), 1):
            yield SourceLocation(Path(name), number), row_of(one)
    except Exception as error:  # whatever the library raises of files that it fetched
        what = f"cannot be read: {' '.join(str(error).split())[:200] or type(error).__name__}"
        problems.add(
            name,
            what,
            "fetch it where there is a network, or give a folder with its files",
        )


HUB = FormatReader(lambda reference, _: reference.scheme == HUB_PREFIX, _read_named)


def _read_catalogue(reference: DatasetReference, files: Files) -> TableSource:
    """Open a data set of ir_datasets; InputError where the name is unknown or a part of it is missing."""
    with require_package(reference.name, "ir_datasets", "formats"):
        import ir_datasets
    try:
        collection: Any = ir_datasets.load(
            str(reference.path).removeprefix(CATALOGUE_PREFIX)
        )
    except KeyError:
        remedy = "ir-datasets.com lists the names"
        raise InputError(
            Problem(reference.name, "is not known to ir_datasets", remedy)
        ) from None
    lacking = [
        part
        for part in ("docs", "queries", "qrels")
        if not getattr(collection, f"has_{part}")()
    ]
    if lacking:
        remedy = "name a part of it that has them, such as …/test"
        raise InputError(
            Problem(reference.name, f"has no {', '.join(lacking)}", remedy)
        )

    return TableSource(
        partial(_numbered, reference.name, collection.docs_iter, _document_row),
        partial(_numbered, reference.name, collection.queries_iter, _query_row),
        partial(
            _numbered,
            reference.name,
            collection.qrels_iter,
            lambda judged: dict(judged._asdict()),
        ),
    )


def _document_row(doc: Any) -> TableRow:
    """A document: its title where there is one, and its text, else all the default text."""
    body = getattr(doc, "text", None) or getattr(doc, "body", None)
    title = getattr(doc, "title", "") if body is not None else ""
    text = doc.default_text() if body is None else body
    return {"_id": doc.doc_id, "title": title, "text": text, "metadata": _fields(doc)}


def _query_row(query: Any) -> TableRow:
    """A query: its text, else the default text (of TREC topics the title)."""
    text = getattr(query, "text", None) or query.default_text()
    return {"_id": query.query_id, "text": text, "metadata": _fields(query)}


def _fields(row: Any) -> dict[str, Any]:
    plain = (
        (name, value)
        for name, value in row._asdict().items()
        if isinstance(value, str | int | float)
    )
    return {name: value for name, value in plain if name not in CATALOGUE_KEYS}


CATALOGUE = FormatReader(
    lambda reference, _: reference.scheme == CATALOGUE_PREFIX, _read_catalogue
)
"""ir_datasets."""

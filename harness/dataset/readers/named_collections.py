"""Collections fetched by name.

`hf:` names a data set of the hub, `irds:` one of ir_datasets. Their libraries fetch and
cache the files; what they raise becomes a problem.
"""

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
from harness.dataset.row import Row
from harness.dataset.source import FormatReader, SourceLocation, choose_split
from harness.dataset.table_source import RowSource, TableSource
from retrievers.errors import InputError, Problem, require_package

HUB_PREFIX = "hf:"
CATALOGUE_PREFIX = "irds:"
CATALOGUE_KEYS = {"doc_id", "query_id", "title", "text", "body", "marked_up_doc"}
"""Keys of a document or a query of ir_datasets that are not fields."""
CATALOGUE_PARTS = ("docs", "queries", "qrels")
RowMaker = Callable[[SourceLocation, Any], Row]
"""Returns the row of a library's record."""
MAX_SHOWN_PARTS = 8
"""Parts of a data set, at most, that a message shows."""
MAX_REASON_LENGTH = 200
"""Characters of a library's error that a message repeats."""


def _read_hub(reference: DatasetReference, files: Files) -> TableSource:
    """Open a data set of the hub, fetched or cached.

    Raises:
        InputError: it cannot be read, or a part of it is missing.
    """
    with require_package(reference.name, "datasets", "formats"):
        datasets: Any = importlib.import_module("datasets")
    path = str(reference.path).removeprefix(HUB_PREFIX)
    name, _, revision = path.partition("@")
    if not name:
        remedy = "hf:NAME, or hf:NAME@REVISION"
        raise InputError(Problem(reference.name, "names no data set", remedy))
    revision_option = {"revision": revision} if revision else {}
    # Without this, a hub that cannot be reached is reported once for each try.
    logging.getLogger("huggingface_hub").setLevel(logging.ERROR)
    rows: dict[str, RowSource] = {}
    try:
        configs = datasets.get_dataset_config_names(name, **revision_option)
        for part in PART_FOLDERS:
            config = _find_config(reference, part, configs)
            table = datasets.load_dataset(name, config, **revision_option)
            split = _find_split(reference, part, table)
            part_name = f"{reference.name}/{part}"
            iterate = table[split].__iter__
            rows[part] = partial(_numbered_rows, part_name, iterate, _hub_row)
    except InputError:
        raise
    except Exception as error:  # of the network, of files, of a data set's own code
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        remedy = (
            "see that the name is right and the hub can be reached, "
            "or give a folder with its files"
        )
        problem = f"cannot be read: {reason}"
        raise InputError(Problem(reference.name, problem, remedy)) from None
    columns = Columns(reference.columns)
    return TableSource(rows["corpus"], rows["queries"], rows["qrels"], columns)


def _find_config(reference: DatasetReference, part: str, configs: list[str]) -> str:
    """Return the configuration with a part; InputError if there is none."""
    for config in PART_FOLDERS[part]:
        if config in configs:
            return config
    remedy = f"its parts are {', '.join(configs[:MAX_SHOWN_PARTS])}"
    raise InputError(Problem(reference.name, f"has no part {part!r}", remedy))


def _find_split(reference: DatasetReference, part: str, table: Any) -> str:
    """Return the requested split of a part; of documents or queries the only one."""
    if part != "qrels" and len(table) == 1:
        only_split: str = next(iter(table))
        return only_split
    return choose_split(f"{reference.name}: {part}", table, reference.split, "test")


def _numbered_rows(
    name: str,
    iterate: Callable[[], Iterable[Any]],
    to_row: RowMaker,
    problems: ReadProblems,
) -> Iterator[Row]:
    """Yield the rows of a library, each with its number."""
    try:
        for number, record in enumerate(iterate(), 1):
            yield to_row(SourceLocation(Path(name), number), record)
    except Exception as error:  # the library may raise anything
        reason = " ".join(str(error).split())[:MAX_REASON_LENGTH]
        problem = f"cannot be read: {reason or type(error).__name__}"
        remedy = "fetch it where there is a network, or give a folder with its files"
        problems.add(name, problem, remedy)


def _hub_row(location: SourceLocation, record: Any) -> Row:
    return Row(location, dict(record))


HUB = FormatReader(lambda reference, _: reference.scheme == HUB_PREFIX, _read_hub)


def _read_catalogue(reference: DatasetReference, files: Files) -> TableSource:
    """Open a data set of ir_datasets.

    Raises:
        InputError: its name is unknown, or a part of it is missing.
    """
    with require_package(reference.name, "ir_datasets", "formats"):
        import ir_datasets
    name = str(reference.path).removeprefix(CATALOGUE_PREFIX)
    try:
        collection: Any = ir_datasets.load(name)
    except KeyError:
        problem = "is not known to ir_datasets"
        remedy = "ir-datasets.com lists the names"
        raise InputError(Problem(reference.name, problem, remedy)) from None
    missing_parts = [
        part for part in CATALOGUE_PARTS if not getattr(collection, f"has_{part}")()
    ]
    if missing_parts:
        problem = f"has no {', '.join(missing_parts)}"
        remedy = "name a part of it that has them, such as …/test"
        raise InputError(Problem(reference.name, problem, remedy))

    def rows(iterate: Callable[[], Iterable[Any]], to_row: RowMaker) -> RowSource:
        return partial(_numbered_rows, reference.name, iterate, to_row)

    return TableSource(
        document_rows=rows(collection.docs_iter, _document_row),
        query_rows=rows(collection.queries_iter, _query_row),
        label_rows=rows(collection.qrels_iter, _label_row),
        columns=Columns(are_fixed=True),
    )


def _document_row(location: SourceLocation, document: Any) -> Row:
    """Return a document with its title and text; without a text, its default text."""
    title = ""
    text = getattr(document, "text", None) or getattr(document, "body", None)
    if text is None:
        text = document.default_text()
    else:
        title = getattr(document, "title", "")
    cells = {"_id": document.doc_id, "title": title, "text": text}
    return Row(location, {**cells, "metadata": _fields_of(document)})


def _query_row(location: SourceLocation, query: Any) -> Row:
    """Return a query with its text, else its default text: the title of a topic."""
    text = getattr(query, "text", None) or query.default_text()
    cells = {"_id": query.query_id, "text": text}
    return Row(location, {**cells, "metadata": _fields_of(query)})


def _label_row(location: SourceLocation, judgment: Any) -> Row:
    return Row(location, dict(judgment._asdict()))


def _fields_of(record: Any) -> dict[str, Any]:
    """Return the plain values of a document or a query that are fields."""
    return {
        key: field
        for key, field in record._asdict().items()
        if key not in CATALOGUE_KEYS and isinstance(field, str | int | float)
    }


CATALOGUE = FormatReader(
    lambda reference, _: reference.scheme == CATALOGUE_PREFIX, _read_catalogue
)
"""ir_datasets."""

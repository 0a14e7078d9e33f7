"""Which format a reference has.

`open_source` sees what is there, asks the readers in their order which of them reads
it, and opens it with the first that does. If none does, the problem says why.
"""

import shlex
from collections.abc import Mapping
from dataclasses import replace
from importlib import import_module
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from harness.dataset.columnar import WORKBOOK_SUFFIXES, sheet_names
from harness.dataset.columns import declarations
from harness.dataset.file import FETCH_AGAIN, File, Files
from harness.dataset.listing import is_run_folder, list_reference
from harness.dataset.query_tables import MARKDOWN_QUERIES, find_query_table
from harness.dataset.read_problems import ReadProblems
from harness.dataset.readers.shards import parse_shard
from harness.dataset.reference import DatasetReference, DeclaredColumn
from harness.dataset.row import NO_ROW, Row
from harness.dataset.rows import TABLE_SUFFIXES, read_file_rows
from harness.dataset.settings import LEAVE_PAGES_OUT, NAMED_DOCUMENTS
from harness.dataset.source import FormatReader, Source
from harness.dataset.usual_names import normalised_name, usual_column
from harness.english import first_names
from retrievers.errors import InputError, Problem, did_you_mean, nearest_word
from retrievers.options.user_code import OBJECT_PREFIX, NamedObject
from retrievers.remedy import Option, Remedy, Setting, compose_remedy

READERS_BY_FORMAT = {
    "hub": "named_collections:HUB",
    "ir_datasets": "named_collections:CATALOGUE",
    "beir": "three_tables:BEIR",
    "huggingface": "three_tables:HUGGINGFACE",
    "autorag": "autorag:AUTORAG",
    "trec": "trec:TREC_COLLECTION",
    "ragas": "tool_exports:RAGAS",
    "langsmith": "tool_exports:LANGSMITH",
    "phoenix": "tool_exports:PHOENIX",
    "langfuse": "tool_exports:LANGFUSE",
    "llama-index-rag": "tool_exports:LLAMA_INDEX_RAG",
    "embench": "keyed_file:EMBENCH",
    "llama-index": "keyed_file:LLAMA_INDEX",
    "squad": "squad:SQUAD",
    "hotpotqa": "hotpotqa:HOTPOT",
    "marked": "marked_texts:MARKED_TEXTS",
    "quoted": "context_table:CONTEXT_TABLE",
    "msmarco": "three_tables:MSMARCO",
    "tables": "table_folder",
    "markdown": "markdown_folder",
}
"""Format -> its module in `readers`, and its name there if a module has several.

If no format is declared, they are tried in this order.
"""
PAGED_FORMATS = ("tables", "markdown")
"""Formats whose documents may be pages of PDF."""
OWN_PARTS = {
    **dict.fromkeys(
        (
            "hub",
            "ir_datasets",
            "autorag",
            "embench",
            "llama-index",
            "squad",
            "hotpotqa",
        ),
        ("documents", "queries", "labels"),
    ),
    **dict.fromkeys(("marked", "quoted", "markdown"), ("documents", "labels")),
    **dict.fromkeys(
        ("ragas", "langsmith", "phoenix", "langfuse", "llama-index-rag"), ("labels",)
    ),
}
"""Format -> the parts that it has itself: a file that is named for one is refused."""
DECLARABLE_KINDS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(
        ("ir_datasets", "autorag", "embench", "llama-index", "squad", "hotpotqa"), ()
    ),
    "trec": ("query",),
}
"""Format that names its own columns -> those that can be declared all the same."""
SPLIT_FORMATS = (
    "hub",
    "beir",
    "huggingface",
    "trec",
    "msmarco",
    "tables",
    "markdown",
)
"""Formats whose readers choose a split, or refuse it."""
ANSWER_NAMES = ("answer", "answers", "response", "output", "ideal", "groundtruth")
"""Names of columns of texts that are no documents."""
MAX_SHOWN_NAMES = 8
"""Suffixes, sheets or folders, at most, that a message shows."""
MAX_EXAMINED_FOLDERS = 20
"""Folders, at most, that are listed to look for a data set in them."""


def import_reader(format_name: str) -> FormatReader:
    """Return the reader of a format."""
    module_name, _, attribute = READERS_BY_FORMAT[format_name].partition(":")
    module = import_module(f"harness.dataset.readers.{module_name}")
    reader = getattr(module, attribute) if attribute else module
    return FormatReader(reader.matches, reader.read)


def open_source(reference: DatasetReference) -> tuple[str, Source]:
    """Return the format of a reference, and its content.

    Raises:
        InputError: nothing is there, the format is unknown, no reader reads it, or the
            reference has a key that is not for this format.
    """
    if isinstance(reference.path, NamedObject):
        return "memory", reference.path.value(reference)
    if reference.scheme == OBJECT_PREFIX:
        name = reference.name.removeprefix(OBJECT_PREFIX)
        problem = "were in the memory of another process"
        raise InputError(Problem(name, problem, "give them again in Python"))
    reference = _of_sheet(reference)
    if not reference.scheme and not reference.folder.exists():
        hint = _missing_path_remedy(reference.folder)
        noun = "file" if reference.folder.suffix else "folder"
        raise InputError(Problem(reference.name, f"no such {noun}", hint))
    format_name = reference.format
    if format_name is not None and format_name not in READERS_BY_FORMAT:
        problem = f"unknown format {format_name!r}"
        hint = did_you_mean(format_name, READERS_BY_FORMAT)
        raise InputError(Problem("dataset.format", problem, hint))
    files = list_reference(reference)
    format_name = format_name or detect_format(reference, files)
    if format_name is None:
        raise InputError(_unknown_content(reference, files))
    _refuse_other_keys(reference, files, format_name)
    return format_name, import_reader(format_name).read(reference, files)


def _refuse_other_keys(
    reference: DatasetReference, files: Files, format_name: str
) -> None:
    """Refuse a key that is not for data sets of a format: its reader ignores it.

    Raises:
        InputError: the reference has such a key.
    """
    subject = f"the data set is {format_name}"
    if reference.where and format_name != "tables":
        problem = f"{subject}, and where chooses rows of tables"
        remedy = compose_remedy("leave it out", Option("--where"))
        raise InputError(Problem("dataset.where", problem, remedy))
    if reference.pages and format_name not in PAGED_FORMATS:
        problem = f"{subject}, and only a folder of PDF has pages"
        raise InputError(Problem("dataset.pages", problem, LEAVE_PAGES_OUT))
    for key in OWN_PARTS.get(format_name, ()):
        if getattr(reference, key):
            problem = f"{subject}, which has its own {key}"
            remedy = compose_remedy("leave it out", Option(f"--{key}"))
            raise InputError(Problem(f"dataset.{key}", problem, remedy))
    declarable_kinds = DECLARABLE_KINDS.get(format_name)
    for column in reference.columns:
        if declarable_kinds is not None and column.kind not in declarable_kinds:
            problem = f"{subject}, in which {column.kind!r} cannot be declared"
            remedy = compose_remedy("leave it out", Option("--columns"))
            raise InputError(Problem("dataset.columns", problem, remedy))
    has_splits = format_name in SPLIT_FORMATS or any(map(parse_shard, files))
    if reference.split is not None and not has_splits:
        problem = f"{subject}, which has no splits"
        remedy = compose_remedy("leave it out", Option("--split"))
        raise InputError(Problem("dataset.split", problem, remedy))


def _of_sheet(reference: DatasetReference) -> DatasetReference:
    """Return the reference to a sheet of a workbook, `book.xlsx#March`, by its parts.

    Raises:
        InputError: the workbook has no such sheet.
    """
    if reference.scheme or reference.folder.exists():
        return reference
    sheet_path = parse_sheet_path(str(reference.path))
    if sheet_path is None:
        return reference
    workbook, sheet = sheet_path
    sheets = sheet_names(workbook)
    if sheet not in sheets:
        problem = f"has no sheet {sheet!r}, but {', '.join(map(repr, sheets))}"
        raise InputError(Problem(str(workbook), problem, f"{workbook.name}#SHEET"))
    name = f"{workbook.name}#{sheet}"
    return replace(reference, path=workbook.parent, queries=(name,))


class SheetPath(NamedTuple):
    """A sheet of a workbook, as a path names it: `book.xlsx#March`."""

    workbook: Path
    sheet: str


def parse_sheet_path(path: str) -> SheetPath | None:
    """Return the sheet that a path names; None if it names no file with sheets."""
    workbook_name, _, sheet = path.rpartition("#")
    workbook = Path(workbook_name)
    is_workbook = workbook.suffix.lower() in WORKBOOK_SUFFIXES and workbook.is_file()
    return SheetPath(workbook, sheet) if is_workbook else None


def _missing_path_remedy(path: Path) -> str:
    if not path.parent.is_dir():
        return f"nor is there a folder {path.parent}"
    return suggest_path(path) or "a folder, a zip archive or a file; hf:… or irds:…"


def detect_format(reference: DatasetReference, files: Files) -> str | None:
    """Return the format of a reference; None if no reader reads it.

    Args:
        reference: where it is.
        files: the files there, listed once for all readers.

    Raises:
        InputError: it is a results folder, whose files look like tables, but have only
            the beginnings of the texts; or a reader finds several tables, splits or
            configurations, of which one must be named.
    """
    if not reference.scheme and is_run_folder(reference.folder):
        folder = shlex.quote(str(reference.folder))
        remedy = (
            f"harness report {folder} shows what it says; "
            "harness check takes its experiment file or its data set"
        )
        problem = "is a results folder, no data set"
        raise InputError(Problem(reference.name, problem, remedy))
    for format_name in READERS_BY_FORMAT:
        if import_reader(format_name).matches(reference, files):
            is_outside = format_name == "markdown" and _is_around_data(reference, files)
            return None if is_outside else format_name
    return None


def _is_around_data(reference: DatasetReference, files: Files) -> bool:
    """Whether all pages of a folder are in data sets below it, such as a README.

    Never if the folder has its queries.
    """
    if reference.queries or MARKDOWN_QUERIES in files:
        return False
    data_folders = find_data_folders(reference.folder, files)
    if not data_folders:
        return False
    outside = {
        path: file
        for path, file in files.items()
        if not any(map(PurePosixPath(path).is_relative_to, data_folders))
    }
    return not import_reader("markdown").matches(reference, outside)


def suggest_path(path: Path) -> str:
    """Return a remedy with the nearest name in its folder; empty if none is near."""
    if not path.parent.is_dir():
        return ""
    return nearest_word(path.name, (file.name for file in path.parent.iterdir()))


def _unknown_content(reference: DatasetReference, files: Files) -> Problem:
    """Return the problem that no reader reads a reference."""
    path = reference.folder
    remedy: Remedy | str
    sheets = [name for name, file in files.items() if file.table]
    if sheets:
        names = ", ".join(map(repr, sheets[:MAX_SHOWN_NAMES]))
        problem = f"holds {names}, and none of them is called queries"
        queries = shlex.quote(sheets[0])
        remedy = compose_remedy(
            "name the files of queries and documents",
            Option(f"--queries {queries} --documents …"),
        )
    elif files or not path.is_file():
        return _no_parts(reference, files)
    elif not path.stat().st_size:
        problem = "is empty"
        remedy = FETCH_AGAIN
    elif path.suffix.lower() == ".zip":
        problem = "is not a zip archive that can be read"
        remedy = FETCH_AGAIN
    elif path.suffix.lower() == ".toml":
        problem = "is an experiment, no data set"
        remedy = f"harness check {shlex.quote(str(path))}"
    elif File(path).suffix not in TABLE_SUFFIXES:
        problem = "is a file that no reader takes"
        formats = ", ".join(READERS_BY_FORMAT)
        remedy = compose_remedy(
            "say what it is: ", Setting("format", "…"), f", one of {formats}"
        )
    else:
        problem = "is a table that names no documents"
        remedy = compose_remedy(
            "name their folder or file under dataset: ",
            NAMED_DOCUMENTS,
            _texts_remedy(_first_row(path)),
        )
    return Problem(reference.name, problem, remedy)


def _no_parts(reference: DatasetReference, files: Files) -> Problem:
    """Return the problem that no file of a folder is known as a part of a data set."""
    table = find_query_table(files)
    is_at_top = table is not None and "/" not in table.path
    data_folders = [] if is_at_top else find_data_folders(reference.folder, files)
    if data_folders:
        names = first_names([*map(repr, data_folders)], MAX_SHOWN_NAMES)
        inner = f"its folder {names}"
        if len(data_folders) > 1:
            inner = f"each of its folders {names}"
        path = shlex.quote((reference.folder / data_folders[0]).as_posix())
        problem = f"is no data set, but {inner} may be one"
        return Problem(reference.name, problem, f"name {path}")
    if table is not None and not reference.queries:
        problem = "holds no table that is known to be the queries"
        return Problem(reference.name, problem, table.remedy())
    suffixes = sorted({file.suffix or file.name for file in files.values()})
    problem = "holds no documents"
    if suffixes:
        problem += f": only {', '.join(suffixes[:MAX_SHOWN_NAMES])}"
    remedy = "corpus.jsonl, tables of documents and queries, or files *.md or *.txt"
    return Problem(reference.name, problem, remedy)


def find_data_folders(folder: Path, files: Files) -> list[str]:
    """Return the folders in a folder that may be data sets, without those in them.

    A folder of pages alone is none: it may be a part of the documents.

    Args:
        folder: a folder, or an archive, in which no folder can be named: then none.
        files: the files in it, by their paths.
    """
    if not folder.is_dir():
        return []
    inner = {parent for path in files for parent in PurePosixPath(path).parents[:-1]}
    nearest_first = sorted(inner, key=lambda path: (len(path.parts), path))
    data_folders: list[PurePosixPath] = []
    for path in nearest_first[:MAX_EXAMINED_FOLDERS]:
        is_in_one = any(map(path.is_relative_to, data_folders))
        if not is_in_one and _is_data_set(folder / path):
            data_folders.append(path)
    return [path.as_posix() for path in data_folders]


def _is_data_set(folder: Path) -> bool:
    reference = DatasetReference(folder)
    try:
        files = list_reference(reference)
        return not is_run_folder(folder) and any(
            import_reader(format_name).matches(reference, files)
            for format_name in READERS_BY_FORMAT
            if format_name != "markdown"
        )
    except InputError:
        return False


def _first_row(path: Path) -> Row:
    """Return the first row of a table; InputError if it cannot be read."""
    problems = ReadProblems()
    row = next(read_file_rows(File(path), problems), NO_ROW)
    if problems:
        raise InputError(problems.problems)
    return row


def _texts_remedy(row: Row) -> Remedy:
    """Return how to declare the texts of a row as queries and passages, if it has two.

    >>> pair = {"id": 1, "sentence1": "what is it", "sentence2": "a thing"}
    >>> _texts_remedy(NO_ROW._replace(cells=pair)).as_python().partition(": ")[2]
    'columns={"query": "sentence1", "contexts": "sentence2"}'
    """
    texts = [
        str(column)
        for column, cell in row.cells.items()
        if isinstance(cell, str) and " " in cell.strip()
    ]
    query = usual_column("query", tuple(map(str, row.cells))) or next(iter(texts), "")
    passages = [
        column
        for column in texts
        if column != query and normalised_name(column) not in ANSWER_NAMES
    ]
    if not query or not passages:
        return Remedy(())
    return compose_remedy(
        "; if its texts are the documents, say which: ",
        declarations(
            DeclaredColumn("query", query), DeclaredColumn("contexts", passages[0])
        ),
    )

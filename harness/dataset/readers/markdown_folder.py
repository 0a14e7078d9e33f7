"""A folder of documents.

Every `*.md`, `*.markdown`, `*.rst` and `*.txt` below the folder is a document, except
files at its top that are about it, such as a README; so are the files that the extra
`documents` converts (`harness.dataset.convert`). `queries.json` is a list of objects
with `query` and `relevant_documents`; several such files may have labels of several
people, whose lists are merged. `front_matter` reads the head of a text, and
`dataset_folder` takes these documents beside tables of queries.
"""

import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from harness.dataset.columns import Columns
from harness.dataset.conversion_process import CONVERSIONS
from harness.dataset.convert import (
    CONVERTED_SUFFIXES,
    ConversionError,
    can_convert,
    convert_file,
)
from harness.dataset.file import File, Files
from harness.dataset.judgment import JUDGMENTS_FILE
from harness.dataset.labels import FIELD_SEPARATOR, label_source
from harness.dataset.listing import list_files
from harness.dataset.merge_lists import merge_labellers
from harness.dataset.placed_row import PlacedRow
from harness.dataset.query_tables import MARKDOWN_QUERIES, find_query_table
from harness.dataset.read_problems import ReadProblems
from harness.dataset.readers.front_matter import parse_text_document
from harness.dataset.reference import DatasetReference
from harness.dataset.row import Row
from harness.dataset.rows import read_file_rows
from harness.dataset.settings import LEAVE_PAGES_OUT, NAMED_QUERIES
from harness.dataset.shared_titles import (
    FormatTitle,
    choose_title,
    shared_titles,
)
from harness.dataset.source import (
    FunctionSource,
    LocatedDocument,
    PlacedLabels,
    SourceLocation,
)
from harness.dataset.table_source import TableSource, rows_of_files
from harness.dataset.usual_names import FIELDS_KIND
from harness.dataset.written_values import decode_utf8
from retrievers.errors import InputError, Problem, collect_errors
from retrievers.ids import to_nfc
from retrievers.remedy import Remedy
from retrievers.types import Document

TEXT_SUFFIXES = {
    ".md": "Markdown",
    ".markdown": "Markdown",
    ".rst": "reStructuredText",
    ".txt": "text",
}
"""Suffix of a text file -> the name of its format."""
DOCUMENT_FORMATS = CONVERTED_SUFFIXES | TEXT_SUFFIXES
NOT_DOCUMENT_STEMS = {"readme", "license", "licence", "changelog"}
NOT_DOCUMENT_FILES = {"queries.txt", "questions.txt", JUDGMENTS_FILE}
"""Files at the top of the folder: queries without labels, and judgments."""
METADATA_COLUMNS = ("tags", "fields")
"""Columns of queries whose values become fields."""
LABELLER_COLUMN = "labelled_by"


def matches(_: DatasetReference, files: Files) -> bool:
    """Whether a folder or an archive has a document of this form."""
    return holds_documents(files)


def holds_documents(files: Files) -> bool:
    """Whether one of the files is read as a document."""
    return any(_is_document(path, file, converts=True) for path, file in files.items())


def list_documents(files: Files) -> tuple[list[str], list[str]]:
    """Return the ids that documents have by their paths, and the files not read."""
    converts = can_convert()
    ids: list[str] = []
    unread_files: list[str] = []
    for path, file in files.items():
        if _is_document(path, file, converts=converts):
            ids.append(_document_id(path, file))
        elif _is_worth_a_note(path, file):
            unread_files.append(path)
    return ids, unread_files


def read(reference: DatasetReference, files: Files) -> FunctionSource:
    """Open a folder of documents with its files of queries.

    These are `queries.json` if the reference names none.

    Raises:
        InputError: the reference names a split.
    """
    if reference.split is not None:
        problem = "a folder of Markdown has no splits"
        raise InputError(Problem("dataset.split", problem, NAMED_QUERIES))
    names = reference.queries or (MARKDOWN_QUERIES,)
    query_files = [files.get(name, File(reference.folder / name)) for name in names]
    columns = Columns(reference.columns)
    query_rows = partial(_query_rows, query_files, columns)
    if not reference.queries and names[0] not in files:
        remedy = _missing_queries_remedy(reference.folder, files)
        query_rows = partial(_missing_queries, query_files[0], remedy)
    query_table = TableSource(
        document_rows=rows_of_files(),
        query_rows=query_rows,
        label_rows=None,
        columns=columns,
    )
    return FunctionSource(
        documents=partial(
            read_documents,
            reference.folder,
            frozenset(),
            gitignore=reference.gitignore,
            by_page=reference.pages,
        ),
        queries=query_table.queries,
        labels=partial(_read_labels, query_files, columns),
    )


def read_documents(
    folder: Path,
    tables: Collection[Path],
    problems: ReadProblems,
    *,
    gitignore: bool = False,
    by_page: bool = False,
) -> Iterator[LocatedDocument]:
    """Yield one document per file, or per page of a PDF, in the order of their paths.

    At the end the process that converts files is stopped.

    Args:
        folder: a folder or an archive.
        tables: files in it that are not documents.
        problems: takes the problems; files that cannot be converted are counted.
        gitignore: whether files that `.gitignore` names are no documents.
        by_page: whether each page of a PDF is a document.
    """
    files = _document_files(folder, tables, problems, gitignore=gitignore)
    converted = {
        path: file for path, file in files.items() if file.suffix in CONVERTED_SUFFIXES
    }
    if by_page and not any(file.suffix == ".pdf" for file in converted.values()):
        problem = f"there is no PDF in {folder}"
        problems.add("dataset.pages", problem, LEAVE_PAGES_OUT)
    shared = shared_titles(converted, by_page=by_page)
    for path, file in files.items():
        try:
            with collect_errors(problems):
                if path in converted:
                    documents = _converted_documents(
                        path, file, shared, by_page=by_page
                    )
                else:
                    documents = [_read_document(path, file)]
                sizes = problems.table_sizes[str(folder)]
                sizes[DOCUMENT_FORMATS[file.suffix]] += 1
                for document in documents:
                    yield SourceLocation(file.path), document
        except ConversionError as failure:
            problems.note("unconverted-file", f"{path}: {failure}")
    CONVERSIONS.stop()


def _document_files(
    folder: Path,
    tables: Collection[Path],
    problems: ReadProblems,
    *,
    gitignore: bool,
) -> dict[str, File]:
    """Return the files that are documents, and note the others."""
    converts = can_convert()
    files: dict[str, File] = {}
    for path, file in list_files(folder, problems, gitignore=gitignore).items():
        if file.path in tables:
            continue
        if _is_document(path, file, converts=converts):
            files[path] = file
        elif _is_worth_a_note(path, file):
            problems.note("unread-file", path)
        elif gitignore and _is_not_document(path):
            problems.note("folder-file", path)
    return files


def _read_document(path: str, file: File) -> Document:
    text = decode_utf8(file.read(), SourceLocation(file.path))
    return parse_text_document(text, _document_id(path, file))


def _converted_documents(
    path: str, file: File, shared: frozenset[FormatTitle], *, by_page: bool
) -> list[Document]:
    """Return the document in a file of another program, or those in a PDF's pages."""
    id_ = _document_id(path, file)
    if not by_page or file.suffix != ".pdf":
        converted = convert_file(file)
        title = choose_title(path, file, converted, shared)
        return [Document(id_, title, converted.texts[0])]
    converted = convert_file(file, by_page=True)
    title = choose_title(path, file, converted, shared)
    documents: list[Document] = []
    for number, text in enumerate(converted.texts, 1):
        fields = {"file": id_, "page": str(number)}
        documents.append(Document(page_id(id_, number), title, text, fields))
    return documents


def page_id(file_id: str, page: int) -> str:
    """Return the id of a page.

    >>> page_id("manual/house.pdf", 3)
    'manual/house.pdf#3'
    """
    return f"{file_id}{FIELD_SEPARATOR}{page}"


class _LabellerRow(NamedTuple):
    """A row of a file of queries, with its labeller."""

    row: Row
    labeller: str
    """Who labelled it; "" if nobody is named."""


def _labeller_rows(
    file: File, columns: Columns, problems: ReadProblems
) -> Iterator[_LabellerRow]:
    """Yield the rows of a file; without an id, the number of a row is it: q0, q1, …."""
    for number, file_row in enumerate(read_file_rows(file, problems)):
        cells = dict(file_row.cells)
        if columns.name("query_id", file_row) is None:
            cells = {"id": f"q{number}", **cells}
        labeller = str(cells.pop(LABELLER_COLUMN, None) or "")
        yield _LabellerRow(Row(file_row.location, cells), labeller)


def _query_rows(
    files: Sequence[File], columns: Columns, problems: ReadProblems
) -> Iterator[Row]:
    """Yield the rows of the files of queries.

    If another labeller labelled the same query, it is yielded only once.
    """
    labellers_by_query: dict[tuple[str, str], set[str]] = {}
    for file in files:
        column_names: dict[str, None] = {}
        location = SourceLocation(file.path)
        for row, labeller in _labeller_rows(file, columns, problems):
            location = row.location
            column_names |= dict.fromkeys(row.cells)
            # Any value of JSON may be there; the reader reports those that are no text.
            id_ = PlacedRow(row, columns, problems).value("query_id")
            query = (str(id_), str(row.cells.get("query")))
            labellers = labellers_by_query.setdefault(query, set())
            is_labelled_again = _is_other_labeller(labeller, labellers)
            labellers.add(labeller)
            if not is_labelled_again:
                yield _with_metadata(row, problems)
        _note_columns_of_file(location.file, column_names, problems)


def _missing_queries(
    file: File, remedy: Remedy | str, problems: ReadProblems
) -> Iterator[Row]:
    """Yield no row: that there is no file of queries is a problem."""
    problems.add(file.path, "no such file", remedy)
    return iter(())


def _missing_queries_remedy(folder: Path, files: Files) -> Remedy | str:
    """Return what may hold the queries, or else how to get some."""
    table = find_query_table(files)
    if table is not None:
        return table.remedy()
    path = shlex.quote(folder.as_posix())
    return f"harness init {path} says what to write; without labels: harness try {path}"


def _is_other_labeller(labeller: str, labellers: Collection[str]) -> bool:
    """Whether a labeller differs from all earlier ones; all have to be known."""
    if not labeller or not labellers:
        return False
    return "" not in labellers and labeller not in labellers


def _note_columns_of_file(
    file: str, column_names: Mapping[str, None], problems: ReadProblems
) -> None:
    """Note how columns are read under their names in the file, not in `metadata`."""
    columns_used = problems.columns_used.get(file)
    if not columns_used:
        return
    file_columns: dict[str, str] = {}
    for column in column_names:
        if column == LABELLER_COLUMN:
            continue
        is_metadata = column in METADATA_COLUMNS
        kind = FIELDS_KIND if is_metadata else columns_used.get(column, "")
        file_columns[column] = kind
    problems.columns_used[file] = file_columns


def _with_metadata(row: Row, problems: ReadProblems) -> Row:
    """Return a row with its `fields` and `tags` as `metadata`."""
    fields = row.cells.get("fields", {})
    tags = row.cells.get("tags", [])
    if isinstance(tags, str):
        tags = [tags]
    cells = {
        column: cell
        for column, cell in row.cells.items()
        if column not in METADATA_COLUMNS
    }
    if not isinstance(fields, dict) or not isinstance(tags, list):
        problem = "'tags' or 'fields' cannot be read"
        problems.add(row.location, problem, "a list of words; an object of strings")
        return Row(row.location, cells)
    held_fields = cells.get("metadata")
    metadata = dict(held_fields) if isinstance(held_fields, dict) else {}
    metadata |= {key: str(field) for key, field in fields.items()}
    if tags:
        metadata["tags"] = ", ".join(map(str, tags))
    if metadata:
        cells["metadata"] = metadata
    return Row(row.location, cells)


def _read_labels(
    files: Sequence[File], columns: Columns, problems: ReadProblems
) -> Iterator[PlacedLabels]:
    """Yield the labels in `relevant_documents`.

    If several labellers labelled a query, their lists are merged.
    """
    all_labels: list[PlacedLabels] = []
    for file in files:
        all_labels += _labels_in_file(file, columns, problems)
    yield from merge_labellers(all_labels)


def _labels_in_file(
    file: File, columns: Columns, problems: ReadProblems
) -> Iterator[PlacedLabels]:
    rows: list[Row] = []
    labellers: dict[str, str] = {}  # by the place of the row
    for row, labeller in _labeller_rows(file, columns, ReadProblems()):
        labellers[str(row.location)] = labeller
        rows.append(row)
    source = TableSource(rows_of_files(), lambda _: iter(rows), None, columns)
    for location, query_id, labels in source.labels(problems):
        labelled_by = labellers[str(location)]
        signed_labels = replace(
            labels, labelled_by=labelled_by, source=label_source(labelled_by)
        )
        yield PlacedLabels(location, query_id, signed_labels)


def _is_document(path: str, file: File, *, converts: bool) -> bool:
    """Whether a file is read as a document."""
    if _is_not_document(path) or file.table:
        return False
    if file.suffix in TEXT_SUFFIXES:
        return True
    return converts and file.suffix in CONVERTED_SUFFIXES


def _is_worth_a_note(path: str, file: File) -> bool:
    """Whether a file that is not read is reported; JSON at the top may be queries."""
    if _is_not_document(path):
        return False
    return "/" in path or file.suffix != ".json"


def _document_id(path: str, file: File) -> str:
    """Return a document's id: its path; without the suffix if that only means text."""
    if file.suffix not in CONVERTED_SUFFIXES:
        path = PurePosixPath(path).with_suffix("").as_posix()
    return to_nfc(path)


def _is_not_document(path: str) -> bool:
    """Whether a file at the top of a folder is about the folder, or has queries."""
    if "/" in path:
        return False
    stem = PurePosixPath(path).stem.lower()
    return stem in NOT_DOCUMENT_STEMS or path.lower() in NOT_DOCUMENT_FILES

"""Which file of a folder holds which part of a data set.

The reference names the files of documents, queries and labels. Those that it does not
name are found by the usual names of tables: `corpus.csv`, `questions.xlsx`,
`qrels.tsv` (queries and labels in `table_folder`, with what is here). Documents may
also be text files in a folder or a zip archive.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path, PurePosixPath

from harness.dataset.columns import Columns
from harness.dataset.file import File, Files, is_zip, without_parent_steps
from harness.dataset.judgment import JUDGMENTS_FILE
from harness.dataset.listing import file_named, list_files, listing_name
from harness.dataset.query_tables import DOCUMENT_TABLE_STEMS
from harness.dataset.read_problems import ReadProblems
from harness.dataset.readers import text_documents
from harness.dataset.reference import DatasetReference
from harness.dataset.rows import TABLE_SUFFIXES
from harness.dataset.settings import LEAVE_PAGES_OUT
from harness.dataset.source import LocatedDocument
from harness.dataset.table_source import RowSource, TableSource, rows_of_files
from retrievers.errors import InputError, Problem

QUERY_TABLE_STEMS = ("queries", "questions", "topics")
LABEL_TABLE_STEMS = ("labels", "qrels", "judgments", "judgements", "relevance")
DOCUMENT_COLUMNS = ("id", "text", "")
"""The columns of a table of documents without a header: see `File.header`."""

DocumentReader = Callable[[ReadProblems], Iterator[LocatedDocument]]


@dataclass(frozen=True, slots=True)
class DatasetFolder:
    """A folder, and the files that may be parts of a data set."""

    path: Path
    files: Files
    """Files by their path in the folder, or by the name that the reference uses."""

    def file_named(self, name: str) -> File:
        """Return the file with this name; `book.xlsx#Sheet1` is a sheet of a workbook.

        Raises:
            InputError: no file has this name.
        """
        return file_named(self.files, name, self.path)


def find_folder(reference: DatasetReference, listed_files: Files) -> DatasetFolder:
    """Return the folder with the parts of a data set, and the files that may be parts.

    Args:
        reference: names the folder, or a file in it, and the files of some parts.
        listed_files: files that may be parts although the reference does not name them.
    """
    # A collection of a hub is in no folder: names are seen from the working directory.
    folder = Path() if reference.scheme else reference.folder
    if folder.is_file():
        folder = folder.parent
    files: dict[str, File] = {}
    for part_name in (*reference.queries, reference.documents, reference.labels):
        if not part_name:
            continue
        workbook_name, _, _sheet = part_name.rpartition("#")
        # A file may have a # in its own name.
        for file_name in filter(None, (part_name, workbook_name)):
            path = without_parent_steps(folder / file_name)
            if path.is_file():
                files[listing_name(file_name)] = File(path)
                break
    # Listed files replace those above: only a listing sets `File.same_named_file`.
    return DatasetFolder(folder, {**files, **listed_files})


def top_files(files: Files) -> dict[str, File]:
    """Return the files that are in no subfolder."""
    return {path: file for path, file in files.items() if "/" not in path}


def is_table(path: str, file: File, extra_suffixes: tuple[str, ...] = ()) -> bool:
    """Whether a file is a table, by its suffix; the file of judgments is not one."""
    return path != JUDGMENTS_FILE and file.suffix in (*TABLE_SUFFIXES, *extra_suffixes)


def find_table(
    files: Files, table_names: Sequence[str], extra_suffixes: tuple[str, ...] = ()
) -> File | None:
    """Return the table with the earliest of these names; None if there is none.

    Args:
        files: the files to choose from.
        table_names: names in lower case, without a suffix.
        extra_suffixes: suffixes that are accepted in addition to those of tables.

    Raises:
        InputError: two tables have that name.
    """
    tables: dict[str, list[File]] = defaultdict(list)
    for path, file in files.items():
        if is_table(path, file, extra_suffixes):
            # A sheet of a workbook counts by its own name.
            table_name = file.table or PurePosixPath(path).stem
            tables[table_name.lower()].append(file)
    for table_name in table_names:
        candidates = tables[table_name]
        if len(candidates) > 1:
            raise InputError(_ambiguous_table(candidates))
        if candidates:
            return candidates[0]
    return None


def _ambiguous_table(candidates: Sequence[File]) -> Problem:
    """Return the problem that two tables have the same name."""
    other = candidates[1].name
    return Problem(
        str(candidates[0].path),
        f"{other} is there as well: which of the two is meant is unknown",
        "keep one, or name it under dataset, or by an option",
    )


def table_rows(
    reference: DatasetReference, files: Sequence[File], column_names: tuple[str, ...]
) -> RowSource:
    """Return the rows of tables, one table after the other.

    Args:
        reference: says whether the tables have a header.
        files: the tables.
        column_names: names of the first columns, for tables without a header. If the
            reference declares columns, it does so by their numbers.
    """
    if reference.header is not False:
        return rows_of_files(*files)
    header = ("",) if reference.columns else column_names  # "": columns by number
    return rows_of_files(*(replace(file, header=header) for file in files))


def open_documents(
    reference: DatasetReference,
    folder: DatasetFolder,
    used_paths: frozenset[Path] = frozenset(),
) -> DocumentReader:
    """Return the reader of the documents, which are a table or text files.

    Args:
        reference: may name the table, or the folder of text files.
        folder: where to look for the documents.
        used_paths: files that hold queries or labels, and are not documents.

    Raises:
        InputError: there are no documents, or not those that are named; two tables may
            be theirs; or those of a table are to be pages.
    """
    table = _find_document_table(reference, folder)
    if table is not None:
        _refuse_pages_of_table(reference)
        return TableSource(
            document_rows=table_rows(reference, [table], DOCUMENT_COLUMNS),
            query_rows=rows_of_files(),
            label_rows=None,
            columns=Columns(reference.columns, header=reference.header is True),
        ).documents
    text_folder = _find_text_folder(reference, folder)
    text_files = _list_text_folder(text_folder, reference, folder)
    if not text_documents.holds_documents(text_files):
        suffixes = ".tsv, .jsonl, .parquet or .xlsx"
        remedy = f"name the file: documents = …; or call it documents.csv, {suffixes}"
        raise InputError(Problem(str(text_folder), "holds no documents", remedy))
    return partial(
        text_documents.read_documents,
        text_folder,
        used_paths,
        gitignore=reference.gitignore,
        by_page=reference.pages,
    )


def _refuse_pages_of_table(reference: DatasetReference) -> None:
    """Raise InputError if the documents of a table are to be pages."""
    if reference.pages:
        problem = "the documents are a table, and only PDF has pages"
        raise InputError(Problem("dataset.pages", problem, LEAVE_PAGES_OUT))


def _find_document_table(
    reference: DatasetReference, folder: DatasetFolder
) -> File | None:
    """Return the table of documents; None if the documents are text files."""
    if not reference.documents:
        return find_table(top_files(folder.files), DOCUMENT_TABLE_STEMS)
    path = without_parent_steps(folder.path / reference.documents)
    if path.is_dir():
        return None
    if is_zip(path) and text_documents.holds_documents(list_files(path)):
        return None
    return folder.file_named(reference.documents)


def _find_text_folder(reference: DatasetReference, folder: DatasetFolder) -> Path:
    """Return the folder, or the archive, with the text files."""
    if reference.documents:
        return without_parent_steps(folder.path / reference.documents)
    # Of an archive, `folder.path` is the folder above it.
    return folder.path if reference.scheme else reference.folder


def _list_text_folder(
    text_folder: Path, reference: DatasetReference, folder: DatasetFolder
) -> Files:
    """Return the files in the folder, or the archive, with the text files."""
    if not reference.documents:
        return folder.files
    return list_files(text_folder, gitignore=reference.gitignore)

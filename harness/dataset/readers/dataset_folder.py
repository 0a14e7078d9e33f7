"""The parts of a data set in one folder."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path, PurePosixPath

from harness.dataset.columns import Columns
from harness.dataset.file import File, Files, is_zip, without_parent_steps
from harness.dataset.judgment import JUDGMENTS_FILE
from harness.dataset.listing import file_named, list_files
from harness.dataset.read_problems import ReadProblems
from harness.dataset.readers import markdown_folder
from harness.dataset.reference import DatasetReference
from harness.dataset.rows import TABLE_SUFFIXES
from harness.dataset.source import SourceLocation
from harness.dataset.table_source import RowSource, TableSource, rows_of_files
from retrievers.errors import InputError, Problem
from retrievers.types import Document

DOCUMENT_TABLE_STEMS = ("documents", "corpus", "docs", "passages")
QUERY_TABLE_STEMS = ("queries", "questions", "topics")
LABEL_TABLE_STEMS = ("labels", "qrels", "judgments", "judgements", "relevance")


def search_folder(
    reference: DatasetReference, files: Files
) -> tuple[Path, dict[str, File]]:
    """The folder in which the parts of a data set are looked for, and the files there that may be meant.

    Args:
        reference: where it is.
        files: those that may be meant though the reference does not name them.
    """
    folder = Path() if reference.scheme else reference.folder
    folder = folder.parent if folder.is_file() else folder
    names = [
        name
        for name in (*reference.queries, reference.documents, reference.labels)
        if name
    ]
    paths = {
        name: without_parent_steps(folder / name)
        for name in (name.rpartition("#")[0] or name for name in names)
    }
    return folder, {
        **{name: File(path) for name, path in paths.items() if path.is_file()},
        **files,
    }


def open_documents(
    reference: DatasetReference,
    folder: Path,
    files: Files,
    taken: frozenset[Path] = frozenset(),
) -> Callable[[ReadProblems], Iterator[tuple[SourceLocation, Document]]]:
    """What reads the documents of a reference: a table, else files of text.

    Args:
        reference: may name them.
        folder: where they are looked for.
        files: those that may be meant.
        taken: files that are not documents.

    Raises:
        InputError: none are there.
    """
    top = {name: file for name, file in files.items() if "/" not in name}
    place = reference.folder if not reference.scheme else folder
    table = None if reference.documents else find_table(top, DOCUMENT_TABLE_STEMS)
    if reference.documents:
        place = without_parent_steps(folder / reference.documents)
        if not (
            place.is_dir()
            or (is_zip(place) and markdown_folder.holds_documents(list_files(place)))
        ):
            table = file_named(files, reference.documents, folder)
    if table is not None:
        columns = Columns(reference.columns, header=reference.header is True)
        return TableSource(
            rows_under_names(reference, ("id", "text", ""), table),
            rows_of_files(),
            None,
            columns,
        ).documents
    below = (
        files
        if place == reference.path
        else list_files(place)
        if place.is_dir() or reference.documents
        else {}
    )
    if not markdown_folder.holds_documents(below):
        remedy = "name the file: documents = …; or call it documents.csv, .tsv, .jsonl, .parquet or .xlsx"
        raise InputError(Problem(str(place), "holds no documents", remedy))
    return partial(markdown_folder.read_documents, place, taken)


def rows_under_names(
    reference: DatasetReference, names: tuple[str, ...], *files: File
) -> RowSource:
    """The rows of files; without a header their first columns have these names, or numbers to declare."""
    header = (
        None if reference.header is not False else ("",) if reference.columns else names
    )
    return rows_of_files(*(replace(file, header=header) for file in files))


def find_table(
    files: Files, stems: Iterable[str], also: tuple[str, ...] = ()
) -> File | None:
    """The file of a listing whose name without its suffix is one of these, and which tables are read from.

    `also` are further suffixes that will do.

    Raises:
        InputError: two files have the first of these names that is there.
    """
    for stem in stems:
        found = [
            file
            for name, file in files.items()
            if (file.table or PurePosixPath(name).stem).lower() == stem
            and file.suffix in (*TABLE_SUFFIXES, *also)
            and name != JUDGMENTS_FILE
        ]
        if len(found) > 1:
            what = f"{found[1].name} is there as well: which of the two is meant is unknown"
            raise InputError(
                Problem(
                    str(found[0].path),
                    what,
                    "keep one, or name it under dataset, or by an option",
                )
            )
        if found:
            return found[0]
    return None

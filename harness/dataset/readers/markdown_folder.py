"""A folder of documents.

Every `*.md`, `*.markdown`, `*.rst` and `*.txt` below the folder is a document, but for README and LICENSE files at its
top; so is what the extra `documents` converts (`harness.dataset.corpus`). `queries.json` is a list of objects with
`query` and `relevant_documents`.

The head of a file between two lines `---`, as wikis and site generators write it, is YAML: an object of
names is read, each value as the text that it is. Any other head leaves the file as it is: a line of hyphens
is a rule in Markdown, too.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

from harness.dataset.columns import Columns
from harness.dataset.convert import (
    CONVERTED_SUFFIXES,
    ConversionError,
    can_convert,
    convert_file,
)
from harness.dataset.file import File, Files
from harness.dataset.judgment import JUDGMENTS_FILE
from harness.dataset.labels import label_source
from harness.dataset.listing import list_files
from harness.dataset.merge_lists import merge_labellers
from harness.dataset.read_problems import ReadProblems
from harness.dataset.readers.front_matter import parse_text_document
from harness.dataset.reference import DatasetReference
from harness.dataset.rows import read_file_rows
from harness.dataset.source import (
    FunctionSource,
    PlacedLabels,
    SourceLocation,
    TableRow,
)
from harness.dataset.table_source import TableSource, rows_of_files
from harness.dataset.usual_names import FIELDS_KIND
from harness.dataset.written_values import decode_utf8
from retrievers.errors import InputError, Problem, collect_errors
from retrievers.ids import to_nfc
from retrievers.types import Document

TEXT_SUFFIXES = {
    ".md": "Markdown",
    ".markdown": "Markdown",
    ".rst": "reStructuredText",
    ".txt": "text",
}
"""Of text files, and what these are called."""
NOT_DOCUMENT_STEMS = {"readme", "license", "licence", "changelog"}
NOT_DOCUMENT_FILES = {"queries.txt", "questions.txt", JUDGMENTS_FILE}
"""Questions without labels, one a line, and what was judged: at the top of the folder."""


def matches(_: DatasetReference, files: Files) -> bool:
    """Whether a folder or an archive holds a document of this form."""
    return holds_documents(files)


def holds_documents(files: Files) -> bool:
    """Whether one of the files is read as a document."""
    return any(_readable(name, file, converts=True) for name, file in files.items())


def list_documents(files: Files) -> tuple[list[str], list[str]]:
    """The ids of the documents among files, as far as their names say it; and the files that are not read."""
    converts = can_convert()
    readable = {
        name for name, file in files.items() if _readable(name, file, converts=converts)
    }
    others = [
        name
        for name, file in files.items()
        if name not in readable and _unread(name, file)
    ]
    return [_named(name, files[name]) for name in files if name in readable], others


def read(reference: DatasetReference, files: Files) -> FunctionSource:
    """Open a folder of documents; the query files are in it, `queries.json` if none is named."""
    if reference.split is not None:
        raise InputError(
            Problem(
                "dataset.split",
                "a folder of Markdown has no splits",
                "name a file: queries = …",
            )
        )
    names = reference.queries or ("queries.json",)
    query_files = [files.get(name, File(reference.folder / name)) for name in names]
    asked = TableSource(
        rows_of_files(),
        partial(_questions, query_files),
        None,
        Columns(reference.columns),
    )
    labels = partial(_labels, query_files, Columns(reference.columns))
    return FunctionSource(
        partial(read_documents, reference.folder, frozenset()), asked.queries, labels
    )


def read_documents(
    folder: Path, tables: Collection[Path], problems: ReadProblems
) -> Iterator[tuple[SourceLocation, Document]]:
    """One document a file, in the order of their paths; what cannot be converted is counted.

    Args:
        folder: it, or an archive.
        tables: files in it that another reader takes.
        problems: where complaints go.
    """
    converts = can_convert()
    for name, file in list_files(folder, problems).items():
        if file.path in tables:
            continue
        if not _readable(name, file, converts=converts):
            if _unread(name, file):
                problems.note("unread-file", name)
            continue
        try:
            with collect_errors(problems):
                if file.suffix in CONVERTED_SUFFIXES:
                    document = Document(_named(name, file), *convert_file(file))
                else:
                    document = parse_text_document(
                        decode_utf8(file.read(), SourceLocation(file.path)),
                        _named(name, file),
                    )
                problems.table_sizes[str(folder)][
                    (CONVERTED_SUFFIXES | TEXT_SUFFIXES)[file.suffix]
                ] += 1
                yield SourceLocation(file.path), document
        except ConversionError as failure:
            problems.note("unconverted-file", f"{name}: {failure}")


def _questions(
    files: Sequence[File], problems: ReadProblems
) -> Iterator[tuple[SourceLocation, TableRow]]:
    """The rows of the query files; a query that another file has with another labeller is labelled twice.

    Those without an id are q0, q1, … by their place in the file.
    """
    labellers: dict[tuple[object, object], set[str]] = {}
    for file in files:
        names, place = dict[str, None](), SourceLocation(file.path)
        for number, (place, written) in enumerate(read_file_rows(file, problems)):
            names |= dict.fromkeys(written)
            row = {"id": f"q{number}", **written}
            by, others = (
                str(row.pop("labelled_by", "")),
                labellers.setdefault((row["id"], row.get("query")), set()),
            )
            again = bool(by and others) and others.isdisjoint(["", by])
            others.add(by)
            if not again:
                yield place, _with_metadata(row, place, problems)
        if taken := problems.columns_used.get(place.file):  # as the file has it
            usual = dict.fromkeys(("tags", "fields"), FIELDS_KIND)
            names.pop("labelled_by", None)
            problems.columns_used[place.file] = {
                name: usual.get(name, "") or taken.get(name, "") for name in names
            }


def _labels(
    files: Sequence[File], columns: Columns, problems: ReadProblems
) -> Iterator[PlacedLabels]:
    """What `relevant_documents` says, file by file; several labellers of one query are merged."""

    def of_file(file: File) -> Iterator[PlacedLabels]:
        rows = [
            (place, {"id": f"q{n}", **row})
            for n, (place, row) in enumerate(read_file_rows(file, ReadProblems()))
        ]
        by = {place: str(row.pop("labelled_by", "")) for place, row in rows}
        source = TableSource(rows_of_files(), lambda _: iter(rows), None, columns)
        for place, id_, labels in source.labels(problems):
            yield (
                place,
                id_,
                replace(labels, labelled_by=by[place], source=label_source(by[place])),
            )

    yield from merge_labellers(one for file in files for one in of_file(file))


def _with_metadata(
    row: dict[str, Any], place: SourceLocation, problems: ReadProblems
) -> TableRow:
    """A row with `fields` and `tags` as fields of the query."""
    fields, tags = row.pop("fields", {}), row.pop("tags", [])
    tags = [tags] if isinstance(tags, str) else tags
    if not isinstance(fields, dict) or not isinstance(tags, list):
        problems.add(
            place,
            "'tags' or 'fields' cannot be read",
            "a list of words; an object of strings",
        )
        return row
    metadata = {key: str(value) for key, value in fields.items()} | (
        {"tags": ", ".join(map(str, tags))} if tags else {}
    )
    return {**row, "metadata": metadata} if metadata else row


def _readable(name: str, file: File, *, converts: bool) -> bool:
    if _paper(name) or file.table:
        return False
    return file.suffix in TEXT_SUFFIXES or (
        converts and file.suffix in CONVERTED_SUFFIXES
    )


def _unread(name: str, file: File) -> bool:
    """Whether a file that is no document is worth a word: papers are not, and JSON at the top may hold queries."""
    return not _paper(name) and ("/" in name or file.suffix != ".json")


def _named(name: str, file: File) -> str:
    """A document's id: its path, without the suffix where that says no more than that it is text."""
    return to_nfc(
        name
        if file.suffix in CONVERTED_SUFFIXES
        else PurePosixPath(name).with_suffix("").as_posix()
    )


def _paper(name: str) -> bool:
    top = "/" not in name
    return top and (
        PurePosixPath(name).stem.lower() in NOT_DOCUMENT_STEMS
        or name.lower() in NOT_DOCUMENT_FILES
    )

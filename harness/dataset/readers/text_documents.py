"""Files of text as documents.

Every `*.md`, `*.markdown`, `*.rst` and `*.txt` below a folder is a document, except
files at its top that are about it, such as a README; so are the files that the extra
`documents` converts (`harness.dataset.convert`). `front_matter` reads the head of a
text.
"""

from collections.abc import Collection, Iterator
from pathlib import Path, PurePosixPath

from harness.dataset.conversion_process import CONVERSIONS
from harness.dataset.convert import (
    CONVERTED_SUFFIXES,
    CONVERTER_REMEDY,
    ConversionError,
    can_convert,
    convert_file,
)
from harness.dataset.file import File, Files
from harness.dataset.judgment import JUDGMENTS_FILE
from harness.dataset.labels import FIELD_SEPARATOR
from harness.dataset.listing import list_files
from harness.dataset.read_problems import ReadProblems
from harness.dataset.readers.front_matter import parse_text_document
from harness.dataset.settings import LEAVE_PAGES_OUT
from harness.dataset.shared_titles import (
    FormatTitle,
    choose_title,
    shared_titles,
)
from harness.dataset.source import (
    LocatedDocument,
    SourceLocation,
)
from harness.dataset.written_values import decode_utf8
from retrievers.errors import collect_errors
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
        remedy: Remedy | str = LEAVE_PAGES_OUT
        if not can_convert():
            problem = "nothing here reads PDF"
            remedy = CONVERTER_REMEDY
        problems.add("dataset.pages", problem, remedy)
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

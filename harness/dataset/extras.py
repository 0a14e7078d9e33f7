"""Extras of this project that files of a data set need."""

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from harness.dataset.columnar import COLUMNAR_SUFFIXES, WORKBOOK_SUFFIXES
from harness.dataset.convert import CONVERTED_SUFFIXES, can_convert
from harness.dataset.listing import list_files
from harness.dataset.reference import DatasetReference
from harness.dataset.rows import TABLE_SUFFIXES

FORMAT_PACKAGES = {
    **dict.fromkeys(COLUMNAR_SUFFIXES, "pyarrow"),
    **dict.fromkeys(WORKBOOK_SUFFIXES, "python_calamine"),
    ".zst": "zstandard",
}
"""Suffix of a table, or of what is compressed -> the package that reads it."""
SCHEME_PACKAGES = {"hf:": "datasets", "irds:": "ir_datasets"}


def missing_dataset_extras(reference: DatasetReference) -> set[str]:
    """Return the extras that the files of a data set need, and that are missing."""
    extras: set[str] = set()
    package = SCHEME_PACKAGES.get(reference.scheme)
    if package is not None and find_spec(package) is None:
        extras.add("formats")
    if reference.scheme:
        return extras
    for path in _files_of(reference):
        suffix = path.suffix.lower()
        package = FORMAT_PACKAGES.get(suffix)
        if package is not None and find_spec(package) is None:
            extras.add("formats")
        is_document = suffix in CONVERTED_SUFFIXES and suffix not in TABLE_SUFFIXES
        if is_document and not can_convert():
            extras.add("documents")
    return extras


def _files_of(reference: DatasetReference) -> Iterator[Path]:
    """Yield the files of a data set, also those beside it that it names."""
    folder = reference.folder
    if folder.is_file():
        yield folder
        folder = folder.parent
    else:
        yield from (file.path for file in list_files(folder).values())
    for name in (*reference.queries, reference.documents, reference.labels):
        part = folder / (name or "").partition("#")[0]
        if name and part.is_file():
            yield part
        elif name and part.is_dir():
            yield from (file.path for file in list_files(part).values())

"""The formats, and which of them opens a reference: one file and one line each."""

import shlex
from importlib import import_module
from pathlib import Path

from harness.dataset.archives import AGAIN
from harness.dataset.dataset_model import DatasetReference
from harness.dataset.files import File, Files, Reader, is_results, listing_of
from harness.dataset.rows import SUFFIXES, read_rows
from harness.dataset.source import Findings, Source
from retrievers.errors import InputError, Problem, did_you_mean, nearest
from retrievers.user_objects import OBJECT, NamedObject

FORMATS = {
    "hub": "published:HUB",
    "ir_datasets": "published:CATALOGUE",
    "beir": "published:BEIR",
    "huggingface": "published:HUGGINGFACE",
    "autorag": "tool_exports:AUTORAG",
    "trec": "trec:COLLECTION",
    "ragas": "tool_exports:RAGAS",
    "langsmith": "tool_exports:LANGSMITH",
    "phoenix": "tool_exports:PHOENIX",
    "langfuse": "tool_exports:LANGFUSE",
    "llama-index-rag": "tool_exports:LLAMA_INDEX_RAG",
    "embench": "tool_exports:EMBENCH",
    "llama-index": "tool_exports:LLAMA_INDEX",
    "squad": "quoted_passages:SQUAD",
    "hotpotqa": "quoted_passages:HOTPOT",
    "quoted": "quoted_passages:ROWS",
    "msmarco": "published:MSMARCO",
    "tables": "table_folder",
    "markdown": "markdown_folder",
}
"""Format -> its file in this room, and its name there where a file has several; tried in this order where no format is
named."""


def reader_of(name: str) -> Reader:
    """Import the reader of a format."""
    file, _, attribute = FORMATS[name].partition(":")
    module = import_module(f"harness.dataset.{file}")
    found = getattr(module, attribute) if attribute else module
    return Reader(found.matches, found.read)


def open_source(reference: DatasetReference) -> tuple[str, Source]:
    """Find the reader of a reference, and open it.

    Raises:
        InputError: there is nothing there, the format is unknown, or no reader takes what is there.
    """
    if isinstance(reference.path, NamedObject):
        return "memory", reference.path.value(reference.columns)
    if reference.scheme == OBJECT:
        what = "were in the memory of another process"
        raise InputError(Problem(reference.name.removeprefix(OBJECT), what, "give them again in Python"))
    if not reference.scheme and not (path := reference.folder).exists():
        other = "a folder, a zip archive or a file; hf:… or irds:…"
        remedy = suggestion(path) or other if path.parent.is_dir() else f"nor is there a folder {path.parent}"
        raise InputError(Problem(reference.name, "no such folder", remedy))
    if reference.format is not None and reference.format not in FORMATS:
        raise InputError(Problem("dataset.format", f"unknown format {reference.format!r}",
                                 did_you_mean(reference.format, FORMATS)))  # fmt: skip
    files = listing_of(reference)
    name = reference.format or format_of(reference, files)
    if name is None:
        raise InputError(Problem(reference.name, *_not_known(reference, files)))
    return name, reader_of(name).read(reference, files)


def format_of(reference: DatasetReference, files: Files) -> str | None:
    """The format of what is there, None where no reader takes it.

    Args:
        reference: its folder.
        files: what is there, listed once for all readers.

    Raises:
        InputError: a run wrote it. Its files look like tables, but they hold the beginnings of the texts alone.
    """
    if not reference.scheme and is_results(reference.folder):
        place = shlex.quote(str(reference.folder))
        remedy = f"harness report {place} shows what it says; harness check takes its experiment file or its data set"
        raise InputError(Problem(reference.name, "is a results folder, no data set", remedy))
    return next((name for name in FORMATS if reader_of(name).matches(reference, files)), None)


def suggestion(path: Path) -> str:
    """What may have been meant by a path that does not exist: the nearest name beside it; "" where none is near."""
    return nearest(path.name, (file.name for file in path.parent.iterdir())) if path.parent.is_dir() else ""


def _not_known(reference: DatasetReference, files: Files) -> tuple[str, str]:
    path = reference.folder
    if tables := [name for name, file in files.items() if file.table]:
        what = f"holds {', '.join(map(repr, tables[:8]))}, and none of them is called queries"
        return what, f"say which hold what: --queries {shlex.quote(tables[0])} --documents …"
    if not path.is_file() or files:
        suffixes = sorted({file.suffix or file.name for file in files.values()})
        there = f": only {', '.join(suffixes[:8])}" if suffixes else ""
        return f"holds no documents{there}", "corpus.jsonl, tables of documents and queries, or files *.md or *.txt"
    if path.suffix.lower() == ".zip" or not path.stat().st_size:
        return "is not a zip archive that can be read" if path.stat().st_size else "is empty", AGAIN
    if File(path).suffix not in SUFFIXES:
        return "is a file that no reader takes", f'say what it is: format = "…", one of {", ".join(FORMATS)}'
    seen = Findings()
    next(read_rows(File(path), seen), None)
    if seen:
        raise InputError(seen.problems)
    return "is a table that names no documents", 'say where they are: documents = "…" under dataset, or --documents'

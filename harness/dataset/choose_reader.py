"""Which format a reference has."""

import shlex
from importlib import import_module
from pathlib import Path

from harness.dataset.file import FETCH_AGAIN, File, Files
from harness.dataset.listing import is_run_folder, list_reference
from harness.dataset.read_problems import ReadProblems
from harness.dataset.reference import DatasetReference
from harness.dataset.rows import TABLE_SUFFIXES, read_file_rows
from harness.dataset.source import FormatReader, Source
from retrievers.errors import InputError, Problem, did_you_mean, nearest_word
from retrievers.options.user_code import OBJECT_PREFIX, NamedObject

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
    "squad": "paragraphs:SQUAD",
    "hotpotqa": "paragraphs:HOTPOT",
    "quoted": "paragraphs:CONTEXT_TABLE",
    "msmarco": "three_tables:MSMARCO",
    "tables": "table_folder",
    "markdown": "markdown_folder",
}
"""Format -> its file in this room, and its name there where a file has several; tried in this order where no format is
named."""


def import_reader(name: str) -> FormatReader:
    """Import the reader of a format."""
    file, _, attribute = READERS_BY_FORMAT[name].partition(":")
    module = import_module(f"harness.dataset.readers.{file}")
    found = getattr(module, attribute) if attribute else module
    return FormatReader(found.matches, found.read)


def open_source(reference: DatasetReference) -> tuple[str, Source]:
    """Find the reader of a reference, and open it.

    Raises:
        InputError: there is nothing there, the format is unknown, or no reader takes what is there.
    """
    if isinstance(reference.path, NamedObject):
        return "memory", reference.path.value(reference.columns)
    if reference.scheme == OBJECT_PREFIX:
        what = "were in the memory of another process"
        raise InputError(
            Problem(
                reference.name.removeprefix(OBJECT_PREFIX),
                what,
                "give them again in Python",
            )
        )
    if not reference.scheme and not (path := reference.folder).exists():
        other = "a folder, a zip archive or a file; hf:… or irds:…"
        remedy = (
            suggest_path(path) or other
            if path.parent.is_dir()
            else f"nor is there a folder {path.parent}"
        )
        raise InputError(Problem(reference.name, "no such folder", remedy))
    if reference.format is not None and reference.format not in READERS_BY_FORMAT:
        raise InputError(
            Problem(
                "dataset.format",
                f"unknown format {reference.format!r}",
                did_you_mean(reference.format, READERS_BY_FORMAT),
            )
        )
    files = list_reference(reference)
    name = reference.format or detect_format(reference, files)
    if name is None:
        raise InputError(Problem(reference.name, *_not_known(reference, files)))
    return name, import_reader(name).read(reference, files)


def detect_format(reference: DatasetReference, files: Files) -> str | None:
    """The format of what is there, None where no reader takes it.

    Args:
        reference: its folder.
        files: what is there, listed once for all readers.

    Raises:
        InputError: a run wrote it. Its files look like tables, but they hold the beginnings of the texts alone.
    """
    if not reference.scheme and is_run_folder(reference.folder):
        place = shlex.quote(str(reference.folder))
        remedy = f"harness report {place} shows what it says; harness check takes its experiment file or its data set"
        raise InputError(
            Problem(reference.name, "is a results folder, no data set", remedy)
        )
    return next(
        (
            name
            for name in READERS_BY_FORMAT
            if import_reader(name).matches(reference, files)
        ),
        None,
    )


def suggest_path(path: Path) -> str:
    """What may have been meant by a path that does not exist: the nearest name beside it; "" where none is near."""
    return (
        nearest_word(path.name, (file.name for file in path.parent.iterdir()))
        if path.parent.is_dir()
        else ""
    )


def _not_known(reference: DatasetReference, files: Files) -> tuple[str, str]:
    path = reference.folder
    if tables := [name for name, file in files.items() if file.table]:
        what = f"holds {', '.join(map(repr, tables[:8]))}, and none of them is called queries"
        return (
            what,
            f"say which hold what: --queries {shlex.quote(tables[0])} --documents …",
        )
    if not path.is_file() or files:
        suffixes = sorted({file.suffix or file.name for file in files.values()})
        there = f": only {', '.join(suffixes[:8])}" if suffixes else ""
        return (
            f"holds no documents{there}",
            "corpus.jsonl, tables of documents and queries, or files *.md or *.txt",
        )
    if path.suffix.lower() == ".zip" or not path.stat().st_size:
        return (
            "is not a zip archive that can be read"
            if path.stat().st_size
            else "is empty",
            FETCH_AGAIN,
        )
    if File(path).suffix not in TABLE_SUFFIXES:
        return (
            "is a file that no reader takes",
            f'say what it is: format = "…", one of {", ".join(READERS_BY_FORMAT)}',
        )
    seen = ReadProblems()
    next(read_file_rows(File(path), seen), None)
    if seen:
        raise InputError(seen.problems)
    return (
        "is a table that names no documents",
        'say where they are: documents = "…" under dataset, or --documents',
    )

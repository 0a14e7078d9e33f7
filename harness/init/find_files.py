"""The files of a new data set."""

import json
import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from harness.dataset import DatasetReference, detect_format, list_reference
from harness.dataset.file import File
from harness.dataset.readers.markdown_folder import list_documents
from harness.dataset.text_rows import read_json
from harness.english import count_of
from harness.wording.reading import reading_sentence
from retrievers.errors import InputError, Problem


def find_files(given: DatasetReference) -> tuple[DatasetReference, list[str]]:
    """The data set with its files of queries, and those ignored, found; InputError where something is missing."""
    said = any(
        (given.documents, given.queries, given.labels, given.format, given.split)
    )
    if said or given.scheme or not given.folder.is_dir():
        return given, []
    folder, files = given.folder, list_reference(given)
    if detect_format(given, files) != "markdown":
        return given, []
    documents, others = list_documents(files)
    unread = reading_sentence(len(documents), others)
    if not documents:
        raise InputError(Problem(str(folder), "holds no documents", unread))
    labelled, repeated = _query_files(folder)
    if not labelled and (folder / "queries.json").is_file():
        return given, []  # questions without labels: a beginning
    if not labelled:
        raise InputError(_missing_labels(folder, documents, unread))
    queries = () if labelled == ["queries.json"] else tuple(labelled)
    return replace(given, queries=queries), repeated


def _query_files(folder: Path) -> tuple[list[str], list[str]]:
    """The files of labelled queries, queries.json first, then by size; and those that repeat the ids of others."""
    ids = {file.name: _labelled_ids(file) for file in sorted(folder.glob("*.json"))}
    known: set[str] = set()
    taken, repeated = list[str](), list[str]()
    for name in sorted(ids, key=lambda name: (name != "queries.json", -len(ids[name]))):
        if ids[name]:
            (repeated if known & ids[name] else taken).append(name)
            known |= ids[name]
    return taken, repeated


def _labelled_ids(file: Path) -> set[str]:
    """The ids of the queries in a file, as the reader gives them; empty where it holds no labels."""
    try:
        rows = read_json(File(file))
    except InputError:
        # What is wrong with it is for the reader to say.
        return {"q0"} if file.name == "queries.json" else set()
    if not isinstance(rows, list) or not any(
        isinstance(row, dict) and "relevant_documents" in row for row in rows
    ):
        return set()
    return {
        str(row.get("id", f"q{number}"))
        for number, row in enumerate(rows)
        if isinstance(row, dict)
    }


def _missing_labels(folder: Path, documents: Sequence[str], unread: str) -> str:
    asked = {"query": "what someone would ask", "relevant_documents": documents[:2]}
    example = json.dumps([asked], ensure_ascii=False)
    return (
        f"{folder}: {count_of(len(documents), 'document')}, but no query\n"
        f"{unread}{unread and chr(10)}"
        f"write {folder / 'queries.json'}: for each query, the documents that answer it, best first:\n"
        f"  {example}\n"
        f"or {folder / 'queries.txt'} with one query per line, to be judged later (docs/labels.md);\n"
        f"a search log or another table is named queries.csv, .tsv, .jsonl or .parquet\n"
        f"20 to 50 real queries are a good start; then: harness init {shlex.quote(str(folder))}"
    )

"""Spans as a data set.

The queries, with labels if spans have any, and the documents become tables of a new
folder; what was retrieved becomes a run, to which other retrievers are compared.
"""

import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from harness.dataset import DatasetReference
from harness.dataset.quoted_texts import documents_with_text
from harness.dataset.read_problems import ReadProblems
from harness.dataset.readers.dataset_folder import find_folder, open_documents
from harness.init.spans import SPAN_QUERY_PATHS, RetrievalSpans, collect_spans
from retrievers.errors import InputError, Problem
from retrievers.files.text_files import explain_write_errors, open_text_file
from retrievers.files.trec_files import write_trec_run
from retrievers.ids import normalise_text
from retrievers.ranking import ranked
from retrievers.types import Ranking

MAX_SHOWN_TEXT_LENGTH = 60
"""Characters of a text that a message shows."""


class SpansFolder(NamedTuple):
    """Spans, written as a data set."""

    reference: DatasetReference
    run: Path | None
    """The run of the system that served the spans; None if nothing was retrieved."""
    has_conversations: bool
    """Whether a trace has several queries."""


def spans_to_folder(reference: DatasetReference, folder: Path) -> SpansFolder:
    """Write queries, documents, labels and the run of spans into a folder.

    Args:
        reference: a file of spans; it names the documents if the spans have no texts.
        folder: a new one.

    Raises:
        InputError: nothing was retrieved, a document has neither id nor text, or the
            folder exists.
    """
    problems = ReadProblems()
    spans = collect_spans(reference.folder, problems)
    if not spans.queries and not problems:
        remedy = f"one of {', '.join(SPAN_QUERY_PATHS)}"
        problems.add(reference.name, "no retrieval span has a query", remedy)
    if reference.documents is None and not problems:
        _report_missing_texts(reference, spans, problems)
    if problems:
        raise InputError(problems.problems)
    ids = _text_document_ids(spans, reference)
    remedy = "remove it, or name another experiment with --output"
    with explain_write_errors(folder, remedy):
        folder.mkdir(parents=True)
    _write_lines(folder / "queries.jsonl", _query_lines(spans, ids))
    documents = None
    if reference.documents is None:
        _write_lines(folder / "documents.jsonl", _document_lines(spans, ids))
    else:
        document_path = reference.folder.parent / reference.documents
        documents = Path(os.path.relpath(document_path, folder)).as_posix()
    run = None
    if spans.hits:
        run = folder / "production.trec"
        _write_run(run, spans, ids)
    traces = Counter(query.trace for query in spans.queries.values() if query.trace)
    return SpansFolder(
        replace(reference, path=folder, documents=documents, format=None),
        run,
        has_conversations=max(traces.values(), default=0) > 1,
    )


def _report_missing_texts(
    reference: DatasetReference, spans: RetrievalSpans, problems: ReadProblems
) -> None:
    """Add a problem if a document of the spans has no text."""
    documents: set[str] = set()
    for hits in spans.hits.values():
        documents.update(hits)
    for grades in spans.grades.values():
        documents.update(grades)
    without_text = documents - spans.passages.keys()
    if not without_text:
        return
    count = f"{len(without_text):,} of {len(documents):,} documents"
    problem = f"{count} have no text, such as {min(without_text)!r}"
    remedy = (
        "name the documents: --documents; "
        "or record retrieval.documents.N.document.content"
    )
    problems.add(reference.name, problem, remedy)


def _query_lines(spans: RetrievalSpans, ids: Mapping[str, str]) -> Iterator[str]:
    """Yield the lines of queries with their labels."""
    for query in spans.queries.values():
        grades: dict[str, int] = {}
        for name, grade in spans.grades.get(query.id, {}).items():
            document = ids.get(name, name)  # several texts may be of one document
            grades[document] = max(grade, grades.get(document, grade))
        yield query.line(grades)


def _document_lines(spans: RetrievalSpans, ids: Mapping[str, str]) -> Iterator[str]:
    for name in spans.passages:
        row = {"_id": ids.get(name, name), "text": spans.text_of(name)}
        yield json.dumps(row, ensure_ascii=False) + "\n"


def _write_lines(path: Path, lines: Iterable[str]) -> None:
    with open_text_file(path, "w") as file:
        file.writelines(lines)


def _write_run(path: Path, spans: RetrievalSpans, ids: Mapping[str, str]) -> None:
    """Write the hits of each query; the first of a document's texts counts."""
    rankings: dict[str, Ranking] = {}
    for query_id, hits in spans.hits.items():
        scores: dict[str, float] = {}
        for name, score in hits.items():
            scores.setdefault(ids.get(name, name), score)
        rankings[query_id] = ranked([*scores], [*scores.values()])
    write_trec_run(path, rankings, tag="production")


def _text_document_ids(
    spans: RetrievalSpans, reference: DatasetReference
) -> dict[str, str]:
    """Return the ids of the documents that only their texts identify, by their names.

    If the reference names documents, these are the ids of those with the same text.
    Else each name becomes an id that begins with `text-`.

    Raises:
        InputError: no document has such a text.
    """
    names = spans.documents_without_id
    if reference.documents is None or not names:
        return {name: name.replace("text:", "text-") for name in names}
    text_by_name = {name: normalise_text(spans.text_of(name)) for name in names}
    read_documents = open_documents(reference, find_folder(reference, {}))
    documents = (document for _, document in read_documents(ReadProblems()))
    id_by_text = documents_with_text(text_by_name.values(), documents)
    unmatched = [name for name in names if text_by_name[name] not in id_by_text]
    if unmatched:
        example = spans.text_of(unmatched[0])[:MAX_SHOWN_TEXT_LENGTH]
        count = f"{len(unmatched):,} documents without an id"
        problem = f"{count} have the text of no document, such as {example!r}"
        remedy = "record retrieval.documents.N.document.id"
        raise InputError(Problem(reference.name, problem, remedy))
    return {name: id_by_text[text] for name, text in text_by_name.items()}

"""Spans as a data set."""

import json
import os
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.dataset import DatasetReference
from harness.dataset.check_corpus import documents_with_text
from harness.dataset.read_problems import ReadProblems
from harness.dataset.readers.dataset_folder import find_folder, open_documents
from harness.init.spans import SPAN_QUERY_PATHS, RetrievalSpans, collect_spans
from retrievers.errors import InputError, Problem
from retrievers.files.text_files import explain_write_errors, open_text_file
from retrievers.files.trec_files import write_trec_run
from retrievers.ids import normalise_text
from retrievers.ranking import ranked


def spans_to_folder(
    reference: DatasetReference, folder: Path
) -> tuple[DatasetReference, Path | None, bool]:
    """Write queries, documents and labels of spans into a folder, and the run of the system that served them.

    Args:
        reference: a file of spans; it names the documents where the spans carry no texts.
        folder: a new one.

    Returns:
        The data set in the folder, the run (None where the spans retrieved nothing), and whether one trace holds
        several queries.

    Raises:
        InputError: nothing was retrieved, a document has neither id nor text, or the folder is there already.
    """
    seen = ReadProblems()
    traces = collect_spans(reference.folder, seen)
    if not traces.queries and not seen:
        seen.add(
            reference.name,
            "no retrieval span has a query",
            f"one of {', '.join(SPAN_QUERY_PATHS)}",
        )
    named = {
        doc
        for held in (traces.hits, traces.grades)
        for docs in held.values()
        for doc in docs
    }
    if (
        reference.documents is None
        and (bare := named - traces.texts.keys())
        and not seen
    ):
        what = f"{len(bare):,} of {len(named):,} documents have no text, such as {min(bare)!r}"
        remedy = "name the documents: --documents; or record retrieval.documents.N.document.content"
        seen.add(reference.name, what, remedy)
    if seen:
        raise InputError(seen.problems)
    ids = _ids_of(traces, reference)
    with explain_write_errors(
        folder, "remove it, or name another experiment with --output"
    ):
        folder.mkdir(parents=True)
    queries = []
    for query in traces.queries.values():
        grades = {
            ids.get(doc, doc): grade
            for doc, grade in traces.grades.get(query["id"], {}).items()
        }
        queries.append({**query, **({"relevant_documents": grades} if grades else {})})
    _write(folder / "queries.jsonl", queries)
    documents = None
    if reference.documents is None:
        texts = (
            {"_id": ids.get(name, name), "text": text}
            for name, text in traces.texts.items()
        )
        _write(folder / "documents.jsonl", texts)
    else:
        documents = Path(
            os.path.relpath(reference.folder.parent / reference.documents, folder)
        ).as_posix()
    run = folder / "production.trec" if traces.hits else None
    if run is not None:
        rankings = (
            (query, ranked([ids.get(doc, doc) for doc in hits], [*hits.values()]))
            for query, hits in traces.hits.items()
        )
        write_trec_run(run, rankings, tag="production")
    several = Counter(query.get("trace") for query in queries if "trace" in query)
    return (
        replace(reference, path=folder, documents=documents, format=None),
        run,
        max(several.values(), default=0) > 1,
    )


def _write(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    with open_text_file(path, "w") as file:
        file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def _ids_of(traces: RetrievalSpans, reference: DatasetReference) -> dict[str, str]:
    """Ids of the documents that spans name by their texts alone: those of the named documents with the same text."""
    if reference.documents is None or not traces.documents_without_id:
        return {
            name: name.replace("text:", "text-") for name in traces.documents_without_id
        }
    keys = {
        name: normalise_text(traces.texts[name]) for name in traces.documents_without_id
    }
    read = open_documents(reference, find_folder(reference, {}))
    holders = documents_with_text(
        keys.values(), (document for _, document in read(ReadProblems()))
    )
    if lost := [name for name, key in keys.items() if key not in holders]:
        example = traces.texts[lost[0]][:60]
        what = f"{len(lost):,} documents without an id have the text of no document, such as {example!r}"
        raise InputError(
            Problem(reference.name, what, "record retrieval.documents.N.document.id")
        )
    return {name: holders[key] for name, key in keys.items()}

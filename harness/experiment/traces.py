"""Retrieval spans of a running application -> a data set folder, and the run of the system that served them.

OpenInference (`retrieval.documents.N.document.id`), OpenTelemetry (`gen_ai.retrieval.*`, OTLP JSON), exports of runs by
LangSmith and Langfuse, and MLflow's spans and evaluation rows differ in their keys alone: each span is flattened to
paths, and the paths are looked up.
"""

import hashlib
import json
import math
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from harness.dataset import DatasetReference
from harness.dataset.corpus import holders_of
from harness.dataset.rows import File, read_rows
from harness.dataset.source import Findings, SourceLocation, grade_of
from harness.dataset.table_folder import documents_of, looked_in
from retrievers.errors import InputError, Problem
from retrievers.ids import document_id, plain_text
from retrievers.opening import text_file, writing
from retrievers.ranking import ranked
from retrievers.runs import write_run

SUFFIXES = (".jsonl", ".ndjson", ".json")
KINDS = ("openinference.span.kind", "span_kind", "run_type", "type", "mlflow.spanType")
"""Where a span says that it is a retriever's."""
ASKED = (
    "input.value",
    "gen_ai.retrieval.query.text",
    "mlflow.spanInputs",
    "inputs",
    "input",
)
"""Where the query is: a text, or an object with one."""
NAMES = ("query", "question", "input", "text")
"""The key of the query in such an object; else its first text."""
FOUND = re.compile(
    r"(?:(?:gen_ai\.)?retrieval\.documents|(?:outputs?|output\.value|mlflow\.spanOutputs)(?:\.documents|\.output)?)"
    r"\.(\d+)\.(?:document\.)?(.+)"
)
"""The path of one document: its place, and what of it is there."""
EXPECTED = re.compile(r"expectations\.expected_retrieved_context\.(\d+)\.(.+)")
OWN = ("id", "document_id", "doc_id", "doc_uri")
IDS = (*OWN, *(f"metadata.{name}" for name in OWN), "metadata.source")
TEXTS = ("content", "page_content", "pageContent", "text")
SCORES = ("score", "metadata.score", "relevance_score")
FIELDS = {
    "time": ("start_time", "startTime", "startTimeUnixNano", "start_time_unix_nano"),
    "session": ("session.id", "session_id", "sessionId", "gen_ai.conversation.id"),
    "trace": ("trace_id", "traceId", "context.trace_id"),
}
TYPED = {"key", "value"}
"""Of an attribute in OTLP's JSON."""
GRADED = re.compile(r"(?:document_)?annotations\.(\d+)\.(.+)")
LABELS = {"relevant": 1, "irrelevant": 0, "unrelated": 0}


@dataclass(slots=True)
class Traces:
    """What spans hold: queries by text, the texts of documents, what was retrieved, what was annotated."""

    queries: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Text, without white space and case -> id, text and fields; of a repeated query those of its first span."""
    texts: dict[str, str] = field(default_factory=dict)
    """Document -> its text, where a span carries it."""
    hits: dict[str, dict[str, float]] = field(default_factory=dict)
    """Query id -> document -> score, of the query's last span."""
    grades: dict[str, dict[str, int]] = field(default_factory=dict)
    """Query id -> document -> grade."""

    @property
    def unnamed(self) -> set[str]:
        """Documents that are named by their texts alone."""
        return {name for name in self.texts if name.startswith("text:")}


def holds_spans(reference: DatasetReference) -> bool:
    """Whether a reference is a file of spans: one of its first rows is a retriever's."""
    if (
        reference.scheme
        or reference.format not in (None, "traces")
        or File(reference.folder).suffix not in SUFFIXES
    ):
        return False
    if not reference.folder.is_file():
        return False
    first = (
        span
        for _, (_, span) in zip(
            range(100), _spans(reference.folder, Findings()), strict=False
        )
    )
    return any(_is_retrieval(span) for span in first)


def unpack(
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
    seen = Findings()
    traces = read_traces(reference.folder, seen)
    if not traces.queries and not seen:
        seen.wrong(
            reference.name,
            "no retrieval span has a query",
            f"one of {', '.join(ASKED)}",
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
        seen.wrong(reference.name, what, remedy)
    if seen:
        raise InputError(seen.problems)
    ids = _ids_of(traces, reference)
    with writing(folder, "remove it, or name another experiment with --output"):
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
        write_run(run, rankings, tag="production")
    several = Counter(query.get("trace") for query in queries if "trace" in query)
    return (
        replace(reference, path=folder, documents=documents, format=None),
        run,
        max(several.values(), default=0) > 1,
    )


def _write(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    with text_file(path, "w") as file:
        file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def read_traces(path: Path, problems: Findings) -> Traces:
    """Gather the retrieval spans of a file; what cannot be read is added to the problems."""
    traces = Traces()
    for place, span in _spans(path, problems):
        asked = next(filter(None, (_text_at(span, path) for path in ASKED)), None)
        if not _is_retrieval(span) or asked is None:
            continue
        new = {"id": f"q{len(traces.queries)}", "query": asked, "traffic": 0}
        query = traces.queries.setdefault(plain_text(asked), new)
        query["traffic"] += 1
        for name, paths in FIELDS.items():
            if value := next((span[path] for path in paths if path in span), None):
                query.setdefault(name, str(value))
        names = _documents(place, span, traces, problems)
        if names:
            traces.hits[query["id"]] = names
        for note in _numbered(span, GRADED).values():
            position, grade = note.get("document_position"), _grade_of(note)
            if (
                grade is not None
                and isinstance(position, int)
                and position < len(names)
            ):
                traces.grades.setdefault(query["id"], {})[[*names][position]] = grade
        for one in _numbered(span, EXPECTED).values():
            if (name := _first(one, IDS)) is not None:
                traces.grades.setdefault(query["id"], {})[str(document_id(name))] = 1
    return traces


def _documents(
    place: SourceLocation, span: Mapping[str, Any], traces: Traces, problems: Findings
) -> dict[str, float]:
    """The documents of a span with their scores; those without, by their places."""
    found: dict[str, Any] = {}
    for number, one in _numbered(span, FOUND).items():
        name, text = document_id(_first(one, IDS)), _first(one, TEXTS)
        if name is None and not isinstance(text, str):
            what = f"document {number} of a span has neither retrieval.documents.{number}.document.id nor its content"
            problems.wrong(place, what, "record one of the two")
            continue
        name = (
            name
            or f"text:{hashlib.sha256(plain_text(str(text)).encode()).hexdigest()[:12]}"
        )
        if isinstance(text, str):
            traces.texts.setdefault(name, text)
        found.setdefault(name, _first(one, SCORES))
    if all(
        isinstance(score, int | float) and math.isfinite(score)
        for score in found.values()
    ):
        return {name: float(score) for name, score in found.items()}
    return {name: float(len(found) - place) for place, name in enumerate(found)}


def _ids_of(traces: Traces, reference: DatasetReference) -> dict[str, str]:
    """Ids of the documents that spans name by their texts alone: those of the named documents with the same text."""
    if reference.documents is None or not traces.unnamed:
        return {name: name.replace("text:", "text-") for name in traces.unnamed}
    keys = {name: plain_text(traces.texts[name]) for name in traces.unnamed}
    read = documents_of(reference, *looked_in(reference, {}))
    holders = holders_of(keys.values(), (document for _, document in read(Findings())))
    if lost := [name for name, key in keys.items() if key not in holders]:
        example = traces.texts[lost[0]][:60]
        what = f"{len(lost):,} documents without an id have the text of no document, such as {example!r}"
        raise InputError(
            Problem(reference.name, what, "record retrieval.documents.N.document.id")
        )
    return {name: holders[key] for name, key in keys.items()}


def _spans(
    path: Path, problems: Findings
) -> Iterator[tuple[SourceLocation, dict[str, Any]]]:
    """Every span of a file, flattened, in whatever objects it is nested."""
    for place, row in read_rows(File(path), problems):
        for span in _nested(row):
            yield (
                place,
                {
                    path.removeprefix("attributes."): value
                    for path, value in _flat(span, "")
                },
            )


def _nested(row: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    inner = [
        one
        for key in ("resourceSpans", "scopeSpans", "spans", "child_runs")
        for one in row.get(key) or ()
    ]
    inner += (
        [row["data"]]
        if isinstance(row.get("data"), Mapping) and "spans" in row["data"]
        else []
    )
    if not inner or "child_runs" in row:
        yield row
    for one in inner:
        yield from _nested(one)


def _flat(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    """What is in a value, by paths with dots; JSON in a text and OTLP's typed values are opened."""
    if isinstance(value, str) and value[:1] in ("{", "["):
        with suppress(ValueError, RecursionError):
            value = json.loads(value)
    if (
        isinstance(value, list)
        and value
        and all(isinstance(one, Mapping) and one.keys() == TYPED for one in value)
    ):
        value = {one["key"]: _plain(one["value"]) for one in value}
    if isinstance(value, Mapping):
        for key, held in value.items():
            yield from _flat(held, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list):
        for place, held in enumerate(value):
            yield from _flat(held, f"{path}.{place}")
    else:
        yield path, value


def _plain(value: Any) -> Any:
    """A value of OTLP without its type."""
    if not isinstance(value, Mapping) or len(value) != 1:
        return value
    ((kind, held),) = value.items()
    if kind == "arrayValue":
        return [_plain(one) for one in held.get("values", ())]
    return (
        held.get("values", [])
        if kind == "kvlistValue"
        else int(held)
        if kind == "intValue"
        else held
    )


def _is_retrieval(span: Mapping[str, Any]) -> bool:
    kinds = (str(span.get(key)).upper() for key in KINDS)
    return "RETRIEVER" in kinds or any(
        key.startswith(("gen_ai.retrieval.", "expectations.expected_")) for key in span
    )


def _text_at(span: Mapping[str, Any], path: str) -> str | None:
    """The text at a path, or the likeliest below it."""
    below = (value for key, value in span.items() if key.startswith(f"{path}."))
    found = (span.get(path), *(span.get(f"{path}.{name}") for name in NAMES), *below)
    return next((one for one in found if isinstance(one, str) and one.strip()), None)


def _numbered(
    span: Mapping[str, Any], pattern: re.Pattern[str]
) -> dict[int, dict[str, Any]]:
    """The entries of a list of the span, each by its paths, in their order."""
    found: dict[int, dict[str, Any]] = {}
    for match, value in (
        (pattern.fullmatch(key), value) for key, value in span.items()
    ):
        if match:
            found.setdefault(int(match[1]), {})[match[2]] = value
    return dict(sorted(found.items()))


def _first(held: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    return next(
        (held[name] for name in names if held.get(name) not in (None, "")), None
    )


def _grade_of(note: Mapping[str, Any]) -> int | None:
    """The grade of an annotation: its label's, else its score."""
    label = str(_first(note, ("label", "result.label")) or "").lower()
    return (
        LABELS[label]
        if label in LABELS
        else grade_of(_first(note, ("score", "result.score")))
    )

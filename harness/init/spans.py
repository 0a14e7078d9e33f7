"""Retrieval spans of an application.

OpenInference (`retrieval.documents.N.document.id`), OpenTelemetry (`gen_ai.retrieval.*`, OTLP JSON), exports of runs by
LangSmith and Langfuse, and MLflow's spans and evaluation rows differ in their keys alone: each span is flattened to
paths, and the paths are looked up.
"""

import hashlib
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.dataset import DatasetReference
from harness.dataset.file import File
from harness.dataset.read_problems import ReadProblems
from harness.dataset.source import SourceLocation
from harness.dataset.written_values import parse_grade
from harness.init.flat_spans import read_spans
from retrievers.ids import document_id, normalise_text

SPAN_SUFFIXES = (".jsonl", ".ndjson", ".json")
SPAN_KIND_KEYS = (
    "openinference.span.kind",
    "span_kind",
    "run_type",
    "type",
    "mlflow.spanType",
)
"""Where a span says that it is a retriever's."""
SPAN_QUERY_PATHS = (
    "input.value",
    "gen_ai.retrieval.query.text",
    "mlflow.spanInputs",
    "inputs",
    "input",
)
"""Where the query is: a text, or an object with one."""
QUERY_KEYS = ("query", "question", "input", "text")
"""The key of the query in such an object; else its first text."""
RETRIEVED_PATH = re.compile(
    r"(?:(?:gen_ai\.)?retrieval\.documents|(?:outputs?|output\.value|mlflow\.spanOutputs)(?:\.documents|\.output)?)"
    r"\.(\d+)\.(?:document\.)?(.+)"
)
"""The path of one document: its place, and what of it is there."""
EXPECTED_PATH = re.compile(r"expectations\.expected_retrieved_context\.(\d+)\.(.+)")
DOCUMENT_ID_KEYS = ("id", "document_id", "doc_id", "doc_uri")
DOCUMENT_ID_PATHS = (
    *DOCUMENT_ID_KEYS,
    *(f"metadata.{name}" for name in DOCUMENT_ID_KEYS),
    "metadata.source",
)
DOCUMENT_TEXT_PATHS = ("content", "page_content", "pageContent", "text")
HIT_SCORE_PATHS = ("score", "metadata.score", "relevance_score")
SPAN_FIELD_PATHS = {
    "time": ("start_time", "startTime", "startTimeUnixNano", "start_time_unix_nano"),
    "session": ("session.id", "session_id", "sessionId", "gen_ai.conversation.id"),
    "trace": ("trace_id", "traceId", "context.trace_id"),
}


ANNOTATION_PATH = re.compile(r"(?:document_)?annotations\.(\d+)\.(.+)")
ANNOTATION_GRADES = {"relevant": 1, "irrelevant": 0, "unrelated": 0}


@dataclass(slots=True)
class RetrievalSpans:
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
    def documents_without_id(self) -> set[str]:
        """Documents that are named by their texts alone."""
        return {name for name in self.texts if name.startswith("text:")}


def holds_spans(reference: DatasetReference) -> bool:
    """Whether a reference is a file of spans: one of its first rows is a retriever's."""
    if (
        reference.scheme
        or reference.format not in (None, "traces")
        or File(reference.folder).suffix not in SPAN_SUFFIXES
    ):
        return False
    if not reference.folder.is_file():
        return False
    first = (
        span
        for _, (_, span) in zip(
            range(100), read_spans(reference.folder, ReadProblems()), strict=False
        )
    )
    return any(_is_retrieval(span) for span in first)


def collect_spans(path: Path, problems: ReadProblems) -> RetrievalSpans:
    """Gather the retrieval spans of a file; what cannot be read is added to the problems."""
    traces = RetrievalSpans()
    for place, span in read_spans(path, problems):
        asked = next(
            filter(None, (_text_at(span, path) for path in SPAN_QUERY_PATHS)), None
        )
        if not _is_retrieval(span) or asked is None:
            continue
        new = {"id": f"q{len(traces.queries)}", "query": asked, "traffic": 0}
        query = traces.queries.setdefault(normalise_text(asked), new)
        query["traffic"] += 1
        for name, paths in SPAN_FIELD_PATHS.items():
            if value := next((span[path] for path in paths if path in span), None):
                query.setdefault(name, str(value))
        names = _documents(place, span, traces, problems)
        if names:
            traces.hits[query["id"]] = names
        for note in _numbered(span, ANNOTATION_PATH).values():
            position, grade = note.get("document_position"), _grade_of(note)
            if (
                grade is not None
                and isinstance(position, int)
                and position < len(names)
            ):
                traces.grades.setdefault(query["id"], {})[[*names][position]] = grade
        for one in _numbered(span, EXPECTED_PATH).values():
            if (name := _first(one, DOCUMENT_ID_PATHS)) is not None:
                traces.grades.setdefault(query["id"], {})[str(document_id(name))] = 1
    return traces


def _documents(
    place: SourceLocation,
    span: Mapping[str, Any],
    traces: RetrievalSpans,
    problems: ReadProblems,
) -> dict[str, float]:
    """The documents of a span with their scores; those without, by their places."""
    found: dict[str, Any] = {}
    for number, one in _numbered(span, RETRIEVED_PATH).items():
        name, text = (
            document_id(_first(one, DOCUMENT_ID_PATHS)),
            _first(one, DOCUMENT_TEXT_PATHS),
        )
        if name is None and not isinstance(text, str):
            what = f"document {number} of a span has neither retrieval.documents.{number}.document.id nor its content"
            problems.add(place, what, "record one of the two")
            continue
        name = (
            name
            or f"text:{hashlib.sha256(normalise_text(str(text)).encode()).hexdigest()[:12]}"
        )
        if isinstance(text, str):
            traces.texts.setdefault(name, text)
        found.setdefault(name, _first(one, HIT_SCORE_PATHS))
    if all(
        isinstance(score, int | float) and math.isfinite(score)
        for score in found.values()
    ):
        return {name: float(score) for name, score in found.items()}
    return {name: float(len(found) - place) for place, name in enumerate(found)}


def _is_retrieval(span: Mapping[str, Any]) -> bool:
    kinds = (str(span.get(key)).upper() for key in SPAN_KIND_KEYS)
    return "RETRIEVER" in kinds or any(
        key.startswith(("gen_ai.retrieval.", "expectations.expected_")) for key in span
    )


def _text_at(span: Mapping[str, Any], path: str) -> str | None:
    """The text at a path, or the likeliest below it."""
    below = (value for key, value in span.items() if key.startswith(f"{path}."))
    found = (
        span.get(path),
        *(span.get(f"{path}.{name}") for name in QUERY_KEYS),
        *below,
    )
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
        ANNOTATION_GRADES[label]
        if label in ANNOTATION_GRADES
        else parse_grade(_first(note, ("score", "result.score")))
    )

"""Retrieval spans of an application.

OpenInference (`retrieval.documents.N.document.id`), OpenTelemetry
(`gen_ai.retrieval.*`, OTLP JSON), exports of runs by LangSmith and Langfuse, and
MLflow's spans and evaluation rows differ only in their keys: `flat_spans` flattens each
span to paths, and the paths are looked up here. `spans_folder` writes the result.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from harness.dataset import DatasetReference
from harness.dataset.file import File
from harness.dataset.read_problems import ReadProblems
from harness.dataset.source import SourceLocation
from harness.dataset.written_values import GRADE_LIMIT, parse_grade
from harness.init.flat_spans import FlatObject, read_spans
from retrievers.ids import document_id, normalise_text

SPAN_SUFFIXES = (".jsonl", ".ndjson", ".json")
SPAN_KIND_KEYS = (
    "openinference.span.kind",
    "span_kind",
    "run_type",
    "type",
    "mlflow.spanType",
)
"""Keys of the kind of a span."""
SPAN_QUERY_PATHS = (
    "input.value",
    "gen_ai.retrieval.query.text",
    "mlflow.spanInputs",
    "inputs",
    "input",
)
"""Paths of the query: a text, or an object with one."""
QUERY_KEYS = ("query", "question", "input", "text")
"""The key of the query in such an object; else its first text."""
RETRIEVED_PATH = re.compile(
    r"(?:(?:gen_ai\.)?retrieval\.documents"
    r"|(?:outputs?|output\.value|mlflow\.spanOutputs)(?:\.documents|\.output)?)"
    r"\.(\d{1,9})\.(?:document\.)?(.+)"
)
"""The path of a document's value: its number, and its path in the document."""
EXPECTED_PATH = re.compile(r"expectations\.expected_retrieved_context\.(\d{1,9})\.(.+)")
"""Path of the attributes of an expected document."""
DOCUMENT_ID_KEYS = ("id", "document_id", "doc_id", "doc_uri")
DOCUMENT_ID_PATHS = (
    *DOCUMENT_ID_KEYS,
    *(f"metadata.{key}" for key in DOCUMENT_ID_KEYS),
    "metadata.source",
)
DOCUMENT_TEXT_PATHS = ("content", "page_content", "pageContent", "text")
HIT_SCORE_PATHS = ("score", "metadata.score", "relevance_score")
TIME_PATHS = ("start_time", "startTime", "startTimeUnixNano", "start_time_unix_nano")
SESSION_PATHS = ("session.id", "session_id", "sessionId", "gen_ai.conversation.id")
TRACE_PATHS = ("trace_id", "traceId", "context.trace_id")
ANNOTATION_PATH = re.compile(r"(?:document_)?annotations\.(\d{1,9})\.(.+)")
"""Path of the attributes of an annotation."""
ANNOTATION_GRADES = {"relevant": 1, "irrelevant": 0, "unrelated": 0}
RETRIEVAL_KEY_PREFIXES = ("gen_ai.retrieval.", "expectations.expected_")
TEXT_ID_PREFIX = "text:"
"""Begins the name of a document that only its text identifies."""
TEXT_ID_LENGTH = 12
"""Hex digits of the text's digest."""
MAX_EXAMINED_SPANS = 100
"""Spans, at most, by which a file of spans is recognised."""


class _SpanHit(NamedTuple):
    """A document, or a passage of it, that a span retrieved."""

    number: int
    """Its place in the list of the span, from 0, by which annotations name it."""
    document: str
    score: Any
    """As it is written; None if the span has none."""


@dataclass(slots=True)
class SpanQuery:
    """A query of some spans; time, session and trace are the first that a span has."""

    id: str
    query: str
    traffic: int = 0
    """How many spans have it."""
    time: str = ""
    session: str = ""
    trace: str = ""

    def add(self, span: FlatObject) -> None:
        """Count a span with the query."""
        self.traffic += 1
        self.time = self.time or str(span.first_present(TIME_PATHS) or "")
        self.session = self.session or str(span.first_present(SESSION_PATHS) or "")
        self.trace = self.trace or str(span.first_present(TRACE_PATHS) or "")

    def line(self, grades: Mapping[str, int]) -> str:
        """Return the query with its grades as a line of JSON, without empty fields."""
        row = {name: cell for name, cell in asdict(self).items() if cell != ""}
        if grades:
            row["relevant_documents"] = dict(grades)
        return json.dumps(row, ensure_ascii=False) + "\n"


@dataclass(slots=True)
class RetrievalSpans:
    """The queries, documents, hits and annotations in spans."""

    queries: dict[str, SpanQuery] = field(default_factory=dict)
    """Normalised text -> its query."""
    passages: dict[str, dict[str, None]] = field(default_factory=dict)
    """Document -> its different texts in spans, in their order; without any, absent."""
    hits: dict[str, dict[str, float]] = field(default_factory=dict)
    """Query id -> document -> score, of the query's last span with documents."""
    grades: dict[str, dict[str, int]] = field(default_factory=dict)
    """Query id -> document -> grade, of the last span that grades it."""

    @property
    def documents_without_id(self) -> set[str]:
        """Documents that only their texts identify."""
        return {name for name in self.passages if name.startswith(TEXT_ID_PREFIX)}

    def text_of(self, document: str) -> str:
        """Return the text of a document: its passages, with blank lines between."""
        return "\n\n".join(self.passages[document])

    def add(
        self, location: SourceLocation, span: FlatObject, problems: ReadProblems
    ) -> None:
        """Add a retrieval span; another one, or one without a query, is skipped.

        A document without id and text becomes a problem.
        """
        query_text = _find_query(span)
        if query_text is None or not _is_retrieval(span):
            return
        query = self._add_query(query_text, span)
        hits = self._add_documents(location, span, problems)
        if hits:
            self.hits[query.id] = _hit_scores(hits)
        grades = _annotated_grades(span, hits) | _expected_grades(span)
        if grades:
            self.grades.setdefault(query.id, {}).update(grades)

    def _add_query(self, text: str, span: FlatObject) -> SpanQuery:
        new_query = SpanQuery(f"q{len(self.queries)}", text)
        query = self.queries.setdefault(normalise_text(text), new_query)
        query.add(span)
        return query

    def _add_documents(
        self, location: SourceLocation, span: FlatObject, problems: ReadProblems
    ) -> list[_SpanHit]:
        """Add the documents of a span, and return them in their order.

        Several may be passages of one document.
        """
        hits: list[_SpanHit] = []
        for number, document in span.objects_in(RETRIEVED_PATH):
            name = document_id(document.first_value(DOCUMENT_ID_PATHS))
            text = document.first_value(DOCUMENT_TEXT_PATHS)
            if name is None and not isinstance(text, str):
                id_path = f"retrieval.documents.{number}.document.id"
                subject = f"document {number} of a span"
                problem = f"{subject} has neither {id_path} nor its content"
                problems.add(location, problem, "record one of the two")
                continue
            if name is None:
                name = _text_id(text)
                # Other texts with this name differ only in what `_text_id` ignores.
                self.passages.setdefault(name, {text: None})
            elif isinstance(text, str):
                self.passages.setdefault(name, {})[text] = None
            score = document.first_value(HIT_SCORE_PATHS)
            hits.append(_SpanHit(number, name, score))
        return hits


def holds_spans(reference: DatasetReference) -> bool:
    """Whether one of the first spans of a file is a retriever's.

    Never if a format is declared, other than "traces".
    """
    if reference.scheme or reference.format not in (None, "traces"):
        return False
    path = reference.folder
    if File(path).suffix not in SPAN_SUFFIXES or not path.is_file():
        return False
    first_spans = islice(read_spans(path, ReadProblems()), MAX_EXAMINED_SPANS)
    return any(_is_retrieval(span) for _, span in first_spans)


def collect_spans(path: Path, problems: ReadProblems) -> RetrievalSpans:
    """Return the retrieval spans of a file; what cannot be read becomes a problem."""
    spans = RetrievalSpans()
    for location, span in read_spans(path, problems):
        spans.add(location, span, problems)
    return spans


def _is_retrieval(span: FlatObject) -> bool:
    kinds = [str(span.leaves.get(key)).upper() for key in SPAN_KIND_KEYS]
    if "RETRIEVER" in kinds:
        return True
    return any(path.startswith(RETRIEVAL_KEY_PREFIXES) for path in span.leaves)


def _find_query(span: FlatObject) -> str | None:
    """Return the text of the query of a span; None if it has none."""
    texts = (span.text_at(path, QUERY_KEYS) for path in SPAN_QUERY_PATHS)
    return next(filter(None, texts), None)


def _text_id(text: Any) -> str:
    """Return the name of a document that only its text identifies."""
    digest = hashlib.sha256(normalise_text(str(text)).encode()).hexdigest()
    return f"{TEXT_ID_PREFIX}{digest[:TEXT_ID_LENGTH]}"


def _hit_scores(hits: Sequence[_SpanHit]) -> dict[str, float]:
    """Return a score for each document: its first passage's, else one by its rank.

    Scores by rank descend from the first document; they are used unless each document
    has a score.
    """
    scores: dict[str, Any] = {}
    for hit in hits:
        scores.setdefault(hit.document, hit.score)
    if all(map(_is_score, scores.values())):
        return {name: float(score) for name, score in scores.items()}
    return {name: float(len(scores) - i) for i, name in enumerate(scores)}


def _is_score(score: Any) -> bool:
    if isinstance(score, int):
        return abs(score) < GRADE_LIMIT
    return isinstance(score, float) and math.isfinite(score)


def _annotated_grades(span: FlatObject, hits: Sequence[_SpanHit]) -> dict[str, int]:
    """Return the grades of the documents in a span that people or models annotated.

    A document has the best grade of its passages.
    """
    document_by_number = {hit.number: hit.document for hit in hits}
    grades: dict[str, int] = {}
    for _, annotation in span.objects_in(ANNOTATION_PATH):
        position = annotation.leaves.get("document_position")
        grade = _annotation_grade(annotation)
        if grade is None or not isinstance(position, int):
            continue
        document = document_by_number.get(position)
        if document is not None:
            grades[document] = max(grade, grades.get(document, grade))
    return grades


def _annotation_grade(annotation: FlatObject) -> int | None:
    """Return the grade of an annotation: by its label, else by its score."""
    label = str(annotation.first_value(("label", "result.label")) or "").lower()
    if label in ANNOTATION_GRADES:
        return ANNOTATION_GRADES[label]
    return parse_grade(annotation.first_value(("score", "result.score")))


def _expected_grades(span: FlatObject) -> dict[str, int]:
    """Return a grade of 1 for each document that a span expects."""
    grades: dict[str, int] = {}
    for _, document in span.objects_in(EXPECTED_PATH):
        name = document_id(document.first_value(DOCUMENT_ID_PATHS))
        if name is not None:
            grades[name] = 1
    return grades

"""Which column holds what: rows of a table become documents, queries and labels."""

import hashlib
import json
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

from harness.dataset.dataset_model import JOINED
from harness.dataset.rows import Row
from harness.dataset.source import (
    Findings,
    SourceLocation,
    read_history,
    read_reference,
    written_value,
)
from retrievers.errors import InputError, Problem, did_you_mean
from retrievers.ids import document_id
from retrievers.types import Document, Query

KNOWN: dict[str, tuple[str, ...]] = {
    "document_id": (
        "_id",
        "id",
        "doc_id",
        "docid",
        "document_id",
        "docno",
        "corpus-id",
        "corpus_id",
        "pid",
    ),
    "title": ("title", "heading"),
    "text": (
        "text",
        "contents",
        "content",
        "body",
        "document",
        "passage",
        "page_content",
    ),
    "query_id": ("_id", "id", "query-id", "query_id", "qid"),
    "query": (
        "text",
        "query",
        "query_text",
        "question",
        "user_input",
        "search_term",
        "search term",
        "search_query",
        "search query",
        "keyword",
        "keywords",
        "q",
    ),
    "label_query": ("query-id", "query_id", "qid"),
    "label_document": (
        "corpus-id",
        "corpus_id",
        "doc_id",
        "document_id",
        "docno",
        "pid",
        "passage_id",
        "clicked_doc_id",
        "clicked_id",
        "doc",
        "document",
        "file",
        "file_name",
        "path",
        "url",
        "source",
    ),
    "grade": (
        "score",
        "grade",
        "relevance",
        "rel",
        "label",
        "rating",
        "judgment",
        "judgement",
        "gain",
    ),
    "reference": ("reference", "reference_answer", "generation_gt"),
    "claims": ("claims",),
    "history": ("history", "chat_history"),
    "relevant": (
        "relevant_documents",
        "ratings",
        "relevant_docs",
        "relevant",
        "relevant_ids",
        "relevant_doc_ids",
        "doc_ids",
        "document_ids",
        "expected_doc_ids",
        "expected_documents",
        "reference_context_ids",
        "positives",
        "positive",
        "gold_ids",
        "gold_docs",
        "gold_doc_ids",
        "gold_documents",
        "expected_docs",
        "expected_ids",
        "expected_document_ids",
        "ground_truth_ids",
        "golden_docs",
    ),
    "contexts": ("reference_contexts",),
}
"""What a column may be called, in any case and with any of space, hyphen and underscore between its words, where the
experiment does not declare it; the first one that is there counts."""
PLACES = ("file", "filename", "path", "url", "source")
"""Names documents where no other column does; else it says where something is from."""
CLICKS = "clicks"
"""How often a document was clicked: grades only where the experiment says so."""
LABELLING = ("label_document", "relevant", "grade", "contexts")
NAMING = ("label_document", "relevant", "contexts")
"""What names the documents of a label."""
OF_DOCUMENTS = ("document_id", "title", "text")
ASKED = ("query_id", "query", "label_query", "reference", "claims", "history")
"""What a row of queries holds if the labels are in a table of their own."""
OF_QUERIES = (*ASKED, *LABELLING)
FIELDS = "fields"
"""Declares the columns, with commas between, that hold no labels whatever they are called."""
KINDS = (*KNOWN, FIELDS)
WORDS = 4
"""Of the name of a column, at most: a longer one is a text."""
TEXT = "write it as a string"
MISSING: Any = object()
"""Stands for what a row does not have."""


@dataclass(frozen=True, slots=True)
class Columns:
    """The names of columns: declared ones, else those of `KNOWN`."""

    declared: Mapping[str, str] = field(default_factory=dict)
    header: bool = False
    """Whether the first row of a table is said to be one, whatever it looks like."""
    known: Mapping[str, tuple[str, ...]] | None = None
    """What one tool calls them, paths too, in the place of `KNOWN`."""

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "declared", dict(kind_first(*pair) for pair in self.declared.items())
        )
        if wrong := [key for key in self.declared if key not in KINDS]:
            what = "{!r} is not a kind of column"
            raise InputError(
                [
                    Problem("columns", what.format(key), did_you_mean(key, KINDS))
                    for key in wrong
                ]
            )

    def name(self, kind: str, row: Row) -> str | None:
        """The column of a kind in this row, None where there is none."""
        return (
            self._looked_up(kind, row)
            if self.declared or self.known
            else _usual(kind, tuple(row))
        )

    def _looked_up(self, kind: str, row: Row) -> str | None:
        if (declared := self.declared.get(kind)) is not None:
            return declared if has_path(row, declared) else None
        if self.known is not None:
            found = next(
                (path for path in self.known.get(kind, ()) if has_path(row, path)), None
            )
        else:
            withdrawn = self._withdrawn(kind)
            found = recognised(
                kind, tuple(name for name in row if name not in withdrawn)
            )
        stronger: Sequence[str] = NAMING[:2] if kind == "contexts" else ()
        if kind == "label_document" and folded(found or "") in PLACES:
            stronger = ("relevant",)
        return (
            None
            if any(self.name(other, row) is not None for other in stronger)
            else found
        )

    def _withdrawn(self, kind: str) -> set[str]:
        """What is declared as something else of the same rows: it is not read as this kind, too."""
        if kind in OF_DOCUMENTS:
            others = [other for other in OF_DOCUMENTS if other != kind]
        else:  # the id of a query is one thing, in a table of queries and in one of labels
            same = (
                ("query_id", "label_query")
                if kind in ("query_id", "label_query")
                else (kind,)
            )
            others = [other for other in OF_QUERIES if other not in same]
        named = (
            part for other in others for part in paths_in(self.declared.get(other, ""))
        )
        return {name.partition(".")[0] for name in named}.union(self._fields())

    def labelled(self, row: Row) -> bool:
        """Whether a row has, or is declared to have, a column of labels."""
        return any(
            kind in self.declared or self.name(kind, row) is not None
            for kind in LABELLING
        )

    def taken(self, row: Row, kinds: Iterable[str]) -> dict[str, str]:
        """What each column of a row is read as: one of the kinds, a field, or "" where it is not used.

        >>> Columns().taken({"": 0, "query": "a", "day": 1, "tags": []}, ("query",))
        {'': '', 'query': 'query', 'day': 'fields', 'tags': ''}
        """
        found = {self.name(kind, row): kind for kind in reversed(tuple(kinds))}
        names = {
            part: kind
            for name, kind in found.items()
            if name is not None
            for part in ((name,) if name in row else paths_in(name))
        }
        holders = {name.partition(".")[0] for name in names if name not in row}
        plain = {
            name
            for name, value in row.items()
            if name and isinstance(value, str | int | float)
        } | {"metadata"}
        rest = {
            name: FIELDS if name in plain else "" for name in row if name not in holders
        }
        return rest | names

    def _fields(self) -> list[str]:
        return [name.strip() for name in self.declared.get(FIELDS, "").split(",")]

    def absent(self, row: Row, kinds: Iterable[str]) -> list[str]:
        """The kinds whose declared columns a row lacks."""
        return [
            kind
            for kind in kinds
            if kind in self.declared and self.name(kind, row) is None
        ]

    def lacking(self, kind: str, row: Row) -> tuple[str, str]:
        """A complaint that a row has no such column, and the remedy."""
        names = [
            path
            for name, held in row.items()
            for path in (
                [f"{name}.{key}" for key in held]
                if isinstance(held, Mapping) and held
                else [str(name)]
            )
        ]
        if (declared := self.declared.get(kind)) is not None:
            return f"there is no column {declared!r}", did_you_mean(declared, names)
        if not self.header and any(
            len(name.split()) > WORDS or name.isdigit() for name in names
        ):
            remedy = "write one above it: query,document; or say header = false (--no-header), or true if it is one"
            return (
                f"the first row is not a header: {', '.join(map(shown, names[:8]))}",
                remedy,
            )
        remedy = f"there are: {', '.join(names[:8])}; say which: {declaring(kind)}"
        return f"{(self.known or KNOWN)[kind][0]!r} is missing", remedy


class PlacedRow(NamedTuple):
    """A row with all that is needed to read it."""

    row: Row
    place: SourceLocation
    columns: Columns
    problems: Findings

    def name(self, kind: str) -> str | None:
        """The column of a kind, None where there is none."""
        return self.columns.name(kind, self.row)

    def value(self, kind: str) -> Any:
        """Its value; None if there is no such column.

        >>> row = {"inputs": {"question": "why"}}
        >>> PlacedRow(row, SourceLocation("q"), Columns({"query": "inputs.question"}), Findings()).value("query")
        'why'
        """
        name = self.name(kind)
        return None if name is None else value_at(self.row, name)

    def wrong(self, what: str, remedy: str) -> None:
        """Complain of the row."""
        self.problems.wrong(self.place, what, remedy)

    def id(self, kind: str) -> str | None:
        """The id in the column of a kind; None after a complaint."""
        name = self.name(kind)
        value = None if name is None else value_at(self.row, name)
        if (id_ := document_id(value)) is None:
            empty = value is None or isinstance(value, str)
            what = (
                "is missing or empty" if empty else f"is not an id but {shown(value)}"
            )
            self.wrong(
                *(
                    self.columns.lacking(kind, self.row)
                    if name is None
                    else (f"{name!r} {what}", "an id is text or a whole number")
                )
            )
        return id_

    def text(self, kind: str) -> str | None:
        """The text in the column of a kind; None after a complaint."""
        name = self.name(kind)
        value = None if name is None else value_at(self.row, name)
        if isinstance(value, str):
            return value
        if name is None:
            self.wrong(*self.columns.lacking(kind, self.row))
        else:
            inner = next(iter(value), "…") if isinstance(value, Mapping) else None
            remedy = (
                TEXT
                if inner is None
                else f"say what in it is meant: {declaring(kind, f'{name}.{inner}')}"
            )
            self.wrong(f"{name!r} is not a string but {shown(value)}", remedy)
        return None

    def document(self) -> Document | None:
        """Read a document; None after a complaint."""
        id_, text, title = (
            self.id("document_id"),
            self.text("text"),
            self.value("title"),
        )
        if title is not None and not isinstance(title, str):
            self.wrong(f"'title' is not a string but {shown(title)}", TEXT)
            return None
        if id_ is None or text is None:
            return None
        return Document(
            id_, title or "", text, fields_of(self.row, map(self.name, OF_DOCUMENTS))
        )

    def query(self, unnamed: str, *, labelled: bool) -> Query | None:
        """Read a query; None after a complaint.

        Args:
            unnamed: what it is called where there is no column for its id.
            labelled: whether its labels are in the row, too: they are not fields of it.
        """
        id_ = unnamed if self.name("query_id") is None else self.id("query_id")
        text = self.text("query")
        if id_ is None or text is None:
            return None
        reference = read_reference(
            self.value("reference"), self.value("claims"), self.place, self.problems
        )
        history = read_history(self.value("history"), self.place, self.problems)
        kinds = (
            kind for kind in (ASKED, OF_QUERIES)[labelled] if kind != "label_query"
        )
        fields = fields_of(self.row, map(self.name, kinds))
        if history:  # what of one conversation is asked belongs together
            turn = {
                "conversation": hashlib.sha256(history[0].encode()).hexdigest()[:8],
                "turn": str(len(history) // 2 + 1),
            }
            fields = turn | fields
        return Query(id_, text, fields, reference, history)


def kind_first(kind: str, name: str) -> tuple[str, str]:
    """A kind and the column of it, whichever was said first.

    >>> kind_first("grade", "rating"), kind_first("rating", "grade"), kind_first("grade", "text")
    (('grade', 'rating'), ('grade', 'rating'), ('grade', 'text'))
    """
    return (name, kind) if kind not in KINDS and name in KINDS else (kind, name)


@lru_cache(maxsize=1024)
def _usual(kind: str, names: tuple[str, ...]) -> str | None:
    """The column of a kind where nothing is declared: looked for once, since most rows have the same names."""
    return Columns()._looked_up(kind, dict.fromkeys(names))


@lru_cache(maxsize=1024)
def recognised(kind: str, names: tuple[str, ...]) -> str | None:
    """Return the column that holds what is asked for, by the usual names; None where there is none.

    >>> recognised("query", ("Query", "Count")), recognised("query", ("Query", "query")), recognised("query", ("a",))
    ('Query', 'query', None)
    """
    if exact := next((name for name in KNOWN[kind] if name in names), None):
        return exact
    there = {folded(str(name)): name for name in reversed(names)}
    return next((there[name] for name in FOLDED[kind] if name in there), None)


@lru_cache(maxsize=1024)
def folded(name: str) -> str:
    """A name without its case and the separators of its words.

    >>> folded("Doc ID"), folded("relevant-docs")
    ('docid', 'relevantdocs')
    """
    return re.sub(r"[\s_-]+", "", name.casefold())


FOLDED = {kind: tuple(map(folded, names)) for kind, names in KNOWN.items()}


def declaring(kind: str, name: str = "…") -> str:
    """How an experiment, and an option, say what a column holds.

    >>> declaring("grade", "stars")
    'columns = { grade = "stars" } (--columns grade=stars)'
    """
    return (
        f'columns = {{ {kind} = "{name}" }} (--columns {shlex.quote(f"{kind}={name}")})'
    )


def keeping(name: str) -> str:
    """The remedy where a column holds no label."""
    return f"if it holds no label, keep it as a field: {declaring(FIELDS, name)}"


def fields_of(row: Row, used: Iterable[str | None]) -> dict[str, str]:
    """Further keys with plain values: those of the row, and those of its `metadata`."""
    taken = {
        "metadata",
        "",
        *used,
    }  # "": a column without a name, such as the index of pandas
    if len(row) <= len(taken) and row.keys() <= taken and "metadata" not in row:
        return {}
    metadata = row.get("metadata")
    extra = {**(metadata if isinstance(metadata, Mapping) else {}), **row}
    return {
        str(key): str(value)
        for key, value in extra.items()
        if key not in taken
        and isinstance(value, str | int | float)
        and value != ""
        and value == value
    }


def texts_in(
    cell: object, name: str, place: SourceLocation, problems: Findings
) -> tuple[str, ...]:
    """A list of texts, or one; empty, after a complaint, where it is something else."""
    listed = written_value(cell)
    texts = [listed] if isinstance(listed, str) else [] if listed is None else listed
    if isinstance(texts, list) and all(isinstance(one, str) for one in texts):
        return tuple(one for one in texts if one.strip())
    problems.wrong(
        place,
        f"{name.rpartition('.')[2]!r} is not a list of texts",
        "a list of strings",
    )
    return ()


def has_path(row: Row, path: str) -> bool:
    """Whether a row has a key of this name, or one that a path such as `inputs.question` leads to."""
    return value_at(row, path, MISSING) is not MISSING


def value_at(row: Row, path: str, missing: Any = None) -> Any:
    """The value there; another one if there is none.

    >>> value_at({"inputs": {"question": "why"}}, "inputs.question")
    'why'
    """
    if path in row:
        return row[path]
    if "," in path:
        values = [value_at(row, one, MISSING) for one in paths_in(path)]
        return missing if any(value is MISSING for value in values) else _joined(values)
    first, dot, rest = path.partition(".")
    held = written_value(row.get(first)) if dot else None
    if isinstance(held, Mapping):
        return value_at(held, rest, missing)
    inner = (
        [value_at(one, rest, MISSING) for one in held if isinstance(one, Mapping)]
        if isinstance(held, list)
        else []
    )
    return [value for value in inner if value is not MISSING] or missing


def paths_in(declared: str) -> list[str]:
    """The columns that a declaration names: one, or several that together name a document, with commas between."""
    return [path.strip() for path in declared.split(",") if path.strip()]


def _joined(values: Sequence[Any]) -> Any:
    """Values that together name a document, or lists of them, as one; None where one of them is no id."""
    if all(isinstance(value, list) for value in values):
        return [_joined(parts) for parts in zip(*values, strict=False)]
    ids = [document_id(value) for value in values]
    return None if None in ids else JOINED.join(filter(None, ids))


def shown(value: object) -> str:
    """A value as a message shows it."""
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError):
        text = repr(value)
    return re.sub(r"\s+", " ", text)[:40]

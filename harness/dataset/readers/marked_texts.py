"""Questions with texts that are marked as right or wrong.

They are training data: `query`, `pos` and `neg`; `anchor`, `positive` and `negative_1`;
`positive_passages` and `negative_passages`; or one list of passages of which each has a
flag such as `is_supporting`. Every text is a document, since a retriever must tell the
right ones from the wrong.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from harness.dataset.cell_paths import declared_paths
from harness.dataset.columns import Columns
from harness.dataset.file import File, Files
from harness.dataset.read_problems import ReadProblems
from harness.dataset.readers.context_table import CONTEXT_COLUMNS
from harness.dataset.readers.quoted_questions import QuotedQuestion, question_source
from harness.dataset.readers.shards import list_table_files, read_first_row
from harness.dataset.reference import DatasetReference, DeclaredColumn
from harness.dataset.row import Row
from harness.dataset.source import FormatReader, FunctionSource, SourceLocation
from harness.dataset.table_source import rows_of_files
from harness.dataset.usual_names import (
    normalised_name,
    usual_column,
    words_of_name,
)
from harness.dataset.written_values import parse_cell, quoted_value
from retrievers.ids import document_id
from retrievers.types import Document

QUERY_COLUMN = "anchor"
"""The column of queries that sentence-transformers' data have."""
RIGHT_WORDS = frozenset(("pos", "positive", "positives"))
WRONG_WORDS = frozenset(("neg", "negs", "negative", "negatives", "rejected"))
TEXT_WORDS = frozenset(
    ("hard", "passage", "passages", "ctxs", "doc", "docs", "document", "documents")
)
"""Other words that the name of a column of right or wrong texts may have."""
FLAG_NAMES = (
    "is_supporting",
    "is_selected",
    "is_relevant",
    "is_positive",
    "is_gold",
    "is_correct",
)
"""Flags of MuSiQue, of MS MARCO, and others that say that a text is right."""
TEXT_KEYS = ("paragraph_text", "passage_text")
LABEL_COLUMN = "marked as right"
"""The column of the ids of right texts that is added to a row."""


class _Columns(NamedTuple):
    """The columns of texts in a table."""

    right: Sequence[str]
    wrong: Sequence[str]
    flagged: str = ""
    """A column of right and wrong texts; empty if there is none."""
    flag: str = ""
    """The key of the flag that says which of these are right."""

    @property
    def all(self) -> set[str]:
        return {*self.right, *self.wrong, self.flagged}


def _find_columns(row: Row, reference: DatasetReference) -> _Columns | None:
    """Return the columns of texts; None if a row has not right and wrong ones."""
    relevant = Columns(reference.columns).declared_name("relevant") or ""
    declared_flag = relevant.rpartition(".")[2]
    for column, cell in row.cells.items():
        objects = _objects_in(cell)
        for flag in (declared_flag, *FLAG_NAMES):
            if flag and objects and all(_is_flagged(text, flag) for text in objects):
                return _Columns((), (), column, flag)
    right = _right_columns(row, reference)
    wrong = [name for name in row.column_names if _is_named_by(name, WRONG_WORDS)]
    texts: list[_Text] = []
    for name in (*right, *wrong):
        texts += _texts_in(row.cells[name])
    # Ids of documents have no space; they would be read as texts.
    if right and wrong and any(" " in text.text.strip() for text in texts):
        return _Columns(right, wrong)
    return None


def _right_columns(row: Row, reference: DatasetReference) -> list[str]:
    """Return the columns of right texts: declared, by their names, or contexts."""
    contexts = Columns(reference.columns).declared_name("contexts")
    if contexts is not None and contexts in row.cells:
        return [contexts]
    right = [column for column in row.cells if _is_named_by(column, RIGHT_WORDS)]
    if right:
        return right
    return [
        column for column in row.cells if normalised_name(column) in CONTEXT_COLUMNS
    ]


def _is_named_by(name: str, words: frozenset[str]) -> bool:
    """Whether a name has one of some words, and no other but numbers and nouns.

    >>> _is_named_by("hard_negatives", WRONG_WORDS), _is_named_by("neg_1", WRONG_WORDS)
    (True, True)
    >>> _is_named_by("pos_scores", RIGHT_WORDS)
    False
    """
    own_words = words_of_name(name)
    others = {word for word in own_words - words if not word.isdigit()}
    return bool(own_words & words) and others <= TEXT_WORDS


def _objects_in(cell: Any) -> list[Mapping[str, Any]]:
    """Return the objects in a cell: a list of them, or an object of lists."""
    value = parse_cell(cell)
    if isinstance(value, Mapping) and value:
        columns = list(value.values())
        if not all(isinstance(column, list) for column in columns):
            return []
        if len({len(column) for column in columns}) > 1:
            return []
        return [
            dict(zip(value, cells, strict=True)) for cells in zip(*columns, strict=True)
        ]
    if not isinstance(value, list):
        return []
    return [element for element in value if isinstance(element, Mapping)]


def _is_flagged(text: Mapping[str, Any], flag: str) -> bool:
    """Whether an object has a flag of 0 or 1, and a text."""
    return text.get(flag) in (0, 1) and _text_of(text) is not None


class _Text(NamedTuple):
    """A text with its own id, if it has one, and its title."""

    text: str
    id: str | None = None
    title: str = ""
    is_right: bool = True


def _text_of(value: Any, flag: str = "") -> _Text | None:
    """Return the text of a value, or of an object with one; None for anything else."""
    if isinstance(value, str):
        return _Text(value)
    if not isinstance(value, Mapping):
        return None
    names = tuple(map(str, value))
    text_key = next((key for key in TEXT_KEYS if key in value), None)
    text_key = text_key or usual_column("text", names)
    text = value.get(text_key or "")
    if not isinstance(text, str):
        return None
    id_key = usual_column("document_id", names) or usual_column("label_document", names)
    # A key such as `document` may mean both: then it is the text.
    id_ = None if id_key in (None, text_key) else document_id(value[id_key])
    title = value.get(usual_column("title", names) or "")
    is_right = value.get(flag) == 1 if flag else True
    return _Text(text, id_, title if isinstance(title, str) else "", is_right)


def _texts_in(cell: Any) -> list[_Text]:
    value = parse_cell(cell) if isinstance(cell, str) else cell
    elements = value if isinstance(value, list) else [value]
    return [text for text in map(_text_of, elements) if text is not None]


class _Documents:
    """The documents of a table: equal texts are one."""

    def __init__(self) -> None:
        self._by_content: dict[tuple[str, str], Document] = {}
        self._content_by_id: dict[str, tuple[str, str]] = {}

    def add(
        self, text: _Text, location: SourceLocation, problems: ReadProblems
    ) -> Document:
        """Return the document with a text; two texts under one id become a problem."""
        content = (text.title, text.text)
        earlier = self._by_content.get(content)
        if earlier is not None:
            return earlier
        id_ = text.id or f"p{len(self._by_content)}"
        if id_ in self._content_by_id:
            problem = f"the text {id_!r} is another one than before"
            problems.add(location, problem, "give it another id")
        document = Document(id_, *content)
        self._by_content[content] = document
        self._content_by_id[id_] = content
        return document


def _read_questions(
    files: Sequence[File], columns: _Columns, problems: ReadProblems
) -> Iterator[QuotedQuestion]:
    """Yield the questions of a table with all their texts."""
    documents = _Documents()
    for row in rows_of_files(*files)(problems):
        cells = {
            name: cell for name, cell in row.cells.items() if name not in columns.all
        }
        right: dict[str, None] = {}
        passages: list[Document] = []
        for text in _marked_texts(row, columns, problems):
            document = documents.add(text, row.location, problems)
            passages.append(document)
            if text.is_right:
                right[document.id] = None
        if right:
            cells[LABEL_COLUMN] = [*right]
        yield QuotedQuestion(row.location, Row(row.location, cells), passages)


def _marked_texts(
    row: Row, columns: _Columns, problems: ReadProblems
) -> Iterator[_Text]:
    """Yield the texts of a row without blank ones; any other value is a problem.

    In a column with flags, what is no object is passed over, and an object without the
    flag is wrong.
    """
    marked: list[tuple[Any, bool]] = []
    for names, is_right in ((columns.right, True), (columns.wrong, False)):
        for name in names:
            value = parse_cell(row.cells.get(name))
            values = value if isinstance(value, list) else [value]
            marked += [(element, is_right) for element in values if element is not None]
    flagged = _objects_in(row.cells.get(columns.flagged))
    marked += [(element, True) for element in flagged]
    for element, is_right in marked:
        text = _text_of(element, columns.flag)
        if text is None:
            problem = f"is no text: {quoted_value(element)}"
            problems.add(row.location, problem, "a text, or an object with a text")
        elif text.text.strip():
            yield text._replace(is_right=is_right and text.is_right)


def _matches(reference: DatasetReference, files: Files) -> bool:
    """Whether a table has queries with right and wrong texts, and no documents."""
    if reference.documents:
        return False
    row = read_first_row(reference, files)
    if not row.cells:
        return False
    has_query = QUERY_COLUMN in row.cells
    if not has_query and Columns(reference.columns).name("query", row) is None:
        return False
    return _find_columns(row, reference) is not None


def _read(reference: DatasetReference, files: Files) -> FunctionSource:
    row = read_first_row(reference, files)
    text_columns = _find_columns(row, reference) or _Columns((), ())
    declared = [
        column
        for column in Columns(reference.columns).declared
        if column.kind != "relevant"
        and text_columns.all.isdisjoint(_outer_names(column.column))
    ]
    if QUERY_COLUMN in row.cells:
        declared.insert(0, DeclaredColumn("query", QUERY_COLUMN))
    declared.append(DeclaredColumn("label_document", LABEL_COLUMN))
    tables = list_table_files(reference, files)
    columns = Columns(tuple(declared), header=reference.header is True)
    return question_source(partial(_read_questions, tables, text_columns), columns)


def _outer_names(declared: str) -> list[str]:
    return [path.partition(".")[0] for path in declared_paths(declared)]


MARKED_TEXTS = FormatReader(_matches, _read)
"""A table of queries with right and wrong texts."""

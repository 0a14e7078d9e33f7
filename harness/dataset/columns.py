"""Declared names of columns."""

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from harness.dataset.cell_paths import declared_paths, has_path
from harness.dataset.source import TableRow
from harness.dataset.usual_names import (
    COLUMN_KINDS,
    DOCUMENT_KINDS,
    DOCUMENT_NAMING_KINDS,
    FIELDS_KIND,
    LABEL_KINDS,
    LOCATION_COLUMNS,
    QUERY_KINDS,
    USUAL_COLUMN_NAMES,
    normalised_name,
    usual_column,
)
from harness.dataset.written_values import quoted_value
from retrievers.errors import InputError, Problem, did_you_mean

MAX_COLUMN_NAME_WORDS = 4
"""Of the name of a column, at most: a longer one is a text."""


@dataclass(frozen=True, slots=True)
class Columns:
    """The names of columns: declared ones, else those of `KNOWN`."""

    declared: Mapping[str, str] = field(default_factory=dict)
    header: bool = False
    """Whether the first row of a table is said to be one, whatever it looks like."""
    usual_names: Mapping[str, tuple[str, ...]] | None = None
    """What one tool calls them, paths too, in the place of `KNOWN`."""

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "declared", dict(kind_first(*pair) for pair in self.declared.items())
        )
        if wrong := [key for key in self.declared if key not in COLUMN_KINDS]:
            what = "{!r} is not a kind of column"
            raise InputError(
                [
                    Problem(
                        "columns", what.format(key), did_you_mean(key, COLUMN_KINDS)
                    )
                    for key in wrong
                ]
            )

    def name(self, kind: str, row: TableRow) -> str | None:
        """The column of a kind in this row, None where there is none."""
        return (
            self._looked_up(kind, row)
            if self.declared or self.usual_names
            else _usual(kind, tuple(row))
        )

    def _looked_up(self, kind: str, row: TableRow) -> str | None:
        if (declared := self.declared.get(kind)) is not None:
            return declared if has_path(row, declared) else None
        if self.usual_names is not None:
            found = next(
                (
                    path
                    for path in self.usual_names.get(kind, ())
                    if has_path(row, path)
                ),
                None,
            )
        else:
            withdrawn = self._withdrawn(kind)
            found = usual_column(
                kind, tuple(name for name in row if name not in withdrawn)
            )
        stronger: Sequence[str] = (
            DOCUMENT_NAMING_KINDS[:2] if kind == "contexts" else ()
        )
        if (
            kind == "label_document"
            and normalised_name(found or "") in LOCATION_COLUMNS
        ):
            stronger = ("relevant",)
        return (
            None
            if any(self.name(other, row) is not None for other in stronger)
            else found
        )

    def _withdrawn(self, kind: str) -> set[str]:
        """What is declared as something else of the same rows: it is not read as this kind, too."""
        if kind in DOCUMENT_KINDS:
            others = [other for other in DOCUMENT_KINDS if other != kind]
        else:  # the id of a query is one thing, in a table of queries and in one of labels
            same = (
                ("query_id", "label_query")
                if kind in ("query_id", "label_query")
                else (kind,)
            )
            others = [other for other in QUERY_KINDS if other not in same]
        named = (
            part
            for other in others
            for part in declared_paths(self.declared.get(other, ""))
        )
        return {name.partition(".")[0] for name in named}.union(self._fields())

    def has_labels(self, row: TableRow) -> bool:
        """Whether a row has, or is declared to have, a column of labels."""
        return any(
            kind in self.declared or self.name(kind, row) is not None
            for kind in LABEL_KINDS
        )

    def kinds_by_column(self, row: TableRow, kinds: Iterable[str]) -> dict[str, str]:
        """What each column of a row is read as: one of the kinds, a field, or "" where it is not used.

        >>> Columns().kinds_by_column({"": 0, "query": "a", "day": 1, "tags": []}, ("query",))
        {'': '', 'query': 'query', 'day': 'fields', 'tags': ''}
        """
        found = {self.name(kind, row): kind for kind in reversed(tuple(kinds))}
        names = {
            part: kind
            for name, kind in found.items()
            if name is not None
            for part in ((name,) if name in row else declared_paths(name))
        }
        holders = {name.partition(".")[0] for name in names if name not in row}
        plain = {
            name
            for name, value in row.items()
            if name and isinstance(value, str | int | float)
        } | {"metadata"}
        rest = {
            name: FIELDS_KIND if name in plain else ""
            for name in row
            if name not in holders
        }
        return rest | names

    def _fields(self) -> list[str]:
        return [name.strip() for name in self.declared.get(FIELDS_KIND, "").split(",")]

    def missing_kinds(self, row: TableRow, kinds: Iterable[str]) -> list[str]:
        """The kinds whose declared columns a row lacks."""
        return [
            kind
            for kind in kinds
            if kind in self.declared and self.name(kind, row) is None
        ]

    def missing_column(self, kind: str, row: TableRow) -> tuple[str, str]:
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
            len(name.split()) > MAX_COLUMN_NAME_WORDS or name.isdigit()
            for name in names
        ):
            remedy = "write one above it: query,document; or say header = false (--no-header), or true if it is one"
            return (
                f"the first row is not a header: {', '.join(map(quoted_value, names[:8]))}",
                remedy,
            )
        remedy = f"there are: {', '.join(names[:8])}; say which: {declaration(kind)}"
        return (
            f"{(self.usual_names or USUAL_COLUMN_NAMES)[kind][0]!r} is missing",
            remedy,
        )


def kind_first(kind: str, name: str) -> tuple[str, str]:
    """A kind and the column of it, whichever was said first.

    >>> kind_first("grade", "rating"), kind_first("rating", "grade"), kind_first("grade", "text")
    (('grade', 'rating'), ('grade', 'rating'), ('grade', 'text'))
    """
    return (
        (name, kind)
        if kind not in COLUMN_KINDS and name in COLUMN_KINDS
        else (kind, name)
    )


@lru_cache(maxsize=1024)
def _usual(kind: str, names: tuple[str, ...]) -> str | None:
    """The column of a kind where nothing is declared: looked for once, since most rows have the same names."""
    return Columns()._looked_up(kind, dict.fromkeys(names))


def declaration(kind: str, name: str = "…") -> str:
    """How an experiment, and an option, say what a column holds.

    >>> declaration("grade", "stars")
    'columns = { grade = "stars" } (--columns grade=stars)'
    """
    return (
        f'columns = {{ {kind} = "{name}" }} (--columns {shlex.quote(f"{kind}={name}")})'
    )


def not_labels_remedy(name: str) -> str:
    """The remedy where a column holds no label."""
    return f"if it holds no label, keep it as a field: {declaration(FIELDS_KIND, name)}"

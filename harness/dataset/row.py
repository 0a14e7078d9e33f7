"""A row as it is written in a file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from harness.dataset.cell_paths import MISSING_VALUE, value_under
from harness.dataset.source import SourceLocation

FIELD_OBJECTS = ("metadata", "fields")
"""Columns of objects whose values are fields, if they are plain."""


class Row(NamedTuple):
    """A row of a table, or an object of JSON, with its location."""

    location: SourceLocation
    cells: Mapping[str, Any]
    """Column -> value, in the order of the file."""

    @property
    def column_names(self) -> tuple[str, ...]:
        """The names of its columns."""
        return tuple(self.cells)

    def has(self, path: str) -> bool:
        """Whether a row has a column, or a path of keys such as `inputs.question`."""
        return self.value(path, MISSING_VALUE) is not MISSING_VALUE

    def value(self, path: str, missing: Any = None) -> Any:
        """Return the value in a column or under a path; `missing` if there is none.

        NaN, by which pandas means an empty cell, is None.

        >>> row = Row(SourceLocation("q"), {"inputs": {"question": "why"}})
        >>> row.value("inputs.question"), row.has("inputs.answer")
        ('why', False)
        """
        cells = self.cells
        cell = cells[path] if path in cells else value_under(cells, path, missing)
        return None if isinstance(cell, float) and cell != cell else cell

    def further_fields(self, used: Iterable[str | None]) -> dict[str, str]:
        """Return the plain values of a row that are not used.

        Those in its objects `metadata` and `fields` are among them.

        Args:
            used: columns that are read as something else than a field.
        """
        # A column without a name is, for example, the index that pandas writes.
        skipped = {"", *used}
        if self.cells.keys() <= skipped:
            return {}
        skipped.add("metadata")
        fields: dict[Any, Any] = {}
        for column in FIELD_OBJECTS:
            held_fields = self.cells.get(column)
            if isinstance(held_fields, Mapping):
                fields.update(held_fields)
        fields.update(self.cells)
        return {
            str(key): str(value)
            for key, value in fields.items()
            if key not in skipped and _is_field_value(value)
        }


NO_ROW = Row(SourceLocation(Path()), {})
"""In place of the first row, if a table has no rows."""


def _is_field_value(value: Any) -> bool:
    """Whether a value is a text or a number, and not empty."""
    if not isinstance(value, str | int | float):
        return False
    is_nan = value != value
    return value != "" and not is_nan

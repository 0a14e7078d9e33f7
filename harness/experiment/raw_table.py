"""A table of an experiment before it is checked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any


class NotATable(Exception):
    """A key on the way to a nested key has something other than a table.

    The text of the exception is that key.
    """


@dataclass(frozen=True, slots=True)
class RawTable:
    """A table as a person wrote it: any key may be missing, and have any type.

    Changes return another table: what was written is stored with the results. A method
    that reads an option has one answer for a missing key and for a wrong type, which
    the check of the whole table reports.
    """

    options: Mapping[str, Any]
    """Key -> what was written."""

    @classmethod
    def read(cls, option: object) -> RawTable | None:
        """Return an option as a table; None if it is not a table."""
        return cls(option) if isinstance(option, Mapping) else None

    def __contains__(self, key: str) -> bool:
        return key in self.options

    def get(self, key: str) -> Any:
        """Return an option as it was written; None if the key is missing."""
        return self.options.get(key)

    def text(self, key: str) -> str:
        """Return a text; empty if the key is missing, or has something else."""
        option = self.options.get(key)
        return option if isinstance(option, str) else ""

    def table(self, key: str) -> RawTable | None:
        """Return an inner table; None if the key is missing, or has something else."""
        return self.read(self.options.get(key))

    def with_options(self, **options: object) -> RawTable:
        """Return the table with options, in place of those of the same keys."""
        return self.overlaid(RawTable(options))

    def with_defaults(self, **options: object) -> RawTable:
        """Return the table behind options for the keys that it does not have."""
        return RawTable(options).overlaid(self)

    def overlaid(self, other: RawTable) -> RawTable:
        """Return the table with another's options, in place of those of its keys."""
        return RawTable({**self.options, **other.options})

    def with_nested(self, path: Sequence[str], option: object) -> RawTable:
        """Return the table with an option of an inner table, which may be new.

        Raises:
            NotATable: a key of the path has something other than a table.

        >>> RawTable({"name": "m"}).with_nested(["chunk", "size"], 256).options
        {'name': 'm', 'chunk': {'size': 256}}
        """
        key, *inner_path = path
        if inner_path:
            inner = self.read(self.options.get(key, {}))
            if inner is None:
                raise NotATable(key)
            option = inner.with_nested(inner_path, option).options
        return self.overlaid(RawTable({key: option}))

    def without(self, *keys: str) -> RawTable:
        """Return the table without keys."""
        return RawTable(
            {key: option for key, option in self.options.items() if key not in keys}
        )


@dataclass(frozen=True, slots=True)
class RetrieverEntry:
    """An entry of `[[retrievers]]` before it is checked."""

    where: str
    """Its place in the file, such as `retrievers[0]`."""
    table: RawTable | None
    """None: it is no table."""

    @property
    def name(self) -> str:
        """The retriever's name; empty if it has none."""
        return self.table.text("name") if self.table else ""


def names_in_of(table: RawTable) -> Iterator[str]:
    """Yield the names of parts in a retriever's table, not those in inner tables."""
    of = table.get("of")
    if isinstance(of, str):
        yield of
    elif isinstance(of, Sequence):
        for part in of:
            if isinstance(part, str):
                yield part

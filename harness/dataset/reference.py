"""The location of a data set, with the part that is meant.

Nothing is opened here: `choose_reader` looks at what is there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from retrievers.errors import InputError, Problem
from retrievers.options.user_code import OBJECT_PREFIX

REFERENCE_SCHEMES = ("hf:", "irds:", OBJECT_PREFIX)
"""Beginnings of names that are not paths: of the hub, ir_datasets, an object."""
WEB_SCHEMES = ("http", "https", "ftp")


def parse_reference(reference: str | Path) -> DatasetReference:
    """Return the reference for a path, or for a name on the command line.

    Whether it exists is seen when it is opened.

    Raises:
        InputError: it is a URL.

    >>> parse_reference("hf:mteb/scifact@main").scheme
    'hf:'
    """
    text = (
        str(reference).replace("\\", "/") if isinstance(reference, Path) else reference
    )
    refuse_urls(text)
    if text.startswith(REFERENCE_SCHEMES):
        return DatasetReference(text)
    return DatasetReference(Path(reference))


def refuse_urls(*names: str | None) -> None:
    """Refuse URLs of a data set or of a part of it.

    Earlier versions read databases, so the URL of one has a message of its own.

    Raises:
        InputError: one of the names is a URL.
    """
    for name in names:
        if name and "://" in name:
            scheme = name.partition("://")[0]
            problem = "databases are retired"
            remedy = "write their tables as CSV files"
            if scheme in WEB_SCHEMES:
                problem = f"{name} is a page of the web, and data are read from files"
                remedy = "download it and give its path; of the hub hf:OWNER/NAME"
                scheme = "dataset"
            raise InputError(Problem(scheme, problem, remedy))


class DeclaredColumn(NamedTuple):
    """A column as a person declares it: what it holds, and its name."""

    kind: str
    column: str


def declared_columns(names: Mapping[str, str]) -> tuple[DeclaredColumn, ...]:
    """Return the columns in a table of kinds with their names."""
    return tuple(DeclaredColumn(kind, column) for kind, column in names.items())


@dataclass(frozen=True, slots=True)
class DatasetReference:
    """The location of a data set, and the part that is meant."""

    path: Path | str
    """A folder, a zip archive or a file; or a name with one of the schemes."""
    split: str | None = None
    """The split of the labels; None: the only one, else `test`.

    Of the shards of one table, it must be named if there are several.
    """
    queries: tuple[str, ...] = ()
    """Files of queries, read as one set; empty: those with a usual name."""
    format: str | None = None
    """A key of `choose_reader.READERS_BY_FORMAT`; None: seen from what is there."""
    documents: str | None = None
    """A table of documents, or a folder of them; None: the one with a usual name.

    Names of parts are relative to the data set's folder, or to that of its file.
    """
    labels: str | None = None
    """A table of labels; None: the one with a usual name, else the queries' own."""
    columns: tuple[DeclaredColumn, ...] = ()
    """The columns of tables that are declared, in their order."""
    match: tuple[str, ...] = ()
    """Fields by which labels identify documents; empty if they use ids."""
    where: Mapping[str, tuple[str, ...]] = field(default_factory=dict, hash=False)
    """Column -> the values of the rows that are labels; empty if all rows are."""
    pages: bool = False
    """Whether each page of a PDF is a document."""
    header: bool | None = None
    """Whether the first row of a table is its header.

    None: it is, unless it looks like data.
    """
    gitignore: bool = False
    """Whether files that `.gitignore` names, and `node_modules`, are no documents."""
    drop_dangling: bool = False
    """Whether labels of unknown queries and documents are dropped, not refused."""

    def __post_init__(self) -> None:
        path = self.path if isinstance(self.path, str) else None
        refuse_urls(path, self.documents, self.labels, *self.queries)

    @property
    def scheme(self) -> str:
        """The scheme, such as `hf:`; empty if the reference is a path."""
        path = str(self.path)
        schemes = (scheme for scheme in REFERENCE_SCHEMES if path.startswith(scheme))
        return next(schemes, "")

    @property
    def name(self) -> str:
        """The reference as people write it."""
        return str(self.path) if self.scheme else Path(self.path).as_posix()

    @property
    def folder(self) -> Path:
        """The path; ValueError if the reference is not a path."""
        if self.scheme:
            raise ValueError(f"{self.path} is not a path")
        return Path(self.path)

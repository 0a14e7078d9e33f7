"""Where a data set is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from retrievers.errors import InputError, Problem
from retrievers.options.user_code import OBJECT_PREFIX

REFERENCE_SCHEMES = ("hf:", "irds:", OBJECT_PREFIX)
"""Beginnings of names that are not paths: Hugging Face's hub, ir_datasets, what is in memory."""


def parse_reference(written: str | Path) -> DatasetReference:
    """The reference that a path or a name on the command line stands for.

    Raises:
        InputError: it is a URL.

    >>> parse_reference("hf:mteb/scifact@main").scheme
    'hf:'
    """
    text = str(written).replace("\\", "/") if isinstance(written, Path) else written
    refuse_urls(text)
    return DatasetReference(
        text if text.startswith(REFERENCE_SCHEMES) else Path(written)
    )


def refuse_urls(*names: str | None) -> None:
    """Raise InputError where the name of a data set, or of a part of one, is a URL, as those of databases were."""
    if url := next((name for name in names if name and "://" in name), None):
        raise InputError(
            Problem(
                url.partition("://")[0],
                "databases are retired",
                "write their tables as CSV files",
            )
        )


@dataclass(frozen=True, slots=True)
class DatasetReference:
    """Where a data set is, and which part of it is meant."""

    path: Path | str
    """A folder, a zip archive or a file; a name that begins with one of `SCHEMES`."""
    split: str | None = None
    queries: tuple[str, ...] = ()
    format: str | None = None
    documents: str | None = None
    """A file of documents, or a folder of them, within the data set."""
    labels: str | None = None
    """A file of labels within the data set."""
    columns: Mapping[str, str] = field(default_factory=dict, hash=False)
    """What the columns of tables are called."""
    match: tuple[str, ...] = ()
    """Fields by which labels name documents; their ids where there are none."""
    header: bool | None = None
    """Whether the first row of a table names its columns; None: it does, unless it looks like data."""
    drop_dangling: bool = False
    """Whether labels of what is not there are counted instead of refused."""

    def __post_init__(self) -> None:
        refuse_urls(
            self.path if isinstance(self.path, str) else None,
            self.documents,
            self.labels,
            *self.queries,
        )

    @property
    def scheme(self) -> str:
        """`hf:` or `irds:` where the reference is not a path, else empty."""
        return next(
            (
                scheme
                for scheme in REFERENCE_SCHEMES
                if str(self.path).startswith(scheme)
            ),
            "",
        )

    @property
    def name(self) -> str:
        """The reference as people write it."""
        return str(self.path) if self.scheme else Path(self.path).as_posix()

    @property
    def folder(self) -> Path:
        """The path; ValueError where the reference is none."""
        if self.scheme:
            raise ValueError(f"{self.path} is not a path")
        return Path(self.path)

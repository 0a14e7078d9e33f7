"""Where a data set lies, and which part of it is meant: what decides the reader that opens it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

SCHEMES = ("hf:", "irds:")
"""Beginnings of names that are no paths: Hugging Face's hub, ir_datasets."""


def reference_of(written: str | Path) -> DatasetReference:
    """The reference that a path or a name on the command line stands for.

    >>> reference_of("hf:mteb/scifact@main").scheme
    'hf:'
    """
    text = str(written).replace("\\", "/") if isinstance(written, Path) else written
    return DatasetReference(text if text.startswith(SCHEMES) else Path(written))


@dataclass(frozen=True, slots=True)
class DatasetReference:
    """Where a data set lies, and which part of it is meant."""

    path: Path | str
    """A folder, a zip archive or a file; or a name that begins with one of `SCHEMES`."""
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

    @property
    def scheme(self) -> str:
        """`hf:` or `irds:` where the reference is no path, else empty."""
        return next((scheme for scheme in SCHEMES if str(self.path).startswith(scheme)), "")

    @property
    def name(self) -> str:
        """The reference as people write it."""
        return str(self.path) if self.scheme else Path(self.path).as_posix()

    @property
    def folder(self) -> Path:
        """The path; ValueError where the reference is none."""
        if self.scheme:
            raise ValueError(f"{self.path} is no path")
        return Path(self.path)

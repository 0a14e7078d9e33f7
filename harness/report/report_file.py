"""A file of a report."""

from typing import NamedTuple


class ReportFile(NamedTuple):
    """A text file in the folder of results."""

    path: str
    """The path below the folder."""
    content: str

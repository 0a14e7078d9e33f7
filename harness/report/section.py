"""What a section of the report is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from harness.report.figures import Figure


class Section(NamedTuple):
    """One section: its template is `<id>.html`, with a block for the page and one for Markdown."""

    id: str
    title: str
    context: Mapping[str, Any]
    """What the template reads."""
    figures: tuple[Figure, ...] = ()

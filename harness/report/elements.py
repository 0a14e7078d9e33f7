"""The parts of a section: charts as SVG, wide and narrow on the page, and as a file."""

import re
from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import Any, NamedTuple

from harness.report import charts
from harness.report.charts import NARROW, WIDE, Plot
from harness.report.theme import FONT, MUTED, PAPER


class Figure(NamedTuple):
    """One chart."""

    name: str
    """Of its file."""
    title: str
    """A short title."""
    description: str
    """The description for screen readers."""
    wide: Plot
    narrow: Plot
    """The drawing for a telephone; may equal the wide one."""


def figure(name: str, title: str, description: str, draw: Callable[[float], Plot], *, wide: float = WIDE) -> Figure:
    """Draw a chart for both widths.

    Args:
        name: of its file; characters that a file name cannot hold become dashes.
        title: a short title.
        description: for screen readers.
        draw: returns the drawing for a width in pixels.
        wide: the larger width.
    """
    broad, narrow = draw(wide), draw(NARROW)
    return Figure(re.sub(r"[^A-Za-z0-9.@_-]+", "-", name).strip("-"), title, description, broad,
                  broad if narrow == broad else narrow)  # fmt: skip


def svg(figure: Figure) -> str:
    """Return a figure as a self-contained SVG file on white, with a description for screen readers."""
    words = f"<title>{escape(figure.title)}</title><desc>{escape(figure.description)}</desc>"
    paper = f'<rect width="100%" height="100%" fill="{PAPER.light}"/>'
    head = f'xmlns="http://www.w3.org/2000/svg" role="img" font-family="{FONT}"'
    return _element(figure.wide, head, words + paper) + "\n"


def inline(figure: Figure) -> str:
    """Return it for the page, without background; the surrounding figure names it."""
    hidden = 'aria-hidden="true" focusable="false"'
    if figure.narrow is figure.wide:
        return _element(figure.wide, hidden)
    narrow = _element(figure.narrow, f'{hidden} class="narrow"')
    return _element(figure.wide, f'{hidden} class="broad"') + narrow


def _element(drawing: Plot, attributes: str, before: str = "") -> str:
    width, height = (f"{size:.0f}" for size in (drawing.width, drawing.height))
    size = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}" font-size="12" fill="{MUTED.light}"'
    return f"<svg {attributes} {size}>{before}{drawing.body}</svg>"


class Section(NamedTuple):
    """One section: its template is `<id>.html`, with a block for the page and one for Markdown."""

    id: str
    title: str
    context: Mapping[str, Any]
    """The variables of the template."""
    figures: tuple[Figure, ...] = ()


Panels = Mapping[str, Sequence[charts.ForestRow]]
FACETED = 1080.0
"""Width of a forest with several panels, in pixels."""


def forest(words: tuple[str, str, str, str], panels: Panels, margin: float | None) -> Figure:
    """Draw differences in the given order; the margin is a band around zero, None or 0 for none.

    Args:
        words: name, title, description, and the title of the axis.
        panels: head -> rows.
        margin: of the measure.
    """
    name, title, description, axis = words
    return figure(
        name, title, description, lambda width: charts.forest(panels, axis, margin, width),
        wide=FACETED if len(panels) > 1 else WIDE,
    )  # fmt: skip

"""The parts of a section: tables, and charts as SVG, on the page wide and narrow, as a file that stands alone."""

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
    """What it shows, in a few words."""
    description: str
    """What is to be seen, for those who do not see it."""
    wide: Plot
    narrow: Plot
    """The same for a telephone; it may be the wide one."""


def figure(name: str, title: str, description: str, draw: Callable[[float], Plot], *, wide: float = WIDE) -> Figure:
    """Draw a chart for both widths.

    Args:
        name: of its file; what a file name cannot hold becomes a dash.
        title: what it shows.
        description: what is to be seen.
        draw: draws it at a width in pixels.
        wide: the larger width.
    """
    broad, narrow = draw(wide), draw(NARROW)
    return Figure(re.sub(r"[^A-Za-z0-9.@_-]+", "-", name).strip("-"), title, description, broad,
                  broad if narrow == broad else narrow)  # fmt: skip


def svg(figure: Figure) -> str:
    """Return a figure as an SVG file that stands alone, on white paper, described for screen readers."""
    words = f"<title>{escape(figure.title)}</title><desc>{escape(figure.description)}</desc>"
    paper = f'<rect width="100%" height="100%" fill="{PAPER.light}"/>'
    head = f'xmlns="http://www.w3.org/2000/svg" role="img" font-family="{FONT}"'
    return _element(figure.wide, head, words + paper) + "\n"


def inline(figure: Figure) -> str:
    """Return it for the page: on the page's paper, named by the figure that holds it."""
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
    """What the template reads."""
    figures: tuple[Figure, ...] = ()


Panels = Mapping[str, Sequence[charts.ForestRow]]
FACETED = 1080.0
"""Pixels of a forest with several panels."""


def forest(words: tuple[str, str, str, str], panels: Panels, margin: float | None) -> Figure:
    """Draw differences in the order given; the margin is a band around zero, None or 0 for none.

    Args:
        words: name, title, description, and what the axis says.
        panels: head -> rows.
        margin: of the measure.
    """
    name, title, description, axis = words
    return figure(
        name, title, description, lambda width: charts.forest(panels, axis, margin, width),
        wide=FACETED if len(panels) > 1 else WIDE,
    )  # fmt: skip

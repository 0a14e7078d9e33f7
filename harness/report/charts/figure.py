"""A chart in two widths."""

import re
from collections.abc import Callable
from html import escape
from typing import NamedTuple

from markupsafe import Markup

from harness.report.palette import MUTED_SHADE, PAGE_FONT, PAPER_SHADE

WIDE_WIDTH, NARROW_WIDTH = 700.0, 336.0
"""Width of charts in pixels, on a screen and on a telephone."""


class Plot(NamedTuple):
    """The content of an SVG element."""

    width: float
    height: float
    body: Markup


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


def draw_figure(
    name: str,
    title: str,
    description: str,
    draw: Callable[[float], Plot],
    *,
    wide: float = WIDE_WIDTH,
) -> Figure:
    """Draw a chart for both widths.

    Args:
        name: of its file; characters that a file name cannot hold become dashes.
        title: a short title.
        description: for screen readers.
        draw: returns the drawing for a width in pixels.
        wide: the larger width.
    """
    broad, narrow = draw(wide), draw(NARROW_WIDTH)
    return Figure(
        re.sub(r"[^A-Za-z0-9.@_-]+", "-", name).strip("-"),
        title,
        description,
        broad,
        broad if narrow == broad else narrow,
    )


def svg_file(figure: Figure) -> str:
    """Return a figure as a self-contained SVG file on white, with a description for screen readers."""
    words = f"<title>{escape(figure.title)}</title><desc>{escape(figure.description)}</desc>"
    paper = f'<rect width="100%" height="100%" fill="{PAPER_SHADE.light}"/>'
    head = f'xmlns="http://www.w3.org/2000/svg" role="img" font-family="{PAGE_FONT}"'
    return _element(figure.wide, head, words + paper) + "\n"


def inline_svg(figure: Figure) -> str:
    """Return it for the page, without background; the surrounding figure names it."""
    hidden = 'aria-hidden="true" focusable="false"'
    if figure.narrow is figure.wide:
        return _element(figure.wide, hidden)
    narrow = _element(figure.narrow, f'{hidden} class="narrow"')
    return _element(figure.wide, f'{hidden} class="broad"') + narrow


def _element(drawing: Plot, attributes: str, before: str = "") -> str:
    width, height = (f"{size:.0f}" for size in (drawing.width, drawing.height))
    size = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}" font-size="12" fill="{MUTED_SHADE.light}"'
    return f"<svg {attributes} {size}>{before}{drawing.body}</svg>"

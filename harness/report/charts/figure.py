"""A chart in two widths."""

import re
from collections.abc import Callable
from html import escape
from typing import NamedTuple

from markupsafe import Markup

from harness.report.palette import BACKGROUND_SHADE, MUTED_SHADE, PAGE_FONT

WIDE_WIDTH = 700.0
"""Width of charts in pixels, on a screen."""
NARROW_WIDTH = 336.0
"""Width of charts in pixels, on a telephone."""


class Plot(NamedTuple):
    """The content of an SVG element."""

    width: float
    height: float
    body: Markup


class Figure(NamedTuple):
    """One chart."""

    name: str
    """Name of its file."""
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
    wide_plot = draw(wide)
    narrow_plot = draw(NARROW_WIDTH)
    file_name = re.sub(r"[^A-Za-z0-9.@_-]+", "-", name).strip("-")
    return Figure(
        file_name,
        title,
        description,
        wide_plot,
        wide_plot if narrow_plot == wide_plot else narrow_plot,
    )


def svg_file(figure: Figure) -> str:
    """Return a figure as a self-contained SVG file on white.

    It has a description for screen readers.
    """
    title = f"<title>{escape(figure.title)}</title>"
    description = f"<desc>{escape(figure.description)}</desc>"
    paper = f'<rect width="100%" height="100%" fill="{BACKGROUND_SHADE.light}"/>'
    attributes = (
        f'xmlns="http://www.w3.org/2000/svg" role="img" font-family="{PAGE_FONT}"'
    )
    return _svg_text(figure.wide, attributes, title + description + paper) + "\n"


def inline_svg(figure: Figure) -> str:
    """Return a figure for the page: without background, named by its surroundings."""
    hidden = 'aria-hidden="true"'
    if figure.narrow is figure.wide:
        return _svg_text(figure.wide, hidden)
    wide = _svg_text(figure.wide, f'{hidden} class="broad"')
    narrow = _svg_text(figure.narrow, f'{hidden} class="narrow"')
    return wide + narrow


def _svg_text(plot: Plot, attributes: str, head: str = "") -> str:
    """Return the SVG of a plot; `head` comes before its body."""
    width = f"{plot.width:.0f}"
    height = f"{plot.height:.0f}"
    size = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    style = f'font-size="12" fill="{MUTED_SHADE.light}"'
    return f"<svg {attributes} {size} {style}>{head}{plot.body}</svg>"

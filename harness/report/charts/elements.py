"""SVG elements of a chart."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping

from markupsafe import Markup

from harness.pages import visible_text
from harness.report.palette import INK_SHADE

LINE_HEIGHT = 16.0
"""Pixels of a line of text."""


def text_width(words: str) -> float:
    """Return the largest width of a text in pixels, for the widest font of a page."""
    return sum(map(_width, words))


def _width(letter: str) -> float:
    if letter in "mwMW@%" or unicodedata.east_asian_width(letter) in "WF":
        return 12.0
    return 4.5 if letter in "iljtfI.,:;|' ()" else 7.5


def pixel_text(pixels: float) -> str:
    """Return a position with at most one decimal: more is not visible, and a page has thousands of them."""
    return f"{pixels:.1f}".removesuffix(".0")


def svg_element(
    tag: str, body: str | Markup | None = None, /, **attributes: object
) -> Markup:
    """An SVG element: numbers in pixels, underscores in names as dashes, texts escaped; None is omitted.

    >>> svg_element("text", "a<b", x=1.26, text_anchor="end", class_="name")
    Markup('<text x="1.3" text-anchor="end" class="name">a&lt;b</text>')
    """
    form = Markup(' {}="{}"')
    shown = Markup("").join(
        form.format(
            name.rstrip("_").replace("_", "-"),
            pixel_text(value) if isinstance(value, float | int) else value,
        )
        for name, value in attributes.items()
        if value is not None
    )
    element = "<{0}{1}/>" if body is None else "<{0}{1}>{2}</{0}>"
    return Markup(element).format(tag, shown, body)  # noqa: S704 - ours


def join_elements(parts: Iterable[Markup]) -> Markup:
    """Join elements."""
    return Markup("").join(parts)


def wrap_title(title: str, width: float) -> list[str]:
    """The title, wrapped to the width of the chart."""
    lines: list[str] = []
    for word in visible_text(title).split():
        if lines and text_width(f"{lines[-1]} {word}") <= width:
            lines[-1] = f"{lines[-1]} {word}"
        else:
            lines.append(word)
    return lines


def _title(facts: Mapping[str, object]) -> Markup:
    """The tooltip of a mark, one line per fact; a spreadsheet gets it, too."""
    lines = [
        f"{key}: {f'{value:.4f}' if isinstance(value, float) else value}"
        for key, value in facts.items()
    ]
    return svg_element("title", visible_text("\n".join(lines)))


def draw_interval_point(
    span: tuple[float, float, float, float],
    point: tuple[float, float],
    color: str,
    facts: Mapping[str, object],
    beside: str = "",
    slice_: str = "",
) -> Markup:
    """A point on its interval.

    Args:
        span: both ends of the interval: x, x, y, y.
        point: x, y.
        color: of point and interval.
        facts: of the tooltip.
        beside: the text beside it.
        slice_: its slice, which a click selects.
    """
    body = Markup(
        '<line class="span" x1="{}" x2="{}" y1="{}" y2="{}" stroke="{}" stroke-width="2"/>'
        '<g transform="translate({} {})"><circle r="5" fill="{}"/>{}</g>{}'
    ).format(
        *map(pixel_text, span),
        color,
        *map(pixel_text, point),
        color,
        beside,
        _title(facts),
    )
    return svg_element(
        "g", body, class_="dot", data_slice=visible_text(slice_) if slice_ else None
    )


def draw_side_text(  # noqa: D103
    words: str, x: float, y: float, anchor: str = "start", color: str = INK_SHADE.light
) -> Markup:
    shown = {"class_": "beside", "x": x, "y": y, "text_anchor": anchor, "fill": color}
    return svg_element("text", visible_text(words), **shown) if words else Markup("")

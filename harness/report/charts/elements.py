"""SVG elements of a chart."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from markupsafe import Markup

from harness.pages import visible_text
from harness.report.palette import INK_SHADE

LINE_HEIGHT = 16.0
"""Pixels of a line of text."""


class Point(NamedTuple):
    """A position in pixels."""

    x: float
    y: float


class Line(NamedTuple):
    """Both ends of a line in pixels."""

    x1: float
    x2: float
    y1: float
    y2: float


def text_width(text: str) -> float:
    """Return about the width of a text of 12 pixels in a wide font, in pixels."""
    return sum(map(_letter_width, text))


def _letter_width(letter: str) -> float:
    if letter in "mwMW@%" or unicodedata.east_asian_width(letter) in "WF":
        return 12.0
    return 4.5 if letter in "iljtfI.,:;|' ()" else 7.5


def pixel_text(pixels: float) -> str:
    """Return a position with at most one decimal.

    More is not visible, and a page has thousands of positions.
    """
    return f"{pixels:.1f}".removesuffix(".0")


def svg_element(
    tag: str, body: str | Markup | None = None, /, **attributes: object
) -> Markup:
    """An SVG element with escaped texts.

    Numbers are in pixels, underscores in names become dashes, None is omitted.

    >>> svg_element("text", "a<b", x=1.26, text_anchor="end", class_="name")
    Markup('<text x="1.3" text-anchor="end" class="name">a&lt;b</text>')
    """
    attribute_form = Markup(' {}="{}"')
    attribute_texts: list[Markup] = []
    for key, value in attributes.items():
        if value is None:
            continue
        if isinstance(value, float | int):
            value = pixel_text(value)
        attribute_name = key.rstrip("_").replace("_", "-")
        attribute_texts.append(attribute_form.format(attribute_name, value))
    form = "<{0}{1}/>" if body is None else "<{0}{1}>{2}</{0}>"
    joined = join_elements(attribute_texts)
    return Markup(form).format(tag, joined, body)  # noqa: S704 - ours


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


class MarkFact(NamedTuple):
    """A line of a mark's tooltip."""

    name: str
    fact: object


def draw_interval_point(
    span: Line,
    point: Point,
    color: str,
    facts: Sequence[MarkFact],
    *,
    side_text: str | Markup = "",
) -> Markup:
    """A point on its interval.

    Args:
        span: the interval.
        point: the point.
        color: of point and interval.
        facts: of the tooltip.
        side_text: the text beside the point.
    """
    body = Markup(
        '<line class="span" x1="{}" x2="{}" y1="{}" y2="{}" '
        'stroke="{}" stroke-width="2"/>'
        '<g transform="translate({} {})"><circle r="5" fill="{}"/>{}</g>{}'
    ).format(
        *map(pixel_text, span),
        color,
        *map(pixel_text, point),
        color,
        side_text,
        _tooltip(facts),
    )
    return svg_element("g", body, class_="dot")


def _tooltip(facts: Sequence[MarkFact]) -> Markup:
    """The tooltip of a mark, one line per fact."""
    lines: list[str] = []
    for name, fact in facts:
        text = f"{fact:.4f}" if isinstance(fact, float) else fact
        lines.append(f"{name}: {text}")
    return svg_element("title", visible_text("\n".join(lines)))


def draw_side_text(
    text: str,
    x: float,
    y: float,
    *,
    anchor: str = "start",
    color: str | None = INK_SHADE.light,
) -> Markup:
    """A text beside a mark, in its own color or its group's; "" for an empty text."""
    if not text:
        return Markup("")
    return svg_element(
        "text",
        visible_text(text),
        x=x,
        y=y,
        text_anchor=None if anchor == "start" else anchor,  # which is the default
        fill=color,
    )

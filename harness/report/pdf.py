"""A figure as PDF, for papers: the marks of its SVG, drawn by matplotlib (the extra `figures`)."""

from __future__ import annotations

import io
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from retrievers.errors import needing

POINTS = 0.75
"""Of a pixel: 96 of them are an inch, which has 72 points."""
STEP = re.compile(r"([MLHVZA])([^MLHVZA]*)")
NUMBER = re.compile(r"-?(?:\d+\.?\d*|\.\d+)")
INHERITED = ("fill", "font-size", "font-weight", "stroke")


class _Pen(NamedTuple):
    """Where an element lies, and what it takes from those around it."""

    x: float
    y: float
    scale: float
    turned: float
    style: Mapping[str, str]

    def at(self, x: float, y: float) -> tuple[float, float]:
        return self.x + self.scale * x, self.y + self.scale * y

    def within(self, element: ET.Element) -> _Pen:
        """The pen for what stands in an element."""
        style = {**self.style, **{key: element.attrib[key] for key in INHERITED if key in element.attrib}}
        pen = self._replace(style=style)
        for name, words in re.findall(r"(\w+)\(([^)]*)\)", element.get("transform", "")):
            first, *others = map(float, NUMBER.findall(words))
            if name == "translate":
                x, y = pen.at(first, *others)
                pen = pen._replace(x=x, y=y)
            elif name == "scale":
                pen = pen._replace(scale=pen.scale * first)
            else:  # rotate: no chart turns anything but text
                pen = pen._replace(turned=-first)
        return pen


def pdf(svg: str) -> bytes:
    """Return an SVG of ours as PDF, its text as text; the same bytes each time.

    Raises:
        InputError: matplotlib is not installed.
    """
    with needing("--figures", "matplotlib", "figures"):
        import matplotlib as mpl
        from matplotlib.figure import Figure
    root = ET.fromstring(svg)  # noqa: S314 - ours
    width, height = (float(root.attrib[side]) for side in ("width", "height"))
    with mpl.rc_context({"pdf.fonttype": 42, "font.family": "sans-serif"}):
        page = Figure(figsize=(width * POINTS / 72, height * POINTS / 72))
        plane = page.add_axes((0, 0, 1, 1), xlim=(0, width), ylim=(height, 0))
        plane.set_axis_off()
        for artist in _artists(root, _Pen(0, 0, 1, 0, {})):
            getattr(plane, f"add_{artist[0]}")(artist[1])
        out = io.BytesIO()
        page.savefig(out, format="pdf", metadata={"CreationDate": None, "Title": root[0].text})
    return out.getvalue()


def _artists(element: ET.Element, outer: _Pen) -> Iterator[tuple[str, Any]]:
    """What matplotlib draws for an element and all that stands in it: (how it is added, what)."""
    pen, tag = outer.within(element), element.tag.rpartition("}")[2]
    if tag == "text":
        yield "artist", _text(element, pen)
    elif tag in ("line", "rect", "path", "circle") and "%" not in element.get("width", ""):
        yield "patch", _patch(element, tag, pen)
    for child in element:
        yield from _artists(child, pen)


def _patch(element: ET.Element, tag: str, pen: _Pen) -> Any:
    from matplotlib.patches import PathPatch

    fill = "none" if tag == "line" else pen.style.get("fill", "none")
    dashes = [float(one) for one in NUMBER.findall(element.get("stroke-dasharray", ""))]
    width = float(element.get("stroke-width", 1)) * POINTS
    stroke = element.get("stroke", "none")
    return PathPatch(
        _path(element, tag, pen), facecolor=fill, edgecolor=stroke, linewidth=width if stroke != "none" else 0,
        linestyle=(0, [dash * POINTS / width for dash in dashes]) if any(dashes) else "solid",
        alpha=float(element.get("opacity", 1)) * float(element.get("fill-opacity", 1)), capstyle="butt",
    )  # fmt: skip


def _path(element: ET.Element, tag: str, pen: _Pen) -> Any:
    """The outline of an element, in pixels of the whole."""
    from matplotlib.path import Path

    def given(*names: str) -> list[float]:
        return [float(element.get(name, 0)) for name in names]

    if tag == "line":
        x1, x2, y1, y2 = given("x1", "x2", "y1", "y2")
        return Path([pen.at(x1, y1), pen.at(x2, y2)])
    if tag == "circle":
        x, y, radius = given("cx", "cy", "r")
        return Path.circle(pen.at(x, y), pen.scale * radius)
    if tag == "rect":
        x, y, width, height = given("x", "y", "width", "height")
        corners = [(x, y), (x + width, y), (x + width, y + height), (x, y + height), (x, y)]
        return Path([pen.at(*corner) for corner in corners], closed=True)
    outline = element.get("d", "")
    if "A" in outline:  # of our shapes the circle alone has arcs
        return Path.circle(pen.at(0, 0), pen.scale * 0.8)
    places: list[tuple[float, float]] = [(0.0, 0.0)]
    for step, words in STEP.findall(outline):
        numbers, (x, y) = [float(one) for one in NUMBER.findall(words)], places[-1]
        if step == "H":
            places += [(one, y) for one in numbers]
        elif step == "V":
            places += [(x, one) for one in numbers]
        else:
            places += list(zip(numbers[::2], numbers[1::2], strict=True))
    closed = outline.endswith("Z")
    return Path([pen.at(*place) for place in (*places[1:], *(places[1:2] if closed else ()))], closed=closed)


def _text(element: ET.Element, pen: _Pen) -> Any:
    from matplotlib.text import Text

    anchors: dict[str, Any] = {"start": "left", "middle": "center", "end": "right"}
    x, y = pen.at(float(element.get("x", 0)), float(element.get("y", 0)))
    return Text(
        x, y, (element.text or "").replace("$", r"\$"), color=pen.style.get("fill", "#000000"),
        fontsize=float(pen.style.get("font-size", 12)) * POINTS, fontweight=pen.style.get("font-weight", "normal"),
        horizontalalignment=anchors[element.get("text-anchor", "start")], verticalalignment="baseline",
        rotation=pen.turned, rotation_mode="anchor",
    )  # fmt: skip

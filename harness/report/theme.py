"""Colours, shapes and dashes: told apart by colour-blind readers, in print, and on a dark screen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', 'Helvetica Neue', Arial, sans-serif"


class Shade(NamedTuple):
    """A colour on paper and its twin on a dark screen."""

    light: str
    dark: str


PAPER = Shade("#ffffff", "#14171b")
INK = Shade("#1b1f24", "#e8eaed")
MUTED = Shade("#57606a", "#a3adb8")
RULE = Shade("#dfe3e8", "#343a42")
SERIES = (
    Shade("#0067a5", "#58a6e8"),
    Shade("#c8500a", "#f28b4b"),
    Shade("#00836a", "#3cc4a3"),
    Shade("#a6358c", "#e08acb"),
    Shade("#8a6d00", "#d6b52e"),
    Shade("#3a2fa0", "#a09af2"),
    Shade("#b3202c", "#f47c80"),
    Shade("#4b5a66", "#9fb2c1"),
    Shade("#5c8a00", "#9ccc3c"),
    Shade("#7a4a2b", "#cf9b77"),
)
"""At least 3 : 1 against their paper (WCAG 2.2, 1.4.11); neighbours differ in lightness as well as in hue."""
SHAPES = {
    "circle": "M.8,0A.8,.8,0,1,1,-.8,0A.8,.8,0,1,1,.8,0Z",
    "square": "M-.75,-.75H.75V.75H-.75Z",
    "triangle-up": "M0,-.9L.9,.7H-.9Z",
    "diamond": "M0,-1L.8,0L0,1L-.8,0Z",
    "cross": "M-.3,-.9H.3V-.3H.9V.3H.3V.9H-.3V.3H-.9V-.3H-.3Z",
    "triangle-down": "M0,.9L.9,-.7H-.9Z",
    "triangle-right": "M.9,0L-.7,.9V-.9Z",
    "triangle-left": "M-.9,0L.7,.9V-.9Z",
}
"""Vega's names, and the outlines that the tables draw."""
DASHES = ((1, 0), (7, 2), (2, 2), (7, 2, 2, 2), (4, 2), (10, 3))
SHADES = (INK, MUTED, RULE, *SERIES)


class Mark(NamedTuple):
    """How one retriever is drawn wherever it stands."""

    color: str
    shape: str
    outline: str
    dash: tuple[int, ...]


def marks(retrievers: Sequence[str]) -> dict[str, Mark]:
    """Give each retriever a colour, a shape and a dash, in the order of the experiment."""
    shapes = list(SHAPES.items())
    found = {}
    for i, name in enumerate(retrievers):
        shape, outline = shapes[i % len(shapes)]
        found[name] = Mark(SERIES[i % len(SERIES)].light, shape, outline, DASHES[i % len(DASHES)])
    return found


def config() -> dict[str, Any]:
    """The look of every chart: thin rules, no frame, 12-pixel text."""
    text = {"labelColor": MUTED.light, "titleColor": MUTED.light, "labelFontSize": 12, "titleFontSize": 12,
            "titleFontWeight": "normal", "labelLimit": 180}  # fmt: skip
    return {
        "aria": False,
        "font": FONT,
        "view": {"stroke": None},
        "axis": {**text, "domain": False, "ticks": False, "gridColor": RULE.light, "labelPadding": 6,
                 "titlePadding": 8},
        "axisX": {"grid": False, "labelFlush": False},
        "legend": {**text, "orient": "bottom", "title": None, "columnPadding": 16, "symbolSize": 70,
                   "symbolStrokeWidth": 0, "offset": 10, "labelColor": INK.light},
        "header": {**text, "labelColor": INK.light},
        "title": {"color": INK.light, "fontSize": 13, "fontWeight": 600, "anchor": "start", "offset": 8},
    }  # fmt: skip

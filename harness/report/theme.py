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
    Shade("#2f8ac4", "#4f9cf0"),
    Shade("#8f3200", "#d0541c"),
    Shade("#0d5b45", "#83ecd2"),
    Shade("#5a1560", "#b8609a"),
    Shade("#a87f19", "#e0d385"),
    Shade("#cf3a5e", "#ff8fa3"),
    Shade("#1d1a8a", "#837bf0"),
    Shade("#66737f", "#a9b8c4"),
    Shade("#6f9a1f", "#a5cc4f"),
    Shade("#7b5a48", "#b58f78"),
)
"""At least 3 : 1 against their paper (WCAG 2.2, 1.4.11). The first five are 20 apart or more (CIE 1976) to readers with
any one of the three colour deficiencies; beyond, shape and dash tell more."""
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
                   "symbolStrokeWidth": 0, "symbolOpacity": 1, "offset": 10, "labelColor": INK.light},
        "header": {**text, "labelColor": INK.light},
        "title": {"color": INK.light, "fontSize": 13, "fontWeight": 600, "anchor": "start", "offset": 8},
    }  # fmt: skip

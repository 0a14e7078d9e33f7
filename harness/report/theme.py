"""Colours and shapes: distinct for colour-blind readers, in print, and on a dark screen."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping
from itertools import count
from typing import NamedTuple

from harness.pages import DARK, WHITE, on_dark

FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', 'Helvetica Neue', Arial, sans-serif"


class Shade(NamedTuple):
    """A colour on paper and its twin on a dark screen."""

    light: str
    dark: str


PAPER = Shade(WHITE, DARK)
INK = Shade("#1b1f24", "#e8eaed")
MUTED = Shade("#57606a", "#a3adb8")
RULE = Shade("#dfe3e8", "#343a42")
SERIES = (
    Shade("#2f8ac4", "#4f9cf0"),
    Shade("#9b53ea", "#764de2"),
    Shade("#055e00", "#9cf853"),
    Shade("#5a1560", "#b8609a"),
    Shade("#a87f19", "#e0d385"),
    Shade("#cf3a5e", "#ff8fa3"),
    Shade("#1d1a8a", "#837bf0"),
    Shade("#66737f", "#a9b8c4"),
    Shade("#d12fa6", "#ff5fe0"),
    Shade("#7b5a48", "#b58f78"),
)
"""At least 3 : 1 against their paper (WCAG 2.2, 1.4.11). The first five are 20 apart or more (CIE 1976) to readers with
any one of the three colour deficiencies; beyond, the shape tells more. None comes
near the hues of the verdicts."""
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
"""Names and outlines: what tables and charts draw."""
SHADES = (PAPER, INK, MUTED, RULE, *SERIES)


class Mark(NamedTuple):
    """How one retriever is drawn wherever it stands."""

    color: str
    shape: str
    outline: str


def marks(identities: Mapping[str, str], declared: Mapping[str, str] | None = None) -> dict[str, Mark]:
    """Give each retriever a colour and a shape that follow from what it is, not from where it stands.

    The same retriever looks the same in every report. Where two would share a place, the one whose name comes first
    keeps it, and the other takes the next that is free.

    Args:
        identities: retriever -> what it is, whatever it is called.
        declared: retriever -> the colour that its table declares, "" for none; its shape follows from what it is.
    """
    declared, shapes = declared or {}, list(SHAPES.items())
    different = math.lcm(len(SERIES), len(shapes))  # beyond, colour and shape repeat
    taken: set[int] = set()
    drawn: dict[str, Mark] = {}
    for name in sorted(identities):
        wanted = int.from_bytes(hashlib.sha256(identities[name].encode()).digest()[:4], "big") % len(SERIES)
        for place in _places(wanted):
            shape, outline = shapes[place % len(shapes)]
            color = declared.get(name) or SERIES[place % len(SERIES)].light
            alike = place < different and any((mark.color, mark.shape) == (color, shape) for mark in drawn.values())
            if place not in taken and not alike:
                break
        taken.add(place)
        drawn[name] = Mark(color, shape, outline)
    return {name: drawn[name] for name in identities}


def declared_shades(drawn: Mapping[str, Mark]) -> list[Shade]:
    """The colours that are not ours, with their twins on a dark screen."""
    ours = {shade.light for shade in SERIES}
    return [Shade(color, on_dark(color)) for color in sorted({mark.color for mark in drawn.values()} - ours)]


def _places(wanted: int) -> Iterator[int]:
    """The place that is wanted, then the others of its round of colours, then those of the next rounds."""
    colors = len(SERIES)
    return (rounds * colors + (wanted + step) % colors for rounds in count() for step in range(colors))

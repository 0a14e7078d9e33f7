"""Colours of a page, on white as on a dark screen."""

from collections.abc import Mapping
from typing import NamedTuple

from harness.evaluation.board import Standing

PAGE_FONT = (
    "system-ui, -apple-system, 'Segoe UI', Roboto, 'Liberation Sans', sans-serif"
)


class Shade(NamedTuple):
    """A colour on white and its counterpart on a dark screen."""

    light: str
    dark: str


BACKGROUND_SHADE = Shade("#ffffff", "#121517")
PANEL_SHADE = Shade("#f6f7f8", "#1a1e21")
INK_SHADE = Shade("#16191d", "#e9ecef")
MUTED_SHADE = Shade("#59626d", "#9ca6b1")
RULE_SHADE = Shade("#dde1e6", "#2e353c")
BAND_SHADE = Shade("#e9ecf0", "#262c32")
GOOD_SHADE = Shade("#0a6b4a", "#58c99a")
WORSE_SHADE = Shade("#a8410a", "#f09a66")
UNDECIDED_SHADE = Shade("#4453a6", "#a3b2ff")
PAGE_SHADES: Mapping[str, Shade] = {
    "background": BACKGROUND_SHADE,
    "panel": PANEL_SHADE,
    "ink": INK_SHADE,
    "muted": MUTED_SHADE,
    "rule": RULE_SHADE,
    "band": BAND_SHADE,
    "good": GOOD_SHADE,
    "worse": WORSE_SHADE,
    "undecided": UNDECIDED_SHADE,
}
"""Name in the style sheet -> its colours.

Retrievers have none: a name and a position identify them. A colour is a verdict, and
always has a sign and a word beside it.
"""
STATE_BY_STANDING: Mapping[Standing, str] = {
    "leader": "good",
    "good": "good",
    "better": "good",
    "worse": "worse",
    "open": "undecided",
    "same": "undecided",
    "baseline": "muted",
    "failed": "muted",
}
"""Standing of a row -> the name of its colour."""


def standing_shade(standing: Standing) -> Shade:
    """Return the colour of a standing."""
    return PAGE_SHADES[STATE_BY_STANDING[standing]]

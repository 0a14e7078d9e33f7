"""Colours of a page, on paper as on a dark screen."""

import hashlib
from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

from harness.pages import DARK_PAPER, WHITE_PAPER, dark_mode_color, is_color
from harness.records import Results

PAGE_FONT = (
    "system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', "
    "'Helvetica Neue', Arial, sans-serif"
)


class Shade(NamedTuple):
    """A colour on paper and its counterpart on a dark screen."""

    light: str
    dark: str


PAPER_SHADE = Shade(WHITE_PAPER, DARK_PAPER)
INK_SHADE = Shade("#1b1f24", "#e8eaed")
MUTED_SHADE = Shade("#57606a", "#a3adb8")
RULE_SHADE = Shade("#dfe3e8", "#343a42")
RETRIEVER_SHADES = (
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
"""At least 3 : 1 against their paper (WCAG 2.2, 1.4.11).

The first five are 20 apart or more (CIE 1976) to readers with each of the three colour
deficiencies; each appears with a name. None is close to the hues of the verdicts.
"""
PAGE_SHADES = (PAPER_SHADE, INK_SHADE, MUTED_SHADE, RULE_SHADE, *RETRIEVER_SHADES)


def assign_colors(
    identities: Mapping[str, str], declared: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Give each retriever a colour that depends on its identity, not on its rank.

    The same retriever has the same colour in every report. If two would share one, the
    first by name keeps it, and the other gets the next free one; beyond ten, colours
    repeat.

    Args:
        identities: retriever -> its identity, without its name.
        declared: retriever -> the colour that its table declares, "" for none.
    """
    colors: dict[str, str] = {}
    for retriever in sorted(identities):
        color = (declared or {}).get(retriever)
        colors[retriever] = color or _next_color(identities[retriever], colors)
    return {retriever: colors[retriever] for retriever in identities}


def _next_color(identity: str, colors: Mapping[str, str]) -> str:
    """Return the colour of an identity, or the next one that is used least."""
    digest = hashlib.sha256(identity.encode()).digest()
    start = int.from_bytes(digest[:4], "big") % len(RETRIEVER_SHADES)
    in_order = RETRIEVER_SHADES[start:] + RETRIEVER_SHADES[:start]
    uses = Counter(colors.values())
    return min((shade.light for shade in in_order), key=uses.__getitem__)


def declared_shades(colors: Mapping[str, str]) -> list[Shade]:
    """The colours that an experiment declares, with those on a dark screen."""
    ours = {shade.light for shade in RETRIEVER_SHADES}
    declared = sorted(set(colors.values()) - ours)
    return [Shade(color, dark_mode_color(color)) for color in declared]


def retriever_colors(results: Results) -> dict[str, str]:
    """The colour of each retriever: declared, or derived from its identity."""
    manifest = results.manifest
    tables = manifest.resolved.retriever_tables
    identities = {
        retriever: manifest.retriever_identity(retriever)
        for retriever in results.retrievers
    }
    declared = {
        retriever: _declared_color(tables[retriever])
        for retriever in results.retrievers
    }
    return assign_colors(identities, declared)


def _declared_color(table: Mapping[str, Any]) -> str:
    """Return the colour of a retriever's table; "" for none.

    A manifest is not trusted: only a colour gets into the style sheet.
    """
    color = table.get("color")
    return color if isinstance(color, str) and is_color(color) else ""

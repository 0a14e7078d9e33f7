"""Colours of a page, on paper as on a dark screen."""

import hashlib
from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

from harness.pages import DARK_PAPER, WHITE_PAPER, dark_mode_color, is_color
from harness.records import Results

PAGE_FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', 'Helvetica Neue', Arial, sans-serif"


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
"""At least 3 : 1 against their paper (WCAG 2.2, 1.4.11). The first five are 20 apart or more (CIE 1976) to readers with
each of the three colour deficiencies; each appears with a name. None is close to the hues of the verdicts."""
PAGE_SHADES = (PAPER_SHADE, INK_SHADE, MUTED_SHADE, RULE_SHADE, *RETRIEVER_SHADES)


def assign_colors(
    identities: Mapping[str, str], declared: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Give each retriever a colour that depends on its identity, not on its rank.

    The same retriever has the same colour in every report. If two would share one, the first by name keeps it, and
    the other gets the next free one; beyond ten, colours repeat.

    Args:
        identities: retriever -> its identity, without its name.
        declared: retriever -> the colour that its table declares, "" for none.
    """
    declared = declared or {}
    drawn: dict[str, str] = {}
    for name in sorted(identities):
        wanted = int.from_bytes(
            hashlib.sha256(identities[name].encode()).digest()[:4], "big"
        )
        turned = [
            RETRIEVER_SHADES[(wanted + step) % len(RETRIEVER_SHADES)].light
            for step in range(len(RETRIEVER_SHADES))
        ]
        taken = Counter(drawn.values())
        drawn[name] = declared.get(name) or min(turned, key=lambda color: taken[color])
    return {name: drawn[name] for name in identities}


def declared_shades(drawn: Mapping[str, str]) -> list[Shade]:
    """The colours that an experiment declares, with their counterparts on a dark screen."""
    ours = {shade.light for shade in RETRIEVER_SHADES}
    return [
        Shade(color, dark_mode_color(color))
        for color in sorted(set(drawn.values()) - ours)
    ]


def retriever_colors(results: Results) -> dict[str, str]:
    """The colour of each retriever: declared, or derived from its identity."""
    blocks = results.manifest.resolved.retriever_tables
    return assign_colors(
        {
            name: results.manifest.retriever_identity(name)
            for name in results.retrievers
        },
        {name: _declared_color(blocks[name]) for name in results.retrievers},
    )


def _declared_color(block: Mapping[str, Any]) -> str:
    """A manifest is not trusted: only a colour gets into the style sheet."""
    color = block.get("color")
    return color if isinstance(color, str) and is_color(color) else ""

"""Colours that can be seen on the paper of our pages, white or dark."""

from __future__ import annotations

import re

WHITE, DARK = "#ffffff", "#14171b"
VISIBLE = 3.0
"""Contrast of a mark with its paper, at least (WCAG 2.2, 1.4.11)."""


def is_color(text: str) -> bool:
    """Whether a text is a colour as our pages write it: six hexadecimal digits.

    >>> is_color("#0b6e4f"), is_color("red"), is_color("#0b6e4f;}")
    (True, False, False)
    """
    return re.fullmatch("#[0-9a-f]{6}", text) is not None


def contrast(one: str, other: str) -> float:
    """Return the contrast of two colours, 1 to 21 (WCAG 2.2, "contrast ratio").

    >>> round(contrast("#ffffff", "#000000"))
    21
    """
    low, high = sorted((_luminance(one), _luminance(other)))
    return (high + 0.05) / (low + 0.05)


def on_dark(color: str) -> str:
    """Return the colour, mixed with white until it is seen on dark paper.

    >>> on_dark("#1d1a8a"), on_dark("#cf3a5e")
    ('#615fad', '#cf3a5e')
    """
    parts = [int(color[at : at + 2], 16) for at in (1, 3, 5)]
    shades = ("#" + "".join(f"{round(part + (255 - part) * step / 20):02x}" for part in parts) for step in range(21))
    return next(shade for shade in shades if contrast(shade, DARK) >= VISIBLE)


def _luminance(color: str) -> float:
    shares = [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for share in shares)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue

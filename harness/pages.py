"""The rules of every HTML page."""

import base64
import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup

_FORBIDDEN_CODES = (
    *range(0x80, 0xA0),
    *range(0xD800, 0xE000),
    *range(0xFDD0, 0xFDF0),
    0xFFFE,
    0xFFFF,
)
"""C1 controls, surrogates and code points that are no characters."""
REPLACED_CHARACTERS = {
    **{code: 0x2400 + code for code in range(32) if chr(code) not in "\t\n"},
    0x7F: 0x2421,
    **dict.fromkeys(_FORBIDDEN_CODES, 0xFFFD),
}
"""Code point that no page, SVG or JSON may hold -> the one that is shown instead.

C0 controls have pictures (U+2400 and up), all others the replacement character.
"""

OVERVIEW_MARK = '<meta name="generator" content="retriever-harness overview">'
"""The element that marks a page over many results: only such a page is written over,
and it is not a document of a data set.
"""
OVERVIEW_HEAD_BYTES = 500
"""Bytes of a page within which it names what made it."""


def is_overview(path: Path) -> bool:
    """Whether a path is a page over many results; OSError if it cannot be read."""
    if not path.is_file():  # a pipe would never come to an end
        return False
    with path.open("rb") as file:
        return OVERVIEW_MARK.encode() in file.read(OVERVIEW_HEAD_BYTES)


def content_security_policy(scripts: Sequence[str], style: str) -> str:
    """Return the policy by which a page runs these scripts and this style only.

    Args:
        scripts: the text of each script element that is run, exactly as in the page.
        style: the text of the style element.
    """
    allowed = " ".join(map(_hashed, scripts)) or "'none'"
    return (
        f"default-src 'none'; script-src {allowed}; style-src {_hashed(style)}; "
        "img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def script_json(value: Any) -> str:
    r"""Return JSON in ASCII for a script element.

    Nothing in it can end the element or begin a comment.

    >>> script_json({"text": "</script>\u2028"})
    '{"text":"\\u003c/script\\u003e\\u2028"}'
    """
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"))
    for letter in "<>&":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return text


PAGE_HEAD = Markup("""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
{}<meta http-equiv="Content-Security-Policy" content="{}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<title>{}</title>
<link rel="icon" href="data:,">
<style>{}</style>
</head>""")


def page_head(title: str, policy: str, style: Markup, generator: str = "") -> Markup:
    """Return how every page begins, down to its body.

    `generator` is the element by which the page is known again.
    """
    element = Markup(f"{generator}\n") if generator else ""  # noqa: S704 - ours
    return PAGE_HEAD.format(element, policy, visible_text(title), style)


def visible_text(text: str) -> str:
    r"""Return a text without what no page, SVG or JSON may hold.

    Control characters become their pictures.

    >>> visible_text("a\0b\r\nc")
    'a␀b\nc'
    """
    # Nearly all texts have none of these characters, and a page has 100,000 texts.
    if text.isprintable():
        return text
    return text.replace("\r\n", "\n").replace("\r", "\n").translate(REPLACED_CHARACTERS)


def _hashed(code: str) -> str:
    digest = hashlib.sha256(code.encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"

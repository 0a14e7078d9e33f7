"""What every page of ours is bound to: no network, no eval, no trust in what it shows."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup

CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
UNPRINTABLE = re.compile("[\x80-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")

OVERVIEW = '<meta name="generator" content="retriever-harness overview">'
"""By which the page over many results is known: no other is written over, and it is no document of a data set."""
HEAD = 500
"""Bytes of a page within which it names what made it."""


def is_overview(path: Path) -> bool:
    """Whether a path is a page over many results; OSError where it cannot be read."""
    if not path.is_file():  # a pipe would never come to an end
        return False
    with path.open("rb") as file:
        return OVERVIEW.encode() in file.read(HEAD)


def policy(scripts: Sequence[str], style: str) -> str:
    """Return a Content-Security-Policy that allows these scripts and this style, and nothing from elsewhere."""
    allowed = " ".join(map(_hashed, scripts)) or "'none'"
    return (
        f"default-src 'none'; script-src {allowed}; style-src {_hashed(style)}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def embedded(value: Any) -> str:
    r"""Return JSON in ASCII for a script element: nothing in it can end the element or begin a comment.

    >>> embedded({"text": "</script>\u2028"})
    '{"text":"\\u003c/script\\u003e\\u2028"}'
    """
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"))
    for letter in "<>&":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return text


BEGINNING = Markup("""<!doctype html>
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


def head(title: str, policy: str, style: Markup, generator: str = "") -> Markup:
    """Return how every page begins, down to its body; `generator` is the element by which the page is known again."""
    known = Markup(f"{generator}\n") if generator else ""  # noqa: S704 - ours
    return BEGINNING.format(known, policy, visible(title), style)


def visible(text: str) -> str:
    r"""Return a text without what no page, SVG or JSON may hold: control characters become their pictures.

    >>> visible("a\0b\r\nc")
    'a␀b\nc'
    """
    if text.isprintable():  # nothing of what is looked for below: nearly all texts, a page asks for a hundred thousand
        return text
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    text = CONTROLS.sub(lambda match: chr(0x2421 if match[0] == "\x7f" else 0x2400 + ord(match[0])), text)
    return UNPRINTABLE.sub("\ufffd", text)


def _hashed(code: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(code.encode('utf-8')).digest()).decode()}'"

"""What stands at the head of a Markdown file between two lines `---`, as wikis and site generators write it.

Simple entries alone, `key: value` and lists, are read, as text. Whatever else stands there leaves the file as it is: a
line of hyphens is a rule in Markdown, too.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

LONGEST = 200
"""Lines of a head, at most."""
WIDEST = 4_000
"""Characters of one of its lines, at most."""
ENTRY = re.compile(r"([A-Za-z_][\w .-]{0,63}?)[ \t]*:(?:[ \t]+(.*))?")
BLOCK = re.compile(r"[|>][+-]?")
"""What announces a text on the lines below."""


class FrontMatter(NamedTuple):
    """The head of a file, and the text after it."""

    title: str
    fields: dict[str, str]
    text: str


def front_matter(text: str) -> FrontMatter:
    r"""Part a file's head from its text; the whole is the text where there is no head that can be read.

    >>> front_matter("---\ntitle: \"Setting up\"\ntags: [a, b]\n---\n\nPlug it in.")
    FrontMatter(title='Setting up', fields={'tags': 'a, b'}, text='\nPlug it in.')
    >>> front_matter("---\nTwo parts\n---\n").text
    '---\nTwo parts\n---\n'
    """
    nothing = FrontMatter("", {}, text)
    if not re.match(r"---[ \t]*\r?\n", text):
        return nothing
    lines = [line.rstrip() for line in text.split("\n", LONGEST + 2)[1 : LONGEST + 2]]
    end = next((number for number, line in enumerate(lines) if line in ("---", "...")), None)
    entries = None if end is None else _entries(lines[:end])
    if not entries or end is None:
        return nothing
    title = next((key for key in entries if key.lower() == "title"), "")
    fields = {key: value for key, value in entries.items() if value and key != title}
    after = text.split("\n", end + 2)  # the line that opens, those of the head, the one that closes it
    return FrontMatter(entries.get(title, ""), fields, after[end + 2] if len(after) > end + 2 else "")


def _entries(lines: Sequence[str]) -> dict[str, str] | None:
    """The entries of a head; None where a line is none, or a key stands twice."""
    entries: dict[str, str] = {}
    below: dict[str, list[str]] = {}
    key = ""
    for line in lines:
        bare = line.strip()
        if not bare or bare.startswith("#"):
            continue
        if len(line) > WIDEST:
            return None
        if line[0] in " \t" or bare.startswith("- ") or bare == "-":
            if not key:
                return None
            below.setdefault(key, []).append(bare)
            continue
        match = ENTRY.fullmatch(line)
        if match is None or match[1] in entries:
            return None
        key = match[1]
        entries[key] = _value((match[2] or "").strip())
    for key, added in below.items():
        listed = all(line.startswith("-") for line in added)
        first = "" if BLOCK.fullmatch(entries[key]) else entries[key]
        rest = ", ".join(_value(line[1:].strip()) for line in added) if listed else " ".join(added)
        entries[key] = f"{first} {rest}".strip()
    return entries


def _value(written: str) -> str:
    """A string without its quotes, a list in one line without its brackets; anything else as it is written."""
    if len(written) > 1 and written[0] == written[-1] and written[0] in "\"'":
        quote = written[0]
        return written[1:-1].replace('\\"' if quote == '"' else "''", quote)
    if written.startswith("[") and written.endswith("]"):
        return ", ".join(_value(part.strip()) for part in written[1:-1].split(",") if part.strip())
    return re.split(r"[ \t]#", written, maxsplit=1)[0].rstrip()

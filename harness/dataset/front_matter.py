"""What stands at the head of a Markdown file between two lines `---`, as wikis and site generators write it: YAML.

An object of names is read, each value as the text that it is. Whatever else stands there leaves the file as it is: a
line of hyphens is a rule in Markdown, too.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import yaml

LONGEST = 200
"""Lines of a head, at most."""
LARGEST = 20_000
"""Characters of it, at most: a parser of YAML is slow."""
DEEPEST = 20
"""Brackets within brackets."""
KEY = re.compile(r"[A-Za-z_][\w .-]{0,63}")


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
    entries = {} if end is None else _entries("\n".join(lines[:end]))
    if not entries or end is None:
        return nothing
    title = next((key for key in entries if key.lower() == "title"), "")
    fields = {key: value for key, value in entries.items() if value and key != title}
    after = text.split("\n", end + 2)  # the line that opens, those of the head, the one that closes it
    return FrontMatter(entries.get(title, ""), fields, after[end + 2] if len(after) > end + 2 else "")


def _entries(head: str) -> dict[str, str]:
    """The entries of a head; none where it is no object, or a name stands twice in it."""
    try:
        if len(head) > LARGEST or not _harmless(head):
            return {}
        node = yaml.compose(head, Loader=yaml.BaseLoader)
    except (yaml.YAMLError, RecursionError, ValueError):
        return {}
    pairs = node.value if isinstance(node, yaml.MappingNode) else []
    entries = {key.value: _text(value, head) for key, value in pairs if isinstance(key.value, str)}
    return entries if len(entries) == len(pairs) and all(map(KEY.fullmatch, entries)) else {}


def _harmless(head: str) -> bool:
    """Whether no value refers to another one, of which a few could make gigabytes of text, and none is nested deep."""
    depth = 0
    for token in yaml.scan(head, Loader=yaml.BaseLoader):
        depth += isinstance(token, yaml.FlowSequenceStartToken | yaml.FlowMappingStartToken)
        depth -= isinstance(token, yaml.FlowSequenceEndToken | yaml.FlowMappingEndToken)
        if depth > DEEPEST or isinstance(token, yaml.AliasToken):
            return False
    return True


def _text(node: yaml.Node, head: str) -> str:
    """A value as text: lists with commas between, and what lies deeper as it is written, in one line."""
    if isinstance(node, yaml.SequenceNode):
        return ", ".join(text for one in node.value if (text := _text(one, head)))
    if isinstance(node, yaml.ScalarNode):
        value: str = node.value
        return " ".join(value.split()) if "\n" in value else value.strip()
    return " ".join(head[node.start_mark.index : node.end_mark.index].split())

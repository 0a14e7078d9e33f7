"""The head of a text file."""

import re

import yaml

from retrievers.ids import to_nfc
from retrievers.types import Document

FRONT_MATTER_PATTERN = re.compile(
    r"---[ \t]*\r?\n((?:.*\n)*?)(?:---|\.\.\.)[ \t\r]*(?:\n|\Z)"
)
FRONT_MATTER_KEY = re.compile(r"[A-Za-z_][\w .-]{0,63}")
SURVEY_LINE = re.compile(r"[*-]([^::]*)[::](.*)")
"""A line of a survey's head, white space around it removed first: one look at each character."""
SURVEY_KEYS = {
    "id": "id",
    "アンケート名": "title",
    "survey name": "title",
    "カテゴリ": "category",
    "category": "category",
    "タグ": "tags",
    "tags": "tags",
}


def parse_text_document(text: str, name: str) -> Document:
    r"""Read one file: a survey template by its head, any other text by its front matter or its first heading.

    >>> doc = parse_text_document("# Survey overview\n\n* ID: X1\n* Survey name: Hotels\n* Tags: a, b\n", "file")
    >>> doc.id, doc.title, doc.fields
    ('X1', 'Hotels', {'tags': 'a, b'})
    >>> parse_text_document("# Setting up\n\nPlug it in.", "manual/setup").title
    'Setting up'
    """
    named, fields, text = read_front_matter(text)
    lines = text.split("\n")
    headings = [i for i, line in enumerate(lines) if line.startswith("# ")]
    head = lines[: headings[1]] if len(headings) > 1 else lines
    values: dict[str, str] = {}
    id_line = None
    for number, line in enumerate(head):
        match = SURVEY_LINE.fullmatch(line.strip())
        key = SURVEY_KEYS.get(match[1].strip().lower()) if match else None
        if match and key and key not in values:
            values[key] = match[2].strip()
            id_line = number if key == "id" else id_line
    if id_line is None or not values["id"]:
        title = named or (lines[headings[0]][2:].strip() if headings else "")
        return Document(name, title, text.strip(), fields)
    body = "\n".join(lines[:id_line] + lines[id_line + 1 :]).strip()
    fields |= {key: values[key] for key in ("category", "tags") if values.get(key)}
    return Document(
        to_nfc(values["id"]), values.get("title", "") or named, body, fields
    )


def read_front_matter(text: str) -> tuple[str, dict[str, str], str]:
    r"""The title and the fields in the head of a file, and the text after it; the whole where no head can be read.

    >>> read_front_matter("---\ntitle: \"Setting up\"\ntags: [a, b]\n---\n\nPlug it in.")
    ('Setting up', {'tags': 'a, b'}, '\nPlug it in.')
    >>> read_front_matter("---\nTwo parts\n---\n")[2]
    '---\nTwo parts\n---\n'
    """
    head = FRONT_MATTER_PATTERN.match(text)
    entries = _entries(head[1]) if head else {}
    if not head or not entries:
        return "", {}, text
    title = next((key for key in entries if key.lower() == "title"), "")
    fields = {key: value for key, value in entries.items() if value and key != title}
    return entries.get(title, ""), fields, text[head.end() :]


def _entries(head: str) -> dict[str, str]:
    """The entries of a head; none where it is not an object, or a name occurs twice in it."""
    try:
        node = yaml.compose(head, Loader=yaml.BaseLoader)
    except (yaml.YAMLError, RecursionError, ValueError):
        return {}
    pairs = node.value if isinstance(node, yaml.MappingNode) else []
    entries = {
        key.value: _text(value, head)
        for key, value in pairs
        if isinstance(key.value, str)
    }
    return (
        entries
        if len(entries) == len(pairs) and all(map(FRONT_MATTER_KEY.fullmatch, entries))
        else {}
    )


def _text(node: yaml.Node, head: str) -> str:
    """A value as text: lists with commas between, and deeper values as they are written, in one line."""
    if isinstance(node, yaml.SequenceNode):
        return ", ".join(text for one in node.value if (text := _text(one, head)))
    if isinstance(node, yaml.ScalarNode):
        value: str = node.value
        return " ".join(value.split()) if "\n" in value else value.strip()
    return " ".join(head[node.start_mark.index : node.end_mark.index].split())

"""The head of a text file.

Between two lines `---`, as wikis and site generators write it, it is YAML: an object of
names, whose values are read as text. Any other head leaves the file as it is, since a
line of hyphens is a rule in Markdown, too. A survey template has its id, its title and
more in a list at its top.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

import yaml

from harness.dataset.yaml_nodes import compose_yaml
from retrievers.ids import to_nfc
from retrievers.types import Document

FRONT_MATTER_PATTERN = re.compile(
    r"---[ \t]*\r?\n((?:.*\n)*?)(?:---|\.\.\.)[ \t\r]*(?:\n|\Z)"
)
"""YAML at the start of a file, between a line of --- and one of --- or ... ."""
FRONT_MATTER_KEY = re.compile(r"[A-Za-z_][\w .-]{0,63}")
"""A key of front matter; a head with any other key is part of the text."""
HEADING_PREFIX = "# "
SURVEY_LINE = re.compile(r"[*-]([^::]*)[::](.*)")
"""A line in the head of a survey, stripped; each character is examined only once."""
SURVEY_KEYS = {
    "id": "id",
    "アンケート名": "title",
    "survey name": "title",
    "カテゴリ": "category",
    "category": "category",
    "タグ": "tags",
    "tags": "tags",
}
"""Name in the head of a survey template -> what it says."""


class FrontMatter(NamedTuple):
    """The front matter of a file, and the text after it."""

    title: str
    fields: dict[str, str]
    text: str
    """The whole text if it has no front matter that can be read."""


class _SurveyHead(NamedTuple):
    """The head of a survey template."""

    id: str
    title: str
    category: str
    tags: str
    id_line: int
    """The index of the line with the id, which is not part of the text."""


def parse_text_document(text: str, name: str) -> Document:
    r"""Return the document in a file.

    A survey template has id and title in its head; any other text has the id `name`,
    and the title of its front matter, or else its first line that begins with `# `.

    >>> survey = "# Survey overview\n\n* ID: X1\n* Survey name: Hotels\n* Tags: a, b\n"
    >>> document = parse_text_document(survey, "file")
    >>> document.id, document.title, document.fields
    ('X1', 'Hotels', {'tags': 'a, b'})
    >>> parse_text_document("# Setting up\n\nPlug it in.", "manual/setup").title
    'Setting up'
    """
    front_matter = read_front_matter(text)
    lines = front_matter.text.split("\n")
    headings = [i for i, line in enumerate(lines) if line.startswith(HEADING_PREFIX)]
    head = lines[: headings[1]] if len(headings) > 1 else lines
    survey = _read_survey_head(head)
    if survey is None:
        title = front_matter.title
        if not title and headings:
            title = lines[headings[0]].removeprefix(HEADING_PREFIX).strip()
        body = front_matter.text.strip()
        return Document(name, title, body, front_matter.fields)
    del lines[survey.id_line]
    fields = dict(front_matter.fields)
    if survey.category:
        fields["category"] = survey.category
    if survey.tags:
        fields["tags"] = survey.tags
    return Document(
        to_nfc(survey.id),
        survey.title,
        "\n".join(lines).strip(),
        fields,
    )


def _read_survey_head(lines: Sequence[str]) -> _SurveyHead | None:
    """Return the head of a survey template; None without an id and a title.

    A page may have an id in a list, such as `- id: the id of the user`.
    """
    values: dict[str, str] = {}
    id_line = 0
    for number, line in enumerate(lines):
        match = SURVEY_LINE.fullmatch(line.strip())
        if match is None:
            continue
        key = SURVEY_KEYS.get(match[1].strip().lower())
        if key is None or key in values:
            continue
        values[key] = match[2].strip()
        if key == "id":
            id_line = number
    if not values.get("id") or not values.get("title"):
        return None
    return _SurveyHead(
        values["id"],
        values["title"],
        values.get("category", ""),
        values.get("tags", ""),
        id_line,
    )


def read_front_matter(text: str) -> FrontMatter:
    r"""Return the front matter of a file, and the text after it.

    >>> text = "---\ntitle: \"Setting up\"\ntags: [a, b]\n---\n\nPlug it in."
    >>> read_front_matter(text)
    FrontMatter(title='Setting up', fields={'tags': 'a, b'}, text='\nPlug it in.')
    >>> read_front_matter("---\nTwo parts\n---\n").text
    '---\nTwo parts\n---\n'
    """
    head = FRONT_MATTER_PATTERN.match(text)
    entries = _read_entries(head[1]) if head else {}
    if not head or not entries:
        return FrontMatter("", {}, text)
    title_key = next((key for key in entries if key.lower() == "title"), "")
    fields = {
        key: entry for key, entry in entries.items() if entry and key != title_key
    }
    return FrontMatter(entries.get(title_key, ""), fields, text[head.end() :])


def _read_entries(head: str) -> dict[str, str]:
    """Return the entries of a head; empty if it is not an object or repeats a key."""
    try:
        node = compose_yaml(head)
    except (yaml.YAMLError, RecursionError, ValueError):
        return {}
    pairs = node.value if isinstance(node, yaml.MappingNode) else []
    entries: dict[str, str] = {}
    for key_node, value_node in pairs:
        if isinstance(key_node.value, str):
            entries[key_node.value] = _node_text(value_node, head)
    if len(entries) < len(pairs) or not all(map(FRONT_MATTER_KEY.fullmatch, entries)):
        return {}
    return entries


def _node_text(node: yaml.Node, head: str) -> str:
    """Return a value as text in one line.

    Lists have commas between their elements; nested values keep the text of the file.
    """
    if isinstance(node, yaml.SequenceNode):
        texts = [_node_text(element, head) for element in node.value]
        return ", ".join(filter(None, texts))
    if isinstance(node, yaml.ScalarNode):
        text: str = node.value
        return " ".join(text.split()) if "\n" in text else text.strip()
    return " ".join(head[node.start_mark.index : node.end_mark.index].split())

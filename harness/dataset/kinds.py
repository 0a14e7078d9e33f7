"""What a file seems to be, by its first line: where one of another kind was expected, one message says so."""

from __future__ import annotations

import re

TOML = re.compile(r"#|\[\[?[\w.-]+\]\]?\s*$|[\w-]{1,64}\s*=")
NUMBERS_OF_FIELDS = {4: "TREC judgments", 6: "a TREC run"}


def kind_of(line: str) -> str:
    """Return what a file that begins with this line seems to be, with its article; "" where that is not clear.

    >>> kind_of('name = "e"'), kind_of("id;query"), kind_of('{"a": 1}'), kind_of("q 0 d 1"), kind_of("words")
    ('an experiment file (TOML)', 'a table (CSV)', 'JSON', 'TREC judgments', '')
    """
    line = line.strip()
    if line.startswith("{"):
        return "JSON"
    if line.startswith("<"):
        return "a web page, or XML"
    if TOML.match(line):
        return "an experiment file (TOML)"
    if any(delimiter in line for delimiter in ",;\t"):
        return "a table (CSV)"
    return NUMBERS_OF_FIELDS.get(len(line.split()), "")

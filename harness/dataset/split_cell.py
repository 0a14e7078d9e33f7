"""One cell that lists several documents.

Ids may contain separators, so that only the corpus (`names_document`) tells whether a
text is one id or several.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from harness.dataset.written_values import (
    parse_cell,
)

LIST_SEPARATORS = "|;\n,"
"""Separators of ids in one cell: the first of these that occurs in it counts."""
ELEMENT_SEPARATORS = tuple(map(re.compile, (";", ",", r"\|", r"\s+", r"[;,|\s]+")))
"""Separators of ids in one element of a list, in the order in which they are tried."""
ELEMENT_SEPARATOR = ELEMENT_SEPARATORS[-1]
"""Any of them."""
MAX_JOINED_PARTS = 10
"""Parts of a text, at most, that are joined to see if they name a document: each join
costs a look-up."""
NamesDocument = Callable[[str], bool]
"""Whether a text names a document."""


def split_cell(text: str, names_document: NamesDocument) -> Any:
    """Return the ids in one cell of text; what JSON has in it, as it is.

    If the whole cell names a document, that is the only id. Ids may contain separators:
    up to ten parts that name a document together are one id. Commas separate ids only
    if one of the parts names a document, since names of files may contain commas.

    >>> split_cell("acts, 1999; b", {"acts, 1999"}.__contains__)
    ['acts, 1999', 'b']
    >>> split_cell("a, b, c", {"a, b"}.__contains__)
    ['a, b', 'c']
    >>> split_cell("a, b" + ", c" * 12, {"a, b"}.__contains__)[:2]
    ['a, b', 'c']
    >>> split_cell("leave, paid.md", {"a"}.__contains__)
    ['leave, paid.md']
    """
    text = text.strip()
    if not text:
        return []
    is_literal = text[0] in ("[", "{")
    separators = [separator for separator in LIST_SEPARATORS if separator in text]
    if not is_literal and not separators:
        return split_elements([text], names_document)
    if names_document(text):
        return [text]
    if is_literal:
        return parse_cell(text)  # text if it cannot be read, which callers report
    separator = separators[0]
    ids = _split_ids(text, separator, names_document)
    if separator == "," and not any(map(names_document, ids)):
        return [text]
    return split_elements(ids, names_document)


def split_elements(ids: Iterable[str], names_document: NamesDocument) -> list[str]:
    """Return ids; an id may list several, and each part then names a document.

    >>> split_elements(["D8; D9", "D9 D4", "a b"], {"D8", "D9", "D4"}.__contains__)
    ['D8', 'D9', 'D9', 'D4', 'a b']
    """
    split_ids: list[str] = []
    for id_ in ids:
        split_ids += _split_element(id_, names_document)
    return split_ids


def _split_element(id_: str, names_document: NamesDocument) -> list[str]:
    if ELEMENT_SEPARATOR.search(id_) is None or names_document(id_):
        return [id_]
    for separator in ELEMENT_SEPARATORS:
        parts = [part.strip() for part in separator.split(id_) if part.strip()]
        if len(parts) > 1 and all(map(names_document, parts)):
            return parts
    return [id_]


def _split_ids(text: str, separator: str, names_document: NamesDocument) -> list[str]:
    """Return the ids in a text; the most parts that name a document are one id."""
    parts = text.split(separator)
    ids: list[str] = []
    while parts:
        length = 1
        for n in range(min(len(parts), MAX_JOINED_PARTS), 1, -1):
            if names_document(separator.join(parts[:n]).strip()):
                length = n
                break
        ids.append(separator.join(parts[:length]).strip())
        parts = parts[length:]
    return [id_ for id_ in ids if id_]

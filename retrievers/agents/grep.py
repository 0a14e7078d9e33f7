"""Lines of documents that a regular expression matches."""

from collections.abc import Iterable
from typing import Any, NamedTuple

from retrievers.document import Document

MAX_LINES = 50
"""Lines that one search returns, at most."""
_LINE_CHARACTERS = 200
"""Characters of a line that are shown, at most."""
_LINE_SECONDS = 2.0
"""Seconds of a pattern's search in one line, at most."""


class PatternError(Exception):
    """A pattern that is no regular expression, or takes too long or too much memory."""


class MatchedLine(NamedTuple):
    """A line that matches."""

    document: str
    number: int
    """Number of the line, from 1 on; the title is the beginning of the first line."""
    text: str

    def __str__(self) -> str:
        return f"{self.document}:{self.number}: {self.text[:_LINE_CHARACTERS]}"


def grep(documents: Iterable[Document], pattern: str) -> list[MatchedLine]:
    r"""Return the first MAX_LINES lines that match, in the order of the documents.

    Raises:
        PatternError: the pattern cannot be used.

    >>> texts = [Document("a", "", "red\nblue"), Document("b", "", "dark blue")]
    >>> [str(line) for line in grep(texts, "blu.$")]
    ['a:2: blue', 'b:1: dark blue']
    """
    import regex

    try:
        compiled = regex.compile(pattern)
    except regex.error as error:
        raise PatternError(f"not a regular expression: {error}") from None
    except RecursionError:
        raise PatternError("too many groups within each other") from None
    lines: list[MatchedLine] = []
    for document in documents:
        lines += _lines_in(document, compiled)
        if len(lines) >= MAX_LINES:
            break
    return lines[:MAX_LINES]


def _lines_in(document: Document, compiled: Any) -> list[MatchedLine]:
    try:
        return [
            MatchedLine(document.id, number, line)
            for number, line in enumerate(document.content.splitlines(), 1)
            if compiled.search(line, timeout=_LINE_SECONDS)
        ]
    except (TimeoutError, MemoryError):  # also a pattern that calls itself forever
        raise PatternError("it takes too long; use a simpler one") from None

"""One passage of a document that a retriever returned."""

from typing import NamedTuple


class Span(NamedTuple):
    """A run of characters of a document's text."""

    document: str
    """The document's id."""
    start: int
    """Characters of the text before it."""
    end: int
    """Characters of the text down to its end."""


class Passage(NamedTuple):
    """A hit before hits are collapsed to documents: a part of a text, or all of it."""

    document: str
    """The document's id."""
    start: int
    """Characters of the text before it."""
    end: int
    """Characters of the text down to its end."""
    tokens: int
    """Tokens by the tokenizer that all retrievers of a run share."""
    score: float

    @property
    def span(self) -> Span:
        """The place of the passage."""
        return Span(self.document, self.start, self.end)

"""Long documents in passages, each embedded by itself; a document is worth its best passage."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from retrievers.errors import InputError, Problem
from retrievers.types import Document, Ranking, ranked

SEPARATOR = "\x1f"
"""Between a document's id and its passage's number; a control character, so that no id ends alike."""
BREAK = re.compile(r"\s+|(?<=[。．！？、])")


@dataclass(frozen=True, slots=True)
class Chunks:
    """How documents are cut: `size` characters a passage at most, the next one beginning `overlap` earlier.

    Characters, not tokens or words: every model counts its own tokens, and not every script has spaces. A model of
    256 tokens reads about 1,000 characters of English, or 300 of Japanese.
    """

    size: int
    overlap: int = 0

    def __post_init__(self) -> None:
        if self.size < 1:
            raise InputError(Problem("chunk.size", f"{self.size} is below 1"))
        if not 0 <= self.overlap < self.size:
            raise InputError(Problem("chunk.overlap", f"{self.overlap} is not between 0 and the size, {self.size}"))

    @property
    def suffix(self) -> str:
        """What tells a collection of passages from one of whole documents."""
        return f"-chunks{self.size}x{self.overlap}"


def passages(document: Document, chunks: Chunks) -> list[Document]:
    """Cut a document's text; each passage keeps the title, and bears the document's id with a number.

    A passage ends at the last white space or Japanese sentence mark of its second half, where there is one.

    >>> [p.text for p in passages(Document("d", "", "one two three four"), Chunks(8, 2))]
    ['one two', 'wo three', 'ee four']
    """
    text, parts, start = document.text.strip(), list[str](), 0
    while len(text) - start > chunks.size:
        reach = text[start : start + chunks.size + 1]
        least = max(chunks.size // 2, chunks.overlap)
        ends = [gap.start() for gap in BREAK.finditer(reach) if least < gap.start() <= chunks.size]
        length = ends[-1] if ends else chunks.size
        parts.append(reach[:length].strip())
        start += length - chunks.overlap
    parts.append(text[start:].strip())
    return [
        Document(f"{document.id}{SEPARATOR}{number}", document.title, part, document.fields)
        for number, part in enumerate(part for part in parts if part or not text)
    ]


def pieces(documents: Iterable[Document], chunks: Chunks | None) -> Iterator[Document]:
    """Yield what is embedded of a corpus: every document that is not blank, or its passages."""
    for document in documents:
        if document.content.strip():
            yield from passages(document, chunks) if chunks else (document,)


def document_of(passage_id: str) -> str:
    """Return the id of the document that a passage is of.

    >>> document_of("d" + SEPARATOR + "3"), document_of("d")
    ('d', 'd')
    """
    return passage_id.rpartition(SEPARATOR)[0] or passage_id


def best_passages(search: Callable[[list[int], int], list[Ranking]], queries: int, depth: int) -> list[Ranking]:
    """Return the best `depth` documents of each query by the score of their best passage.

    Asks for four passages a document, and for four times more again where that was not enough, or where a passage
    not seen may tie with the last document.

    Args:
        search: ranks passages for the queries at some positions, up to a limit: one ranking each.
        queries: how many there are.
        depth: documents to keep.
    """
    answers: dict[int, Ranking] = {}
    waiting = list(range(queries))
    size = 4 * depth
    while waiting:
        for position, hits in zip(waiting, search(waiting, size), strict=True):
            best: dict[str, float] = {}
            for passage, score in hits:
                best.setdefault(document_of(passage), score)
            ranking = ranked(list(best), list(best.values()), depth)
            if len(hits) < size or (len(ranking) == depth and hits.scores[-1] < ranking.scores[-1]):
                answers[position] = ranking
        waiting = [position for position in waiting if position not in answers]
        size *= 4
    return [answers[position] for position in range(queries)]

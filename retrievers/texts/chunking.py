"""How documents are cut into passages."""

import hashlib
import importlib
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from retrievers.document import Document
from retrievers.embedded import Role
from retrievers.errors import BackendError, InputError, Problem, require_package
from retrievers.options.tables import StrictTable, as_validation_error
from retrievers.options.user_code import import_function, wrap_user_errors
from retrievers.ranking import Ranking, ranked, search_until_settled
from retrievers.texts.token_estimate import TokenCounter, Tokens

PASSAGE_SEPARATOR = "\x1f"
"""Between a document's id and its passage's number; a control character, so that no id ends alike."""
MAX_TOKEN_CHARACTERS = 8
"""Characters of a token, at most, on an average: no more of a text is counted at once."""
PASSAGE_BREAK = re.compile(r"\s+|(?<=[。．！？、])")


PassageBoundary = Literal["words", "sentence", "heading"]
"""Where passages end: between words; where a sentence or a paragraph does; or before a heading of Markdown."""


class Chunk(StrictTable):
    """Passages of at most `size` characters or tokens, each beginning `overlap` of them before the end of the last."""

    size: int | None = Field(default=None, ge=1)
    """Characters of a passage, at most; or the encoder's tokens, with those of the title and the prompt."""
    overlap: int = Field(default=0, ge=0)
    """Characters of the last passage with which the next begins; tokens, about."""
    unit: Literal["characters", "tokens"] = "characters"
    """What is counted; tokens are those of the retriever's own encoder, which BM25 has not."""
    by: PassageBoundary | None = None
    """Where passages end: between words; with the paragraph or sentence; or before a heading. Left out, at white
    space, and an overlap may begin within a word. A word longer than a passage is cut."""
    call: str = ""
    """"module:function", found as Python finds modules, that cuts a text into a list of texts: in place of all else."""
    late: bool = False
    """Read each document whole, and average the vectors of its tokens over each passage (late chunking, of local
    models). A passage beyond what the model reads is embedded alone, and counted as truncated."""
    _count: Callable[[Sequence[str], Role], Tokens] | None = None
    """Counts the tokens of texts as an encoder reads them, with its prompt and special tokens."""

    @model_validator(mode="after")
    def _moves_on(self) -> Self:
        with as_validation_error():
            if self.call and (self.size, self.overlap, self.unit, self.by) != (
                None,
                0,
                "characters",
                None,
            ):
                raise InputError(
                    Problem(
                        "call", "cuts by itself", "leave size, overlap, unit and by out"
                    )
                )
            if not self.call and self.size is None:
                raise InputError(
                    Problem(
                        "size",
                        "is missing, or below 1",
                        "{ size = 800, overlap = 100 }",
                    )
                )
            if not self.call and self.overlap >= (self.size or 0):
                raise InputError(
                    Problem(
                        "overlap",
                        f"{self.overlap} is not between 0 and the size, {self.size}",
                    )
                )
        return self

    def with_token_counter(
        self, lengths: Callable[[Sequence[str], Role], Tokens]
    ) -> Self:
        """Return the same with what counts the tokens of texts."""
        made = self.model_copy()
        made._count = lengths
        return made

    @property
    def token_counter(self) -> TokenCounter | None:
        """Counts the tokens of documents; None if passages are measured in characters."""
        lengths = self._count
        return (
            None if lengths is None else lambda texts: lengths(texts, "document").counts
        )

    def check(self) -> None:
        """Raise InputError where what cuts is not installed: the user's function, or the package for sentences."""
        if self.call:
            import_function(self.call, "chunk.call")
        elif self.by in ("sentence", "heading"):
            _splitter()

    @property
    def name(self) -> str:
        """What tells these passages from others of the same texts."""
        cut = f"{self.size}x{self.overlap}{'-tokens' if self.unit == 'tokens' else ''}"
        return (self.call or (f"{cut}-{self.by}" if self.by else cut)) + (
            "-late" if self.late else ""
        )

    def suffix(self, documents: Iterable[Document]) -> str:
        """What tells a collection of passages from one of whole documents: of a user's function, what it gives."""
        if not self.call:
            return f"-chunks{self.name}"
        digest = hashlib.sha256(b"late" if self.late else b"")
        for piece in passages_of(documents, self):
            digest.update(
                f"{piece.id}{PASSAGE_SEPARATOR}{piece.text}\n".encode(
                    "utf-8", "surrogatepass"
                )
            )
        return f"-chunks-{digest.hexdigest()[:16]}"


def cut_document(document: Document, chunks: Chunk) -> list[Document]:
    """Cut a document's text; each passage keeps the title, and bears the document's id with a number.

    A passage ends at the last white space or Japanese sentence mark of its second half, where there is one, or as
    `by` and `call` have it.

    >>> [p.text for p in cut_document(Document("d", "", "one two three four"), Chunk(size=8, overlap=2))]
    ['one two', 'wo three', 'ee four']
    >>> [p.text for p in cut_document(Document("d", "", "one two three four"), Chunk(size=10, overlap=4, by="words"))]
    ['one two', 'two three', 'four']
    """
    text = document.text.strip()
    if chunks.call:
        parts = _called(chunks.call, text)
    elif chunks.by in ("sentence", "heading"):
        parts = _semantic(document.title, text, chunks)
    else:
        parts = _cut(document.title, text, chunks)
    return [
        Document(
            f"{document.id}{PASSAGE_SEPARATOR}{number}",
            document.title,
            part,
            document.fields,
        )
        for number, part in enumerate(part for part in parts if part or not text)
    ]


def _cut(title: str, text: str, chunks: Chunk) -> list[str]:
    parts, start, size = list[str](), 0, chunks.size or 1
    fitting = (
        None
        if chunks.token_counter is None
        else _fitting(title, size, chunks.token_counter)
    )
    longest = MAX_TOKEN_CHARACTERS * size
    while (room := fitting(text[start : start + longest]) if fitting else size) < len(
        text
    ) - start:
        reach, overlap = text[start : start + room + 1], room * chunks.overlap // size
        least = 0 if chunks.by else max(room // 2, overlap)
        length = max(
            (
                gap.start()
                for gap in PASSAGE_BREAK.finditer(reach)
                if least < gap.start() <= room
            ),
            default=room,
        )
        parts.append(reach[:length].strip())
        end = start + length
        start = end - overlap if length > overlap else end
        if (
            chunks.by
            and start < end
            and not PASSAGE_BREAK.fullmatch(text[start - 1 : start])
            and not text[start].isspace()
        ):
            gap = PASSAGE_BREAK.search(text, start, end)
            start = gap.end() if gap else end
    return [*parts, text[start:].strip()]


def _semantic(title: str, text: str, chunks: Chunk) -> list[str]:
    """The passages of semantic-text-splitter: as much as fits, by paragraphs, else by sentences, else by words."""
    splitter = getattr(
        _splitter(), "MarkdownSplitter" if chunks.by == "heading" else "TextSplitter"
    )
    size, count = chunks.size or 1, chunks.token_counter
    if count is None:
        made = splitter(size, chunks.overlap)
    else:
        alone, limit = _limit(title, size, count)
        tokens = lru_cache(maxsize=1 << 12)(
            lambda part: int(count([f"{title} {part}".strip()])[0]) - alone
        )
        room = max(1, limit - alone)
        made = splitter.from_callback(tokens, room, min(chunks.overlap, room - 1))
    parts: list[str] = made.chunks(text)
    return parts or [text]


def _splitter() -> Any:
    with require_package("chunk.by", "semantic-text-splitter", "chunks"):
        return importlib.import_module("semantic_text_splitter")


def _called(call: str, text: str) -> list[str]:
    """What the user's function makes of a text."""
    with wrap_user_errors((call,)):
        parts = list(import_function(call, "chunk.call")(text))
    if not all(isinstance(part, str) for part in parts) or (
        text and not any(map(str.strip, parts))
    ):
        raise BackendError(
            f"{call} gave {str(parts)[:80]} for a text; give a list of texts"
        )
    return [part.strip() for part in parts] or [text]


def _fitting(title: str, size: int, count: TokenCounter) -> Callable[[str], int]:
    """Return what says how many characters of the rest of a text fit, counting with the title.

    Half of the size is the text's however long the title is: such a passage is longer than the size.
    """
    alone, limit = _limit(title, size, count)

    def tokens(text: str) -> int:
        return int(count([f"{title} {text}".strip()])[0])

    def fitting(rest: str) -> int:
        low, least, high, most = 0, alone, len(rest), tokens(rest)
        if most <= limit:
            return high
        while high - low > max(
            1, high // 32
        ):  # nearer than this, a passage would hardly end elsewhere
            step = max(1, (high - low) // 8)
            middle = low + (high - low) * (limit - least) // max(1, most - least)
            middle = min(max(middle, low + step), high - step)
            if (number := tokens(rest[:middle])) <= limit:
                low, least = middle, number
            else:
                high, most = middle, number
        return max(low, 1)

    return fitting


def _limit(title: str, size: int, count: TokenCounter) -> tuple[int, int]:
    """The tokens of a title, and those of a passage with it, at most."""
    alone = int(count([title])[0])
    return alone, max(size, alone + max(1, size // 2))


def passages_of(
    documents: Iterable[Document], chunks: Chunk | None
) -> Iterator[Document]:
    """Yield what is embedded of a corpus: every document that is not blank, or its passages."""
    return (
        piece for piece, _ in passages_in_context(documents, chunks, contextual=False)
    )


def passages_in_context(
    documents: Iterable[Document], chunks: Chunk | None, *, contextual: bool
) -> Iterator[tuple[Document, str]]:
    """Yield what is embedded of a corpus, each with the document that its encoder reads with it; "" if it reads none.

    >>> late = Chunk(size=1, late=True)
    >>> [(one.text, whole) for one, whole in passages_in_context([Document("d", "t", "a b")], late, contextual=False)]
    [('a', 't a b'), ('b', 't a b')]
    """
    for document in documents:
        if document.content.strip():
            whole = (
                document.content.strip()
                if contextual or (chunks and chunks.late)
                else ""
            )
            for piece in cut_document(document, chunks) if chunks else (document,):
                yield piece, whole


def document_of_passage(passage_id: str) -> str:
    """Return the id of the document that a passage is of.

    >>> document_of_passage("d" + PASSAGE_SEPARATOR + "3"), document_of_passage("d")
    ('d', 'd')
    """
    return passage_id.rpartition(PASSAGE_SEPARATOR)[0] or passage_id


def rank_by_best_passage(
    search: Callable[[list[int], int], list[Ranking]], queries: int, depth: int
) -> list[Ranking]:
    """Return the best `depth` documents of each query by the score of their best passage.

    Asks for four passages a document, and for four times more again where that was not enough, or where a passage
    not seen may tie with the last document.

    Args:
        search: ranks passages for the queries at some positions, up to a limit: one ranking each.
        queries: how many there are.
        depth: documents to keep.
    """

    def settled(_: int, hits: Ranking, size: int) -> Ranking | None:
        best: dict[str, float] = {}
        for passage, score in hits:
            best.setdefault(document_of_passage(passage), score)
        ranking = ranked(list(best), list(best.values()), depth)
        whole = len(hits) < size or (
            len(ranking) == depth and hits.scores[-1] < ranking.scores[-1]
        )
        return ranking if whole else None

    return search_until_settled(search, queries, 4 * depth, settled)

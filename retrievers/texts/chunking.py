"""How documents are cut into passages.

`cut_document` gives the passages of a document, `passage_spans` their places in it. A
passage's id is the document's with a number, so that `rank_by_best_passage` can make a
ranking of documents out of one of passages. `placed_passages.py` finds the places of a
ranking's passages.
"""

import hashlib
import importlib
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any, Literal, NamedTuple, Self

from pydantic import Field, model_validator

from retrievers.document import Document
from retrievers.embedded import Role
from retrievers.errors import BackendError, InputError, Problem, require_package
from retrievers.options.tables import StrictTable, as_validation_error
from retrievers.options.user_code import import_function, wrap_user_errors
from retrievers.passage import Span
from retrievers.texts.passage_ranking import PASSAGE_SEPARATOR
from retrievers.texts.token_estimate import TokenCounter, Tokens

MAX_TOKEN_CHARACTERS = 8
"""Characters of a token on average, at most; limits how much text is counted at
once."""
PASSAGE_BREAK = re.compile(r"\s+|(?<=[。．！？、])")
"""Where a passage may end: at white space, or after a mark of Japanese or Chinese."""
MEASURING_STEPS = 32
"""The end of a passage of tokens is searched to one part in 32 of its characters: more
precision would hardly change it."""


PassageBoundary = Literal["words", "sentence", "heading"]
"""Where passages end: between words; after a sentence or a paragraph; or before a
heading of Markdown. Without any of them see `Chunk.by`."""
PACKAGE_BOUNDARIES = ("sentence", "heading")
"""Those that the package semantic-text-splitter finds."""


class PassageInContext(NamedTuple):
    """A passage, and the document that its encoder reads with it."""

    passage: Document
    text: str
    """What is embedded: its title with its text. If it is read in its document, which
    has the title, its text alone; the title if it has none."""
    context: str
    """The document; empty if the encoder reads the passage alone."""


class _Cut(NamedTuple):
    """One passage of a text."""

    text: str
    start: int | None
    """Characters of the text before it; None if it is not in the text."""


class Chunk(StrictTable):
    """Passages of at most `size` characters or tokens, each beginning `overlap` of them
    before the end of the previous one.
    """  # noqa: D205

    size: int | None = Field(default=None, ge=1)
    """Characters of a passage, at most; or the encoder's tokens, with those of the
    title and the prompt."""
    overlap: int = Field(default=0, ge=0)
    """Characters of a passage with which the next one begins; tokens, about."""
    unit: Literal["characters", "tokens"] = "characters"
    """What is counted; tokens are those of the retriever's own encoder, which BM25 has
    not."""
    by: PassageBoundary | None = None
    """Where passages end: between words; with the paragraph or sentence; or before a
    heading. A word is cut if it does not fit into a passage with the space before it.
    If `by` is left out, passages end at white space, an overlap may begin within a
    word, and a word of half a passage or more, or than the overlap leaves, is cut."""
    call: str = ""
    """"module:function", found as Python finds modules, that cuts a text into a list of
    texts: in place of all else."""
    late: bool = False
    """Read each document whole, and average the vectors of its tokens over each passage
    (late chunking, of local models). A passage beyond what the model reads is embedded
    alone, and counted as truncated."""
    _count: Callable[[Sequence[str], Role], Tokens] | None = None
    """Counts tokens as an encoder reads them, with its prompt and special tokens."""

    @model_validator(mode="after")
    def _check_consistency(self) -> Self:
        """Refuse options that contradict each other, and a size that is missing."""
        with as_validation_error():
            if self.call:
                options = (self.size, self.overlap, self.unit, self.by)
                if options != (None, 0, "characters", None):
                    remedy = "leave size, overlap, unit and by out"
                    raise InputError(Problem("call", "cuts by itself", remedy))
                return self
            if self.size is None:
                remedy = "{ size = 800, overlap = 100 }"
                raise InputError(Problem("size", "is missing", remedy))
            if self.overlap >= self.size:
                problem = f"{self.overlap} is not between 0 and the size, {self.size}"
                raise InputError(Problem("overlap", problem))
        return self

    def with_token_counter(
        self, count: Callable[[Sequence[str], Role], Tokens]
    ) -> Self:
        """Return the same options with a function that counts the tokens of texts."""
        chunks = self.model_copy()
        chunks._count = count
        return chunks

    @property
    def token_counter(self) -> TokenCounter | None:
        """Counts the tokens of documents; None if passages are cut by characters.

        So are those of unit "tokens" without `with_token_counter`.
        """
        count = self._count
        if count is None:
            return None
        return lambda texts: count(texts, "document").counts

    def check(self) -> None:
        """Check that the user's function, or the package for sentences, is there.

        Raises:
            InputError: it is missing.
        """
        if self.call:
            import_function(self.call, "chunk.call")
        elif self.by in PACKAGE_BOUNDARIES:
            _splitter_package()

    @property
    def name(self) -> str:
        """A name that differs from those of other passages of the same texts."""
        name = self.call
        if not name:
            name = f"{self.size}x{self.overlap}"
            if self.unit == "tokens":
                name += "-tokens"
            if self.by:
                name += f"-{self.by}"
        return f"{name}-late" if self.late else name

    def suffix(self, documents: Iterable[Document]) -> str:
        """Return the suffix of a collection's name that identifies its passages.

        For a user's function it has a digest of the passages.
        """
        if not self.call:
            return f"-chunks{self.name}"
        digest = hashlib.sha256(b"late" if self.late else b"")
        for passage in passages_of(documents, self):
            line = f"{passage.id}{PASSAGE_SEPARATOR}{passage.text}\n"
            digest.update(line.encode("utf-8", "surrogatepass"))
        return f"-chunks-{digest.hexdigest()[:16]}"


def cut_document(document: Document, chunks: Chunk) -> list[Document]:
    """Cut a document's text; each passage has the title, and the id with a number.

    Without `by` and `call`, a passage ends at the last break (white space, or a
    Japanese or Chinese mark) that leaves it longer than half of `size` and longer than
    the overlap; if there is none, at `size`.

    >>> document = Document("d", "", "one two three four")
    >>> [p.text for p in cut_document(document, Chunk(size=8, overlap=2))]
    ['one two', 'wo three', 'ee four']
    >>> [p.text for p in cut_document(document, Chunk(size=10, overlap=4, by="words"))]
    ['one two', 'two three', 'four']
    """
    return [
        Document(
            id=f"{document.id}{PASSAGE_SEPARATOR}{number}",
            title=document.title,
            text=cut.text,
            fields=document.fields,
        )
        for number, cut in enumerate(_cut_text(document, chunks))
    ]


def passage_spans(document: Document, chunks: Chunk) -> list[Span | None]:
    """Return the place of each passage of a document in its text, in their order.

    None for a passage of the user's function that is not in the text.

    >>> document = Document("d", "", " one two three four")
    >>> spans = passage_spans(document, Chunk(size=8, overlap=2))
    >>> [span and span[1:] for span in spans]
    [(1, 8), (6, 14), (12, 19)]
    """
    return [
        None
        if cut.start is None
        else Span(document.id, cut.start, cut.start + len(cut.text))
        for cut in _cut_text(document, chunks)
    ]


def _cut_text(document: Document, chunks: Chunk) -> list[_Cut]:
    """Return the passages of a document's text, without blank ones.

    A blank text has one passage, which is blank: the document may have a title.
    """
    text = document.text.strip()
    if chunks.call:
        cuts = _cut_by_function(chunks.call, text)
    elif chunks.by in PACKAGE_BOUNDARIES:
        cuts = _cut_by_sentences(document.title, text, chunks)
    else:
        cuts = _cut_by_words(document.title, text, chunks)
    leading_count = len(document.text) - len(document.text.lstrip())
    placed: list[_Cut] = []
    for cut in cuts:
        if cut.text or not text:
            start = None if cut.start is None else cut.start + leading_count
            placed.append(_Cut(cut.text, start))
    return placed


def _stripped_cut(text: str, start: int) -> _Cut:
    """Return a passage without the white space around it."""
    return _Cut(text.strip(), start + len(text) - len(text.lstrip()))


def _cut_by_words(title: str, text: str, chunks: Chunk) -> list[_Cut]:
    """Return passages that end at breaks (`PASSAGE_BREAK`), or where there is no room.

    The room of a passage is its length in characters: the size, or about as many as
    have so many tokens.
    """
    size = chunks.size or 1
    longest = MAX_TOKEN_CHARACTERS * size
    counter = chunks.token_counter
    measure = None if counter is None else _TokenMeasure(title, size, counter)
    passages: list[_Cut] = []
    start = 0
    end = 0
    while True:
        room = size
        if measure is not None:
            room = measure.fitting_characters(text[start : start + longest])
        if room >= len(text) - start:
            return [*passages, _stripped_cut(text[start:], start)]
        overlap = room * chunks.overlap // size  # in characters
        window = text[start : start + room + 1]  # a break may be right after the room
        # A passage that ends between words may be short; any other has at least half
        # of its room, and more than the overlap.
        shortest = 0 if chunks.by else max(room // 2, overlap)
        length = _passage_length(window, room, shortest)
        if start + length <= end:  # the overlap, with no further word
            start = end
            continue
        passages.append(_stripped_cut(window[:length], start))
        end = start + length
        start = end - overlap if length > overlap else end
        if chunks.by and start < end:
            start = _next_word(text, start, end)


def _passage_length(window: str, room: int, shortest: int) -> int:
    """Return the length up to the last break beyond `shortest`; the room if none is."""
    breaks = [gap.start() for gap in PASSAGE_BREAK.finditer(window)]
    lengths = [length for length in breaks if shortest < length <= room]
    return max(lengths, default=room)


def _next_word(text: str, start: int, end: int) -> int:
    """Return where the first whole word from `start` on begins; `end` if none does."""
    follows_break = PASSAGE_BREAK.fullmatch(text[start - 1 : start])
    if follows_break or text[start].isspace():
        return start
    gap = PASSAGE_BREAK.search(text, start, end)
    return gap.end() if gap else end


def _cut_by_sentences(title: str, text: str, chunks: Chunk) -> list[_Cut]:
    """Return passages with as many paragraphs as fit, else sentences, else words."""
    is_markdown = chunks.by == "heading"
    splitter_name = "MarkdownSplitter" if is_markdown else "TextSplitter"
    splitter_class = getattr(_splitter_package(), splitter_name)
    size = chunks.size or 1
    counter = chunks.token_counter
    if counter is None:
        splitter = splitter_class(size, chunks.overlap)
    else:
        measure = _TokenMeasure(title, size, counter)
        room = max(1, measure.limit - measure.title_tokens)
        splitter = splitter_class.from_callback(
            lru_cache(maxsize=1 << 12)(measure.count_without_title),
            room,
            min(chunks.overlap, room - 1),
        )
    passages = [_Cut(passage, start) for start, passage in splitter.chunk_indices(text)]
    return passages or [_Cut(text, 0)]


def _splitter_package() -> Any:
    """Return the package semantic_text_splitter."""
    with require_package("chunk.by", "semantic-text-splitter", "chunks"):
        return importlib.import_module("semantic_text_splitter")


def _cut_by_function(call: str, text: str) -> list[_Cut]:
    """Return the passages of the user's function."""
    with wrap_user_errors((call,)):
        returned = import_function(call, "chunk.call")(text)
        # A text by itself would be a list of its characters.
        passages = [] if isinstance(returned, str) else list(returned)
    are_texts = all(isinstance(passage, str) for passage in passages)
    if (
        isinstance(returned, str)
        or not are_texts
        or (text and not any(map(str.strip, passages)))
    ):
        raise BackendError(
            f"{call} gave {passages or returned!r:.80} for a text; give a list of texts"
        )
    cuts: list[_Cut] = []
    earliest = 0
    for passage in map(str.strip, passages):
        # A text that occurs twice is looked for after the last one's start first.
        start = text.find(passage, earliest)
        if start < 0:
            start = text.find(passage)
        cuts.append(_Cut(passage, start if start >= 0 else None))
        earliest = max(start + 1, earliest)
    return cuts or [_Cut(text, 0)]


class _TokenMeasure:
    """Measures passages in tokens, together with their document's title.

    At least half of the size is for the text: with a title of more than half of it, a
    passage is longer than the size.
    """

    def __init__(self, title: str, size: int, count: TokenCounter) -> None:
        self._title = title
        self._count = count
        self.title_tokens = int(count([title])[0])
        self.limit = max(size, self.title_tokens + max(1, size // 2))
        """Tokens of a passage with its title, at most."""

    def count_tokens(self, text: str) -> int:
        """Return the tokens of a passage with its title."""
        return int(self._count([f"{self._title} {text}".strip()])[0])

    def count_without_title(self, text: str) -> int:
        """Return the tokens that a passage adds to its title."""
        return self.count_tokens(text) - self.title_tokens

    def fitting_characters(self, text: str) -> int:
        """Return how many leading characters of a text fit into a passage, about.

        An interpolation search: `low` characters fit, `high` do not.
        """
        high = len(text)
        high_tokens = self.count_tokens(text)
        if high_tokens <= self.limit:
            return high
        low = 0
        low_tokens = self.title_tokens
        while high - low > max(1, high // MEASURING_STEPS):
            margin = max(1, (high - low) // 8)
            token_span = max(1, high_tokens - low_tokens)
            middle = low + (high - low) * (self.limit - low_tokens) // token_span
            middle = min(max(middle, low + margin), high - margin)
            middle_tokens = self.count_tokens(text[:middle])
            if middle_tokens <= self.limit:
                low = middle
                low_tokens = middle_tokens
            else:
                high = middle
                high_tokens = middle_tokens
        return max(low, 1)


def passages_of(
    documents: Iterable[Document], chunks: Chunk | None
) -> Iterator[Document]:
    """Yield what is embedded of a corpus: documents that are not blank, or passages."""
    in_context = passages_in_context(documents, chunks, contextual=False)
    return (passage.passage for passage in in_context)


def passages_in_context(
    documents: Iterable[Document], chunks: Chunk | None, *, contextual: bool
) -> Iterator[PassageInContext]:
    """Yield the texts of a corpus to embed, each with the document read with it.

    Blank documents are left out. A document is read with its passages if the encoder is
    `contextual`, or by late chunking.

    >>> documents = [Document("d", "t", "a b")]
    >>> late = Chunk(size=1, late=True)
    >>> passages = passages_in_context(documents, late, contextual=False)
    >>> [(passage.text, passage.context) for passage in passages]
    [('a', 't a b'), ('b', 't a b')]
    """
    has_context = contextual or (chunks is not None and chunks.late)
    for document in documents:
        content = document.content.strip()
        if not content:
            continue
        context = content if has_context else ""
        passages = [document] if chunks is None else cut_document(document, chunks)
        for passage in passages:
            has_title_in_context = bool(context) and chunks is not None
            text = passage.text if has_title_in_context else ""
            yield PassageInContext(passage, text or passage.content, context)

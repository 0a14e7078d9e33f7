"""Passages of hits placed in their documents."""

from typing import NamedTuple

from retrievers.meter import Meter
from retrievers.passage import Passage, Span
from retrievers.ranking import Ranking
from retrievers.resources import Corpus
from retrievers.texts.chunking import Chunk, passage_spans
from retrievers.texts.passage_ranking import PASSAGE_SEPARATOR, document_of_passage
from retrievers.texts.token_estimate import TokenCounter

CHANGED_PASSAGE_NOTE = "changed-passage"
"""Kind of note: a user's function returned a text that is not in the document, or fewer
passages than before."""


class _PlacedPassage(NamedTuple):
    """A passage without a score."""

    span: Span
    tokens: int


class PassagePlaces:
    """Cuts the documents of hits again, to find the places of their passages.

    An index keeps the ids of passages, not their places: that of a store may have been
    built by an earlier run. BM25 uses this as well.

    Args:
        corpus: has the documents.
        chunks: how they were cut.
        count: counts the tokens of passages, by the tokenizer of the run.
    """

    def __init__(self, corpus: Corpus, chunks: Chunk, count: TokenCounter) -> None:
        self._corpus = corpus
        self._chunks = chunks
        self._count = count
        self._by_document: dict[str, list[_PlacedPassage | None]] = {}
        self._changed: dict[str, None] = {}

    def place(self, passages: Ranking) -> list[Passage] | None:
        """Return the passages of one query.

        None if the text of any of them is not in its document, or the document has
        fewer passages now.
        """
        self._cut({document_of_passage(passage_id) for passage_id in passages.doc_ids})
        placed_passages: list[Passage] = []
        for passage_id, score in passages:
            document_id, _, number = passage_id.rpartition(PASSAGE_SEPARATOR)
            document_passages = self._by_document[document_id]
            position = int(number)
            placed = None
            # A user's function may give fewer passages now; others with the same
            # numbers go unnoticed.
            if position < len(document_passages):
                placed = document_passages[position]
            if placed is None:
                self._changed[document_id] = None
                return None
            placed_passages.append(Passage(*placed.span, placed.tokens, score))
        return placed_passages

    def note_changed(self, meter: Meter) -> None:
        """After a search, note documents with a passage that is not in their text.

        They are those that `place` met since the last call.
        """
        for document_id in self._changed:
            meter.note(CHANGED_PASSAGE_NOTE, document_id)
        self._changed.clear()

    def _cut(self, document_ids: set[str]) -> None:
        """Cut the documents that were not cut before."""
        missing = document_ids - self._by_document.keys()
        if not missing:
            return
        for document in self._corpus.contents(missing, "placed").values():
            spans = passage_spans(document, self._chunks)
            texts = [
                document.text[span.start : span.end] if span else "" for span in spans
            ]
            self._by_document[document.id] = [
                None if span is None else _PlacedPassage(span, tokens)
                for span, tokens in zip(spans, self._count(texts).tolist(), strict=True)
            ]

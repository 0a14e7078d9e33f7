"""A collection built from texts.

Documents, or their passages, are embedded window by window and added to a store. The
notes that are stored with it (which documents are blank, truncated, without direction)
are read again by later runs, which use the collection as it is.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt

from retrievers.document import Document
from retrievers.embedder import Embedder, split_windows
from retrievers.errors import InputError
from retrievers.meter import Meter
from retrievers.ragged import count_numbers, nonzero_rows
from retrievers.store import Store
from retrievers.texts.chunking import Chunk, PassageInContext, passages_in_context
from retrievers.texts.passage_ranking import document_of_passage

COLLECTION_NUMBERS_NOTE = "numbers"
"""Name of the note that stores `CollectionNumbers`."""


class CollectionNumbers(NamedTuple):
    """The numbers of a collection, which are stored among its notes."""

    point_count: int
    """Vectors in the collection."""
    number_count: int
    """Floats in all vectors together."""
    text_count: int
    """Documents (or passages, if documents are cut) that are not blank."""

    @classmethod
    def from_notes(cls, notes: Mapping[str, Sequence[str]]) -> Self | None:
        """Return the numbers in notes; None if an earlier version did not store all."""
        numbers = notes.get(COLLECTION_NUMBERS_NOTE, ())
        if len(numbers) < len(cls._fields):
            return None
        return cls(*map(int, numbers))


class CollectionBuilder:
    """Embeds a corpus window by window into a collection.

    Args:
        collection: the collection; it may have points of an interrupted build.
        embedder: embeds the texts.
        chunks: how documents are cut; None if they are not.
        filter_fields: fields that are stored with the points.
        anew: whether to delete points of an interrupted build.
    """

    def __init__(
        self,
        collection: Store,
        embedder: Embedder,
        *,
        chunks: Chunk | None,
        filter_fields: Sequence[str],
        anew: bool,
    ) -> None:
        self._collection = collection
        self._embedder = embedder
        self._chunks = chunks
        self._filter_fields = filter_fields
        self._anew = anew
        self._notes: dict[str, list[str]] = {
            "empty": [],
            "truncated": [],
            "zero-vector": [],
        }
        self._corpus_size = 0
        """Documents in the corpus; 0 if their number is unknown."""
        self._documents_read = 0
        self._distinct_count = 0
        """Distinct texts of each window, added up: for progress."""
        self._point_count = 0
        self._number_count = 0
        self._text_count = 0

    def build(
        self, documents: Iterable[Document], meter: Meter
    ) -> dict[str, list[str]]:
        """Embed the documents, finish the collection, and return its notes.

        Raises:
            InputError: all documents are blank.
        """
        self._corpus_size = operator.length_hint(documents)
        encoder = self._embedder.encoder
        passages = passages_in_context(
            self._read(documents), self._chunks, contextual=encoder.contextual
        )
        for window in split_windows(passages, encoder.form):
            self._add_window(window, meter)
        if not self._text_count:
            raise InputError(
                "nothing to index: the corpus holds no document with any content"
            )
        # A document whose passages are in two windows was noted twice.
        self._notes = {
            kind: list(dict.fromkeys(ids)) for kind, ids in self._notes.items()
        }
        with meter.stage("index"):
            self._notes[COLLECTION_NUMBERS_NOTE] = [str(n) for n in self.numbers]
            self._collection.finish(self._notes)
        return self._notes

    @property
    def numbers(self) -> CollectionNumbers:
        """The numbers of the collection so far."""
        return CollectionNumbers(
            self._point_count, self._number_count, self._text_count
        )

    def _read(self, documents: Iterable[Document]) -> Iterator[Document]:
        """Yield the documents, count them, and note those that are blank."""
        for document in documents:
            self._documents_read += 1
            if not document.content.strip():
                self._notes["empty"].append(document.id)
            yield document

    def _add_window(self, window: Sequence[PassageInContext], meter: Meter) -> None:
        """Embed some passages and add their vectors to the collection."""
        passages = [passage.passage for passage in window]
        texts = [passage.text for passage in window]
        # Empty, or one for each: whether there are any depends on the encoder.
        contexts = [passage.context for passage in window if passage.context]
        self._distinct_count += _count_distinct(texts, contexts)
        expected_texts = self._expected_total(self._distinct_count)
        with meter.stage("embed-documents", total=expected_texts):
            embedded = self._embedder.embed(texts, "document", meter, contexts)
            meter.count(lost_tokens=int(embedded.truncated_tokens.sum()))
        self._notes["truncated"] += _document_ids(
            passages, embedded.truncated_tokens > 0
        )
        has_direction = nonzero_rows(embedded.vectors)
        self._point_count += int(has_direction.sum())
        self._number_count += count_numbers(embedded.vectors)
        self._notes["zero-vector"] += _document_ids(passages, ~has_direction)
        expected_texts = self._expected_total(self._text_count + len(texts))
        with meter.stage("index", total=expected_texts):
            if not self._text_count:
                dimensions = embedded.vectors.shape[1]
                self._collection.create(dimensions, anew=self._anew)
            points = [passages[i] for i in np.flatnonzero(has_direction).tolist()]
            self._collection.upsert(
                [passage.id for passage in points],
                embedded.vectors[has_direction],
                self._point_fields(points),
            )
            meter.count(texts=len(points))
        self._text_count += len(texts)

    def _expected_total(self, text_count: int) -> int | None:
        """Return the texts of all documents, extrapolated from those that were read.

        None if the number of documents is unknown.
        """
        if not self._corpus_size:
            return None
        return round(text_count * self._corpus_size / self._documents_read)

    def _point_fields(self, points: Sequence[Document]) -> list[dict[str, str]]:
        """Return the fields of points that filters use; empty without filters."""
        if not self._filter_fields:
            return []
        return [
            {
                field: point.fields[field]
                for field in self._filter_fields
                if field in point.fields
            }
            for point in points
        ]


def _count_distinct(texts: Sequence[str], contexts: Sequence[str]) -> int:
    """Return how many texts differ, or differ with their contexts if they have any."""
    if contexts:
        return len(set(zip(texts, contexts, strict=True)))
    return len(set(texts))


def _document_ids(
    passages: Sequence[Document], mask: npt.NDArray[np.bool_]
) -> list[str]:
    """Return the ids of the documents with a passage in the mask."""
    passage_ids = [passages[i].id for i in np.flatnonzero(mask).tolist()]
    return list(dict.fromkeys(map(document_of_passage, passage_ids)))

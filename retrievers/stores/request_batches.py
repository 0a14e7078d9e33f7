"""Vectors split into requests that a server accepts."""

from collections.abc import Iterator

import numpy as np

from retrievers.ragged import AnyVectors, RaggedVectors, SparseVectors

MAX_REQUEST_NUMBERS = 1_280_000
"""Numbers of one request, at most: as JSON below a server's default limit of 32 MB."""


def split_requests(vectors: AnyVectors, max_texts: int) -> Iterator[slice]:
    """Yield the texts of each request.

    It has at most `max_texts` texts, and at most 1,280,000 numbers unless one text has
    more.
    """
    text_starts = np.arange(len(vectors) + 1)
    if isinstance(vectors, RaggedVectors):
        text_starts = vectors.starts
    # A sparse vector has an index and a number for each of its dimensions.
    row_numbers = 2 if isinstance(vectors, SparseVectors) else vectors.shape[1]
    number_ends = text_starts * row_numbers
    start = 0
    while start < len(vectors):
        max_end = number_ends[start] + MAX_REQUEST_NUMBERS
        fitting_stop = int(np.searchsorted(number_ends, max_end, side="right")) - 1
        stop = min(max(fitting_stop, start + 1), start + max_texts, len(vectors))
        yield slice(start, stop)
        start = stop

"""The points of a collection in any engine.

Stores in memory share `MatrixStore`; those of Qdrant the ids of points, filters and
vectors in the engine's form; both the one order of hits where scores tie.
"""

from __future__ import annotations

import json
import math
import re
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from retrievers.conditions import FieldValues, FilterValues
from retrievers.errors import BackendError, HarnessError, InputError, Problem
from retrievers.ragged import AnyVectors, SparseVectors, TokenVectors
from retrievers.ranking import (
    SCORE_RESOLUTION,
    Ranking,
    cut_below,
    ranked,
    round_scores,
    search_until_settled,
)
from retrievers.store import Store
from retrievers.stores.options import StoreOptions

ULID_PATTERN = re.compile(r"[0-7][0-9A-HJKMNP-TV-Z]{25}")
UUID_PATTERN = re.compile(
    r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
)
CROCKFORD_TO_BASE32 = str.maketrans(
    "0123456789ABCDEFGHJKMNPQRSTVWXYZ", "0123456789abcdefghijklmnopqrstuv"
)
"""Translates the digits of a ULID to those that `int` reads in base 32."""
DOCUMENT_NAMESPACE = uuid.UUID("6f1f2a3e-6a0e-5d0c-9d6b-1f6d7b1f5c11")
"""Namespace of the point ids of documents whose ids are neither ULID nor UUID."""
SPARSE_VECTOR_NAME = "sparse"
"""The name of a collection's sparse vectors, which require one."""
FIELDS_PAYLOAD_KEY = "fields"
"""The key of a document's fields in a payload."""
EXTRA_HITS = 10
"""Hits requested beyond the limit, so that a tie at the limit rarely needs a second
request."""
STORAGE_ERROR = re.compile(r"\bspace\b|disk is full|readonly|ermission denied")
"""Part of an engine's message if the disk, and not the request, is the cause."""
Payload = dict[str, Any]


class MatrixStore(Store):
    """A store of one collection in memory: ids, fields, and vectors in parts."""

    _ids: list[str]
    _field_values: FieldValues
    _parts: list[Any]
    """The encoded vectors of each `upsert`."""

    def create(self, dimensions: int, *, anew: bool = False) -> None:
        """Start an empty collection."""
        self._ids = []
        self._field_values = FieldValues()
        self._parts = []

    def upsert(
        self,
        ids: Sequence[str],
        vectors: AnyVectors,
        fields: Sequence[Mapping[str, str]] = (),
    ) -> None:
        """Add points; `finish` refuses an id that occurs twice."""
        self._ids += ids
        for document_fields in fields:
            self._field_values.add(document_fields)
        self._parts.append(self._encode(vectors))

    def _encode(self, vectors: AnyVectors) -> Any:
        """Return vectors in the form in which they are stored."""
        return vectors

    def finish(self, notes: Mapping[str, Sequence[str]]) -> None:
        """Complete the collection; raise BackendError if an id occurs twice."""
        check_point_count(len(self._ids), len(set(self._ids)))


class EngineHits(NamedTuple):
    """An engine's hits for one query: best first, equal scores in any order."""

    doc_ids: list[str]
    scores: list[float]


def point_id(document_id: str) -> str:
    """Return the UUID of a document's point in Qdrant.

    A ULID becomes the UUID of the same 128 bits and a UUID stays as it is; any other id
    is hashed (UUID version 5). Only the canonical spellings count (upper-case ULID,
    lower-case UUID with hyphens): otherwise two documents whose ids differ only in
    spelling would share a point.

    >>> point_id("01G7XP6QXQWXAMKGTJYSPBFGBN")
    '0181fb63-5fb7-e755-49c3-52f66cb7c175'
    >>> point_id("0181fb63-5fb7-e755-49c3-52f66cb7c175")
    '0181fb63-5fb7-e755-49c3-52f66cb7c175'
    >>> point_id("4983")
    '0a601265-def9-53ab-a29c-f0f168d4fc13'
    """
    if UUID_PATTERN.fullmatch(document_id):
        return document_id
    if ULID_PATTERN.fullmatch(document_id):
        return str(uuid.UUID(int=int(document_id.translate(CROCKFORD_TO_BASE32), 32)))
    return str(uuid.uuid5(DOCUMENT_NAMESPACE, document_id))


def field_pairs(fields: Mapping[str, str]) -> list[str]:
    """Return a document's fields as one list in a payload.

    A path in Qdrant's filters does not accept every field name.

    >>> field_pairs({"language": "ja"})
    ['["language", "ja"]']
    """
    return [_field_pair(field, value) for field, value in fields.items()]


def _field_pair(field: str, value: str) -> str:
    return json.dumps([field, value], ensure_ascii=False)


def payload_filter(engine: Any, filter_values: FilterValues) -> Any:
    """Return the payload filter for what a query requires.

    If a field has no accepted value, no point matches.

    Args:
        engine: the module with the classes: `qdrant_client.models`, or `qdrant_edge`,
            which has the same names.
        filter_values: fields and their accepted values.
    """
    conditions = []
    for field, values in filter_values:
        accepted_pairs = [_field_pair(field, value) for value in values]
        # No pair is the empty text: it matches no point.
        match = engine.MatchAny(any=accepted_pairs or [""])
        condition = engine.FieldCondition(key=FIELDS_PAYLOAD_KEY, match=match)
        conditions.append(condition)
    return engine.Filter(must=conditions)


def search_params(engine: Any, options: StoreOptions, *, exact: bool) -> Any:
    """Return the engine's search parameters; `engine` is as in `payload_filter`."""
    if exact or not options.approximate:
        return engine.SearchParams(exact=True)
    quantization = None
    if options.quantization:
        quantization = engine.QuantizationSearchParams(
            rescore=True, oversampling=options.oversampling
        )
    return engine.SearchParams(hnsw_ef=options.ef, quantization=quantization)


def engine_vectors(
    engine: Any, vectors: AnyVectors, convert_row: Callable[[Any], Any]
) -> list[Any]:
    """Return each text's vectors in the engine's form, for points and for queries.

    Args:
        engine: its module, as in `payload_filter`.
        vectors: the texts' vectors.
        convert_row: returns a dense vector in the engine's form.
    """
    if isinstance(vectors, SparseVectors):
        return [
            engine.SparseVector(indices=indices.tolist(), values=values.tolist())
            for indices, values in vectors.rows()
        ]
    if isinstance(vectors, TokenVectors):
        return [list(map(convert_row, token_rows)) for token_rows in vectors.rows()]
    return [convert_row(vector) for vector in vectors]


def check_point_count(added: int, stored: int) -> None:
    """Raise BackendError unless as many points are stored as were added."""
    if added != stored:
        raise BackendError(
            f"the collection holds {stored} points for {added} documents: points were "
            "lost, an id occurs twice, or a ULID and a UUID among the ids have the "
            "same 128 bits"
        )


@contextmanager
def explain_engine_errors(location: Path | str) -> Iterator[None]:
    """Convert the errors of an engine in this process, mostly bare `Exception`.

    Raises:
        InputError: the disk is full, or a file cannot be read or written.
        BackendError: any other error.
    """
    try:
        yield
    except HarnessError:
        raise
    except Exception as error:
        if isinstance(error, OSError) or STORAGE_ERROR.search(str(error)):
            problem = f"cannot be read or written: {error}"
            remedy = "free disk space, or let this user read and write it"
            raise InputError(Problem(f"store {location}", problem, remedy)) from error
        raise BackendError(
            f"store {location}: {error}; if it is damaged, delete it and run again"
        ) from error


def search_past_ties(
    search: Callable[[list[int], int], Iterable[EngineHits]],
    vectors: AnyVectors,
    limit: int,
) -> list[Ranking]:
    """Return the best `limit` hits of each query in the one total order of `ranked`.

    Engines return equal scores in any order, so that chance decides which of several
    tied points is within the limit. This requests more hits than the limit, and four
    times more again for the queries whose last hit may still tie with the hit at the
    limit. Hits of sparse vectors are only those that score above 0.

    Args:
        search: returns the hits of the queries at some positions, up to a limit.
        vectors: the queries' vectors.
        limit: hits to keep, at least 1.
    """
    # A sparse vector that shares no dimension with the query scores 0.
    is_sparse = isinstance(vectors, SparseVectors)

    def resolve_ties(_: int, hits: EngineHits, requested: int) -> Ranking | None:
        count = _count_possible_hits(hits.scores, limit)
        if count == len(hits.scores) == requested:
            return None  # a hit that was not returned may tie with the last one
        scores = round_scores(hits.scores[:count])
        ranking = ranked(hits.doc_ids[:count], scores, limit)
        return positive_hits(ranking) if is_sparse else ranking

    return search_until_settled(search, len(vectors), limit + EXTRA_HITS, resolve_ties)


def positive_hits(ranking: Ranking) -> Ranking:
    """Return the hits whose score is above 0.

    >>> positive_hits(ranked(["a", "b"], [1, 0])).doc_ids
    ('a',)
    """
    return cut_below(ranking, math.ulp(0.0))


def _count_possible_hits(scores: Sequence[float], limit: int) -> int:
    """Return how many leading scores may belong to the first `limit` after rounding."""
    if len(scores) <= limit:
        return len(scores)
    tolerance = SCORE_RESOLUTION * max(map(abs, scores[:limit]))
    lowest = scores[limit - 1] - tolerance
    for rank in range(limit, len(scores)):
        if scores[rank] < lowest:
            return rank
    return len(scores)

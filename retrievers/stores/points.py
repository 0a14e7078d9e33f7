"""The points of a collection in any engine."""

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
    ranked,
    round_scores,
    search_until_settled,
    with_min_score,
)
from retrievers.store import Store
from retrievers.stores.options import StoreOptions


class MatrixStore(Store):
    """The ids and fields of one collection's points, and their vectors in parts, as a kind of store keeps them."""

    _ids: list[str]
    _values: FieldValues
    _parts: list[Any]

    def create(self, dimensions: int, *, anew: bool = False) -> None:
        """Make the collection anew and empty."""
        self._ids, self._values, self._parts = [], FieldValues(), []

    def upsert(
        self,
        ids: Sequence[str],
        vectors: AnyVectors,
        fields: Sequence[Mapping[str, str]] = (),
    ) -> None:
        """Add points, whose ids are new."""
        self._ids += ids
        for own in fields:
            self._values.add(own)
        self._parts.append(self._kept(vectors))

    def _kept(self, vectors: AnyVectors) -> Any:
        """What is kept of some vectors."""
        return vectors

    def finish(self, notes: Mapping[str, Sequence[str]]) -> None:
        """Put all points into one matrix; raises BackendError where an id occurs twice."""
        check_point_count(len(self._ids), len(set(self._ids)))


ULID_PATTERN = re.compile(r"[0-7][0-9A-HJKMNP-TV-Z]{25}")
UUID_PATTERN = re.compile(
    r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
)
CROCKFORD_TO_BASE32 = str.maketrans(
    "0123456789ABCDEFGHJKMNPQRSTVWXYZ", "0123456789abcdefghijklmnopqrstuv"
)
"""From the digits of a ULID to those that `int` reads in base 32."""
DOCUMENT_NAMESPACE = uuid.UUID("6f1f2a3e-6a0e-5d0c-9d6b-1f6d7b1f5c11")
"""Namespace of the point ids of documents whose own ids are neither ULID nor UUID."""
SPARSE_VECTOR_NAME = "sparse"
"""The name of a collection's sparse vectors, which have to have one."""
FIELDS_PAYLOAD_KEY = "fields"
"""The key of a payload that holds a document's fields."""
Payload = dict[str, Any]
EXTRA_HITS = 10
"""Hits asked for beyond the limit, so that a tie at the limit rarely needs a second request."""


class EngineHits(NamedTuple):
    """What an engine answered to one query: best first, equal scores in any order."""

    doc_ids: list[str]
    scores: list[float]


def point_id(document_id: str) -> str:
    """Return the UUID under which Qdrant keeps a document.

    A ULID becomes the UUID of the same 128 bits and a UUID stays as it is; any other id is hashed (UUID version
    5). Only the canonical spellings count (upper-case ULID, lower-case UUID with hyphens): otherwise two
    documents whose ids differ in spelling alone would share a point.

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
    """Return a document's fields as a payload holds them: in one list, since a path of Qdrant's takes not every name.

    >>> field_pairs({"language": "ja"})
    ['["language", "ja"]']
    """
    return [_pair(name, value) for name, value in fields.items()]


def payload_filter(engine: Any, wanted: FilterValues) -> Any:
    """Return the payload filter that leaves what is wanted; where no value of a field will do, nothing is left.

    Args:
        engine: the module with the classes: `qdrant_client.models`, or `qdrant_edge`, whose names are the same.
        wanted: fields, and for each the values of which a payload must hold one.
    """
    some = [[_pair(name, value) for value in values] or [""] for name, values in wanted]
    return engine.Filter(
        must=[
            engine.FieldCondition(
                key=FIELDS_PAYLOAD_KEY, match=engine.MatchAny(any=one)
            )
            for one in some
        ]
    )


def search_params(engine: Any, options: StoreOptions, *, exact: bool) -> Any:
    """Return how an engine searches, whose module is as in `filter_of`."""
    if exact or not options.approximate:
        return engine.SearchParams(exact=True)
    rescored = engine.QuantizationSearchParams(
        rescore=True, oversampling=options.oversampling
    )
    return engine.SearchParams(
        hnsw_ef=options.ef, quantization=rescored if options.quantization else None
    )


def engine_vectors(
    engine: Any, vectors: AnyVectors, row: Callable[[Any], Any]
) -> list[Any]:
    """Return each text's vectors as an engine takes them, in points and in queries.

    Args:
        engine: its module, as in `filter_of`.
        vectors: of the texts.
        row: makes of a dense vector what the engine takes.
    """
    if isinstance(vectors, SparseVectors):
        sparse = engine.SparseVector
        return [
            sparse(indices=indices.tolist(), values=values.tolist())
            for indices, values in vectors.rows()
        ]
    if isinstance(vectors, TokenVectors):
        return [[row(token) for token in tokens] for tokens in vectors.rows()]
    return [row(vector) for vector in vectors]


def _pair(name: str, value: str) -> str:
    return json.dumps([name, value], ensure_ascii=False)


def check_point_count(added: int, kept: int) -> None:
    """Raise BackendError unless the collection holds as many points as were added."""
    if added != kept:
        raise BackendError(
            f"the collection holds {kept} points for {added} documents: points were lost, an id occurs twice, or a "
            "ULID and a UUID among the ids have the same 128 bits"
        )


@contextmanager
def explain_engine_errors(place: Path | str) -> Iterator[None]:
    """Turn the errors of an engine in this process into ours: mostly bare `Exception` or `ValueError`.

    Raises:
        InputError: the disk is full or may not be written.
        BackendError: anything else.
    """
    try:
        yield
    except HarnessError:
        raise
    except Exception as error:
        if isinstance(error, OSError) or re.search(
            r"\bspace\b|disk is full|readonly|ermission denied", str(error)
        ):
            problem = Problem(
                f"store {place}",
                f"cannot be written: {error}",
                "free disk space, then run again",
            )
            raise InputError(problem) from error
        raise BackendError(
            f"store {place}: {error}; if it is damaged, delete it and run again"
        ) from error


def search_past_ties(
    ask: Callable[[list[int], int], Iterable[EngineHits]],
    vectors: AnyVectors,
    limit: int,
) -> list[Ranking]:
    """Return the best `limit` hits of each query in the one total order of `ranked`; of sparse vectors those above 0.

    Engines leave equal scores in no order, so which of several tied points they put last is chance. This asks for
    more than the limit, and four times more again for the queries whose last hit may still tie with the one at
    the limit.

    Args:
        ask: answers the queries at some positions with at most so many hits each.
        vectors: of the queries.
        limit: hits to keep, at least 1.
    """
    sparse = isinstance(
        vectors, SparseVectors
    )  # what shares nothing with a query is not an answer to it

    def settled(_: int, found: EngineHits, size: int) -> Ranking | None:
        reach = _reach(found.scores, limit)
        if reach == len(found.scores) == size:
            return None
        ranking = ranked(
            found.doc_ids[:reach], round_scores(found.scores[:reach]), limit
        )
        return positive_hits(ranking) if sparse else ranking

    return search_until_settled(ask, len(vectors), limit + EXTRA_HITS, settled)


def positive_hits(ranking: Ranking) -> Ranking:
    """Return the hits whose score is above 0.

    >>> positive_hits(ranked(["a", "b"], [1, 0])).doc_ids
    ('a',)
    """
    return with_min_score(ranking, math.ulp(0.0))


def _reach(scores: Sequence[float], limit: int) -> int:
    """Return how many hits come before the first that is more than a step of `rounded` below the one at the limit."""
    if len(scores) <= limit:
        return len(scores)
    lowest = scores[limit - 1] - SCORE_RESOLUTION * max(map(abs, scores[:limit]))
    return next(
        (rank for rank in range(limit, len(scores)) if scores[rank] < lowest),
        len(scores),
    )

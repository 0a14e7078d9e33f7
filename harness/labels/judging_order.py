"""The order of judging.

People judge a pool query by query, and a tenth of its pairs once more, without seeing
their first grade. `build_judgment` turns one answer into a judgment, a model's as well.
"""

import math
from typing import NamedTuple

from harness.dataset.judgment import JudgeKind, Judgment
from harness.labels.pool import Pool, PooledDocument, PooledQuery, shuffle_key

REPEATED_SHARE = 0.1
"""The share of the pairs that a person judges twice, to measure self-agreement."""
REPEAT_DISTANCE = 3
"""A pair is repeated after this many further queries, or at the end."""
PairRound = tuple[str, str, int]
"""Query id, document id, round: a judge gives one judgment of it."""


class PairTexts(NamedTuple):
    """The query and the document of a pair."""

    query: PooledQuery
    document: PooledDocument


class OrderedPair(NamedTuple):
    """One step in the order of judging."""

    query: int
    """Index of the query in the pool."""
    document: int
    """Index of the document within its query."""
    round: int
    """1; 2 or more if the pair is repeated."""

    def pair_texts(self, pool: Pool) -> PairTexts:
        """Return the texts to read."""
        query = pool.queries[self.query]
        return PairTexts(query, query.documents[self.document])


class JudgeSignature(NamedTuple):
    """The judge, and the digest of the instructions."""

    judge: str
    kind: JudgeKind
    prompt: str
    """Digest of the policy for people, or of the prompt for a model."""


def judging_order(pool: Pool) -> list[OrderedPair]:
    """Return the pairs of a pool in the order of judging, some of them twice.

    The order is query by query, so that few queries are half done if a judge stops
    early. A tenth of the pairs, rounded up, is repeated, and a hash decides which;
    each comes again after three further queries, or at the end.
    """
    pairs = round_pairs(pool, 1)

    def random_key(pair: OrderedPair) -> bytes:
        query_id, document_id, _ = pair_key(pool, pair)
        return shuffle_key(pool.drawn.seed, "again", query_id, document_id)

    repeats_by_query: dict[int, list[OrderedPair]] = {}
    count = math.ceil(len(pairs) * REPEATED_SHARE)
    last_query = len(pool.queries) - 1
    for pair in sorted(pairs, key=random_key)[:count]:
        after_query = min(pair.query + REPEAT_DISTANCE, last_query)
        repeats = repeats_by_query.setdefault(after_query, [])
        repeats.append(pair._replace(round=2))
    order: list[OrderedPair] = []
    for query in range(len(pool.queries)):
        order += [pair for pair in pairs if pair.query == query]
        order += repeats_by_query.get(query, ())
    return order


def round_pairs(pool: Pool, number: int) -> list[OrderedPair]:
    """Return every pair of a pool once, as one round of judging."""
    pairs: list[OrderedPair] = []
    for query_index, query in enumerate(pool.queries):
        pairs.extend(
            OrderedPair(query_index, document_index, number)
            for document_index in range(len(query.documents))
        )
    return pairs


def pair_key(pool: Pool, pair: OrderedPair) -> PairRound:
    """Return the query id, the document id and the round of a pair."""
    query, document = pair.pair_texts(pool)
    return query.query_id, document.id, pair.round


def build_judgment(
    pool: Pool,
    pair: OrderedPair,
    grade: int | None,
    signature: JudgeSignature,
    **further_fields: object,
) -> Judgment:
    """Return the judgment of one pair.

    Args:
        pool: has the pair.
        pair: the query and the document.
        grade: None if the judge gave none, such as an unreadable reply.
        signature: the judge.
        further_fields: such as the note and the time.
    """
    query, document = pair.pair_texts(pool)
    fields = {
        "query_id": query.query_id,
        "document_id": document.id,
        "grade": grade,
        **signature._asdict(),
        "round": pair.round,
        "design": pool.drawn.design,
        "inclusion": query.inclusion,
        "population": pool.drawn.population,
        "pool": pool.digest,
        "text": document.digest,
        "asked": len(query.documents),
    }
    return Judgment.model_validate({**fields, **further_fields})

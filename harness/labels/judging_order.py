"""The order of judging."""

import math
from typing import NamedTuple

from harness.dataset.judgment import JudgeKind, Judgment
from harness.english import count_of
from harness.labels.pool import Pool, PooledDocument, PooledQuery, shuffle_key

REPEATED_SHARE = 0.1
"""The share of the pairs that a person sees twice, to measure self-agreement."""
REPEAT_DISTANCE = 3
"""A pair is repeated after this many further queries, or at the end."""


class OrderedPair(NamedTuple):
    """One step in the order of judging."""

    query: int
    """Index of the query in the pool."""
    document: int
    """Index of the document within its query."""
    round: int
    """1; 2 or more if the pair is repeated."""

    def pair_texts(self, pool: Pool) -> tuple[PooledQuery, PooledDocument]:
        """The text to read."""
        query = pool.queries[self.query]
        return query, query.documents[self.document]


class JudgeSignature(NamedTuple):
    """The judge, and the digest of the instructions."""

    judge: str
    kind: JudgeKind
    prompt: str
    """Digest of the policy, or of the prompt."""


def judging_order(pool: Pool, *, repeated: float = REPEATED_SHARE) -> list[OrderedPair]:
    """Return the pairs of a pool in the order of judging, some of them twice.

    Query by query, so that a judge who stops early leaves few half done. A hash decides which pairs are repeated;
    they come after three further queries.
    """
    pairs = round_pairs(pool, 1)
    by_chance = sorted(
        pairs,
        key=lambda one: shuffle_key(pool.drawn.seed, "again", *pair_key(pool, one)[:2]),
    )
    again: dict[int, list[OrderedPair]] = {}
    for one in by_chance[: math.ceil(len(pairs) * repeated)]:
        again.setdefault(
            min(one.query + REPEAT_DISTANCE, len(pool.queries) - 1), []
        ).append(one._replace(round=2))
    return [
        one
        for number in range(len(pool.queries))
        for one in [
            *(pair for pair in pairs if pair.query == number),
            *again.get(number, ()),
        ]
    ]


def repeats_sentence(pool: Pool) -> str:
    """The number of pairs that come twice, and the number of labels, which the page counts to."""
    judgments = len(judging_order(pool))
    return f"{judgments - pool.pairs:,} of them twice, which makes {count_of(judgments, 'label')}"


def round_pairs(pool: Pool, number: int) -> list[OrderedPair]:
    """Return every pair of a pool once, as one round of judging."""
    return [
        OrderedPair(q, d, number)
        for q, query in enumerate(pool.queries)
        for d in range(len(query.documents))
    ]


def pair_key(pool: Pool, pair: OrderedPair) -> tuple[str, str, int]:
    """Query id, document id, round: judged once."""
    query, document = pair.pair_texts(pool)
    return query.query_id, document.id, pair.round


def build_judgment(
    pool: Pool,
    pair: OrderedPair,
    grade: int | None,
    signature: JudgeSignature,
    **more: object,
) -> Judgment:
    """Make the judgment of one pair; `more` has further fields, such as the note and the time."""
    query, document = pair.pair_texts(pool)
    who = {
        "query_id": query.query_id,
        "document_id": document.id,
        "grade": grade,
        **signature._asdict(),
        "round": pair.round,
    }
    drawn = {
        "design": pool.drawn.design,
        "inclusion": query.inclusion,
        "population": pool.drawn.population,
    }
    read = {"pool": pool.digest, "text": document.digest, "asked": len(query.documents)}
    return Judgment.model_validate({**who, **drawn, **read, **more})

"""In which order a judge meets the pairs of a pool, and which of them he meets twice."""

from __future__ import annotations

import math
from typing import NamedTuple

from harness.dataset.judgments import JudgeKind, Judgment
from harness.labels.pool import Pool, PooledDocument, PooledQuery, shuffled_place

REPEATED = 0.1
"""The share of the pairs that a person is asked twice, to measure how far a judge agrees with an earlier answer."""
APART = 3
"""A pair comes again after so many further questions, or at the end."""


class OrderedPair(NamedTuple):
    """One place in the order of judging."""

    query: int
    """Place of the question in the pool."""
    document: int
    """Place of the document within its question."""
    round: int
    """1, and 2 or more where the pair comes again."""

    def shown(self, pool: Pool) -> tuple[PooledQuery, PooledDocument]:
        """What the judge reads."""
        query = pool.queries[self.query]
        return query, query.documents[self.document]


class Signature(NamedTuple):
    """Who judges, and by which words."""

    judge: str
    kind: JudgeKind
    prompt: str
    """Digest of the policy, or of the prompt."""


def in_order(pool: Pool, *, repeated: float = REPEATED) -> list[OrderedPair]:
    """Return the pairs of a pool in the order of judging, some of them twice.

    Question after question, so that a judge who stops early leaves few of them half done. Which pairs come again is
    drawn by a hash; they come after three further questions.
    """
    pairs = round_of(pool, 1)
    by_chance = sorted(pairs, key=lambda one: shuffled_place(pool.drawn.seed, "again", *ids(pool, one)[:2]))
    again: dict[int, list[OrderedPair]] = {}
    for one in by_chance[: math.ceil(len(pairs) * repeated)]:
        again.setdefault(min(one.query + APART, len(pool.queries) - 1), []).append(one._replace(round=2))
    return [
        one
        for number in range(len(pool.queries))
        for one in [*(pair for pair in pairs if pair.query == number), *again.get(number, ())]
    ]


def twice_sentence(pool: Pool) -> str:
    """How many of a pool's pairs come twice, and how many judgments that makes: the number that the page counts to."""
    judgments = len(in_order(pool))
    return f"{judgments - pool.pairs:,} of them twice, which makes {judgments:,} judgments"


def round_of(pool: Pool, number: int) -> list[OrderedPair]:
    """Return every pair of a pool once, as one round of judging."""
    return [OrderedPair(q, d, number) for q, query in enumerate(pool.queries) for d in range(len(query.documents))]


def ids(pool: Pool, one: OrderedPair) -> tuple[str, str, int]:
    """Query id, document id, round: what a judge answers once."""
    query, document = one.shown(pool)
    return query.query_id, document.id, one.round


def judgment_of(pool: Pool, one: OrderedPair, grade: int | None, by: Signature, **more: object) -> Judgment:
    """Make the judgment of one pair; `more` are further fields, such as the note and the time."""
    query, document = one.shown(pool)
    return Judgment.model_validate(
        {
            "query_id": query.query_id,
            "document_id": document.id,
            "grade": grade,
            **by._asdict(),
            "pool": pool.digest,
            "text": document.digest,
            "design": pool.drawn.design,
            "inclusion": query.inclusion,
            "population": pool.drawn.population,
            "asked": len(query.documents),
            "round": one.round,
            **more,
        }
    )

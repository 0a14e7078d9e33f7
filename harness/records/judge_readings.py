"""What a judge said of texts."""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal, NamedTuple, get_args

from harness.measures import QueryClaims
from harness.measures.claims import Truth
from retrievers.types import Query

EntailmentWord = Literal["entailed", "contradicted", "neutral"]
ENTAILMENT_WORDS: tuple[str, ...] = get_args(EntailmentWord)


PEOPLE_JUDGE = "people"
"""Stands in the place of a judge for claims that came with the data."""


class JudgeIdentity(NamedTuple):
    """Who read a text: a judge, and a digest of what it was told to do."""

    judge: str
    prompt: str = ""


class ClaimPassage(NamedTuple):
    """A claim, and a text that may entail it."""

    claim: str
    text: str


@lru_cache(maxsize=1 << 16)
def short_digest(text: str) -> str:
    """A short name of a text: 16 hexadecimal digits of its SHA-256.

    >>> short_digest("The fee is 300 yen.")
    'f36a08de5a65a3e3'
    """
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def is_entailed(word: str | None) -> Truth:
    """Whether a verdict says that the claim is entailed; unknown without a verdict.

    >>> is_entailed("entailed"), is_entailed("contradicted"), is_entailed(None)
    (True, False, None)
    """
    return None if word is None else word == "entailed"


class JudgedClaims(NamedTuple):
    """What became of the claims of one run."""

    claims: Mapping[str, QueryClaims]
    """By query id; empty where the judge failed."""
    facts: Mapping[str, str]
    """For the manifest: who judged, and how much."""
    warning: str = ""


@dataclass(slots=True)
class JudgeReadings:
    """What one judge said, by text: an unreadable answer is None, and one that is absent was not asked for."""

    claims: dict[str, tuple[str, ...] | None] = field(default_factory=dict)
    """Text -> its claims."""
    verdicts: dict[tuple[str, str], EntailmentWord | None] = field(default_factory=dict)
    """(Claim, digest of the passage) -> verdict."""
    opinions: dict[tuple[str, tuple[str, ...]], Any] = field(default_factory=dict)
    """(Task, digests of the texts it is about) -> answer."""

    def verdict_word(self, claim: str, text: str) -> EntailmentWord | None:
        """The verdict on a claim and a passage; None where there is none that could be read."""
        return self.verdicts.get((claim, short_digest(text)))

    def is_entailed(self, claim: str, text: str) -> Truth:
        """Whether a passage entails a claim; unknown without a verdict."""
        return is_entailed(self.verdict_word(claim, text))

    def opinion(self, task: str, *texts: str) -> Any:
        """The answer to another task about some texts; None where there is none that could be read."""
        return self.opinions.get((task, tuple(map(short_digest, texts))))


def claims_of_query(query: Query, readings: JudgeReadings) -> tuple[str, ...]:
    """The claims of a query's reference answer: those of the data, else those that the judge took out of the answer."""
    if query.reference.claims:
        return tuple(claim.text for claim in query.reference.claims)
    recorded = [readings.claims.get(text) for text in query.reference.answers[:1]]
    return recorded[0] or () if recorded else ()


def claims_by_query(
    queries: Iterable[Query], readings: JudgeReadings, passages: Mapping[str, str]
) -> dict[str, QueryClaims]:
    """What measures by claims are computed from: for each query that has any, its claims and what entails them.

    Args:
        queries: those that are measured.
        readings: the judge's verdicts.
        passages: document id -> digest of its text.
    """
    verdicts, by_query = readings.verdicts, {}
    for query in queries:
        if claims := claims_of_query(query, readings):
            by_document = {
                document: tuple(
                    is_entailed(verdicts.get((claim, passage))) for claim in claims
                )
                for document, passage in passages.items()
            }
            by_query[query.id] = QueryClaims(
                claims,
                {doc: row for doc, row in by_document.items() if set(row) != {None}},
            )
    return by_query

"""A judge's verdicts on texts.

`judge_files` reads and stores them.
"""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal, NamedTuple, get_args

from harness.measures import QueryClaims
from harness.measures.claims import Truth
from harness.records.facts import JudgeRecord
from retrievers.types import Query

EntailmentWord = Literal["entailed", "contradicted", "neutral"]
ENTAILMENT_WORDS: tuple[str, ...] = get_args(EntailmentWord)
PEOPLE_JUDGE = "people"
"""The judge's name for claims that are part of the data."""


class JudgeIdentity(NamedTuple):
    """A judge, and a digest of its prompt."""

    judge: str
    prompt: str = ""
    """The digest; empty without a prompt."""


class ClaimPassage(NamedTuple):
    """A claim, and a text that may entail it."""

    claim: str
    text: str


@lru_cache(maxsize=1 << 16)
def short_digest(text: str) -> str:
    """Return a short name of a text: 16 hexadecimal digits of its SHA-256.

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
    """The claims of one run with their verdicts."""

    claims: Mapping[str, QueryClaims]
    """Query id -> its claims; empty if the judge failed."""
    record: JudgeRecord | None
    """Which judge, and how much it judged, for the manifest; None without claims."""
    warning: str = ""
    """Why the claims were not judged; empty if they were."""


@dataclass(slots=True)
class JudgeReadings:
    """One judge's verdicts, by text.

    None if the judge's reply was unreadable; absent if the text was not judged.
    """

    claims: dict[str, tuple[str, ...] | None] = field(default_factory=dict)
    """Text -> its claims."""
    verdicts: dict[tuple[str, str], EntailmentWord | None] = field(default_factory=dict)
    """(Claim, digest of the passage) -> verdict."""
    opinions: dict[tuple[str, tuple[str, ...]], Any] = field(default_factory=dict)
    """(Task, digests of its texts) -> answer; the tasks are those of
    `harness.answers.ask_judge`.
    """

    def verdict_word(self, claim: str, text: str) -> EntailmentWord | None:
        """Return the verdict on a claim and a passage; None without a readable one."""
        return self.verdicts.get((claim, short_digest(text)))

    def is_entailed(self, claim: str, text: str) -> Truth:
        """Whether a passage entails a claim; unknown without a verdict."""
        return is_entailed(self.verdict_word(claim, text))

    def opinion(self, task: str, *texts: str) -> Any:
        """Return the answer to another task; None without a readable one."""
        return self.opinions.get((task, tuple(map(short_digest, texts))))


def claims_of_query(query: Query, readings: JudgeReadings) -> tuple[str, ...]:
    """Return the claims of a query's reference answer.

    They are those of the data, else those that the judge found in the first answer.
    """
    reference = query.reference
    if reference.claims:
        return tuple(claim.text for claim in reference.claims)
    if not reference.answers:
        return ()
    return readings.claims.get(reference.answers[0]) or ()


def claims_by_query(
    queries: Iterable[Query], readings: JudgeReadings, passages: Mapping[str, str]
) -> dict[str, QueryClaims]:
    """Return the claims of each query that has any, with the documents' verdicts.

    Args:
        queries: those that are measured.
        readings: the judge's verdicts.
        passages: document id -> digest of its text.
    """
    by_query: dict[str, QueryClaims] = {}
    for query in queries:
        claims = claims_of_query(query, readings)
        if not claims:
            continue
        entailed_by: dict[str, tuple[Truth, ...]] = {}
        for document_id, passage in passages.items():
            verdicts = tuple(
                is_entailed(readings.verdicts.get((claim, passage))) for claim in claims
            )
            # A document without any readable verdict counts as not judged.
            if set(verdicts) != {None}:
                entailed_by[document_id] = verdicts
        by_query[query.id] = QueryClaims(claims, entailed_by)
    return by_query

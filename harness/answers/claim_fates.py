"""What became of each claim.

A claim of a reference answer that the response does not state was lost: by the
retriever if no context supports it, else by the generator. One that the response
contradicts counts by itself, whatever the contexts support.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

import numpy as np

from harness.answers.case import Case, reference_text
from harness.answers.systems import Context
from harness.scoring.scores import Scores
from harness.stats.differences import UNIT_RANGE
from harness.stats.intervals import Interval, mean, student_interval
from retrievers.types import Query

ClaimFate = Literal["answered", "contradicted", "not retrieved", "not used", "unknown"]
CLAIM_FATES: tuple[ClaimFate, ...] = get_args(ClaimFate)
FATE_MEANINGS: Mapping[ClaimFate, str] = {
    "answered": "the response states it",
    "contradicted": "the response contradicts it: noise",
    "not retrieved": "no retrieved text supports it: the retriever lost it",
    "not used": (
        "a retrieved text supports it, the response does not state it: "
        "the generator lost it"
    ),
    "unknown": "a verdict is missing",
}
MAX_LISTED_ANSWERS = 200
"""Queries whose answers are shown in full, at most: those that lost most claims."""


class TracedClaim(NamedTuple):
    """One claim of a reference answer and its fate."""

    claim: str
    fate: ClaimFate
    supporting_contexts: tuple[str, ...]
    """The ids of the contexts that entail it."""


class ResponseClaim(NamedTuple):
    """One claim of a response."""

    claim: str
    support: str
    """What entails it: "reference", "contexts", "reference and contexts", "nothing"; or
    "unknown".
    """


class TracedAnswer(NamedTuple):
    """One answer, claim by claim."""

    query: Query
    response: str
    contexts: tuple[Context, ...]
    claims: tuple[TracedClaim, ...]
    response_claims: tuple[ResponseClaim, ...]

    @property
    def lost_claims(self) -> int:
        """The number of claims that the response is not known to state."""
        return sum(claim.fate != "answered" for claim in self.claims)


class FateShare(NamedTuple):
    """The frequency of one fate: the mean share of claims over weighted queries."""

    fate: ClaimFate
    claims: int
    """Number of claims with this fate, over all queries."""
    mean: float
    """Mean over queries, by their weights, of the share of a query's claims that have
    it."""
    interval: Interval


class QueryAnswers(NamedTuple):
    """The answers of all systems to one query."""

    query: Query
    by_system: dict[str, TracedAnswer]


TracedSystems = Mapping[str, Sequence[TracedAnswer]]
"""System -> its answers, claim by claim."""


def trace_claims(case: Case) -> TracedAnswer:
    """Trace every claim of one answer's reference."""
    contexts = case.answer.contexts
    claims: list[TracedClaim] = []
    for claim in case.reference_claims:
        supporting = (
            context.id for context in contexts if case.entails(context.text, claim)
        )
        claims.append(TracedClaim(claim, _fate(case, claim), tuple(supporting)))
    response_claims = [
        ResponseClaim(claim, _support(case, claim))
        for claim in case.response_claims or ()
    ]
    return TracedAnswer(
        case.query,
        case.answer.response,
        tuple(contexts),
        tuple(claims),
        tuple(response_claims),
    )


def _fate(case: Case, claim: str) -> ClaimFate:
    is_stated = case.entails(case.answer.response, claim)
    is_retrieved = case.context_truth(claim)
    # What is known may decide, even if another verdict is missing.
    if is_stated:
        return "answered"
    if case.readings.verdict_word(claim, case.answer.response) == "contradicted":
        return "contradicted"
    if is_stated is None or is_retrieved is None:
        return "unknown"
    return "not used" if is_retrieved else "not retrieved"


def _support(case: Case, claim: str) -> str:
    """Return what entails a claim of the response, as `ResponseClaim.support`."""
    in_reference = case.entails(reference_text(case.query), claim)
    in_contexts = case.context_truth(claim)
    if in_reference is None or in_contexts is None:
        return "unknown"
    if in_reference and in_contexts:
        return "reference and contexts"
    if in_reference:
        return "reference"
    return "contexts" if in_contexts else "nothing"


def fate_shares(
    traced: Sequence[TracedAnswer], scores: Scores, level: float = 0.95
) -> list[FateShare]:
    """The share of each fate, over the queries that have claims, with its interval.

    Empty if no query has claims.

    Args:
        traced: one system's answers.
        scores: with the weights and clusters of the queries.
        level: confidence.
    """
    fates_by_query: dict[str, Counter[ClaimFate]] = {}
    for answer in traced:
        if answer.claims:
            fates = Counter(claim.fate for claim in answer.claims)
            fates_by_query[answer.query.id] = fates
    if not fates_by_query:
        return []
    has_claims = np.array([query_id in fates_by_query for query_id in scores.ids])
    units = scores.select_queries(has_claims).units
    in_order = [fates_by_query[id_] for id_ in scores.ids if id_ in fates_by_query]
    shares: list[FateShare] = []
    for fate in CLAIM_FATES:
        query_shares = np.array([fates[fate] / fates.total() for fates in in_order])
        share = FateShare(
            fate,
            claims=sum(fates[fate] for fates in fates_by_query.values()),
            mean=mean(query_shares, units.weights),
            interval=student_interval(
                query_shares, level, bounds=UNIT_RANGE, units=units
            ),
        )
        shares.append(share)
    return shares


@dataclass(frozen=True, slots=True)
class ClaimsSection:
    """What a page shows of the fates of claims."""

    fates: tuple[ClaimFate, ...]
    meanings: Mapping[ClaimFate, str]
    shares: Mapping[str, list[FateShare]]
    """System -> the share of each fate."""
    answers: list[QueryAnswers]
    """The answers to the queries that lost the most claims."""
    left: int
    """Number of queries that are not shown."""


def claims_section(
    traced: TracedSystems, scores: Scores, level: float
) -> ClaimsSection:
    """Return the share of each fate by system, and the answers that lost most."""
    answers = answers_by_query(traced)
    return ClaimsSection(
        fates=CLAIM_FATES,
        meanings=FATE_MEANINGS,
        shares={
            system: fate_shares(system_answers, scores, level)
            for system, system_answers in traced.items()
        },
        answers=answers[:MAX_LISTED_ANSWERS],
        left=max(0, len(answers) - MAX_LISTED_ANSWERS),
    )


def answers_by_query(traced: TracedSystems) -> list[QueryAnswers]:
    """The answers to each query; the queries with the most lost claims first."""
    by_query: dict[str, QueryAnswers] = {}
    for system, answers in traced.items():
        for answer in answers:
            query = answer.query
            query_answers = by_query.setdefault(query.id, QueryAnswers(query, {}))
            query_answers.by_system[system] = answer
    return sorted(by_query.values(), key=_by_lost_claims)


def _by_lost_claims(answers: QueryAnswers) -> tuple[int, str]:
    lost_claims = sum(answer.lost_claims for answer in answers.by_system.values())
    return -lost_claims, answers.query.id

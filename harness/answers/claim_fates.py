"""What became of each claim."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from harness.answers.case import Case, reference_text
from harness.scoring.scores import Scores
from harness.stats.differences import UNIT_RANGE
from harness.stats.intervals import Interval, mean, student_interval
from retrievers.types import Query

ClaimFate = Literal["answered", "contradicted", "not retrieved", "not used", "unknown"]
CLAIM_FATES: tuple[ClaimFate, ...] = get_args(ClaimFate)


class TracedClaim(NamedTuple):
    """One claim of a reference answer and its fate."""

    claim: str
    fate: ClaimFate
    supporting_contexts: tuple[str, ...]
    """The ids of the contexts that entail it."""


class TracedAnswer(NamedTuple):
    """One answer, claim by claim."""

    query: Query
    response: str
    contexts: tuple[tuple[str, str], ...]
    """The id and text of each context."""
    claims: tuple[TracedClaim, ...]
    response_claims: tuple[tuple[str, str], ...]
    """The claims of the response, each with its support: reference, contexts, both, nothing, or unknown."""


class FateShare(NamedTuple):
    """The frequency of one fate: the mean share of claims over queries."""

    fate: ClaimFate
    claims: int
    mean: float
    interval: Interval


def trace_claims(case: Case) -> TracedAnswer:
    """Trace every claim of one answer's reference."""
    contexts = case.answer.contexts
    wanted = [
        TracedClaim(
            claim,
            _fate(case, claim),
            tuple(one.id for one in contexts if case.entails(one.text, claim)),
        )
        for claim in case.reference_claims
    ]
    made = [(claim, _basis(case, claim)) for claim in case.response_claims or ()]
    return TracedAnswer(
        case.query, case.answer.response, tuple(contexts), tuple(wanted), tuple(made)
    )


def fate_shares(
    traced: Sequence[TracedAnswer], scores: Scores, level: float = 0.95
) -> list[FateShare]:
    """The share of each fate, over the queries that have claims, with its interval.

    Args:
        traced: one system's answers.
        scores: with the weights and clusters of the queries.
        level: confidence.
    """
    counted = {
        one.query.id: Counter(claim.fate for claim in one.claims)
        for one in traced
        if one.claims
    }
    if not counted:
        return []
    units = scores.select_queries(
        np.array([query in counted for query in scores.ids])
    ).units
    shares = []
    for fate in CLAIM_FATES:
        values = np.array(
            [
                counted[query][fate] / counted[query].total()
                for query in scores.ids
                if query in counted
            ]
        )
        interval = student_interval(values, level, bounds=UNIT_RANGE, units=units)
        claims = sum(of[fate] for of in counted.values())
        shares.append(FateShare(fate, claims, mean(values, units.weights), interval))
    return shares


def _fate(case: Case, claim: str) -> ClaimFate:
    stated, retrieved = (
        case.entails(case.answer.response, claim),
        case.context_truth(claim),
    )
    if stated:
        return "answered"
    if case.readings.verdict_word(claim, case.answer.response) == "contradicted":
        return "contradicted"
    if stated is None or retrieved is None:
        return "unknown"
    return "not used" if retrieved else "not retrieved"


def _basis(case: Case, claim: str) -> str:
    right, held = (
        case.entails(reference_text(case.query), claim),
        case.context_truth(claim),
    )
    if right is None or held is None:
        return "unknown"
    named = [
        name for name, known in (("reference", right), ("contexts", held)) if known
    ]
    return " and ".join(named) or "nothing"


TracedSystems = Mapping[str, Sequence[TracedAnswer]]
"""System -> its answers, claim by claim."""
MAX_LISTED_ANSWERS = 200
"""Most queries whose answers are shown in full, those that lost the most claims."""
FATE_MEANINGS = {
    "answered": "the response states it",
    "contradicted": "the response contradicts it: noise",
    "not retrieved": "no retrieved text supports it: the retriever lost it",
    "not used": "a retrieved text supports it, the response does not state it: the generator lost it",
    "unknown": "a verdict is missing",
}


def claims_section(
    traced: TracedSystems, scores: Scores, level: float
) -> dict[str, Any]:
    """The variables of the template: the share of each fate by system, and the answers that lost the most claims."""
    beside = answers_by_query(traced)
    return {
        "fates": CLAIM_FATES,
        "meanings": FATE_MEANINGS,
        "shares": {
            name: fate_shares(answers, scores, level)
            for name, answers in traced.items()
        },
        "answers": beside[:MAX_LISTED_ANSWERS],
        "left": max(0, len(beside) - MAX_LISTED_ANSWERS),
    }


def answers_by_query(
    traced: TracedSystems,
) -> list[tuple[Query, dict[str, TracedAnswer]]]:
    """Query -> system -> its answer, queries with the most lost claims first."""
    found: dict[str, tuple[Query, dict[str, TracedAnswer]]] = {}
    for name, answers in traced.items():
        for one in answers:
            found.setdefault(one.query.id, (one.query, {}))[1][name] = one
    lost = {
        query: sum(
            claim.fate != "answered" for one in of.values() for claim in one.claims
        )
        for query, (_, of) in found.items()
    }
    return [
        found[query] for query in sorted(found, key=lambda query: (-lost[query], query))
    ]

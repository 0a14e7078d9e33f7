"""The section of a page about the fate of the claims of answers."""

from collections.abc import Mapping, Sequence
from typing import Any

from harness.answers.cases import FATES, TracedAnswer, shares
from harness.evaluation.scores import Scores
from retrievers.types import Query

TracedSystems = Mapping[str, Sequence[TracedAnswer]]
"""System -> its answers, claim by claim."""
LISTED = 200
"""Most queries whose answers are shown in full, those that lost the most claims."""
MEANINGS = {
    "answered": "the response states it",
    "contradicted": "the response contradicts it: noise",
    "not retrieved": "no retrieved text supports it: the retriever lost it",
    "not used": "a retrieved text supports it, the response does not state it: the generator lost it",
    "unknown": "a verdict is missing",
}


def section_of(traced: TracedSystems, scores: Scores, level: float) -> dict[str, Any]:
    """The variables of the template: the share of each fate by system, and the answers that lost the most claims."""
    beside = side_by_side(traced)
    return {
        "fates": FATES,
        "meanings": MEANINGS,
        "shares": {name: shares(answers, scores, level) for name, answers in traced.items()},
        "answers": beside[:LISTED],
        "left": max(0, len(beside) - LISTED),
    }


def side_by_side(traced: TracedSystems) -> list[tuple[Query, dict[str, TracedAnswer]]]:
    """Query -> system -> its answer, queries with the most lost claims first."""
    found: dict[str, tuple[Query, dict[str, TracedAnswer]]] = {}
    for name, answers in traced.items():
        for one in answers:
            found.setdefault(one.query.id, (one.query, {}))[1][name] = one
    lost = {
        query: sum(claim.fate != "answered" for one in of.values() for claim in one.claims)
        for query, (_, of) in found.items()
    }
    return [found[query] for query in sorted(found, key=lambda query: (-lost[query], query))]

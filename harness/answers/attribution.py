"""Retriever or generator? For every claim of a reference answer: where it was lost.

answered         the response states it
contradicted     the response says otherwise (noise)
not retrieved    no context holds it, and the response does not state it (the retriever's)
not used         a context holds it, and the response does not state it (the generator's)
unknown          a verdict that decides it is missing
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Literal, NamedTuple, get_args

import numpy as np

from harness.answers.cases import Case
from harness.measures.claims import Truth, any_of
from harness.stats.intervals import Interval, mean_interval
from retrievers.types import Query

Fate = Literal["answered", "contradicted", "not retrieved", "not used", "unknown"]
FATES: tuple[Fate, ...] = get_args(Fate)


class Traced(NamedTuple):
    """One claim of a reference answer and what became of it."""

    claim: str
    fate: Fate
    held_by: tuple[str, ...]
    """The ids of the contexts that entail it."""


class TracedAnswer(NamedTuple):
    """One answer, claim by claim."""

    query: Query
    response: str
    contexts: tuple[tuple[str, str], ...]
    """Id and text of each context."""
    claims: tuple[Traced, ...]
    made: tuple[tuple[str, str], ...]
    """The claims of the response, each with what it rests on: reference, contexts, both, nothing, or unknown."""


class FateShare(NamedTuple):
    """How often claims met one fate: the mean over queries of the share of their claims."""

    fate: Fate
    claims: int
    mean: float
    interval: Interval


def trace(case: Case) -> TracedAnswer:
    """Follow every claim of one answer's reference."""
    made = case.made or ()
    return TracedAnswer(
        case.query,
        case.answer.response,
        tuple(case.answer.contexts),
        tuple(_traced(case, claim) for claim in case.wanted),
        tuple((claim, _basis(case, claim)) for claim in made),
    )


def shares(traced: Sequence[TracedAnswer], level: float = 0.95) -> list[FateShare]:
    """The share of each fate, over the queries that have claims, with its interval (Student's t over queries)."""
    counted = [Counter(one.fate for one in answer.claims) for answer in traced if answer.claims]
    if not counted:
        return []
    shares = []
    for fate in FATES:
        values = np.array([of[fate] / of.total() for of in counted])
        shares.append(
            FateShare(fate, sum(of[fate] for of in counted), float(values.mean()), mean_interval(values, level))
        )
    return shares


def _traced(case: Case, claim: str) -> Traced:
    held_by = tuple(context.id for context in case.answer.contexts if case.entails(context.text, claim))
    return Traced(claim, _fate(case, claim), held_by)


def _fate(case: Case, claim: str) -> Fate:
    stated = case.entails(case.answer.response, claim)
    if stated is None:
        return "unknown"
    if stated:
        return "answered"
    if case.readings.word(claim, case.answer.response) == "contradicted":
        return "contradicted"
    retrieved = any_of(case.entails(context.text, claim) for context in case.answer.contexts)
    if retrieved is None:
        return "unknown"
    return "not used" if retrieved else "not retrieved"


def _basis(case: Case, claim: str) -> str:
    right: Truth = case.entails(case.reference, claim)
    held = any_of(case.entails(context.text, claim) for context in case.answer.contexts)
    if right is None or held is None:
        return "unknown"
    return {(True, True): "reference and contexts", (True, False): "reference", (False, True): "contexts"}.get(
        (right, held), "nothing"
    )

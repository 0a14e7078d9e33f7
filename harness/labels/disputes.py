"""Pairs that judges dispute."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from harness.dataset.judgment import Judgment
from harness.dataset.merge_judgments import grades_by_document, group_by_pair

MIN_DISPUTE = 2
"""A difference of people's grades that needs a decision."""


class Dispute(NamedTuple):
    """A pair on which people differ by two grades or more, without an adjudicated grade."""

    query_id: str
    document_id: str
    grades: tuple[tuple[str, int], ...]
    """Judge -> grade."""


def people_disputes(judgments: Iterable[Judgment]) -> list[Dispute]:
    """List the pairs on which people differ by two grades or more, without an adjudicated grade."""
    graded = [one for one in judgments if one.grade is not None]
    settled = {one.key for one in graded if one.design == "adjudication"}
    people = (
        one
        for one in graded
        if one.kind == "human" and one.design == "sample" and one.key not in settled
    )
    given = {key: _grades_of(some) for key, some in group_by_pair(people).items()}
    return [
        Dispute(*key, grades)
        for key, grades in given.items()
        if np.ptp([grade for _, grade in grades]) >= MIN_DISPUTE
    ]


def _grades_of(judgments: Iterable[Judgment]) -> tuple[tuple[str, int], ...]:
    """Each judge with the grade, where there is one."""
    return tuple((one.judge, one.grade) for one in judgments if one.grade is not None)


def model_disputes(judgments: Iterable[Judgment]) -> list[Dispute]:
    """List the pairs on which people and a model differ by two grades or more, the largest difference first.

    Documents that manipulate a model appear here. Of people who disagree (see `disputes`) the median counts.
    """
    found: list[tuple[int, Dispute]] = []
    for key, given in group_by_pair(
        one for one in judgments if one.design != "next"
    ).items():
        by_kind = (
            [one for one in given if one.kind == kind] for kind in ("human", "llm")
        )
        people, model = (grades_by_document(some).get(key[1]) for some in by_kind)
        if (
            people is not None
            and model is not None
            and abs(people - model) >= MIN_DISPUTE
        ):
            found.append((abs(people - model), Dispute(*key, _grades_of(given))))
    return [dispute for _, dispute in sorted(found, key=lambda one: -one[0])]

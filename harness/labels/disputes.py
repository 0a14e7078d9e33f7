"""Pairs that judges dispute: people with people, or people with a model.

Of judgments of one pair in several rounds, only those of the first count.
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from harness.dataset.judgment import Judgment
from harness.dataset.merge_judgments import grades_by_document, group_first_round

MIN_DISPUTE = 2
"""A difference of grades that needs a decision."""


class Dispute(NamedTuple):
    """A pair whose grades differ by two or more, of two people or of two labels."""

    query_id: str
    document_id: str
    grades: tuple[tuple[str, int], ...]
    """Each judge with the grade."""


def people_disputes(judgments: Iterable[Judgment]) -> list[Dispute]:
    """Return the pairs on which people differ, without an adjudicated grade."""
    graded = [judgment for judgment in judgments if judgment.grade is not None]
    adjudicated = {
        judgment.key for judgment in graded if judgment.design == "adjudication"
    }
    open_judgments = [
        judgment
        for judgment in graded
        if _is_of_sample(judgment) and judgment.key not in adjudicated
    ]
    disputes: list[Dispute] = []
    for key, pair_judgments in group_first_round(open_judgments).items():
        grades = _grades_by_judge(pair_judgments)
        if np.ptp([grade for _, grade in grades]) >= MIN_DISPUTE:
            disputes.append(Dispute(*key, grades))
    return disputes


def _is_of_sample(judgment: Judgment) -> bool:
    """Whether a person judged it, and not to settle a dispute."""
    return judgment.kind == "human" and judgment.design == "sample"


def _grades_by_judge(judgments: Iterable[Judgment]) -> tuple[tuple[str, int], ...]:
    """Return each judge with the grade, if there is one."""
    return tuple(
        (judgment.judge, judgment.grade)
        for judgment in judgments
        if judgment.grade is not None
    )


class _ModelDispute(NamedTuple):
    difference: int
    dispute: Dispute


def model_disputes(judgments: Iterable[Judgment]) -> list[Dispute]:
    """Return the pairs on which people and a model differ, largest difference first.

    Among them are documents whose text told the model which grade to give. Of people,
    and of several models, the grade counts that labels get: the adjudicated one, else
    the lower median.
    """
    # Those by `pool --next` of an earlier version make no labels.
    labelling = [judgment for judgment in judgments if judgment.design != "next"]
    disputes: list[_ModelDispute] = []
    for key, pair_judgments in group_first_round(labelling).items():
        by_people = [
            judgment for judgment in pair_judgments if judgment.kind == "human"
        ]
        by_model = [judgment for judgment in pair_judgments if judgment.kind == "llm"]
        _, document_id = key
        human_grade = grades_by_document(by_people).get(document_id)
        model_grade = grades_by_document(by_model).get(document_id)
        if human_grade is None or model_grade is None:
            continue
        difference = abs(human_grade - model_grade)
        if difference >= MIN_DISPUTE:
            dispute = Dispute(*key, _grades_by_judge(pair_judgments))
            disputes.append(_ModelDispute(difference, dispute))
    disputes.sort(key=lambda entry: -entry.difference)
    return [entry.dispute for entry in disputes]

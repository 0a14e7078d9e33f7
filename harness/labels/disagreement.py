"""Disagreement between people, or between people and a model; and corrections sent by others."""

from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from harness.dataset.judgments import Judgment, Placed, by_pair, grades_by_document

SPREAD = 2
"""A difference of people's grades that needs a decision."""


class Dispute(NamedTuple):
    """A pair on which people differ by two grades or more, without an adjudicated grade."""

    query_id: str
    document_id: str
    grades: tuple[tuple[str, int], ...]
    """Judge -> grade."""


def disputes(judgments: Iterable[Judgment]) -> list[Dispute]:
    """List the pairs on which people differ by two grades or more, without an adjudicated grade."""
    adjudicated = {one.key for one in judgments if one.design == "adjudication" and one.grade is not None}
    open_disputes = []
    for key, given in by_pair(one for one in judgments if one.kind == "human" and one.design == "sample").items():
        grades = [one.grade for one in given if one.grade is not None]
        if key not in adjudicated and grades and max(grades) - min(grades) >= SPREAD:
            open_disputes.append(Dispute(*key, tuple((one.judge, one.grade) for one in given if one.grade is not None)))
    return open_disputes


def apart(judgments: Iterable[Judgment]) -> list[Dispute]:
    """List the pairs on which people and a model differ by two grades or more, the largest difference first.

    Documents that manipulate a model appear here. Of people who disagree (see `disputes`) the median counts.
    """
    found: list[tuple[int, Dispute]] = []
    for key, given in by_pair(one for one in judgments if one.design != "next").items():
        by_kind = ([one for one in given if one.kind == kind] for kind in ("human", "llm"))
        people, model = (grades_by_document(some).get(key[1]) for some in by_kind)
        if people is not None and model is not None and abs(people - model) >= SPREAD:
            grades = tuple((one.judge, one.grade) for one in given if one.grade is not None)
            found.append((abs(people - model), Dispute(*key, grades)))
    return [dispute for _, dispute in sorted(found, key=lambda one: -one[0])]


def as_opinions(before: Iterable[Judgment], placed: Iterable[Placed], corrected: Collection[str]) -> Iterator[Placed]:
    """Yield judgments; a correction that another person may have sent becomes a second round.

    A correction counts if its judge is in `corrected`, or if a model gave no grade before; otherwise anyone could
    overwrite another person's grades with a file in their name.

    Args:
        before: the existing judgments, with corrections resolved.
        placed: the lines to add.
        corrected: judges whose corrections count.
    """
    known = {(*one.key, one.judge, one.design, one.round): one for one in before}
    for place, judgment in placed:
        key = (*judgment.key, judgment.judge, judgment.design, judgment.round)
        first = known.get(key)
        written_over = first is not None and (first.kind == "human" or first.grade is not None)
        if written_over and judgment.corrects and judgment.judge not in corrected:
            yield place, judgment.model_copy(update={"corrects": False, "round": judgment.round + 1})
        else:
            known[key] = judgment
            yield place, judgment

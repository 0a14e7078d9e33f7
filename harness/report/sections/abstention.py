"""Queries without an answer."""

from dataclasses import dataclass

from harness.evaluation.abstention import Abstention, ScoreThreshold
from harness.report.templates import Section
from harness.report.view import View


@dataclass(frozen=True, slots=True)
class AbstentionContext:
    """The section's content."""

    abstention: Abstention
    floors: list[ScoreThreshold]
    """The largest area first."""


def abstention_section(view: View) -> Section[AbstentionContext] | None:
    """How well scores tell queries without an answer from the others.

    For each retriever the area under its ROC curve, and a floor: the score below which
    hits may be dropped. None if every query is answerable, or no scores can be compared
    between queries.
    """
    abstention = view.evaluation.abstention
    if abstention is None:
        return None
    floors = sorted(abstention.floors, key=lambda floor: (-floor.area, floor.retriever))
    context = AbstentionContext(abstention, floors)
    return Section("abstention", "No answer", context)

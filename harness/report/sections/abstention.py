"""Queries without an answer."""

from harness.report.templates import Section
from harness.report.view import View


def abstention_section(view: View) -> Section | None:
    """Areas, floors and pairs.

    None if every query is answerable, or no scores can be compared between queries.
    """
    abstention = view.evaluation.abstention
    if abstention is None:
        return None
    floors = sorted(abstention.floors, key=lambda floor: (-floor.area, floor.retriever))
    context = {"abstention": abstention, "floors": floors}
    return Section("abstention", "No answer", context)

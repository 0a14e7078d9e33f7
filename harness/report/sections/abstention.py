"""Queries without an answer."""

from harness.report.templates import Section
from harness.report.view import View


def abstention_section(view: View) -> Section | None:
    """Areas, floors and pairs; None if every query is answerable, or no scores can be compared between queries."""
    found = view.evaluation.abstention
    if found is None:
        return None
    floors = sorted(found.floors, key=lambda one: (-one.area, one.retriever))
    return Section("abstention", "No answer", {"found": found, "floors": floors})

"""Queries without an answer: how well each retriever's scores detect them, and at which floor."""

from harness.report.charts import Section
from harness.report.view import View

PLACE = 46


def section(view: View) -> Section | None:
    """Areas, floors and pairs; None if every query is answerable, or no scores can be compared between queries."""
    found = view.evaluation.abstention
    if found is None:
        return None
    floors = sorted(found.floors, key=lambda one: (-one.area, one.retriever))
    return Section("abstention", "No answer", {"found": found, "floors": floors})

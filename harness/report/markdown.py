"""The report as Markdown that GitHub renders."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from markupsafe import Markup, escape

from harness.report import text
from harness.report.page import plain_environment
from harness.report.section import Section
from harness.report.view import View

MOST = 200
"""Queries that a table lists."""


def markdown(view: View, sections: Sequence[Section]) -> str:
    """Return report.md; its images are the files under figures/."""
    env = plain_environment(_escaped)
    # A summary is HTML, not Markdown; what is trusted are digests, names that were checked, and our own macros.
    env.filters |= {"path": lambda name: Markup(quote(name, safe="@")), "html": escape, "trusted": Markup}  # noqa: S704
    return env.get_template("report.md").render(
        view=view,
        primary=view.names[view.primary],
        s={"tests": None, "robustness": None, **{section.id: section.context for section in sections}},
        figures={section.id: section.figures for section in sections},
        most=MOST,
    )


def _escaped(value: Any) -> Any:
    return text.markdown(value) if isinstance(value, str) and not isinstance(value, Markup) else value

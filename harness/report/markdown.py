"""The report as Markdown that GitHub renders."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from markupsafe import Markup

from harness.report import text
from harness.report.figures import Figure
from harness.report.page import plain_environment, rendered
from harness.report.section import Section
from harness.report.view import View

MOST = 200
"""Queries that a table lists."""


def markdown(view: View, sections: Sequence[Section]) -> str:
    """Return report.md, every section from the context that the page shows; images are the files under figures/."""
    env = plain_environment(escaped)
    env.globals |= {"image": _image, "most": MOST}
    return "\n".join(rendered(env, section, "markdown", view=view).strip("\n") + "\n" for section in sections)


def _image(figure: Figure) -> Markup:
    words = text.markdown(f"{figure.title}: {figure.description}")
    return Markup(f"![{words}](figures/{quote(figure.name, safe='@')}.svg)")  # noqa: S704 - escaped above


def escaped(value: Any) -> Any:
    """A value as Markdown shows it: text escaped, all else as it is."""
    return text.markdown(value) if isinstance(value, str) and not isinstance(value, Markup) else value

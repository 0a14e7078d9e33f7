"""The report of a results folder: one page, Markdown, LaTeX, figures."""

from collections.abc import Sequence
from pathlib import Path

from harness.records import Results


def write_report(results: Results) -> None:
    """Write report.html, report.md, tables and figures into the results folder."""
    from harness.report.write import write

    write(results)


def first_screen(results: Results) -> str:
    """Return the verdict, the warnings and the paired leaderboard as self-contained HTML without scripts."""
    from harness.report.write import fragment

    return fragment(results)


def write_sets(place: Path, sets: Sequence[Results], *, report: bool = True) -> None:
    """Write data_sets.csv of several data sets into their common folder, and the report if `report` is set."""
    from harness.report import html_page

    html_page.write_sets(place, sets, report=report)

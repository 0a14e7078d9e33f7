"""Results -> what people read: one page, Markdown, LaTeX, figures; from the results folder alone."""

from collections.abc import Sequence
from pathlib import Path

from harness.records import Results


def write_report(results: Results) -> None:
    """Write report.html, report.md, tables and figures into the results folder."""
    from harness.report.write import write

    write(results)


def first_screen(results: Results) -> str:
    """Return the verdict, what may change it, and the paired leaderboard as HTML that stands alone, without scripts."""
    from harness.report.write import fragment

    return fragment(results)


def write_sets(place: Path, sets: Sequence[Results], *, report: bool = True) -> None:
    """Write data_sets.csv of several data sets' results into the folder that holds theirs, and the report if asked."""
    from harness.report import other_pages

    other_pages.write_sets(place, sets, report=report)

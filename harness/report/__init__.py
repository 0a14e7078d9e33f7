"""Results -> what people read: one page, Markdown, LaTeX, figures; from the results folder alone."""

from __future__ import annotations

from harness.records import Results


def write_report(results: Results, *, papers: bool = False) -> None:
    """Write report.html, report.md, tables and figures into the results folder; for papers, figures as PDF too."""
    from harness.report.write import write

    write(results, papers=papers)

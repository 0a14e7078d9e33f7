"""Results -> what people read: one page, Markdown, LaTeX, figures; from the results folder alone."""

from __future__ import annotations

from harness.records import Results


def write_report(results: Results) -> None:
    """Write report.html, report.md, tables and figures into the results folder."""
    from harness.report.write import write

    write(results)

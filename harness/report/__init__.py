"""Results -> pages that people read."""

from __future__ import annotations

from harness.records import Results


def write_report(results: Results) -> None:
    """Write report.html, report.md, tables and figures into the results folder."""
    (results.folder / "report.html").write_text("<!doctype html><title>report</title>\n", encoding="utf-8")

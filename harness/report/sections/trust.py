"""What to know before the verdict is believed; labels, judged claims, counts and data are its folds."""

from __future__ import annotations

from harness.report.caveats import caveats
from harness.report.figures import Section
from harness.report.view import View

PLACE = 70


def section(view: View) -> Section:
    """Warnings of the run, what flatters the winner, labels that may favour someone."""
    return Section("trust", "Can I trust it?", {"notes": caveats(view)})

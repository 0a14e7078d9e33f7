"""A page of scores alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from harness.english import count_units
from harness.evaluation.evaluation import Evaluation
from harness.records import new_text_file
from harness.report.templates import render_page
from harness.wording.conclusion import verdict_lines
from harness.wording.verdicts import verdict_cell

if TYPE_CHECKING:
    from harness.answers.claim_fates import ClaimsSection


def write_scores_page(
    path: Path,
    title: str,
    evaluation: Evaluation,
    notes: Sequence[str] = (),
    *,
    section: ClaimsSection | None = None,
) -> None:
    """Write the page as one HTML file without scripts.

    Args:
        path: the file.
        title: of the page.
        evaluation: its content.
        notes: warnings about the numbers.
        section: for answers, the fate of their claims.

    Raises:
        InputError: the file cannot be written.
    """
    measures = list(evaluation.summary)
    retrievers = [name for rows in evaluation.summary.values() for name in rows]
    families = {
        measure: evaluation.comparisons.get(measure, ()) for measure in measures
    }
    variables = {
        "title": title,
        "verdict": verdict_lines(evaluation),
        "evaluation": evaluation,
        "queries": count_units(evaluation.n, evaluation.clusters),
        "measures": measures,
        "names": list(dict.fromkeys(retrievers)),
        "verdict_cell": verdict_cell,
        "families": families,
        "notes": notes,
        "section": section,
    }
    with new_text_file(path) as file:
        file.write(render_page("scores.html", variables))

"""A page of scores alone."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from harness.english import count_units
from harness.evaluation.evaluation import Evaluation
from harness.records import new_text_file
from harness.report.templates import render_page
from harness.wording.conclusion import verdict_lines
from harness.writing.evaluation_tables import comparison_rows, summary_rows

ClaimsSection = Mapping[str, Any]
"""Variables of a template."""


def write_scores_page(
    path: Path,
    title: str,
    evaluation: Evaluation,
    notes: Sequence[str] = (),
    *,
    section: ClaimsSection = MappingProxyType({}),
) -> None:
    """Write the page as one HTML file without scripts.

    Args:
        path: the file.
        title: of the page.
        evaluation: its content.
        notes: warnings about the numbers.
        section: for answers, the fate of their claims: see `harness.answers.case`.

    Raises:
        InputError: the file cannot be written.
    """
    summary = summary_rows(evaluation.summary)
    rows = comparison_rows(evaluation)
    measures = list(dict.fromkeys(row["measure"] for row in summary))
    families = {measure: _rows_of_measure(rows, measure) for measure in measures}
    variables = {
        "title": title,
        "verdict": verdict_lines(evaluation),
        "evaluation": evaluation,
        "queries": count_units(evaluation.n, evaluation.clusters),
        "measures": measures,
        "names": list(dict.fromkeys(row["retriever"] for row in summary)),
        "means": {(row["retriever"], row["measure"]): row for row in summary},
        "families": families,
        "notes": notes,
        "section": section,
    }
    with new_text_file(path) as file:
        file.write(render_page("scores.html", variables))


def _rows_of_measure(
    rows: Sequence[Mapping[str, Any]], measure: str
) -> list[Mapping[str, Any]]:
    return [row for row in rows if row["measure"] == measure]

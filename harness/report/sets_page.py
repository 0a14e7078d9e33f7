"""A page of several data sets."""

import csv
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from harness.evaluation.compare_sets import compare_sets_of_folder
from harness.evaluation.sets import SetsComparison
from harness.records import Results, new_text_file
from harness.records.data_sets_csv import SET_COLUMN_PREFIX, SETS_COLUMNS, SETS_FILE
from harness.report.palette import declared_shades, retriever_colors
from harness.report.templates import html_environment, render_page
from harness.wording.sets import FEW_SETS_NOTE, sets_sentences
from harness.wording.verdicts import VERDICT_SIGNS

MAX_PAIR_SENTENCES = 20
"""Pairs with a sentence; the CSV file has all."""


def write_sets_page(
    folder: Path, sets: Sequence[Results], *, report: bool = True
) -> None:
    """Write data_sets.csv next to the folders of the sets.

    If `report` is set, report.html and report.md are written, too.

    Raises:
        InputError: the sets have nothing in common, or a file cannot be written.
    """
    comparison = compare_sets_of_folder(sets)
    files = _report_files(folder.name, comparison, sets) if report else {}
    # The table is last: it marks the folder as complete.
    files[SETS_FILE] = _sets_table(comparison)
    for file_name, content in files.items():
        with new_text_file(folder / file_name) as file:
            file.write(content)


def _sets_table(comparison: SetsComparison) -> str:
    """Return data_sets.csv."""
    out = io.StringIO()
    set_columns = [f"{SET_COLUMN_PREFIX}{name}" for name in comparison.sets]
    writer = csv.DictWriter(out, [*SETS_COLUMNS, *set_columns], lineterminator="\n")
    writer.writeheader()
    writer.writerows(comparison.rows())
    return out.getvalue()


def _report_files(
    title: str, comparison: SetsComparison, sets: Sequence[Results]
) -> dict[str, str]:
    """Return the files of the report: file name -> content."""
    variables = {
        "title": title,
        "comparison": comparison,
        "sentences": sets_sentences(comparison, MAX_PAIR_SENTENCES),
    }
    colors = retriever_colors(sets[0])
    page = render_page(
        "data_sets.html",
        {**variables, **_page_variables(comparison, sets), "colors": colors},
        shades=declared_shades(colors),
    )
    markdown = html_environment().get_template("data_sets.md").render(**variables)
    return {"report.md": markdown, "report.html": page}


def _page_variables(
    comparison: SetsComparison, sets: Sequence[Results]
) -> dict[str, Any]:
    """Return the other variables of the page: pairs, and sets that have a report."""
    reference = _reference(comparison)
    rows = {}
    for pair in comparison.pairs:
        if reference in (pair.a, pair.b):
            reference_pair = pair if pair.b == reference else pair.swapped
            rows[reference_pair.a] = reference_pair
    return {
        "reported": {
            results.manifest.name: (results.folder / "report.html").is_file()
            for results in sets
        },
        "best": {name: _highest_mean(comparison, name) for name in comparison.sets},
        "pairs": sorted(
            (pair.leader_first for pair in comparison.pairs),
            key=lambda pair: -abs(pair.mean_difference),
        ),
        "rows": rows,
        "reference": reference,
        "few": FEW_SETS_NOTE,
        "beyond": all(pair.new_sets is not None for pair in comparison.pairs),
        "signs": VERDICT_SIGNS,
    }


def _reference(comparison: SetsComparison) -> str:
    """Return the retriever that the others are compared with.

    It is the leader if it was compared with all others, else the baseline.
    """
    leader = comparison.ranked_retrievers[0]
    leader_pairs = sum(leader in (pair.a, pair.b) for pair in comparison.pairs)
    if leader_pairs == len(comparison.ranked_retrievers) - 1:
        return leader
    return comparison.pairs[0].b


def _highest_mean(comparison: SetsComparison, set_name: str) -> float:
    return max(
        comparison.mean(set_name, retriever)
        for retriever in comparison.ranked_retrievers
    )

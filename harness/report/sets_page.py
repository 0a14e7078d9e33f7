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
    """Write data_sets.csv next to the folders of the sets, and report.html and report.md if `report` is set.

    Raises:
        InputError: the sets have nothing in common, or a file cannot be written.
    """
    found = compare_sets_of_folder(sets)
    out = io.StringIO()
    writer = csv.DictWriter(
        out,
        [*SETS_COLUMNS, *(f"{SET_COLUMN_PREFIX}{name}" for name in found.sets)],
        lineterminator="\n",
    )
    writer.writeheader()
    writer.writerows(found.rows())
    files = {}
    if report:
        shown = {
            "title": folder.name,
            "found": found,
            "sentences": sets_sentences(found, MAX_PAIR_SENTENCES),
        }
        more = _besides(found, sets)
        page = render_page(
            "data_sets.html", shown | more, shades=declared_shades(more["colors"])
        )
        files = {
            "report.md": html_environment()
            .get_template("data_sets.md")
            .render(**shown),
            "report.html": page,
        }
    for name, content in {
        **files,
        SETS_FILE: out.getvalue(),
    }.items():  # the table last: it marks the folder as complete
        with new_text_file(folder / name) as file:
            file.write(content)


def _besides(found: SetsComparison, sets: Sequence[Results]) -> dict[str, Any]:
    """The other variables of the page: the pairs, and the sets that have a report."""
    of = [{pair.a, pair.b} for pair in found.pairs]
    leads = (
        sum(found.ranked_retrievers[0] in names for names in of)
        == len(found.ranked_retrievers) - 1
    )
    reference = found.ranked_retrievers[0] if leads else found.pairs[0].b
    turned = [
        pair if pair.b == reference else pair.swapped
        for pair in found.pairs
        if reference in (pair.a, pair.b)
    ]
    return {
        "colors": retriever_colors(sets[0]),
        "reported": {
            one.manifest.name: (one.folder / "report.html").is_file() for one in sets
        },
        "best": {
            name: max(found.mean(name, one) for one in found.ranked_retrievers)
            for name in found.sets
        },
        "pairs": sorted(
            (pair.leader_first for pair in found.pairs),
            key=lambda pair: -abs(pair.mean_difference),
        ),
        "rows": {pair.a: pair for pair in turned},
        "reference": reference,
        "few": FEW_SETS_NOTE,
        "beyond": all(pair.new_sets is not None for pair in found.pairs),
        "signs": VERDICT_SIGNS,
    }

"""Scores for other programs."""

import csv
import io
import json
import math
from typing import Any

from harness.measures import parse_measure
from harness.report.escape import escape_spreadsheet_cell
from harness.report.view import View

MTEB_NAMES = {
    "nDCG": "ndcg",
    "AP": "map",
    "R": "recall",
    "P": "precision",
    "RR": "mrr",
    "Success": "hit_rate",
}
"""Measures that MTEB computes in the same way, with its names."""


def mteb_results(view: View) -> dict[str, str]:
    """Return a result for each retriever in MTEB's format, without measures that MTEB defines differently.

    `main_score` is the primary measure.
    """
    manifest = view.manifest
    files = {}
    for name in view.retrievers:
        means = {full: view.mean(full, name) for full in view.measures}
        scores = {
            key: means[full]
            for full in view.measures
            if (key := _called(full)) is not None
        }
        result: dict[str, Any] = {
            "dataset_revision": manifest.dataset.digest,
            "task_name": manifest.name,
            "mteb_version": None,
            "scores": {
                "test": [
                    {
                        **scores,
                        "main_score": means[view.primary],
                        "hf_subset": "default",
                        "languages": ["und"],
                    }
                ]
            },
            "evaluation_time": None,
            "kg_co2_emissions": None,
        }
        files[name] = json.dumps(result, ensure_ascii=False, indent=2) + "\n"
    return files


def spreadsheet_csv(view: View) -> str:
    """Return the scores of every query as CSV for spreadsheets, in which no cell is run as a formula."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    columns = [(measure, name) for measure in view.measures for name in view.retrievers]
    writer.writerow(
        [
            "query",
            "text",
            *(
                escape_spreadsheet_cell(f"{view.names[measure].short} {name}")
                for measure, name in columns
            ),
        ]
    )
    scored = [
        view.values_by_measure[measure][name].tolist() for measure, name in columns
    ]
    for i in view.order:
        values = ("" if math.isnan(values[i]) else repr(values[i]) for values in scored)
        writer.writerow(
            [
                escape_spreadsheet_cell(view.ids[i]),
                escape_spreadsheet_cell(view.query(i).query.text),
                *values,
            ]
        )
    # Spreadsheets detect UTF-8 by its byte order mark.
    return "\ufeff" + out.getvalue()


def _called(full: str) -> str | None:
    measure = parse_measure(full)
    if measure.params or measure.cutoff is None or measure.name not in MTEB_NAMES:
        return None
    return f"{MTEB_NAMES[measure.name]}_at_{measure.cutoff}"

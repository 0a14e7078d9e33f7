"""Scores for other programs."""

import csv
import io
import json
import math
from typing import Any

from harness.measures import parse_measure
from harness.report.escape import escape_spreadsheet_cell
from harness.report.report_file import ReportFile
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


def mteb_results(view: View) -> list[ReportFile]:
    """Return a file for each retriever in MTEB's format.

    Measures that MTEB defines differently are left out. `main_score` is the primary
    measure.
    """
    return [
        ReportFile(f"tables/{retriever}.mteb.json", _mteb_result(view, retriever))
        for retriever in view.retrievers
    ]


def _mteb_result(view: View, retriever: str) -> str:
    """Return the means of one retriever as JSON in the form of MTEB."""
    scores: dict[str, Any] = {}
    for measure in view.measures:
        mteb_name = _mteb_measure(measure)
        mean = view.mean(measure, retriever)
        if mteb_name is not None and not math.isnan(mean):
            scores[mteb_name] = mean
    result: dict[str, Any] = {
        "dataset_revision": view.manifest.dataset.digest,
        "task_name": view.manifest.name,
        "mteb_version": None,
        "scores": {
            "test": [
                {
                    **scores,
                    "main_score": view.mean(view.primary, retriever),
                    "hf_subset": "default",
                    "languages": ["und"],
                }
            ]
        },
        "evaluation_time": None,
        "kg_co2_emissions": None,
    }
    return json.dumps(result, ensure_ascii=False, indent=2) + "\n"


def _mteb_measure(measure_name: str) -> str | None:
    """Return MTEB's name of a measure; None if MTEB has no such measure."""
    measure = parse_measure(measure_name)
    if measure.params or measure.cutoff is None or measure.name not in MTEB_NAMES:
        return None
    return f"{MTEB_NAMES[measure.name]}_at_{measure.cutoff}"


def spreadsheet_csv(view: View) -> str:
    """Return the scores of every query as CSV for spreadsheets.

    No cell is run as a formula.
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    columns = [
        (measure, retriever)
        for measure in view.measures
        for retriever in view.retrievers
    ]
    heads = [
        escape_spreadsheet_cell(f"{view.names[measure].short} {retriever}")
        for measure, retriever in columns
    ]
    writer.writerow(["query", "text", *heads])
    scores_by_column = [
        view.values_by_measure[measure][retriever].tolist()
        for measure, retriever in columns
    ]
    for i in view.order:
        scores = [scores[i] for scores in scores_by_column]
        cells = ["" if math.isnan(score) else repr(score) for score in scores]
        query_id = escape_spreadsheet_cell(view.ids[i])
        text = escape_spreadsheet_cell(view.query_text(view.ids[i]))
        writer.writerow([query_id, text, *cells])
    # Spreadsheets detect UTF-8 by its byte order mark.
    return "\ufeff" + out.getvalue()

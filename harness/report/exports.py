"""For other programs: MTEB-shaped JSON, a table for spreadsheets, and what a notebook shows."""

from __future__ import annotations

import csv
import io
import json
import math
from typing import Any

from harness.measures import parse
from harness.report.page import environment
from harness.report.section import Section
from harness.report.text import cell
from harness.report.view import View

MTEB = {"nDCG": "ndcg", "AP": "map", "R": "recall", "P": "precision", "RR": "mrr", "Success": "hit_rate"}
"""Measures that MTEB computes alike, under its own names."""


def mteb(view: View) -> dict[str, str]:
    """Return a result for each retriever in the shape of MTEB's files: what MTEB defines otherwise is left out.

    `main_score` is the primary measure.
    """
    manifest = view.manifest
    files = {}
    for name in view.retrievers:
        means = {full: view.mean(full, name) for full in view.measures}
        scores = {key: means[full] for full in view.measures if (key := _called(full)) is not None}
        result: dict[str, Any] = {
            "dataset_revision": manifest.dataset.digest,
            "task_name": manifest.name,
            "mteb_version": None,
            "scores": {"test": [{**scores, "main_score": means[view.primary], "hf_subset": "default",
                                 "languages": ["und"]}]},
            "evaluation_time": None,
            "kg_co2_emissions": None,
        }  # fmt: skip
        files[name] = json.dumps(result, ensure_ascii=False, indent=2) + "\n"
    return files


def spreadsheet(view: View) -> str:
    """Return the scores of every query as CSV for spreadsheets: nothing that stands in it is run as a formula."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    columns = [(measure, name) for measure in view.measures for name in view.retrievers]
    writer.writerow(["query", "text", *(cell(f"{view.names[measure].short} {name}") for measure, name in columns)])
    for i in view.order:
        scores = (float(view.scores[measure][name][i]) for measure, name in columns)
        values = ("" if math.isnan(value) else repr(value) for value in scores)
        writer.writerow([cell(view.ids[i]), cell(view.query(i).query.text), *values])
    # Spreadsheets take UTF-8 for what it is by its byte order mark.
    return "\ufeff" + out.getvalue()


def notebook(view: View, decision: Section) -> str:
    """Return the verdict and the leaderboard as a fragment of HTML, with no style or script."""
    return environment().get_template("notebook.html").render(view=view, context=decision.context)


def _called(full: str) -> str | None:
    measure = parse(full)
    if measure.params or measure.cutoff is None or measure.name not in MTEB:
        return None
    return f"{MTEB[measure.name]}_at_{measure.cutoff}"

"""Look inside: any query's rankings side by side, with grades, and the relevant documents that were missed."""

from __future__ import annotations

from typing import Any

from harness.report.browsed import STEPS, EvidenceKept, browsed, document, spread
from harness.report.figures import Section
from harness.report.view import View

PLACE = 40

PRINTED = 5
"""Queries that are shown without scripts, and hits of each ranking there."""


def section(view: View) -> Section:
    """The evidence for the browser of queries, and the queries that flip most for those without scripts."""
    distances, held = spread(view), browsed(view)
    most = sorted(view.shown, key=lambda i: (-distances[i], view.ids[i]))[:PRINTED]
    return Section(
        "forensics",
        "Look inside",
        {
            "evidence": held.evidence,
            "texts": held.texts,
            "kept": held.kept,
            "whole": held.kept == EvidenceKept(*STEPS[0], len(view.order)),
            "printed": [_printed(view, i) for i in most if distances[i] > 0],
        },
    )


def _printed(view: View, place: int) -> dict[str, Any]:
    """One query for the page without scripts and for print."""
    qid = view.ids[place]
    judged = view.grades[qid]
    gold = sorted(((d, g) for d, g in judged.items() if g > 0), key=lambda item: (-item[1], item[0]))
    return {
        "id": qid,
        "text": view.results.queries[qid].query.text,
        "scores": [float(view.scores[view.primary][name][place]) for name in view.ranked],
        "lists": [
            [(*document(view, doc), judged.get(doc)) for doc in view.answers[name].top.get(qid, ())[:PRINTED]]
            for name in view.ranked
        ],
        "gold": [
            (*document(view, doc), grade,
             [view.answers[name].places.get(qid, {}).get(doc) for name in view.ranked])
            for doc, grade in gold[: 2 * PRINTED]
        ],
        "gold_left": max(0, len(gold) - 2 * PRINTED),
    }  # fmt: skip

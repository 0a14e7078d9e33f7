"""Look inside: any query's rankings side by side, with grades, and the relevant documents that were missed."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from harness.records import SHOWN, SNIPPET
from harness.report import text
from harness.report.section import Section
from harness.report.sections.atlas import Group, columns, groups
from harness.report.view import View

PLACE = 40

BUDGET = 8_000_000
"""Bytes of evidence that a page may hold."""
STEPS = ((SHOWN, SNIPPET), (SHOWN, 160), (10, 160), (10, 80), (10, 0))
"""Hits per ranking and characters per document, tried in this order until the budget holds."""
PRINTED = 5
"""Queries that are shown without scripts, and hits of each ranking there."""
VALUES = 60
"""Values of fields that the filter offers, the most frequent."""


class EvidenceKept(NamedTuple):
    """How much of the evidence the page holds."""

    hits: int
    letters: int
    queries: int


def section(view: View) -> Section:
    """The evidence for the browser of queries, and the queries that flip most for those without scripts."""
    spread = _spread(view)
    evidence, kept = _fitting(view, spread)
    most = sorted(view.shown, key=lambda i: (-spread[i], view.ids[i]))[:PRINTED]
    first = view.whole.leader
    second = view.baseline if view.baseline not in (None, first) else next(iter(view.ranked[1:]), first)
    return Section(
        "forensics",
        "Look inside",
        {
            "evidence": {**evidence, "pair": [view.ranked.index(first), view.ranked.index(str(second))]},
            "kept": kept,
            "whole": kept == EvidenceKept(SHOWN, SNIPPET, len(view.order)),
            "fields": _values(view),
            "printed": [_printed(view, i) for i in most if spread[i] > 0],
        },
    )


def _spread(view: View) -> list[float]:
    """How far the retrievers lie apart on each query, on the primary measure."""
    spread: list[float] = np.ptp(np.column_stack(list(view.scores[view.primary].values())), axis=1).tolist()
    return spread


def _fitting(view: View, spread: Sequence[float]) -> tuple[dict[str, Any], EvidenceKept]:
    """The evidence that fits the budget: shorter texts first, then fewer queries, those that differ most kept."""
    places, failing = list(view.shown), groups(view)
    for hits, letters in STEPS:
        evidence = _evidence(view, places, failing, (hits, letters))
        if _bytes(evidence) <= BUDGET:
            return evidence, EvidenceKept(hits, letters, len(places))
    while _bytes(evidence) > BUDGET:
        kept = set(sorted(places, key=lambda i: -spread[i])[: len(places) // 2])
        places = [i for i in places if i in kept]
        evidence = _evidence(view, places, failing, (hits, letters))
    return evidence, EvidenceKept(hits, letters, len(places))


def _bytes(evidence: Mapping[str, Any]) -> int:
    return len(json.dumps(evidence, ensure_ascii=False).encode("utf-8", "replace"))


def _evidence(view: View, places: Sequence[int], failing: Sequence[Group], size: tuple[int, int]) -> dict[str, Any]:
    hits, letters = size
    numbers: dict[str, int] = {}
    queries = []
    members = {group.key: frozenset(group.places) for group in failing}
    for i in places:
        qid, judged = view.ids[i], view.grades[view.ids[i]]
        lists = [view.answers[name].top.get(qid, ())[:hits] for name in view.ranked]
        retrieved = {doc for docs in lists for doc in docs}
        graded = sorted(
            ((doc, grade) for doc, grade in judged.items() if grade > 0 or doc in retrieved),
            key=lambda item: (-item[1], item[0]),
        )
        queries.append({
            "id": text.visible(qid),
            "text": text.visible(view.results.queries[qid].query.text),
            "fields": fields_of(view, qid),
            "groups": [key for key, places in members.items() if i in places],
            "scores": [round(float(view.scores[view.primary][name][i]), 6) for name in view.ranked],
            "lists": [[_number(numbers, doc) for doc in docs] for docs in lists],
            "judged": [
                [_number(numbers, doc), grade,
                 [view.answers[name].places.get(qid, {}).get(doc, 0) for name in view.ranked]]
                for doc, grade in graded
            ],
        })  # fmt: skip
    marks = [
        {"name": name, "color": mark.color, "outline": mark.outline}
        for name in view.ranked
        for mark in (view.marks[name],)
    ]
    return {
        "measure": view.names[view.primary].short,
        "depth": view.resolved.depth,
        "lang": view.language,
        "order": [text.visible(view.ids[i]) for i in columns(view)],
        "groups": {group.key: group.title for group in failing},
        "retrievers": marks,
        "documents": [_document(view, doc, letters) for doc in numbers],
        "queries": queries,
    }


def _number(numbers: dict[str, int], doc: str) -> int:
    return numbers.setdefault(doc, len(numbers))


def _document(view: View, doc: str, letters: int) -> list[str]:
    """Id, title, snippet."""
    document = view.results.documents.get(doc)
    if document is None:
        return [text.visible(doc), "", ""]
    snippet = text.shortened(document.text, letters) if letters else ""
    return [text.visible(doc), text.shortened(document.title, 120), snippet]


def fields_of(view: View, qid: str) -> list[str]:
    """A query's fields as the filter names them; several tags in one field stand apart."""
    fields = view.results.queries[qid].query.fields
    return [
        text.shortened(f"{key}: {part.strip()}", 80)
        for key, value in fields.items()
        for part in str(value).split(",")
        if part.strip()
    ]


def _values(view: View) -> list[str]:
    counts = Counter(value for i in view.shown for value in fields_of(view, view.ids[i]))
    return sorted(value for value, _ in counts.most_common(VALUES))


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
            [(*_document(view, doc, 0), judged.get(doc)) for doc in view.answers[name].top.get(qid, ())[:PRINTED]]
            for name in view.ranked
        ],
        "gold": [
            (*_document(view, doc, 0), grade,
             [view.answers[name].places.get(qid, {}).get(doc) for name in view.ranked])
            for doc, grade in gold[: 2 * PRINTED]
        ],
        "gold_left": max(0, len(gold) - 2 * PRINTED),
    }  # fmt: skip

"""The queries: which retriever finds which document, why others miss it, and the packed data of the page's scripts."""

import base64
import json
import math
import zlib
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import count as numbered
from typing import Any, NamedTuple

import numpy as np

from harness.pages import visible
from harness.records import LENGTHS, SHOWN
from harness.report import text
from harness.report.charts import Section
from harness.report.sections.slices import (
    ALL,
    Group,
    causes,
    groups,
    kinds_of,
    label_of,
    labels_of,
    without_groups,
)
from harness.report.sections.tradeoffs import Rerun, reranked
from harness.report.view import NOTHING, View, second

PRINTED = 2
"""Queries shown without scripts."""
HITS = 5
"""Hits of each ranking shown there, and ids per group."""


REST = "queries.html"
"""The second page, with the queries for which the report has no room."""


def gold(view: View, place: int) -> list[tuple[str, int]]:
    """The relevant documents of a query with their grades, the highest first."""
    judged = view.grades[view.ids[place]]
    return sorted(
        ((d, g) for d, g in judged.items() if g > 0),
        key=lambda item: (-item[1], item[0]),
    )


def rest(view: View, shown: Section) -> tuple[View, Section] | None:
    """The section of the queries for which the page has no room; None if it has all."""
    left = tuple(place for place in view.order if place not in shown.context["places"])
    others = replace(view, shown=left)
    return (others, section(others, whole=True)) if left else None


def section(view: View, *, whole: bool = False) -> Section:
    """The groups of failures, and the data of the query grid."""
    distances, alike = spread(view), groups(view)
    held = browsed(view, alike, whole=whole)
    most = sorted(view.shown, key=lambda i: (-distances[i], view.ids[i]))[:PRINTED]
    context = {
        "evidence": held.packed,
        "hits": HITS,
        "depth": view.resolved.depth,
        "retrievers": held.evidence["retrievers"],
        "held": len(held.evidence["queries"]),
        "places": frozenset(held.places),
        "rest": REST if len(held.places) < len(view.order) and not whole else "",
        "elsewhere": "report.html" if whole else REST,
        "texts": held.texts,
        "kept": held.kept,
        "whole": held.kept == EvidenceKept(*STEPS[0], len(view.order)),
        "printed": [i for i in most if distances[i] > 0],
        "gold": gold,
        "document": partial(document, view),
        "groups": [
            (group, [view.ids[place] for place in group.places[:HITS]])
            for group in alike
        ],
        "without": "" if alike else without_groups(view),
    }
    return Section("queries", "Queries", context)


LARGE = 500_000
"""Characters from which on fast compression is used: the best takes several times longer and saves little."""


def packed(value: Any) -> str:
    """Return JSON as text for a script element; `DecompressionStream("deflate")` reads it back.

    >>> unpacked(packed({"a": [1, "<"]}))
    {'a': [1, '<']}
    """
    code = visible(json.dumps(value, ensure_ascii=False, separators=(",", ":")))
    level = 9 if len(code) < LARGE else 4
    return base64.b64encode(zlib.compress(code.encode("utf-8"), level)).decode("ascii")


def unpacked(text: str) -> Any:
    """Unpack JSON."""
    return json.loads(zlib.decompress(base64.b64decode(text)))


Causes = Mapping[int, Mapping[str, str]]
"""Index of a query -> retriever -> why it missed."""


BUDGET = 1_000_000
"""Largest size of a page's evidence, deflated, in bytes."""
DEFLATED, OF_SCORES, OF_HITS = 0.5, 4.0, 5.0
"""Approximate packed size of a letter of text, of a score and of the rest of a hit."""
STEPS = (
    (SHOWN, LENGTHS[0]),
    (SHOWN, 2_000),
    (SHOWN, 600),
    (SHOWN, 200),
    (SHOWN, 0),
    (SHOWN // 2, 0),
)
"""Hits per ranking and characters per document, tried in this order until the budget is met."""


class EvidenceKept(NamedTuple):
    """The amount of evidence on the page."""

    hits: int
    letters: int
    queries: int


class Browsed(NamedTuple):
    """The evidence of one page."""

    evidence: Mapping[str, Any]
    packed: str
    """The same, packed."""
    texts: str
    """The texts of the evidence's documents and the scores of its hits, packed."""
    kept: EvidenceKept
    places: tuple[int, ...]
    """Number of queries."""


def browsed(view: View, alike: Sequence[Group], *, whole: bool = False) -> Browsed:
    """The evidence that fits the budget: first texts are shortened, then queries that differ least are dropped.

    Args:
        view: the results.
        alike: the groups of failures.
        whole: whether it has its own page, with four times the room and every query.
    """
    budget = 4 * BUDGET if whole else BUDGET
    distances, about = spread(view), (alike, reranked(view), causes(view))
    places, taken = list(view.shown), 0
    while True:
        for hits, letters in STEPS:
            if (
                OF_HITS * hits * len(places) * len(view.ranked) > budget
                and (hits, letters) != STEPS[-1]
            ):
                continue
            if hits != taken:
                evidence, documents = _evidence(view, places, about, hits)
                code, taken = packed(evidence), hits
                kept_texts = (view.results.documents.get(doc) for doc in documents)
                lengths = np.array(
                    [len(kept.text) for kept in kept_texts if kept], dtype=np.int64
                )
            more = DEFLATED * float(np.minimum(lengths, letters).sum())
            more += OF_SCORES * hits * len(places) * len(view.ranked) if letters else 0
            if len(code) + more <= budget or (
                (whole or len(places) == 1) and (hits, letters) == STEPS[-1]
            ):
                beside: dict[str, Any] = {"texts": [], "scores": []}
                if letters:
                    beside["texts"] = [_text(view, doc, letters) for doc in documents]
                    beside["scores"] = [_scores(view, place, hits) for place in places]
                kept_of = EvidenceKept(hits, letters, len(places))
                return Browsed(evidence, code, packed(beside), kept_of, tuple(places))
        near = set(sorted(places, key=lambda i: -distances[i])[: len(places) // 2])
        places, taken = [i for i in places if i in near], 0


def _scores(view: View, place: int, hits: int) -> list[list[float]]:
    """Each retriever's scores of its hits for a query, with three digits."""
    tops = (
        view.answers[name].top.get(view.ids[place], NOTHING) for name in view.ranked
    )
    return [
        [float(f"{score:.3g}") for score in top.scores[:hits].tolist()] for top in tops
    ]


def spread(view: View) -> list[float]:
    """The range of the retrievers' scores on each query, on the primary measure."""
    distances: list[float] = np.ptp(
        np.column_stack(list(view.scores[view.primary].values())), axis=1
    ).tolist()
    return distances


def document(view: View, doc: str) -> list[str]:
    """The id and title of a document."""
    kept = view.results.documents.get(doc)
    return [text.visible(doc), text.shortened(kept.title, 120) if kept else ""]


def fields_of(view: View, query_id: str) -> list[str]:
    """A query's fields as the filters name them; tags in one field are separate."""
    fields = view.results.queries[query_id].query.fields
    return [
        text.shortened(f"{key}: {part.strip()}", 80)
        for key, value in fields.items()
        for part in str(value).split(",")
        if part.strip()
    ]


def _evidence(
    view: View,
    places: Sequence[int],
    about: tuple[Sequence[Group], Mapping[str, Rerun], Causes],
    hits: int,
) -> tuple[dict[str, Any], list[str]]:
    """Some queries, and the documents in their lists."""
    failing, reruns, why = about
    numbers = defaultdict[str, int](
        numbered().__next__
    )  # each document is numbered by its first appearance
    scored = [view.scores[view.primary][name] for name in view.ranked]
    members = {group.key: frozenset(group.places) for group in failing}
    ceilings = [
        (view.ranked.index(name), rerun.ceiling)
        for name, rerun in reruns.items()
        if rerun.ceiling is not None
    ]
    queries = []
    for i in places:
        qid, judged = view.ids[i], view.grades[view.ids[i]]
        lists = [
            view.answers[name].top.get(qid, NOTHING).doc_ids[:hits]
            for name in view.ranked
        ]
        retrieved = (
            set().union(*lists) if min(judged.values(), default=1) <= 0 else frozenset()
        )
        ranks = [view.answers[name].places.get(qid, {}) for name in view.ranked]
        graded = sorted(
            (
                (doc, grade)
                for doc, grade in judged.items()
                if grade > 0 or doc in retrieved
            ),
            key=lambda item: (-item[1], item[0]),
        )
        queries.append(
            {
                "id": text.visible(qid),
                "text": text.visible(view.results.queries[qid].query.text),
                "fields": fields_of(view, qid),
                "groups": [key for key, places in members.items() if i in places],
                "scores": [round(float(values[i]), 6) for values in scored],
                "lists": [list(map(numbers.__getitem__, docs)) for docs in lists],
                "judged": [
                    [numbers[doc], grade, [of.get(doc, 0) for of in ranks]]
                    for doc, grade in graded
                ],
                **(
                    {
                        "why": [
                            [view.ranked.index(name), said]
                            for name, said in why[i].items()
                        ]
                    }
                    if i in why
                    else {}
                ),
                **(
                    {
                        "ceilings": {
                            place: round(float(values[i]), 6)
                            for place, values in ceilings
                        }
                    }
                    if ceilings
                    else {}
                ),
            }
        )
    evidence = {
        "retrievers": [_named(view, name, reruns.get(name)) for name in view.ranked],
        "documents": [document(view, doc) for doc in numbers],
        "queries": queries,
    }
    return evidence, list(numbers)


def _named(view: View, name: str, rerun: Rerun | None) -> dict[str, Any]:
    if rerun is None:
        return {"name": name}
    bounded = rerun.ceiling is not None
    return {
        "name": name,
        "before": view.ranked.index(rerun.before),
        "depth": rerun.depth,
        "bounded": bounded,
    }


def _text(view: View, doc: str, letters: int) -> str:
    kept = view.results.documents.get(doc)
    if kept is None:
        return ""
    return (
        kept.text if len(kept.text) <= letters else kept.text[:letters].rstrip() + "…"
    )


DIGITS = 7
"""Of scores: less is the noise of sums."""
VALUES = 120_000
"""Most scores of a page; if there are more, it keeps the first measures."""
SLICES = 80
"""Most slices to choose from: those of the tests, then the most frequent values of fields."""


def client_filter(view: View) -> dict[str, Any]:
    """Return the scores and slices, queries in the order of the file, retrievers by their means."""
    measures, weights = chosen_measures(view), view.table.weights
    places = list(view.order)
    return {
        **({"weights": [weights[i] for i in places]} if weights is not None else {}),
        "all": ALL,
        "pair": {"a": view.evaluation.leader, "b": second(view)},
        "measures": [view.names[measure].short for measure in measures],
        "left": len(view.measures) - len(measures),
        "retrievers": list(view.ranked),
        "ids": [text.visible(view.ids[i]) for i in places],
        "slices": list(filter_slices(view).items()),
        "values": [
            [
                [None if math.isnan(value) else value for value in row]
                for row in np.round(
                    [view.scores[measure][name][places] for name in view.ranked], DIGITS
                ).tolist()
            ]
            for measure in measures
        ],
    }


def chosen_measures(view: View) -> list[str]:
    """The measures that the filter can show."""
    size = view.n * len(view.ranked)
    return [
        measure
        for i, measure in enumerate(view.measures)
        if not i or size * (i + 1) <= VALUES
    ]


def filter_slices(view: View) -> dict[str, list[int]]:
    """Slice as the page names it -> places of its queries in the order of the file."""
    members: dict[str, list[int]] = {}
    for family, labels in labels_of(view).items():
        members |= {
            label_of(family, kind): []
            for kind in kinds_of(family, [labels[i] for i in view.order])
        }
        for place, i in enumerate(view.order):
            if labels[i]:
                members[label_of(family, labels[i])].append(place)
    fields = [fields_of(view, view.ids[i]) for i in view.order]
    for value, _ in Counter(value for values in fields for value in values).most_common(
        SLICES
    ):
        if value not in members and len(members) < SLICES:
            members[value] = [
                place for place, values in enumerate(fields) if value in values
            ]
    return members


PLACES = {30: section}

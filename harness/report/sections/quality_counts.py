"""Every count of the data."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from harness.english import count_of, count_queries
from harness.records import Manifest, RetrieverQuality
from harness.report.view import View

COUNT_PHRASES = {
    "truncated": "truncated documents",
    "truncated-query": "truncated queries",
    "truncated-pair": "queries with a truncated pair",
    "empty": "empty documents",
    "zero-vector": "documents with zero vectors",
    "zero-vector-query": "queries with zero vectors",
    "not-in-corpus": "hits with unknown ids",
    "matched-hit": "ids of hits that were matched by file name, folder or title",
    "not-answered-query": "queries missing in the saved run",
    "repeated-hit-query": "queries with a document returned twice",
    "nothing-matches-query": "queries whose filter no document matches",
    "no-hit-query": "queries with which no document that is searched shares a dimension of its sparse vector",
    "collapsed": "further hits of the same page, file or section",
    "lost_tokens": "tokens lost by truncation",
    "retries": "retries",
    "unanswered": "requests without a usable response, which may be billed (estimated cost)",
}
"""The names of a ledger's kinds; any other kind has its own name."""
HIDDEN_COUNTS = (
    "cached_tokens",
    "shared_hits",
    "exact_hits",
    "shared_hits_at_10",
    "exact_hits_at_10",
)
"""Counts that other sections show as costs and as recall; high ones are no problem."""
MAX_LISTED_IDS = 20
"""Most ids of one kind, or values of one field, that are listed."""


def quality_tables(view: View) -> dict[str, Any]:
    """The ledger: what was excluded, truncated, empty, tied or retried, for the data and each retriever."""
    counts: dict[str, dict[str, float]] = {}
    ids: dict[str, dict[str, Sequence[str]]] = {}
    for name in view.retrievers:
        ledger = quality_with_parts(view.manifest, name)
        for kind, noted in ledger.notes.items():
            counts.setdefault(_called(kind), {})[name] = len(noted)
            ids.setdefault(_called(kind), {})[name] = noted[:MAX_LISTED_IDS]
        for of_stage in ledger.counts.values():
            for kind, number in of_stage.items():
                if kind not in HIDDEN_COUNTS:
                    row = counts.setdefault(_called(kind), {})
                    row[name] = row.get(name, 0) + number
    for name, answers in view.ranking_digests.items():
        counts.setdefault(f"queries tied at rank {view.cutoff}", {})[name] = (
            answers.tied_queries
        )
        counts.setdefault(f"queries with fewer than {view.cutoff} hits", {})[name] = (
            answers.short_queries
        )
    found = {kind: numbers for kind, numbers in counts.items() if any(numbers.values())}
    return {
        "dataset": [
            (_called(kind), len(noted), noted[:MAX_LISTED_IDS])
            for kind, noted in view.manifest.ledger.dataset.items()
        ],
        "counts": counts,
        "cut": COUNT_PHRASES["truncated"] in found,
        "found": found,
        "clean": [
            kind for kind, numbers in counts.items() if not any(numbers.values())
        ],
        "ids": ids,
        "unjudged": unjudged_shares(view),
        "claims": claims_sentence(view.manifest.judge, view.n),
    }


def claims_sentence(judge: Mapping[str, str], queries: int) -> str:
    """Which judge judged how many claims, and its weakness; "" if none did.

    >>> claims_sentence({}, 138)
    ''
    """
    if "verdicts" not in judge:
        return ""
    weak = judge["judge"].startswith("lexical")
    trust = (
        "; it compares words only: a weak judge, which misses paraphrases"
        if weak
        else ""
    )
    return (
        f"Measures by claims rest on {count_of(int(judge['verdicts']), 'verdict')} of the judge {judge['judge']} on "
        f"{count_of(int(judge['claims']), 'claim')} of {int(judge['queries']):,} of {count_queries(queries)}, "
        f"{int(judge['unreadable']):,} of them unreadable{trust}. They are undefined for the other queries."
    )


def unjudged_shares(view: View) -> dict[str, float]:
    """Retriever -> share of its hits within the primary cutoff without a label, a mean over queries with a hit.

    Empty if labels list relevant documents only: then no label and irrelevant are the same.
    """
    if not view.scores.has_irrelevant_labels:
        return {}
    return {
        name: 1 - view.evaluation.judged_shares[name]
        for name in view.retrievers
        if name in view.evaluation.judged_shares
    }


def _called(kind: str) -> str:
    return COUNT_PHRASES.get(kind, kind.replace("_", " ").replace("-", " "))


def describe_dataset(view: View) -> dict[str, Any]:
    """The contents of the data set."""
    labels = [len([g for g in view.grades[qid].values() if g > 0]) for qid in view.ids]
    grades = Counter(
        grade for judged in view.grades.values() for grade in judged.values()
    )
    lengths = [
        len(view.results.queries[qid].query.text)
        for qid in view.ids
        if qid in view.results.queries
    ]
    fields: dict[str, Counter[str]] = {}
    for qid in view.ids:
        for key, value in view.results.queries[qid].query.fields.items():
            fields.setdefault(key, Counter()).update(
                part.strip() for part in str(value).split(",")
            )
    return {
        "facts": view.manifest.dataset,
        "labels": _five(labels),
        "lengths": _five(lengths),
        "grades": sorted(grades.items(), reverse=True)[:30],
        "fields": [
            (key, values.most_common(MAX_LISTED_IDS), len(values))
            for key, values in fields.items()
        ],
        "relevance": view.resolved.relevance,
    }


def _five(values: Sequence[int]) -> list[float]:
    """Minimum, median, maximum."""
    return np.quantile(values, [0, 0.5, 1]).tolist() if values else []


def quality_with_parts(manifest: Manifest, retriever: str) -> RetrieverQuality:
    """Return a retriever's ledger with those of its parts: ids once, counts summed."""
    notes: dict[str, tuple[str, ...]] = {}
    counts: dict[str, dict[str, float]] = {}
    for part in manifest.resolved.retriever_with_parts(retriever):
        own = manifest.ledger.retrievers[part]
        for kind, noted in own.notes.items():
            notes[kind] = tuple(dict.fromkeys([*notes.get(kind, ()), *noted]))
        for stage, numbers in own.counts.items():
            row = counts.setdefault(stage, {})
            for kind, number in numbers.items():
                row[kind] = row.get(kind, 0) + number
    return RetrieverQuality(notes=notes, counts=counts)

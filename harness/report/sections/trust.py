"""Trust: labels, judged claims, counts and the data."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from harness.english import count, counted, join
from harness.evaluation.evaluation import WarningKind
from harness.evaluation.grading import alternatives
from harness.evaluation.wording import (
    ceiling_sentences,
    opposite_warning,
    warning_sentence,
)
from harness.experiment import Relevance
from harness.measures import parse
from harness.measures.compute import sensitivity
from harness.report import text
from harness.report.charts import Section
from harness.report.sections.decision import screen_of
from harness.report.view import View, inherited
from harness.stats.power import FEWEST
from retrievers.options import checked


def readings(view: View) -> dict[str, Any] | None:
    """The means under other grade rules and gains, and by each labeller's grades; None if there are none."""
    if len(view.retrievers) < 2:
        return None
    relevance = checked(Relevance, view.resolved.relevance, "resolved.relevance")
    labels = {
        query_id: judged.labels for query_id, judged in view.results.queries.items()
    }
    primary = parse(view.primary)
    weights = view.table.weight_of
    heads = ((name, view.answers[name].heads) for name in view.retrievers)
    # A measure by claims has no grades.
    rows = (
        []
        if primary.claimed
        else sensitivity(primary, alternatives(labels, relevance), heads, weights)
    )
    changed = [row for row in rows if row.changed]
    if len(rows) > 1 and changed:
        others = ", ".join(
            f"{' and '.join(row.winners)} under {row.rule} grades ({row.measure})"
            for row in changed
        )
        verdict = f"Another retriever has the highest mean under other rules: {others}."
    elif len(rows) > 1:
        have = "has" if len(rows[0].winners) == 1 else "share"
        verdict = f"{' and '.join(rows[0].winners)} {have} the highest mean under each of these {len(rows)} readings."
    else:
        verdict = ""
    return (
        {"verdict": verdict, "changed": bool(changed), "rows": rows}
        if verdict
        else None
    )


KINDS = {
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
INTERNAL = (
    "cached_tokens",
    "shared_hits",
    "exact_hits",
    "shared_hits_at_10",
    "exact_hits_at_10",
)
"""Counts that other sections show as costs and as recall; high ones are no problem."""
IDS = 20
"""Most ids of one kind, or values of one field, that are listed."""


def section(view: View) -> Section:
    """Warnings of the run and of the labels; all counts are in one fold."""
    other = readings(view)
    notes = [*screen_of(view).alerts, *caveats(view, other)]
    known = {
        "readings": other,
        "ceilings": _ceilings(view),
        "labels": labels(view),
        "counted": integrity(view),
    }
    return Section("trust", "Trust", {"notes": notes, **known, "data": data(view)})


def _ceilings(view: View) -> list[str]:
    found, evaluation = view.evaluation.ceilings, view.evaluation
    return (
        []
        if found is None
        else ceiling_sentences(found, view.primary, evaluation.means[evaluation.leader])
    )


def caveats(view: View, other: Mapping[str, Any] | None) -> list[str]:
    """Warnings of the run, intervals that are too short, biased labels, another winner under other rules."""
    notes = [text.visible(warning) for warning in view.manifest.warnings]
    failed = view.manifest.failed.items()
    notes += [
        f"{name} failed and is not compared: {text.visible(error)}"
        for name, error in failed
    ]
    if view.resolved.baseline and view.baseline is None:
        notes.append(
            f"The baseline {view.resolved.baseline} failed: all pairs were compared instead."
        )
    if parse(view.primary).get("ideal") in ("retrieved", "retrieved-all"):
        notes.append(
            "The ideal of the primary measure is what was retrieved: one relevant document at rank 1 scores 1, "
            "however much was missed."
        )
    rows = view.comparisons[view.primary]
    few = [row for row in rows if 0 < row.wins + row.losses < FEWEST]
    if few:
        pairs = join(
            [f"{row.a} and {row.b}" for row in few[:3]]
            + (["other pairs"] if few[3:] else [])
        )
        notes.append(
            f"Fewer than {FEWEST} queries differ between {pairs}: the intervals there are likely too short."
        )
    others = [
        row for row in rows if view.evaluation.reference not in (row.a, row.b)
    ]  # others than the board's
    notes += [opposite_warning(others, view.settings), *_judged(view)]
    if other and other["changed"]:
        notes.append(other["verdict"])
    return list(filter(None, notes))


def _judged(view: View) -> list[str]:
    """Whether missing labels may favour a retriever; a measure by claims needs no document labels."""
    if parse(view.primary).claimed:
        return []
    if (
        not view.table.tells_unjudged
    ):  # then Judged equals precision, and does not show pooling
        return [
            "Labels name relevant documents only; every other document counts as irrelevant. "
            "That favours retrievers whose results were read during labelling."
        ]
    return [
        warning_sentence(one)
        for one in view.evaluation.warnings
        if one.kind is WarningKind.JUDGED_GAP
    ]


def labels(view: View) -> dict[str, Any] | None:
    """Judged@k of each retriever, and the labellers; None without labels."""
    if parse(view.primary).claimed:
        return None
    sources = [labelled.labels.source for labelled in view.results.queries.values()]
    return {
        **{one: sources.count(one) for one in ("people", "model", "mixed")},
        "alone": not view.settings.by_people,
    }


def integrity(view: View) -> dict[str, Any]:
    """The ledger: what was excluded, truncated, empty, tied or retried, for the data and each retriever."""
    counts: dict[str, dict[str, float]] = {}
    ids: dict[str, dict[str, Sequence[str]]] = {}
    for name in view.retrievers:
        ledger = inherited(view.manifest, name)
        for kind, noted in ledger.notes.items():
            counts.setdefault(_called(kind), {})[name] = len(noted)
            ids.setdefault(_called(kind), {})[name] = noted[:IDS]
        for of_stage in ledger.counts.values():
            for kind, number in of_stage.items():
                if kind not in INTERNAL:
                    row = counts.setdefault(_called(kind), {})
                    row[name] = row.get(name, 0) + number
    for name, answers in view.answers.items():
        counts.setdefault(f"queries tied at rank {view.cutoff}", {})[name] = (
            answers.tied
        )
        counts.setdefault(f"queries with fewer than {view.cutoff} hits", {})[name] = (
            answers.short
        )
    found = {kind: numbers for kind, numbers in counts.items() if any(numbers.values())}
    return {
        "dataset": [
            (_called(kind), len(noted), noted[:IDS])
            for kind, noted in view.manifest.ledger.dataset.items()
        ],
        "counts": counts,
        "cut": KINDS["truncated"] in found,
        "found": found,
        "clean": [
            kind for kind, numbers in counts.items() if not any(numbers.values())
        ],
        "ids": ids,
        "unjudged": unjudged(view),
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
        f"Measures by claims rest on {counted(int(judge['verdicts']), 'verdict')} of the judge {judge['judge']} on "
        f"{counted(int(judge['claims']), 'claim')} of {int(judge['queries']):,} of {count(queries)}, "
        f"{int(judge['unreadable']):,} of them unreadable{trust}. They are undefined for the other queries."
    )


def unjudged(view: View) -> dict[str, float]:
    """Retriever -> share of its hits within the primary cutoff without a label, a mean over queries with a hit.

    Empty if labels list relevant documents only: then no label and irrelevant are the same.
    """
    if not view.table.tells_unjudged:
        return {}
    return {
        name: 1 - view.evaluation.judged[name]
        for name in view.retrievers
        if name in view.evaluation.judged
    }


def _called(kind: str) -> str:
    return KINDS.get(kind, kind.replace("_", " ").replace("-", " "))


def data(view: View) -> dict[str, Any]:
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
            (key, values.most_common(IDS), len(values))
            for key, values in fields.items()
        ],
        "relevance": view.resolved.relevance,
    }


def _five(values: Sequence[int]) -> list[float]:
    """Minimum, median, maximum."""
    return np.quantile(values, [0, 0.5, 1]).tolist() if values else []


PLACES = {70: section}

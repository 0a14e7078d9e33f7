"""What to know before the verdict is believed: labels, judged claims, what was counted, the data."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from harness.english import count, counted, join
from harness.evaluation.evaluation import WarningKind
from harness.evaluation.wording import ceiling_sentences, opposite_warning, warning_sentence
from harness.measures import parse
from harness.records import Manifest, RetrieverLedger
from harness.report import text
from harness.report.elements import Section
from harness.report.readings import readings
from harness.report.sections.decision import screen_of
from harness.report.view import View
from harness.stats.power import FEWEST

PLACE = 70

KINDS = {
    "truncated": "truncated documents",
    "truncated-query": "truncated queries",
    "truncated-pair": "queries with a truncated pair",
    "empty": "empty documents",
    "zero-vector": "documents with zero vectors",
    "zero-vector-query": "queries with zero vectors",
    "not-in-corpus": "hits with unknown ids",
    "matched-hit": "ids of hits that were matched by file name, folder or title",
    "not-answered-query": "queries that the saved run lacks",
    "repeated-hit-query": "queries answered with a document twice",
    "nothing-matches-query": "queries whose filter no document matches",
    "no-hit-query": "queries with which no document that is searched shares a dimension of its sparse vector",
    "collapsed": "hits beside another of the same page, file or section",
    "lost_tokens": "tokens lost by truncation",
    "retries": "retries",
    "unanswered": "requests without a usable answer, which may be billed: their cost is an estimate",
}
"""What a ledger's kinds are called; any other kind is shown under its own name."""
INTERNAL = ("cached_tokens", "shared_hits", "exact_hits", "shared_hits_at_10", "exact_hits_at_10")
"""Counts that other sections show as costs and as recall: nothing is wrong where they are high."""
IDS = 20
"""Ids of one kind, or values of one field, that are listed."""


def section(view: View) -> Section:
    """Warnings of the run and of the labels; in one fold all that was looked at."""
    other = readings(view)
    notes = [*screen_of(view).alerts, *caveats(view, other)]
    known = {"readings": other, "ceilings": _ceilings(view), "labels": labels(view), "counted": integrity(view)}
    return Section("trust", "Trust", {"notes": notes, **known, "data": data(view)})


def _ceilings(view: View) -> list[str]:
    found, evaluation = view.evaluation.ceilings, view.evaluation
    return [] if found is None else ceiling_sentences(found, view.primary, evaluation.means[evaluation.leader])


def caveats(view: View, other: Mapping[str, Any] | None) -> list[str]:
    """Warnings of the run, short intervals, labels that may favour someone, another winner under other readings."""
    notes = [text.visible(warning) for warning in view.manifest.warnings]
    failed = view.manifest.failed.items()
    notes += [f"{name} failed and is not compared: {text.visible(error)}" for name, error in failed]
    if view.resolved.baseline and view.baseline is None:
        notes.append(f"The baseline {view.resolved.baseline} failed: all pairs were compared instead.")
    if parse(view.primary).get("ideal") in ("retrieved", "retrieved-all"):
        notes.append(
            "The ideal of the primary measure is what was retrieved: one relevant document at rank 1 scores 1, "
            "however much was missed."
        )
    rows = view.comparisons[view.primary]
    few = [row for row in rows if 0 < row.wins + row.losses < FEWEST]
    if few:
        pairs = join([f"{row.a} and {row.b}" for row in few[:3]] + (["other pairs"] if few[3:] else []))
        notes.append(f"Fewer than {FEWEST} queries differ between {pairs}: the intervals there are likely too short.")
    others = [row for row in rows if view.evaluation.reference not in (row.a, row.b)]  # the board's are told above
    notes += [opposite_warning(others, view.settings), *_judged(view)]
    if other:
        notes += [other["verdict"] if other["changed"] else "", other["by_people"]]
    return list(filter(None, notes))


def _judged(view: View) -> list[str]:
    """Whether unjudged documents may favour someone; a measure by claims needs no judged documents."""
    if parse(view.primary).claimed:
        return []
    if not view.table.tells_unjudged:  # Judged is precision then, and says nothing of pooling
        return [
            "The labels name relevant documents only: every other document counts as irrelevant, read or not. "
            "That favours retrievers whose results were read when the labels were made."
        ]
    return [warning_sentence(one) for one in view.evaluation.warnings if one.kind is WarningKind.JUDGED_GAP]


def labels(view: View) -> dict[str, Any] | None:
    """Judged@k beside each mean, and who judged; None without labels."""
    if parse(view.primary).claimed:
        return None
    sources = [labelled.labels.source for labelled in view.results.queries.values()]
    return {**{one: sources.count(one) for one in ("people", "model", "mixed")}, "alone": not view.settings.by_people}


def integrity(view: View) -> dict[str, Any]:
    """The ledger: what was left out, cut, empty, tied or tried again, for the data and for each retriever."""
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
        counts.setdefault(f"queries tied at rank {view.cutoff}", {})[name] = answers.tied
        counts.setdefault(f"queries with fewer than {view.cutoff} hits", {})[name] = answers.short
    found = {kind: numbers for kind, numbers in counts.items() if any(numbers.values())}
    return {
        "dataset": [(_called(kind), len(noted), noted[:IDS]) for kind, noted in view.manifest.ledger.dataset.items()],
        "counts": counts,
        "cut": KINDS["truncated"] in found,
        "found": found,
        "clean": [kind for kind, numbers in counts.items() if not any(numbers.values())],
        "ids": ids,
        "unjudged": unjudged(view),
        "claims": claims_sentence(view.manifest.judge, view.n),
    }


def claims_sentence(judge: Mapping[str, str], queries: int) -> str:
    """Who judged claims, how much, and how far to trust it; "" where nobody did.

    >>> claims_sentence({}, 138)
    ''
    """
    if "verdicts" not in judge:
        return ""
    weak = judge["judge"].startswith("lexical")
    trust = "; it compares words and no meaning: a weak judge, which misses paraphrases" if weak else ""
    return (
        f"Measures by claims rest on {counted(int(judge['verdicts']), 'verdict')} of the judge {judge['judge']} on "
        f"{counted(int(judge['claims']), 'claim')} of {int(judge['queries']):,} of {count(queries)}, "
        f"{int(judge['unreadable']):,} of them unreadable{trust}. They are undefined for the other queries."
    )


def unjudged(view: View) -> dict[str, float]:
    """Retriever -> share of its hits within the primary cutoff that nobody judged, a mean over queries with a hit.

    Empty where only relevant documents are listed: there nothing tells an unjudged document from an irrelevant one.
    """
    if not view.table.tells_unjudged:
        return {}
    return {name: 1 - view.evaluation.judged[name] for name in view.retrievers if name in view.evaluation.judged}


def inherited(manifest: Manifest, retriever: str) -> RetrieverLedger:
    """Return a retriever's ledger with those of all that it uses: ids once, counts summed."""
    notes: dict[str, tuple[str, ...]] = {}
    counts: dict[str, dict[str, float]] = {}
    for part in manifest.resolved.parts(retriever):
        own = manifest.ledger.retrievers[part]
        for kind, noted in own.notes.items():
            notes[kind] = tuple(dict.fromkeys([*notes.get(kind, ()), *noted]))
        for stage, numbers in own.counts.items():
            row = counts.setdefault(stage, {})
            for kind, number in numbers.items():
                row[kind] = row.get(kind, 0) + number
    return RetrieverLedger(notes=notes, counts=counts)


def _called(kind: str) -> str:
    return KINDS.get(kind, kind.replace("_", " ").replace("-", " "))


def data(view: View) -> dict[str, Any]:
    """What the data set holds."""
    labels = [len([g for g in view.grades[qid].values() if g > 0]) for qid in view.ids]
    grades = Counter(grade for judged in view.grades.values() for grade in judged.values())
    lengths = [len(view.results.queries[qid].query.text) for qid in view.ids if qid in view.results.queries]
    fields: dict[str, Counter[str]] = {}
    for qid in view.ids:
        for key, value in view.results.queries[qid].query.fields.items():
            fields.setdefault(key, Counter()).update(part.strip() for part in str(value).split(","))
    return {
        "facts": view.manifest.dataset,
        "labels": _five(labels),
        "lengths": _five(lengths),
        "grades": sorted(grades.items(), reverse=True)[:30],
        "fields": [(key, values.most_common(IDS), len(values)) for key, values in fields.items()],
        "relevance": view.resolved.relevance,
    }


def _five(values: Sequence[int]) -> list[float]:
    """Minimum, median, maximum."""
    return np.quantile(values, [0, 0.5, 1]).tolist() if values else []

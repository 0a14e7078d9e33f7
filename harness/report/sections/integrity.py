"""What was counted: what was left out, cut, empty, tied or tried again."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from harness.answers.judge_trust import by_person
from harness.measures import parse
from harness.records import FOLDER, Manifest, RetrieverLedger
from harness.report.figures import Section
from harness.report.view import View

PLACE = 73

KINDS = {
    "truncated": "truncated documents",
    "truncated-query": "truncated queries",
    "truncated-pair": "queries with a truncated pair",
    "empty": "empty documents",
    "zero-vector": "documents with zero vectors",
    "zero-vector-query": "queries with zero vectors",
    "not-in-corpus": "hits that are no document of the data set",
    "not-answered-query": "queries that the saved run lacks",
    "repeated-hit-query": "queries answered with a document twice",
    "nothing-matches-query": "queries whose filter no document matches",
    "no-hit-query": "queries with which no document that is searched shares a dimension of its sparse vector",
    "collapsed": "hits beside another of the same page, file or section",
    "lost_tokens": "tokens lost by truncation",
    "retries": "retries",
    "unanswered": "requests without a usable answer, which may be billed: their cost is an estimate",
    "imported": "texts whose vectors were read from the place of [vectors]",
    "probed": "cached texts embedded again",
    "moved": "cached texts whose vectors have moved",
    "companions_probed": "pairs scored twice, to see whether companions change a score",
    "listwise": "rerankings cached by list, since a score depends on its companions",
}
"""What a ledger's kinds are called; any other kind is shown under its own name."""
INTERNAL = ("cached_tokens", "shared_hits", "exact_hits", "shared_hits_at_10", "exact_hits_at_10")
"""Counts that other sections show as costs and as recall: nothing is wrong where they are high."""
IDS = 20
"""Ids that are listed of one kind."""


def section(view: View) -> Section:
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
    return Section(
        "integrity",
        "Counted on the way",
        {
            "dataset": [
                (_called(kind), len(noted), noted[:IDS]) for kind, noted in view.manifest.ledger.dataset.items()
            ],
            "counts": {kind: numbers for kind, numbers in counts.items() if any(numbers.values())},
            "clean": [kind for kind, numbers in counts.items() if not any(numbers.values())],
            "ids": ids,
            "unjudged": unjudged(view),
            "claims": claims_sentence(view.manifest.judge, view.n, bool(by_person(view.results.folder / FOLDER))),
        },
        within="trust",
    )


def claims_sentence(judge: Mapping[str, str], queries: int, checked: bool = False) -> str:
    """Who judged claims, how much, and how far to trust it; "" where nobody did.

    >>> claims_sentence({}, 138)
    ''
    """
    if "verdicts" not in judge:
        return ""
    weak = judge["judge"].startswith("lexical")
    trust = (
        "it compares words and no meaning: a weak judge, which misses paraphrases"
        if weak
        else "how far people agree with it stands under Judged claims"
        if checked
        else "no person has checked a sample of its verdicts here"
    )
    return (
        f"Measures by claims rest on {int(judge['verdicts']):,} verdicts of the judge {judge['judge']} on "
        f"{int(judge['claims']):,} claims of {int(judge['queries']):,} of {queries:,} queries, "
        f"{int(judge['unreadable']):,} of them unreadable; {trust}. They are undefined for the other queries."
    )


def unjudged(view: View) -> dict[str, float]:
    """Retriever -> share of its hits within the primary cutoff that nobody judged, a mean over the queries.

    Empty where only relevant documents are listed: there nothing tells an unjudged document from an irrelevant one.
    """
    if parse(view.primary).claimed or all(grade > 0 for judged in view.grades.values() for grade in judged.values()):
        return {}
    return {name: 1 - math.fsum(answers.judged) / view.n for name, answers in view.answers.items()}


def inherited(manifest: Manifest, retriever: str) -> RetrieverLedger:
    """Return a retriever's ledger with those of all that it is made of: ids once, counts summed."""
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

"""What of a run deserves a warning."""

from collections import Counter
from collections.abc import Iterator

from harness.evaluation.evaluation import Evaluation
from harness.evaluation.warnings import RunWarning, WarningKind
from harness.measures import parse_measure
from harness.records import Manifest
from harness.scoring.scores import Scores
from harness.stats.differences import is_fragile

MIN_TRUNCATED_SHARE = 0.05
"""The first screen warns from this share of truncated documents on."""
MIN_UNKNOWN_SHARE = 0.05
"""Share of a retriever's hits that are not documents of the data set, from which on the first screen says so."""
MIN_UNJUDGED_SHARE = 0.1
"""The first screen warns from this share of first hits without a label on."""
MAX_JUDGED_GAP = 0.1
"""Difference of mean Judged@k above which the judgments may favour the better judged of two retrievers."""


def run_warnings(
    manifest: Manifest, found: Evaluation, scores: Scores
) -> Iterator[RunWarning]:
    """Yield the warnings of a run, the gravest first.

    Args:
        manifest: what was counted.
        found: whose means lead.
        scores: with the shares of judged hits.
    """
    yield from _half_read(manifest)
    yield from _foreign_hits(manifest)
    cutoff = parse_measure(found.measure).cutoff or manifest.resolved.depth
    if scores.has_irrelevant_labels:
        yield from judged_warnings(
            {
                name: scores.judged_shares[name]
                for name in found.means
                if name in scores.judged_shares
            },
            cutoff,
        )
    if number := len(manifest.ledger.dataset.get("clicked-label", ())):
        yield RunWarning(WarningKind.CLICKS, (), (number,))


def judged_warnings(shares: dict[str, float], cutoff: int) -> Iterator[RunWarning]:
    """Yield whose hits were judged otherwise than the leader's, where that is much; and whose hits have no labels.

    Args:
        shares: retriever -> share of its first hits that are judged, that of the best mean first.
        cutoff: hits of a query that were looked at.
    """
    if not shares:
        return
    leader, first = next(iter(shares.items()))
    for name, share in shares.items():
        if abs(share - first) > MAX_JUDGED_GAP + 1e-10:
            pair = (leader, name) if first > share else (name, leader)
            yield RunWarning(
                WarningKind.JUDGED_GAP, pair, (max(first, share), min(first, share))
            )
    worst = min(shares, key=lambda name: shares[name])
    if 1 - shares[worst] >= MIN_UNJUDGED_SHARE:
        yield RunWarning(
            WarningKind.UNJUDGED,
            (worst, leader),
            (1 - shares[worst], 1 - first, cutoff),
        )


def fragile_warnings(scores: Scores, found: Evaluation) -> Iterator[RunWarning]:
    """Yield the pairs of the first screen whose verdict a few queries with a large loss would undo."""
    group, units, span = (
        scores.values[scores.primary],
        scores.units,
        scores.span_of(scores.primary),
    )
    pairs = (
        found.baseline_comparisons
        if found.baseline
        else found.leader_comparisons.values()
    )
    shown = [(row.a, row.b) for row in pairs if row.verdict.shows_difference]
    if found.sweep is not None:
        shown = [(found.sweep.chosen, found.sweep.default)] if found.sweep.beats else []
    for a, b in shown:
        if is_fragile(units.means(group[a] - group[b]), span):
            yield RunWarning(WarningKind.FRAGILE, (a, b))


def _half_read(manifest: Manifest) -> Iterator[RunWarning]:
    """Models that read only the beginning of many documents, with the retrievers that use them."""
    documents, resolved = manifest.dataset.documents, manifest.resolved
    cut = {
        name: number / documents
        for name in manifest.finished
        if resolved.retriever_tables[name].get("derived_from")
        not in manifest.finished  # else the other is told
        and (number := len(manifest.ledger.retrievers[name].notes.get("truncated", ())))
        and number >= MIN_TRUNCATED_SHARE * documents
    }
    if cut:
        parts = {
            name: resolved.retriever_with_parts(name) for name in manifest.finished
        }
        models = {
            name: {
                *of,
                *(resolved.retriever_tables[part].get("derived_from") for part in of),
            }
            for name, of in parts.items()
        }
        names = tuple(
            dict.fromkeys(
                (*cut, *(name for name, of in models.items() if of & cut.keys()))
            )
        )
        yield RunWarning(
            WarningKind.HALF_READ, names, (min(cut.values()), max(cut.values()))
        )


def _foreign_hits(manifest: Manifest) -> Iterator[RunWarning]:
    """Retrievers with an index of their own whose ids were matched, or many of whose hits are unknown."""
    for name in manifest.finished:
        own = manifest.ledger.retrievers[name]
        counts = own.counts.get("search", {})
        foreign, hits = counts.get("foreign_hits", 0), counts.get("hits_given", 0)
        if foreign and foreign >= MIN_UNKNOWN_SHARE * hits:
            example = next(iter(own.notes.get("not-in-corpus", ())), "")
            yield RunWarning(
                WarningKind.UNKNOWN_HITS, (name,), (foreign, hits), (example,)
            )
        if matched := own.notes.get("matched-hit", ()):
            ways = Counter(one.rpartition("(by ")[2].rstrip(")") for one in matched)
            yield RunWarning(
                WarningKind.MATCHED_IDS,
                (name,),
                tuple(ways.values()),
                (*ways, matched[0]),
            )

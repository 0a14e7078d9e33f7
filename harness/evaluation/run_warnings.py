"""Warnings about a run."""

from collections import Counter
from collections.abc import Iterator, Mapping

from harness.evaluation.evaluation import Evaluation
from harness.evaluation.warnings import (
    ChangedAnswers,
    ClickLabels,
    EstimatedTokens,
    Fragile,
    HalfRead,
    JudgedGap,
    MatchedIds,
    NoHits,
    NoSharedWord,
    RisingScores,
    RunWarning,
    ShortContexts,
    TiedRun,
    Unjudged,
    UnknownHits,
    UnknownRepeatability,
    WholeDocuments,
)
from harness.measures import parse_measure
from harness.records import Manifest
from harness.records.facts import (
    SHORT_CONTEXT_NOTE,
    WHOLE_DOCUMENTS,
)
from harness.scoring.scores import Scores
from harness.stats.differences import is_fragile

MIN_TRUNCATED_SHARE = 0.05
"""Share of truncated documents from which on the first screen has a warning."""
MIN_UNKNOWN_SHARE = 0.05
"""Share of a retriever's hits with unknown ids from which on there is a warning."""
MIN_UNJUDGED_SHARE = 0.1
"""Share of first hits without a label from which on there is a warning."""
MAX_JUDGED_GAP = 0.1
"""Difference of mean Judged@k above which labels may favour the better judged."""
SHARE_TOLERANCE = 1e-10
"""Float noise of a difference of shares."""


def run_warnings(
    manifest: Manifest, evaluation: Evaluation, scores: Scores
) -> Iterator[RunWarning]:
    """Yield the warnings of a run, the most serious first.

    Args:
        manifest: with the counts of the run.
        evaluation: of the run; its means are in the order of the page.
        scores: with the shares of judged hits.
    """
    yield from _truncation_warnings(manifest)
    yield from _hit_id_warnings(manifest)
    yield from _returned_warnings(manifest)
    yield from _shared_word_warnings(manifest)
    if scores.has_irrelevant_labels:
        shares = {
            name: scores.judged_shares[name]
            for name in evaluation.means
            if name in scores.judged_shares
        }
        cutoff = parse_measure(evaluation.measure).cutoff or manifest.resolved.depth
        yield from judged_warnings(shares, cutoff)
    clicks = len(manifest.ledger.dataset.get("clicked-label", ()))
    if clicks:
        yield ClickLabels(clicks)
    yield from _trial_warnings(manifest)
    yield from _context_warnings(manifest)


def _context_warnings(manifest: Manifest) -> Iterator[RunWarning]:
    """Yield warnings about passages and token counts, if a measure reads passages."""
    measures = [parse_measure(name) for name in manifest.resolved.measures]
    if not any(measure.uses_passages for measure in measures):
        return
    undivided: list[str] = []
    for name in manifest.finished:
        answers = manifest.retrievers[name].provenance.answers
        if answers.passages == WHOLE_DOCUMENTS:
            undivided.append(name)
        notes = manifest.ledger.retrievers[name].notes
        short = len(notes.get(SHORT_CONTEXT_NOTE, ()))
        if short:
            yield ShortContexts(name, short)
    if undivided:
        yield WholeDocuments(tuple(undivided))
    counts_tokens = any(measure.tokens for measure in measures)
    token_budget = manifest.resolved.budget
    if counts_tokens and not (token_budget and token_budget.tokenizer):
        yield EstimatedTokens()


def _trial_warnings(manifest: Manifest) -> Iterator[RunWarning]:
    """Yield warnings about retrievers that may answer differently each time.

    Their answers changed when they were asked again, or nobody knows: they were asked
    only once.
    """
    unknown: list[str] = []
    for name, trials in trials_by_retriever(manifest).items():
        answers = manifest.retrievers[name].provenance.answers
        compared = answers.compared or 0
        if answers.changed:
            yield ChangedAnswers(name, answers.changed, compared)
        elif trials == 1 and not compared:
            unknown.append(name)
    if unknown:
        yield UnknownRepeatability(tuple(unknown))


def trials_by_retriever(manifest: Manifest) -> dict[str, int]:
    """Return how often each retriever was asked whose answers may differ each time."""
    trials: dict[str, int] = {}
    for name in manifest.finished:
        trial_count = manifest.retrievers[name].provenance.answers.trials
        if trial_count is not None:
            trials[name] = trial_count
    return trials


def judged_warnings(shares: Mapping[str, float], cutoff: int) -> Iterator[RunWarning]:
    """Yield warnings about hits without labels, and about unevenly labelled ones.

    The latter are retrievers whose hits have many more, or fewer, labels than the
    leader's.

    Args:
        shares: retriever -> share of its first hits that are judged, that of the best
            mean first.
        cutoff: how many hits of a query are first.
    """
    if not shares:
        return
    leader = next(iter(shares))
    leader_share = shares[leader]
    for name, share in shares.items():
        if abs(share - leader_share) > MAX_JUDGED_GAP + SHARE_TOLERANCE:
            if leader_share > share:
                yield JudgedGap(leader, name, leader_share, share)
            else:
                yield JudgedGap(name, leader, share, leader_share)
    worst = min(shares, key=shares.__getitem__)
    unjudged = 1 - shares[worst]
    if unjudged >= MIN_UNJUDGED_SHARE:
        yield Unjudged(
            worst, leader, unjudged, leader_share=1 - leader_share, cutoff=cutoff
        )


def fragile_warnings(scores: Scores, evaluation: Evaluation) -> Iterator[RunWarning]:
    """Yield the pairs whose verdict three queries of the largest loss would reverse."""
    span = scores.span_of(scores.primary)
    units = len(scores.units)
    for a, b in _shown_pairs(evaluation):
        difference = evaluation.means[a] - evaluation.means[b]
        if is_fragile(units * difference, span):
            yield Fragile(a, b)


def _shown_pairs(evaluation: Evaluation) -> list[tuple[str, str]]:
    """Return the pairs of the first screen that are shown to differ."""
    sweep = evaluation.sweep
    if sweep is not None:
        return [(sweep.chosen, sweep.default)] if sweep.beats else []
    rows = evaluation.baseline_comparisons
    if not evaluation.baseline:
        rows = tuple(evaluation.leader_comparisons.values())
    if evaluation.is_chosen and not evaluation.baseline:
        return [(evaluation.leader, name) for name in evaluation.shown_worse]
    return [(row.a, row.b) for row in rows if row.verdict.shows_difference]


def _returned_warnings(manifest: Manifest) -> Iterator[RunWarning]:
    """Yield the retrievers without hits, or whose scores contradict their ranks."""
    # Notes are of all queries that were searched, `queries` of those with labels: so no
    # count of notes may be above what it is said to be a part of.
    queries = manifest.dataset.queries
    dataset = manifest.ledger.dataset
    unscored = {
        *dataset.get("unanswerable-query", ()),
        *dataset.get("unlabelled-query", ()),
    }
    for name in manifest.finished:
        notes = manifest.ledger.retrievers[name].notes
        without = [
            query_id
            for query_id in notes.get("not-answered-query", ())
            if query_id not in unscored
        ]
        if without:
            yield NoHits(name, len(without), max(len(without), queries), without[0])
        tied = len(notes.get("tied-run-query", ()))
        if tied:
            yield TiedRun(name, tied, max(tied, queries))
        rising = len(notes.get("rising-run-query", ()))
        if rising:
            yield RisingScores(name, rising, max(rising, queries))


def _shared_word_warnings(manifest: Manifest) -> Iterator[RunWarning]:
    """Yield a warning if the words of some queries are in no document."""
    ids = dict.fromkeys(manifest.ledger.dataset.get("no-shared-word", ()))
    for name in manifest.finished:
        notes = manifest.ledger.retrievers[name].notes
        ids |= dict.fromkeys(notes.get("no-shared-word", ()))
    if ids:
        yield NoSharedWord(len(ids), manifest.dataset.queries, tuple(ids))


def _truncation_warnings(manifest: Manifest) -> Iterator[RunWarning]:
    """Yield a warning if retrievers or their parts read only the start of documents."""
    shares = _truncated_shares(manifest)
    if not shares:
        return
    names = dict.fromkeys(shares)
    for name in manifest.finished:
        if _used_retrievers(name, manifest) & shares.keys():
            names[name] = None
    lowest = min(shares.values())
    highest = max(shares.values())
    yield HalfRead(tuple(names), lowest, highest)


def _truncated_shares(manifest: Manifest) -> dict[str, float]:
    """Return the share of truncated documents of each retriever with many of them."""
    documents = manifest.dataset.documents
    shares: dict[str, float] = {}
    for name in manifest.finished:
        retriever = manifest.resolved.retriever_by_name[name]
        if retriever.derived_from in manifest.finished:
            continue  # the retriever that it is derived from has the warning
        notes = manifest.ledger.retrievers[name].notes
        truncated = len(notes.get("truncated", ()))
        if truncated and truncated >= MIN_TRUNCATED_SHARE * documents:
            shares[name] = truncated / documents
    return shares


def _used_retrievers(name: str, manifest: Manifest) -> set[str]:
    """Return a retriever's parts, and those that its parts are derived from."""
    retrievers = manifest.resolved.retriever_by_name
    used: set[str] = set()
    for part in manifest.resolved.retriever_with_parts(name):
        used.add(part)
        used.add(retrievers[part].derived_from)
    return used


def _hit_id_warnings(manifest: Manifest) -> Iterator[RunWarning]:
    """Yield the retrievers with many unknown ids, or ids that had to be matched."""
    for name in manifest.finished:
        quality = manifest.ledger.retrievers[name]
        counts = quality.counts.get("search", {})
        unknown = counts.get("foreign_hits", 0)
        hits = counts.get("hits_given", 0)
        if unknown and unknown >= MIN_UNKNOWN_SHARE * hits:
            example = next(iter(quality.notes.get("not-in-corpus", ())), "")
            yield UnknownHits(name, unknown, hits, example)
        matched = quality.notes.get("matched-hit", ())
        if matched:
            ways = Counter(map(_matched_by, matched))
            yield MatchedIds(name, tuple(ways.values()), tuple(ways), matched[0])


def _matched_by(note: str) -> str:
    """Return how an id was matched, from a note that ends in "(by …)"."""
    return note.rpartition("(by ")[2].rstrip(")")

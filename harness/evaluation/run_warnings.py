"""Warnings about a run.

They are made from the counts and notes of its manifest, and from the shares of judged
hits. `fragile_warnings` need only scores; all others come from `run_warnings`. Their
words are in `warning_sentences`.
"""

from collections import Counter
from collections.abc import Iterator, Mapping

from harness.dataset.read_problems import unconverted_reasons
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
    UnconvertedFiles,
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
"""Share of truncated documents from which on there is a warning."""
MIN_UNKNOWN_SHARE = 0.05
"""Share of a retriever's hits with unknown ids from which on there is a warning."""
MIN_UNJUDGED_SHARE = 0.1
"""Share of first hits without a label from which on there is a warning."""
MAX_JUDGED_GAP = 0.1
"""Difference of mean Judged@k above which labels may favour the better judged."""
SHARE_TOLERANCE = 1e-10
"""Float noise of a difference of shares, or of a share of a count."""


def run_warnings(
    manifest: Manifest, evaluation: Evaluation, scores: Scores
) -> Iterator[RunWarning]:
    """Yield the warnings of a run, the most serious first, without `fragile_warnings`.

    Those are about single verdicts, and come before these.

    Args:
        manifest: with the counts and notes of the run.
        evaluation: of the run; its means are sorted, the best first.
        scores: with the shares of judged hits.
    """
    yield from _truncation_warnings(manifest)
    yield from _hit_id_warnings(manifest)
    yield from _returned_warnings(manifest)
    yield from _shared_word_warnings(manifest)
    yield from _unconverted_warnings(manifest)
    # If labels name relevant documents only, a hit without one may just be irrelevant.
    if scores.has_irrelevant_labels:
        shares = {
            name: scores.judged_shares[name]
            for name in evaluation.means
            if name in scores.judged_shares
        }
        cutoff = parse_measure(evaluation.measure).cutoff or manifest.resolved.depth
        yield from judged_warnings(shares, cutoff)
    clicked_queries = len(manifest.ledger.dataset.get("clicked-label", ()))
    if clicked_queries:
        yield ClickLabels(clicked_queries)
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
        short_contexts = len(notes.get(SHORT_CONTEXT_NOTE, ()))
        if short_contexts:
            yield ShortContexts(name, short_contexts)
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
    for name, trials in _trials_by_retriever(manifest).items():
        answers = manifest.retrievers[name].provenance.answers
        compared = answers.compared or 0
        if answers.changed:
            yield ChangedAnswers(name, answers.changed, compared)
        elif trials == 1 and not compared:
            unknown.append(name)
    if unknown:
        yield UnknownRepeatability(tuple(unknown))


def _trials_by_retriever(manifest: Manifest) -> dict[str, int]:
    """Return how often each retriever was asked.

    Only those that finished and may answer differently each time.
    """
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
        shares: retriever -> share of its first hits that are judged; the retriever of
            the best mean, the leader, comes first.
        cutoff: how many hits of a query are its first hits.
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
    unjudged_share = 1 - shares[worst]
    if unjudged_share >= MIN_UNJUDGED_SHARE - SHARE_TOLERANCE:
        yield Unjudged(
            worst,
            leader,
            unjudged_share,
            unjudged_share_of_leader=1 - leader_share,
            cutoff=cutoff,
        )


def fragile_warnings(scores: Scores, evaluation: Evaluation) -> Iterator[RunWarning]:
    """Yield a warning for each shown difference that three queries could reverse.

    That is, three further queries (or clusters) with the largest possible loss.
    """
    span = scores.span_of(scores.primary)
    units = len(scores.units)
    for a, b in _shown_pairs(evaluation):
        difference = evaluation.means[a] - evaluation.means[b]
        if is_fragile(units * difference, span):
            yield Fragile(a, b)


def _shown_pairs(evaluation: Evaluation) -> list[tuple[str, str]]:
    """Return the pairs that the verdict is about and that are shown to differ.

    A sweep is about its choice and the default, a declared baseline about the others
    and it, else the leader and the others.
    """
    sweep = evaluation.sweep
    if sweep is not None:
        return [(sweep.chosen, sweep.default)] if sweep.beats else []
    if evaluation.baseline:
        rows = evaluation.baseline_comparisons
    elif evaluation.is_chosen:
        return [(evaluation.leader, name) for name in evaluation.shown_worse]
    else:
        rows = tuple(evaluation.leader_comparisons.values())
    return [(row.a, row.b) for row in rows if row.verdict.shows_difference]


def _returned_warnings(manifest: Manifest) -> Iterator[RunWarning]:
    """Yield warnings about queries without hits, with equal scores, or rising ones."""
    # "2 of 40 queries": 40 were searched, but notes name any query of a saved run. So
    # the total is raised where notes name more than it.
    queries = manifest.dataset.queries
    dataset = manifest.ledger.dataset
    unscored = {
        *dataset.get("unanswerable-query", ()),
        *dataset.get("unlabelled-query", ()),
    }
    for name in manifest.finished:
        notes = manifest.ledger.retrievers[name].notes
        without_hits = [
            query_id
            for query_id in notes.get("not-answered-query", ())
            if query_id not in unscored
        ]
        if without_hits:
            total = max(len(without_hits), queries)
            yield NoHits(name, len(without_hits), total, without_hits[0])
        tied = len(notes.get("tied-run-query", ()))
        if tied:
            yield TiedRun(name, tied, max(tied, queries))
        rising = len(notes.get("rising-run-query", ()))
        if rising:
            yield RisingScores(name, rising, max(rising, queries))


def _shared_word_warnings(manifest: Manifest) -> Iterator[RunWarning]:
    """Yield a warning if the words of some queries are in no document."""
    query_ids = dict.fromkeys(manifest.ledger.dataset.get("no-shared-word", ()))
    for name in manifest.finished:
        notes = manifest.ledger.retrievers[name].notes
        query_ids |= dict.fromkeys(notes.get("no-shared-word", ()))
    if query_ids:
        yield NoSharedWord(len(query_ids), manifest.dataset.queries, tuple(query_ids))


def _unconverted_warnings(manifest: Manifest) -> Iterator[RunWarning]:
    """Yield a warning if files of the data set could not be converted."""
    notes = manifest.ledger.dataset.get("unconverted-file", ())
    if notes:
        yield UnconvertedFiles(tuple(unconverted_reasons(notes)))


def _truncation_warnings(manifest: Manifest) -> Iterator[RunWarning]:
    """Yield one warning if retrievers read only the start of documents.

    It names those that do, then those that use them.
    """
    shares = _truncated_shares(manifest)
    if not shares:
        return
    names = dict.fromkeys(shares)
    for name in manifest.finished:
        if _used_retrievers(name, manifest) & shares.keys():
            names.setdefault(name)
    lowest = min(shares.values())
    highest = max(shares.values())
    yield HalfRead(tuple(names), lowest, highest)


def _truncated_shares(manifest: Manifest) -> dict[str, float]:
    """Return the share of truncated documents of each retriever with many of them."""
    documents = manifest.dataset.documents
    shares: dict[str, float] = {}
    for name in manifest.finished:
        retriever = manifest.resolved.retriever_by_name[name]
        # Cut or quantized vectors are of the same texts: the retriever that they are
        # derived from has the warning. (Most are derived from none: "".)
        if retriever.derived_from in manifest.finished:
            continue
        notes = manifest.ledger.retrievers[name].notes
        truncated = len(notes.get("truncated", ()))
        least = MIN_TRUNCATED_SHARE * documents - SHARE_TOLERANCE
        if truncated and truncated >= least:
            shares[name] = truncated / documents
    return shares


def _used_retrievers(name: str, manifest: Manifest) -> set[str]:
    """Return a retriever, its parts, and those that these are derived from, if any."""
    retrievers = manifest.resolved.retriever_by_name
    used: set[str] = set()
    for part in manifest.resolved.retriever_with_parts(name):
        used.add(part)
        used.add(retrievers[part].derived_from)  # "", no retriever, for most
    return used


def _hit_id_warnings(manifest: Manifest) -> Iterator[RunWarning]:
    """Yield warnings about hits whose ids are unknown, or had to be matched.

    An id is unknown if no document has it, also after matching: the ledger counts all
    such hits as "foreign_hits" and notes some of their ids as "not-in-corpus".
    """
    for name in manifest.finished:
        quality = manifest.ledger.retrievers[name]
        counts = quality.counts.get("search", {})
        unknown = counts.get("foreign_hits", 0)
        hits = counts.get("hits_given", 0)
        if unknown and unknown >= MIN_UNKNOWN_SHARE * hits - SHARE_TOLERANCE:
            example = next(iter(quality.notes.get("not-in-corpus", ())), "")
            yield UnknownHits(name, unknown, hits, example)
        matched = quality.notes.get("matched-hit", ())
        if matched:
            counts_by_way = Counter(map(_matched_by, matched))
            ways = tuple(counts_by_way)
            yield MatchedIds(name, tuple(counts_by_way.values()), ways, matched[0])


def _matched_by(note: str) -> str:
    """Return how an id was matched, from a note that ends in "(by …)"."""
    return note.rpartition("(by ")[2].rstrip(")")

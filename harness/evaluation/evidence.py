"""Beside the verdicts: what rankings have in common, queries that nothing answers, warnings of the run."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from shlex import quote
from typing import Any, NamedTuple

import numpy as np

from harness.english import counted
from harness.evaluation.evaluation import (
    Abstention,
    AbstentionPair,
    Evaluation,
    RunWarning,
    ScoreFloor,
    WarningKind,
)
from harness.evaluation.grading import Judgments
from harness.evaluation.readers import lists_of
from harness.evaluation.scores import Lists, Scores
from harness.measures import parse
from harness.records import Manifest, Results
from harness.stats.agreement import mean_overlap
from harness.stats.differences import Floats, differences, fragile
from harness.stats.paired_tests import area, compare_areas
from harness.stats.signed_rank import effect_size
from retrievers.types import Query, Ranking

CUTOFF = 10
"""First hits: what rankings have in common, what is judged; a success, where the primary measure has no cutoff."""


class RankingsOverlap(NamedTuple):
    """Two retrievers, over all queries that both answered."""

    a: str
    b: str
    common: float
    """The mean number of documents that are among the first ten of both."""
    rbo: float
    """The mean rank-biased overlap of the two lists, p = 0.9, as if both went on agreeing: 1 for the same list."""
    same_first: float
    """The share of the queries with the same first document."""
    top: float
    """The mean share of the first ten in common; of shorter lists, of as many as the longer one has."""


def overlaps(results: Results) -> Iterator[RankingsOverlap]:
    """Compare each two retrievers of a results folder, in the experiment's order."""
    lists = {name: read() for name, read in lists_of(results).items()}
    for a, b in combinations(lists, 2):
        yield overlap_of(a, b, lists)


def overlap_of(a: str, b: str, lists: Mapping[str, Lists]) -> RankingsOverlap:
    """Compare two retrievers.

    Args:
        a: one of them.
        b: the other.
        lists: retriever -> query id -> document ids, best first.
    """
    pairs = [
        (lists[a][query], lists[b][query]) for query in lists[a] if query in lists[b]
    ]
    n = len(pairs) or 1
    return RankingsOverlap(
        a,
        b,
        common=sum(len(set(x[:CUTOFF]) & set(y[:CUTOFF])) for x, y in pairs) / n,
        rbo=means.extrapolated if (means := mean_overlap(pairs)) else 0.0,
        same_first=sum(x[:1] == y[:1] for x, y in pairs) / n,
        top=means.top if means else 0.0,
    )


SECONDS = 20
"""What a person takes for a judgment."""


class ToJudge(NamedTuple):
    """What judging these rankings takes, and where it tells most."""

    pairs: int
    """Different documents among the first ten of any retriever, over all queries."""
    queries: tuple[tuple[str, int], ...]
    """Those whose rankings have least in common, each with its number of documents: at most ten."""

    @property
    def time(self) -> str:
        """At twenty seconds a judgment: minutes below an hour."""
        minutes = self.pairs * SECONDS / 60
        return (
            f"{minutes / 60:.1f} hours"
            if minutes >= 60
            else counted(max(1, round(minutes)), "minute")
        )


def to_judge(results: Results) -> ToJudge:
    """Count what people would judge, and name the queries on which the retrievers differ most."""
    pools: dict[str, set[str]] = {query: set() for query in results.queries}
    for read in lists_of(results).values():
        for query, documents in read().items():
            pools[query].update(documents[:CUTOFF])
    sizes = sorted(
        ((query, len(pool)) for query, pool in pools.items()),
        key=lambda one: (-one[1], one[0]),
    )
    return ToJudge(sum(size for _, size in sizes), tuple(sizes[:10]))


def next_step(results: Results) -> str:
    """What to do with rankings that have no labels."""
    n = len(results.queries)
    sample = f" --sample {min(n, 60)}" if n > 60 else ""
    # A run writes its page before its folder is put in place.
    folder = results.folder.with_name(results.folder.name.removesuffix(".unfinished"))
    return f"harness pool {quote(folder.as_posix())} --depth 10{sample} --seed 1"


MOST = 40_000
"""Pairs times queries that are looked at: about three seconds of one core at 2,000 queries."""


class PairEvidence(NamedTuple):
    """What there is to say about a pair beside its verdict, on the primary measure."""

    a: str
    b: str
    effect_size: float | None
    """The rank-biserial correlation; None where no query differs."""
    top_10_in_common: float | None
    """Share of the first ten, of the rankings as deep as they were kept; None where scores are all there is."""
    rbo: float | None
    """Rank-biased overlap of the same."""


def pairs_by_weight(
    names: Sequence[str], baseline: str | None, n: int, most: int = MOST
) -> list[tuple[str, str]]:
    """Return the pairs to look at: all, or as many as can be looked at, the leader's first, then the baseline's.

    Args:
        names: the retrievers by their means, highest first.
        baseline: the declared one.
        n: queries.
        most: pairs times queries.

    >>> pairs_by_weight(("a", "b", "c", "d"), "d", n=10, most=50)
    [('a', 'd'), ('a', 'b'), ('a', 'c'), ('b', 'd'), ('c', 'd')]
    """
    pairs = list(combinations(names, 2))
    leader = names[0] if names else ""
    pairs.sort(key=lambda pair: (leader not in pair, baseline not in pair))
    return pairs[: max(1, most // max(1, n))]


def evidence(scores: Scores, pairs: Sequence[tuple[str, str]]) -> list[PairEvidence]:
    """Return the evidence on pairs, compared or not.

    Args:
        scores: queries for which the primary measure is undefined for one are left out.
        pairs: whom to look at.
    """
    scores = scores.only(scores.defined(scores.primary))
    if not pairs or not scores.n:
        return []
    units, group = scores.units, scores.values[scores.primary]
    lists = {
        name: scores.lists[name]()
        for name in {name for pair in pairs for name in pair}
        if name in scores.lists
    }
    found = []
    for a, b in pairs:
        size = effect_size(differences(units.means(group[a]), units.means(group[b])))
        both = overlap_of(a, b, lists) if a in lists and b in lists else None
        found.append(PairEvidence(a, b, size, both and both.top, both and both.rbo))
    return found


KEPT = 0.95
"""Share of the answerable queries that succeed which a floor keeps."""
FOLDS = 5


def comparable(tables: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """The retrievers whose scores mean the same for every query: cosines, cross-encoders, declared ones."""
    return tuple(
        table["name"]
        for table in tables
        if table.get("comparable_scores")
        or (table.get("rerank") or table).get("kind") in ("cross-encoder", "dense")
    )


def abstention_of(
    queries: Mapping[str, Query],
    grades: Judgments,
    rankings: Mapping[str, Mapping[str, Ranking]],
    cutoff: int,
    level: float,
) -> Abstention | None:
    """Return what the best score of each ranking says; None without queries of both sorts, or without rankings.

    Args:
        queries: those that were asked and are answerable, with a relevant document, or said not to be.
        grades: query id -> document id -> grade.
        rankings: retriever -> query id -> its answer, of retrievers whose scores can be compared between queries.
        cutoff: hits among which a relevant one is a success.
        level: confidence of the intervals.
    """
    asked = [queries[query] for query in sorted(queries)]
    positives = [
        query.id for query in asked if not query.unanswerable and grades.get(query.id)
    ]
    negatives = [query.id for query in asked if query.unanswerable]
    if not positives or not negatives or not rankings:
        return None
    best = {
        name: (_best(of, positives), _best(of, negatives))
        for name, of in rankings.items()
    }
    floors = []
    for name, of in rankings.items():
        hits = np.array(
            [
                _best_relevant(of.get(query), grades[query], cutoff)
                for query in positives
            ]
        )
        floors.append(
            ScoreFloor(
                name,
                *area(*best[name], level),
                _floor(hits),
                *_crossed(hits, best[name][1]),
            )
        )
    pairs = tuple(
        AbstentionPair(a, b, *compare_areas(best[a], best[b]))
        for a, b in combinations(best, 2)
    )
    return Abstention(len(positives), len(negatives), tuple(floors), pairs)


def _best(of: Mapping[str, Ranking], queries: Sequence[str]) -> Floats:
    """The best score of each query; -inf where nothing was returned."""
    found = (of.get(query) for query in queries)
    return np.array(
        [
            -np.inf if one is None or not len(one.scores) else one.scores[0]
            for one in found
        ]
    )


def _best_relevant(
    ranking: Ranking | None, judged: Mapping[str, int], cutoff: int
) -> float:
    """The score of the first relevant hit within the cutoff; -inf where there is none."""
    hits = () if ranking is None else list(ranking)[:cutoff]
    return next((hit.score for hit in hits if judged.get(hit.doc_id, 0) > 0), -np.inf)


def _floor(hits: Floats) -> float | None:
    """The highest floor at which 95 % of the queries that succeed still do; None where none does."""
    success = np.sort(hits[np.isfinite(hits)])
    return (
        float(success[int((1 - KEPT) * len(success) + 1e-9)]) if len(success) else None
    )


def _crossed(hits: Floats, negatives: Floats) -> tuple[float | None, float | None]:
    """The shares of successes kept and of unanswerable queries above the floor, each by a floor of the other folds.

    Queries are dealt to the folds in the order of their ids.
    """
    kept, above = [], []
    for fold in range(FOLDS):
        ours, theirs = (
            np.arange(len(hits)) % FOLDS == fold,
            np.arange(len(negatives)) % FOLDS == fold,
        )
        floor = _floor(hits[~ours])
        if floor is None:
            return None, None
        kept += (hits[ours & np.isfinite(hits)] >= floor).tolist()
        above += (negatives[theirs] >= floor).tolist()
    return float(np.mean(kept)) if kept else None, float(np.mean(above))


CUT = 0.05
"""The first screen warns from this share of truncated documents on."""
FOREIGN = 0.05
"""Share of a retriever's hits that are not documents of the data set, from which on the first screen says so."""
UNJUDGED = 0.1
"""The first screen warns from this share of first hits without a label on."""
JUDGED_GAP = 0.1
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
    cutoff = parse(found.measure).cutoff or manifest.resolved.depth
    if scores.tells_unjudged:
        yield from judged_warnings(
            {
                name: scores.judged[name]
                for name in found.means
                if name in scores.judged
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
        if abs(share - first) > JUDGED_GAP + 1e-10:
            pair = (leader, name) if first > share else (name, leader)
            yield RunWarning(
                WarningKind.JUDGED_GAP, pair, (max(first, share), min(first, share))
            )
    worst = min(shares, key=lambda name: shares[name])
    if 1 - shares[worst] >= UNJUDGED:
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
    pairs = found.against_baseline if found.baseline else found.against.values()
    shown = [(row.a, row.b) for row in pairs if row.verdict.separates]
    if found.sweep is not None:
        shown = [(found.sweep.chosen, found.sweep.default)] if found.sweep.beats else []
    for a, b in shown:
        if fragile(units.means(group[a] - group[b]), span):
            yield RunWarning(WarningKind.FRAGILE, (a, b))


def _half_read(manifest: Manifest) -> Iterator[RunWarning]:
    """Models that read only the beginning of many documents, with the retrievers that use them."""
    documents, resolved = manifest.dataset.documents, manifest.resolved
    cut = {
        name: number / documents
        for name in manifest.finished
        if resolved.blocks[name].get("derived_from")
        not in manifest.finished  # else the other is told
        and (number := len(manifest.ledger.retrievers[name].notes.get("truncated", ())))
        and number >= CUT * documents
    }
    if cut:
        parts = {name: resolved.parts(name) for name in manifest.finished}
        models = {
            name: {*of, *(resolved.blocks[part].get("derived_from") for part in of)}
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
        if foreign and foreign >= FOREIGN * hits:
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

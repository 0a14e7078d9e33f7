"""Beside the verdicts and never instead of them: probabilities, effect sizes, and what two rankings have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any, NamedTuple

from harness.scoring.overlap import RankingsOverlap, overlap_of
from harness.scoring.saved import facts_of_runs, places_by_id
from harness.scoring.trec_runs import ScoredRun
from harness.scoring.undefined import defined_everywhere, kept_facts, kept_scores
from harness.stats import Details, Facts, ScoreTable, Settings, details, differences

MOST = 250_000
"""Pairs times queries that are looked at: about a minute of one core (45,000 take 9 s)."""


class PairEvidence(NamedTuple):
    """What there is to say about a pair beside its verdict, on the primary measure."""

    a: str
    b: str
    details: Details
    overlap: RankingsOverlap | None
    """Of the rankings as deep as they were kept; None where scores are all there is."""

    def as_json(self) -> dict[str, Any]:
        """The same as data, None where something cannot be estimated."""
        typical, chances = self.details.typical, self.details.probabilities
        return {
            "a": self.a,
            "b": self.b,
            "p_a_better": chances.a_better,
            "p_b_better": chances.b_better,
            "p_within_margin": chances.within,
            "effect_size": self.details.effect_size,
            "effect_low": self.details.effect.low,
            "effect_high": self.details.effect.high,
            "typical_difference": None if typical is None else typical.estimate,
            "typical_low": None if typical is None else typical.low,
            "typical_high": None if typical is None else typical.high,
            "top_10_in_common": None if self.overlap is None else self.overlap.top,
            "rbo": None if self.overlap is None else self.overlap.rbo,
            "rbo_residual": None if self.overlap is None else self.overlap.residual,
        }


def pairs_by_weight(names: Sequence[str], baseline: str | None, n: int) -> list[tuple[str, str]]:
    """Return the pairs to look at: all, or as many as can be looked at, the leader's first, then the baseline's.

    Args:
        names: the retrievers by their means, highest first.
        baseline: the declared one.
        n: queries.
    """
    pairs = list(combinations(names, 2))
    leader = names[0] if names else ""
    pairs.sort(key=lambda pair: (leader not in pair, baseline not in pair))
    return pairs[: max(1, MOST // max(1, n))]


def evidence(
    scores: ScoreTable,
    pairs: Sequence[tuple[str, str]],
    *,
    lists: Mapping[str, Mapping[str, Sequence[str]]],
    settings: Settings,
    facts: Facts,
) -> list[PairEvidence]:
    """Return the evidence on pairs, compared or not.

    Args:
        scores: retriever -> (n,) scores of the primary measure, queries in the order of their ids; queries for which
            one is undefined are left out.
        pairs: whom to look at.
        lists: retriever -> query id -> document ids, best first; without a retriever there is no overlap.
        settings: confidence, margin, zeros, seed.
        facts: clusters of the queries.
    """
    defined = defined_everywhere(scores)
    if not pairs or not defined.any():
        return []
    scores, facts = kept_scores(scores, defined), kept_facts(facts, defined)
    units = facts.units(len(scores[pairs[0][0]]))
    apart = [differences(scores[a], scores[b]) for a, b in pairs]
    by_unit = [differences(units.means(scores[a]), units.means(scores[b])) for a, b in pairs]
    return [
        PairEvidence(a, b, one, overlap_of(a, b, lists) if a in lists and b in lists else None)
        for (a, b), one in zip(pairs, details(apart, by_unit, units, settings), strict=True)
    ]


def evidence_of_runs(
    runs: Sequence[ScoredRun], names: Sequence[str], *, baseline: str | None, settings: Settings
) -> list[PairEvidence]:
    """Return what stands beside the verdicts on runs that were scored on the same queries, on the first measure.

    Args:
        runs: two or more.
        names: theirs by their means, highest first.
        baseline: the declared one.
        settings: those of the comparison.
    """
    primary = runs[0].scores.measures[0]
    scores = {run.name: run.scores.of(primary)[places_by_id(run)] for run in runs}
    pairs = pairs_by_weight(names, baseline, len(runs[0].scores.query_ids))
    lists = {run.name: run.lists() for run in runs if run.lists is not None}
    return evidence(scores, pairs, lists=lists, settings=settings, facts=facts_of_runs(runs))

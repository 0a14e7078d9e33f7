"""Claims beside the verdicts: bounds under unjudged documents, agreement, the cheapest; used by stats.py."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from stats_samples import ALPHA, changed

from harness.evaluation.compare import compare
from harness.evaluation.conclusion import conclude
from harness.evaluation.scores import Scores
from harness.stats.agreement import by_query, cohen_kappa
from harness.stats.differences import Floats
from harness.stats.settings import Settings
from harness.stats.unjudged_bounds import (
    Linear,
    ideal_bounds,
    log_discounts,
    normalised_bounds,
    query_bounds,
    rank_weights,
)

DOCUMENTS, CUTOFF, QUERIES = 30, 5, 5
"""Of a query's corpus; ranks that count; queries of a comparison."""


def decided(experiments: int) -> Iterator[str]:
    """How often "decided" is undone by judging all that is left at random: mean nDCG@5 of five queries, grades 0 and 1.

    Of the documents that one of both retrievers shows nine in ten are judged, and none that nobody shows.
    """
    yield "| relevant documents | decided before, ideal fixed | of these undone | decided now | of these undone |"
    yield "| ---: | ---: | ---: | ---: | ---: |"
    discounts = log_discounts(CUTOFF)
    dcg = Linear(discounts, float, 1.0)
    for share in (0.05, 0.2, 0.4):
        rng, said, undone = np.random.default_rng(int(100 * share)), np.zeros(2), np.zeros(2)
        for _ in range(experiments):
            sums, ideals, truths = np.zeros((2, QUERIES)), np.zeros((2, QUERIES)), np.zeros(QUERIES)
            for query in range(QUERIES):
                grades = (rng.random(DOCUMENTS) < share).astype(float)
                a, b = ([str(i) for i in rng.permutation(DOCUMENTS)[:CUTOFF]] for _ in range(2))
                known = {d: grades[int(d)] for d in {*a, *b} if rng.random() < 0.9}
                weights = rank_weights(a, b, discounts)
                sums[:, query] = query_bounds(a, b, known, dcg, DOCUMENTS)
                ideals[:, query] = ideal_bounds(list(known.values()), DOCUMENTS - len(known), 1.0, discounts)
                full = float(np.sort(grades)[::-1][:CUTOFF] @ discounts)
                truths[query] = sum(w * grades[int(d)] for d, w in weights.items()) / full if full else 0.0
            fixed = np.divide(sums, ideals[0], out=np.zeros_like(sums), where=ideals[0] > 0).mean(axis=1)
            for place, (low, high) in enumerate((fixed, normalised_bounds(sums, ideals).mean(axis=1))):
                side = 1.0 if low > 1e-12 else -1.0 if high < -1e-12 else 0.0
                said[place] += side != 0
                undone[place] += side * truths.mean() < -1e-12
        rates = [(said[i] / experiments, undone[i] / max(1, said[i])) for i in (0, 1)]
        yield f"| {share:.0%} | " + " | ".join(f"{x:.1%} | {y:.1%}" for x, y in rates) + " |"


def kappa(experiments: int) -> Iterator[str]:
    """The interval of Cohen's kappa over few queries of 20 documents, whose agreement differs from query to query."""
    yield "| queries | coverage before | coverage now |"
    yield "| ---: | ---: | ---: |"
    truth = float(cohen_kappa(_tables(np.random.default_rng(0), 200_000).sum(axis=0)))
    for queries in (5, 10, 20, 50):
        rng, held = np.random.default_rng(queries), np.zeros(2)
        for _ in range(experiments):
            tables = _tables(rng, queries)
            with changed("agreement", ENOUGH_QUERIES=0):
                before = by_query(cohen_kappa, tables)
            now = by_query(cohen_kappa, tables)
            for place, found in enumerate((before, now)):
                held[place] += found.low <= truth <= found.high
        given = "no interval" if math.isnan(now.low) else f"{held[1] / experiments:.1%}"
        yield f"| {queries} | {held[0] / experiments:.1%} | {given} |"


def _tables(rng: np.random.Generator, queries: int) -> Floats:
    """(queries, 2, 2) confusion tables of two judges, who differ on a share of documents that is the query's own."""
    first = rng.random((queries, 20)) < 0.3
    second = first ^ (rng.random((queries, 20)) < rng.beta(1, 9, (queries, 1)))
    return (
        np.stack([[(first == i) & (second == j) for j in (0, 1)] for i in (0, 1)]).sum(axis=-1).transpose(2, 0, 1) * 1.0
    )


def cheapest(experiments: int) -> Iterator[str]:
    """Two equal retrievers, and a third that is better by 0.03 and scatters: what was said of the cheapest."""
    yield "| queries | called as good as the best, falsely, before |"
    yield "| ---: | ---: |"
    for n in (150, 300):
        rng, said = np.random.default_rng(n), 0
        for _ in range(experiments):
            base = rng.uniform(0.3, 0.7, n)
            near, far = rng.normal(0, 0.03, n), rng.normal(0.03, 0.3, n)
            scores = Scores(
                ids=tuple(f"{i:04}" for i in range(n)),
                values={"m": {"a": base, "b": np.clip(base + near, 0, 1), "c": np.clip(base + far, 0, 1)}},
            )
            settings = Settings(margin=0.02, alpha=ALPHA)
            result = conclude(scores, compare(scores, settings=settings), settings)
            said += len(result.within_margin) > 1 and "c" in result.unresolved
        yield f"| {n} | {said / experiments:.1%} |"

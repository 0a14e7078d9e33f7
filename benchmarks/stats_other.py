"""Claims beside the verdicts: bounds under unjudged documents, agreement, the cheapest;
used by stats.py.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from stats_samples import ALPHA, changed

from harness.evaluation.compare import compare_retrievers
from harness.evaluation.evaluate import conclude_scores
from harness.scoring.scores import Scores
from harness.stats.differences import Floats
from harness.stats.kappa import bootstrap_agreement, cohen_kappa
from harness.stats.settings import Settings


def kappa(experiments: int) -> Iterator[str]:
    """The interval of Cohen's kappa over few queries of 20 documents, whose agreement
    differs from query to query.
    """
    yield "| queries | coverage before | coverage now |"
    yield "| ---: | ---: | ---: |"
    truth = float(cohen_kappa(_tables(np.random.default_rng(0), 200_000).sum(axis=0)))
    for queries in (5, 10, 20, 50):
        rng, held = np.random.default_rng(queries), np.zeros(2)
        for _ in range(experiments):
            tables = _tables(rng, queries)
            with changed("kappa", MIN_BOOTSTRAP_QUERIES=0):
                before = bootstrap_agreement(cohen_kappa, tables)
            now = bootstrap_agreement(cohen_kappa, tables)
            for place, found in enumerate((before, now)):
                held[place] += found.low <= truth <= found.high
        given = "no interval" if math.isnan(now.low) else f"{held[1] / experiments:.1%}"
        yield f"| {queries} | {held[0] / experiments:.1%} | {given} |"


def _tables(rng: np.random.Generator, queries: int) -> Floats:
    """(queries, 2, 2) confusion tables of two judges, who differ on a share of
    documents that is the query's own.
    """
    first = rng.random((queries, 20)) < 0.3
    second = first ^ (rng.random((queries, 20)) < rng.beta(1, 9, (queries, 1)))
    return (
        np.stack([[(first == i) & (second == j) for j in (0, 1)] for i in (0, 1)])
        .sum(axis=-1)
        .transpose(2, 0, 1)
        * 1.0
    )


def cheapest(experiments: int) -> Iterator[str]:
    """Two equal retrievers, and a third that is better by 0.03 and scatters: what was
    said of the cheapest.
    """
    yield "| queries | called as good as the best, falsely, before |"
    yield "| ---: | ---: |"
    for n in (150, 300):
        rng, said = np.random.default_rng(n), 0
        for _ in range(experiments):
            base = rng.uniform(0.3, 0.7, n)
            near, far = rng.normal(0, 0.03, n), rng.normal(0.03, 0.3, n)
            scores = Scores(
                ids=tuple(f"{i:04}" for i in range(n)),
                values={
                    "m": {
                        "a": base,
                        "b": np.clip(base + near, 0, 1),
                        "c": np.clip(base + far, 0, 1),
                    }
                },
            )
            settings = Settings(margin=0.02, alpha=ALPHA)
            result = conclude_scores(
                scores, compare_retrievers(scores, settings=settings), settings
            )
            said += len(result.as_good_as_leader) > 1 and "c" in result.queries_needed
        yield f"| {n} | {said / experiments:.1%} |"

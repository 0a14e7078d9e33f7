"""Further families of tests."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from harness.evaluation.pair_tests import (
    EquivalenceTests,
    MeasurePair,
    family_verdicts,
    run_pair_tests,
)
from harness.evaluation.query_slices import large_slices, slice_labels
from harness.evaluation.verdict import TestRow
from harness.measures import parse_measure
from harness.records import Manifest
from harness.scoring.grades import GradedLabels
from harness.scoring.score_rankings import score_by_labels
from harness.scoring.scores import Scores
from harness.stats.settings import Settings
from retrievers.types import Query

RetrieverPairs = Sequence[tuple[str, str]]


def equivalence_family(
    scores: Scores, equivalence: EquivalenceTests
) -> Iterator[TestRow]:
    """Yield the tests of equivalence of the declared pairs on the primary measure, `compare.equivalence_of` them."""
    for (a, b), (test, p) in equivalence.items():
        gap = scores.mean(scores.primary, a) - scores.mean(scores.primary, b)
        yield TestRow(
            "equivalence",
            scores.primary,
            a,
            b,
            scores.n,
            None,
            test.greater,
            p,
            test.method,
            "",
            gap,
        )


def slice_families(
    scores: Scores, pairs: RetrieverPairs, queries: Sequence[Query], settings: Settings
) -> Iterator[TestRow]:
    """Yield, for each way to divide the queries, the deciding tests within each slice: one family, always exploratory.

    Corrected over all slices and pairs together. Slices of fewer than 10 queries are left out (`small_slices`).

    Args:
        scores: of the queries for which everyone has a value.
        pairs: whom to compare on the primary measure.
        queries: (n,) those that were scored.
        settings: the test, its correction, the declared cluster.
    """
    for name, labels in slice_labels(queries, settings.cluster).items():
        if len(set(labels)) > 1:
            slices = large_slices(labels)
            parts = [
                (kind, scores.select_queries(np.isin(np.arange(scores.n), places)))
                for kind, places in slices.items()
            ]
            yield from _deciding_rows(parts, pairs, name, settings)


def uplift_family(
    scores: Scores, manifest: Manifest, graded: GradedLabels, settings: Settings
) -> Iterator[TestRow]:
    """Yield each reranked retriever against its own first stage, with the ceiling that the candidates allow.

    Args:
        scores: of the queries for which everyone has a value.
        manifest: which retrievers rerank which.
        graded: the labels after the grade rule.
        settings: the test and its correction.
    """
    blocks = {
        (name, str(block["of"])): reranker_depth(manifest.retrievers[name].provenance)
        for name, block in manifest.resolved.retriever_tables.items()
        if block["kind"] == "rerank"
        and isinstance(block.get("of"), str)
        and {name, block["of"]} <= set(scores.retrievers)
    }
    for row in (
        _deciding_rows([("", scores)], list(blocks), "rerank uplift", settings)
        if blocks
        else ()
    ):
        # Claims were not judged against candidates below the cutoff: what these could add is unknown.
        note = "no ceiling: the candidates below the cutoff have no verdicts"
        if not parse_measure(scores.primary).uses_claims:
            note = (
                f"ceiling {_ceiling(graded, scores, row.b, blocks[row.a, row.b]):.4f}"
            )
        yield replace(row, note=note)


def _ceiling(
    graded: GradedLabels, scores: Scores, name: str, depth: int | None
) -> float:
    """The mean that a perfect reranker would reach from the first `depth` candidates of a retriever."""
    measure, answers = parse_measure(scores.primary), scores.rankings[name]()
    best = {
        query: ideal_reranking(answers[query], graded.grades[query], depth)
        for query in graded.grades
        if query in answers
    }
    return score_by_labels([measure], graded, best).means(scores.weight_of)[measure]


RERANKER_DEPTH_KEY = "reranker depth"
"""Where the provenance of a reranked retriever says how many candidates are read."""


def reranker_depth(provenance: Mapping[str, str]) -> int | None:
    """Return how many candidates a reranker reads, as it says; None where it does not."""
    stated = provenance.get(RERANKER_DEPTH_KEY, "")
    return int(stated) if stated.isascii() and stated.isdigit() else None


def ideal_reranking(
    doc_ids: Sequence[str], grades: Mapping[str, int], depth: int | None
) -> list[str]:
    """Return the first `depth` candidates in the order of their grades, the others beneath as they were.

    >>> ideal_reranking(["a", "b", "c", "d"], {"b": 1, "c": 2, "d": 3}, 3)
    ['c', 'b', 'a', 'd']
    """
    head = sorted(doc_ids[:depth], key=lambda doc: -grades.get(doc, 0))
    return [*head, *doc_ids[len(head) :]]


def _deciding_rows(
    parts: Sequence[tuple[str, Scores]],
    pairs: RetrieverPairs,
    name: str,
    settings: Settings,
) -> Iterator[TestRow]:
    """One row for each part of the queries (its note, its scores) and pair, corrected and judged together."""
    noted = [
        (note, pair)
        for note, part in parts
        for pair in run_pair_tests(
            part, [MeasurePair(part.primary, *names) for names in pairs], settings
        ).values()
    ]
    for (note, pair), shown in zip(
        noted, family_verdicts([pair for _, pair in noted], settings), strict=True
    ):
        test = pair.outcome
        yield TestRow(
            name,
            *pair.key,
            pair.scores.n,
            test.statistic,
            test.p_value,
            shown.p_adjusted,
            test.method,
            note,
            pair.difference,
            shown.p_ranks,
            shown.finding,
        )

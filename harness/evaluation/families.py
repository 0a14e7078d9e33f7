"""The further families of tests in tests.csv.

Equivalence, slices, rerankers, each corrected by itself; the sweep's one row is made in
`evaluate_run`. The pairs of each measure, in comparisons.csv, are `compare`'s.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from harness.evaluation.pair_tests import (
    EquivalenceTests,
    MeasurePair,
    family_verdicts,
    run_pair_tests,
)
from harness.evaluation.property_slices import PropertySlice
from harness.evaluation.verdict import TestRow
from harness.measures import parse_measure
from harness.measures.table import grades_decide
from harness.records import Manifest
from harness.scoring.grades import GradedLabels
from harness.scoring.score_rankings import score_by_labels
from harness.scoring.scores import Scores
from harness.stats.differences import paired_differences
from harness.stats.settings import Settings
from harness.stats.slice_contrasts import are_permuted, slice_contrasts

RetrieverPairs = Sequence[tuple[str, str]]
MAX_SLICED_RIVALS = 2
"""Retrievers that are compared with the leader by slice, at most: each takes 0.4 s with
2,000 queries."""


def equivalence_family(
    scores: Scores, equivalence: EquivalenceTests
) -> Iterator[TestRow]:
    """Yield the tests of equivalence of the declared pairs on the primary measure.

    Args:
        scores: of the queries for which every retriever has a value.
        equivalence: what `run_equivalence_tests` returned.
    """
    primary = scores.primary
    for (a, b), result in equivalence.items():
        yield TestRow(
            family="equivalence",
            measure=primary,
            a=a,
            b=b,
            n=scores.n,
            statistic=None,
            p_value=result.test.greater,
            p_adjusted=result.p_adjusted,
            method=result.test.method,
            note="",
            mean_difference=scores.mean(primary, a) - scores.mean(primary, b),
        )


def slice_family(
    scores: Scores,
    pair: tuple[str, str],
    slices: Sequence[PropertySlice],
    settings: Settings,
) -> Iterator[TestRow]:
    """Yield the tests of each slice against the other queries.

    They are corrected together over all properties; the column `family` names the
    property. The other queries have a row as well, with the same test, if they share a
    value: the other of yes and no, of above and below, or of two texts. There is no
    verdict: the test shows whether the two retrievers differ more, or less, on the
    slice than elsewhere.

    Args:
        scores: of the queries for which every retriever has a value.
        pair: the retrievers to compare on the primary measure.
        slices: of these queries.
        settings: the level and the seed.
    """
    if not slices:
        return
    a, b = pair
    columns = scores.values[scores.primary]
    contrasts = slice_contrasts(
        paired_differences(columns[a], columns[b]).values,
        np.column_stack([candidate.mask for candidate in slices]),
        scores.units,
        alpha=settings.alpha,
        seed=settings.seed,
    )
    method = "permutations" if are_permuted(scores.units) else "flips"
    for property_slice, contrast in zip(slices, contrasts, strict=True):
        for side in property_slice.sides:
            is_slice = side is property_slice
            yield TestRow(
                family=side.name.property_name,
                measure=scores.primary,
                a=a,
                b=b,
                n=int(side.mask.sum()),
                statistic=contrast.statistic if is_slice else 0.0 - contrast.statistic,
                p_value=contrast.p_value,
                p_adjusted=contrast.p_adjusted,
                method=method,
                note=side.name.label,
                mean_difference=contrast.inside if is_slice else contrast.outside,
            )


def uplift_family(
    scores: Scores, manifest: Manifest, graded: GradedLabels, settings: Settings
) -> Iterator[TestRow]:
    """Yield each reranked retriever against its first stage, if that is a retriever.

    A note shows the mean that a perfect reranker of the candidates would reach, if
    grades alone decide the measure.

    Args:
        scores: of the queries for which every retriever has a value.
        manifest: which retrievers rerank which.
        graded: the labels after the grade rule.
        settings: the test and its correction.
    """
    name_pairs = _reranked_pairs(scores, manifest)
    if not name_pairs:
        return
    primary = parse_measure(scores.primary)
    for row in _decide_pairs(scores, name_pairs, settings):
        if primary.uses_passages:
            note = "no ceiling: a reranker orders documents, not passages"
        elif primary.uses_claims:
            # Claims were not judged against candidates below the cutoff: how much
            # these could add is unknown.
            note = "no ceiling: the candidates below the cutoff have no verdicts"
        elif not grades_decide(primary):
            note = "no ceiling: grades alone do not decide the measure"
        else:
            reranker = manifest.retrievers[row.a].provenance.reranker
            depth = reranker.depth if reranker else None
            note = f"ceiling {_reranking_ceiling(graded, scores, row.b, depth):.4f}"
        yield replace(row, note=note)


def _reranked_pairs(scores: Scores, manifest: Manifest) -> list[tuple[str, str]]:
    """Return each reranked retriever with its first stage, if both have scores."""
    name_pairs: list[tuple[str, str]] = []
    for retriever in manifest.resolved.retrievers:
        first_stage = retriever.of
        if retriever.kind != "rerank" or not isinstance(first_stage, str):
            continue
        if {retriever.name, first_stage} <= set(scores.retrievers):
            name_pairs.append((retriever.name, first_stage))
    return name_pairs


def _reranking_ceiling(
    graded: GradedLabels, scores: Scores, retriever: str, depth: int | None
) -> float:
    """Return the mean that a perfect reranker of the first candidates would reach.

    It is over the same queries as the scores.
    """
    measure = parse_measure(scores.primary)
    rankings = scores.rankings[retriever]()
    grades = {query_id: graded.grades[query_id] for query_id in scores.ids}
    ideal = {
        query_id: ideal_reranking(rankings.get(query_id, ()), judged, depth)
        for query_id, judged in grades.items()
    }
    values = score_by_labels([measure], graded._replace(grades=grades), ideal)
    return values.means(scores.weight_of)[measure]


def ideal_reranking(
    doc_ids: Sequence[str], grades: Mapping[str, int], depth: int | None
) -> list[str]:
    """Return the first `depth` candidates by their grades, then the others.

    Args:
        doc_ids: the candidates, best first.
        grades: document id -> grade.
        depth: how many the reranker reorders; None: all.

    >>> ideal_reranking(["a", "b", "c", "d"], {"b": 1, "c": 2, "d": 3}, 3)
    ['c', 'b', 'a', 'd']
    """
    head = sorted(doc_ids[:depth], key=lambda document: -grades.get(document, 0))
    return [*head, *doc_ids[len(head) :]]


def _decide_pairs(
    scores: Scores, name_pairs: RetrieverPairs, settings: Settings
) -> Iterator[TestRow]:
    """Test every reranked retriever against its first stage; they are one family."""
    keys = [MeasurePair(scores.primary, a, b) for a, b in name_pairs]
    tested = list(run_pair_tests(scores, keys, settings).values())
    verdicts = family_verdicts(tested, settings)
    for pair, adjusted in zip(tested, verdicts, strict=True):
        yield TestRow(
            family="rerank uplift",
            measure=pair.key.measure,
            a=pair.key.a,
            b=pair.key.b,
            n=pair.scores.n,
            statistic=pair.outcome.statistic,
            p_value=pair.outcome.p_value,
            p_adjusted=adjusted.p_adjusted,
            method=pair.outcome.method,
            note="",
            mean_difference=pair.difference,
            p_wilcoxon_adjusted=adjusted.p_wilcoxon_adjusted,
            finding=adjusted.finding,
        )

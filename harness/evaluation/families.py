"""Further families of tests."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from harness.evaluation.pair_tests import (
    EquivalenceTests,
    MeasurePair,
    TestedPair,
    family_verdicts,
    run_pair_tests,
)
from harness.evaluation.query_slices import large_slices, slice_labels
from harness.evaluation.verdict import Finding, Reason, TestRow, Verdict
from harness.measures import parse_measure
from harness.records import Manifest
from harness.scoring.grades import GradedLabels
from harness.scoring.score_rankings import score_by_labels
from harness.scoring.scores import Scores
from harness.stats.differences import Floats
from harness.stats.pair_families import max_t_pair_family
from harness.stats.settings import Settings
from retrievers.types import Query

RetrieverPairs = Sequence[tuple[str, str]]


class QueryPart(NamedTuple):
    """The scores of some of the queries, with a note that says which."""

    note: str
    scores: Scores


def equivalence_family(
    scores: Scores, equivalence: EquivalenceTests
) -> Iterator[TestRow]:
    """Yield the tests of equivalence of the declared pairs on the primary measure.

    Args:
        scores: of the queries for which every retriever has a value.
        equivalence: from `run_equivalence_tests`.
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


def slice_families(
    scores: Scores, pairs: RetrieverPairs, queries: Sequence[Query], settings: Settings
) -> Iterator[TestRow]:
    """Yield the tests within each slice, for each way to divide the queries.

    All slices of all fields are one family, corrected by max-T with the same flips, and
    always exploratory. Slices of fewer than 10 queries are left out.

    Args:
        scores: of the queries for which every retriever has a value.
        pairs: the retrievers to compare on the primary measure.
        queries: (n,) those that were scored.
        settings: the deciding test, the level, the declared cluster.
    """
    rows: list[TestRow] = []
    slice_sums: list[Floats] = []
    units = scores.units
    values = scores.values[scores.primary]
    names = list(dict.fromkeys(name for pair in pairs for name in pair))
    all_scores = np.column_stack([values[name] for name in names])
    for family, labels in slice_labels(queries, settings.cluster).items():
        if len(set(labels)) < 2:
            continue
        for label, indices in large_slices(labels).items():
            mask = np.isin(np.arange(scores.n), indices)
            part = QueryPart(label, scores.select_queries(mask))
            rows += _decide_parts([part], pairs, family, settings)
            slice_sums.append(units.sums(np.where(mask[:, None], all_scores, 0.0)))
    if not rows:
        return
    columns = [(names.index(a), names.index(b)) for a, b in pairs]
    p_values = max_t_pair_family(slice_sums, columns, seed=settings.seed)
    for row, p_adjusted in zip(rows, p_values, strict=True):
        yield _corrected_row(row, p_adjusted, settings)


def _corrected_row(row: TestRow, p_adjusted: float, settings: Settings) -> TestRow:
    """Return the row of a slice, decided by its p over all slices."""
    finding = Finding(Verdict.UNDECIDED, Reason.NOT_SHOWN)
    may_decide = settings.judged_by_people and not settings.alpha_spent
    if may_decide and p_adjusted <= settings.alpha and row.mean_difference:
        is_better = row.mean_difference > 0
        finding = Finding(Verdict.BETTER if is_better else Verdict.WORSE)
    return replace(
        row, p_adjusted=p_adjusted, p_wilcoxon_adjusted=None, finding=finding
    )


def uplift_family(
    scores: Scores, manifest: Manifest, graded: GradedLabels, settings: Settings
) -> Iterator[TestRow]:
    """Yield each reranked retriever against its own first stage.

    With the ceiling that the candidates allow.

    Args:
        scores: of the queries for which every retriever has a value.
        manifest: which retrievers rerank which.
        graded: the labels after the grade rule.
        settings: the test and its correction.
    """
    pairs = _reranked_pairs(scores, manifest)
    if not pairs:
        return
    primary = parse_measure(scores.primary)
    parts = [QueryPart("", scores)]
    for row in _decide_parts(parts, pairs, "rerank uplift", settings):
        # Claims were not judged against candidates below the cutoff: how much these
        # could add is unknown.
        note = "no ceiling: the candidates below the cutoff have no verdicts"
        if primary.uses_passages:
            note = "no ceiling: a reranker orders documents, not passages"
        elif not primary.uses_claims:
            reranker = manifest.retrievers[row.a].provenance.reranker
            depth = reranker.depth if reranker else None
            note = f"ceiling {_reranking_ceiling(graded, scores, row.b, depth):.4f}"
        yield replace(row, note=note)


def _reranked_pairs(scores: Scores, manifest: Manifest) -> list[tuple[str, str]]:
    """Return each reranked retriever with its first stage, if both have scores."""
    pairs: list[tuple[str, str]] = []
    for name, table in manifest.resolved.retriever_tables.items():
        first_stage = table.get("of")
        if table["kind"] != "rerank" or not isinstance(first_stage, str):
            continue
        if {name, first_stage} <= set(scores.retrievers):
            pairs.append((name, first_stage))
    return pairs


def _reranking_ceiling(
    graded: GradedLabels, scores: Scores, retriever: str, depth: int | None
) -> float:
    """Return the mean that a perfect reranker would reach.

    From the first `depth` candidates of a retriever.
    """
    measure = parse_measure(scores.primary)
    rankings = scores.rankings[retriever]()
    ideal = {
        query_id: ideal_reranking(rankings[query_id], judged, depth)
        for query_id, judged in graded.grades.items()
        if query_id in rankings
    }
    values = score_by_labels([measure], graded, ideal)
    return values.means(scores.weight_of)[measure]


def ideal_reranking(
    doc_ids: Sequence[str], grades: Mapping[str, int], depth: int | None
) -> list[str]:
    """Return the first `depth` candidates by their grades, then the others.

    >>> ideal_reranking(["a", "b", "c", "d"], {"b": 1, "c": 2, "d": 3}, 3)
    ['c', 'b', 'a', 'd']
    """
    head = sorted(doc_ids[:depth], key=lambda document: -grades.get(document, 0))
    return [*head, *doc_ids[len(head) :]]


def _decide_parts(
    parts: Sequence[QueryPart],
    pairs: RetrieverPairs,
    family: str,
    settings: Settings,
) -> Iterator[TestRow]:
    """Test every pair within every part of the queries; all of them are one family."""
    notes: list[str] = []
    tested: list[TestedPair] = []
    for note, scores in parts:
        keys = [MeasurePair(scores.primary, a, b) for a, b in pairs]
        for pair in run_pair_tests(scores, keys, settings).values():
            notes.append(note)
            tested.append(pair)
    verdicts = family_verdicts(tested, settings)
    for note, pair, adjusted in zip(notes, tested, verdicts, strict=True):
        yield TestRow(
            family=family,
            measure=pair.key.measure,
            a=pair.key.a,
            b=pair.key.b,
            n=pair.scores.n,
            statistic=pair.outcome.statistic,
            p_value=pair.outcome.p_value,
            p_adjusted=adjusted.p_adjusted,
            method=pair.outcome.method,
            note=note,
            mean_difference=pair.difference,
            p_wilcoxon_adjusted=adjusted.p_ranks,
            finding=adjusted.finding,
        )

"""The scores in a results folder.

They are read as they were computed; `rescore` computes them again from the rankings.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from itertools import groupby
from operator import itemgetter
from statistics import fmean

import numpy as np

from harness.measures import Measure, measure_rankings, parse_measure
from harness.records import Manifest, Results
from harness.scoring.query_units import query_units, refuse_absent_fields
from harness.scoring.ranked_passages import compared_ids
from harness.scoring.score_rankings import mean_judged_share
from harness.scoring.score_table import scores_from_columns
from harness.scoring.scores import RankedIds, ScoreColumn, Scores, ranked_ids
from retrievers.errors import InputError, Problem


def stored_scores(results: Results) -> Scores:
    """Read the scores in a results folder.

    Measures that are undefined everywhere are left out, but for the primary one.

    Raises:
        InputError: a retriever has no scores of the primary measure.
    """
    primary = results.manifest.resolved.primary
    columns = _stored_columns(results)
    scored = {column.retriever for column in columns if column.measure == primary}
    if scored != set(results.retrievers):
        where = str(results.folder / "scores.csv")
        problem = f"has no scores of {primary}, the primary measure of its manifest"
        raise InputError(Problem(where, problem, "run the experiment again"))
    defined = {
        column.measure for column in columns if not np.isnan(column.values).all()
    }
    defined.add(primary)

    # The table has measures and retrievers in the order of their first columns.
    def primary_first(column: ScoreColumn) -> tuple[bool, int]:
        rank = results.retrievers.index(column.retriever)
        return column.measure != primary, rank

    scores = scores_from_columns(
        sorted(
            (column for column in columns if column.measure in defined),
            key=primary_first,
        ),
        results.grades(),
        rankings_by_retriever(results),
        source_order=results.queries,
        primary=primary,
        compared=_compared_by_retriever(results, primary),
    )
    if averaged_retrievers(results.manifest):  # an average of 0 and 1 is neither
        scores = replace(scores, binary=frozenset())
    declared = results.manifest.resolved.statistics
    queries = [results.queries[query_id].query for query_id in scores.ids]
    refuse_absent_fields(queries, declared.cluster, declared.weight)
    units = query_units(queries, declared.cluster, declared.weight)
    return replace(scores, clusters=units.clusters, weights=units.weights)


def averaged_retrievers(manifest: Manifest) -> frozenset[str]:
    """Return the retrievers whose scores are averages of several trials."""
    averaged: set[str] = set()
    for retriever in manifest.finished:
        trials = manifest.retrievers[retriever].provenance.answers.trials
        if trials is not None and trials > 1:
            averaged.add(retriever)
    return frozenset(averaged)


def _stored_columns(results: Results) -> list[ScoreColumn]:
    """Return the columns of scores.csv: consecutive rows of a measure and retriever."""
    table = results.score_columns
    rows = zip(
        table["measure"],
        table["retriever"],
        table["query_id"],
        table["value"],
        strict=True,
    )
    columns: list[ScoreColumn] = []
    for (measure, retriever), group in groupby(rows, itemgetter(0, 1)):
        _, _, query_ids, scores = zip(*group, strict=True)
        columns.append(ScoreColumn(measure, retriever, query_ids, scores))
    return columns


def stored_judged_shares(results: Results, primary: str) -> Mapping[str, float]:
    """Return the share of each retriever's first hits that have a label.

    It is the mean over all trials; empty if claims decide.
    """
    primary_value = parse_measure(primary)
    if primary_value.uses_claims:
        return {}
    judged_measure = Measure("Judged", primary_value.cutoff)
    grades = results.grades()
    shares: dict[str, float] = {}
    for retriever in results.retrievers:
        trial_shares: list[float] = []
        for rankings in map(ranked_ids, results.trials(retriever)):
            computed = measure_rankings([judged_measure], grades, rankings)
            share = mean_judged_share(computed, judged_measure, grades, rankings)
            trial_shares.append(share)
        shares[retriever] = fmean(trial_shares)
    return shares


def rankings_by_retriever(results: Results) -> dict[str, Callable[[], RankedIds]]:
    """Return, for each retriever, a function that reads its ranked documents."""
    return {
        retriever: partial(_read_ranked_ids, results, retriever)
        for retriever in results.retrievers
    }


def _read_ranked_ids(results: Results, retriever: str) -> RankedIds:
    return ranked_ids(results.rankings(retriever))


def _compared_by_retriever(
    results: Results, primary: str
) -> dict[str, Callable[[], RankedIds]]:
    """Return, for each retriever, a function that reads what is compared.

    An average of trials has no ranking, so that none is identical to another's.
    """
    measure = parse_measure(primary)
    averaged = averaged_retrievers(results.manifest)

    def read(retriever: str) -> RankedIds:
        return compared_ids(measure, results.rankings(retriever))

    return {
        retriever: partial(read, retriever)
        for retriever in results.retrievers
        if retriever not in averaged
    }

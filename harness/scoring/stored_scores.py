"""The scores that a results folder holds."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import groupby
from operator import itemgetter

import numpy as np

from harness.experiment import RelevanceConfig
from harness.measures import Measure, measure_rankings, parse_measure
from harness.records import ResolvedExperiment, Results
from harness.scoring.query_units import query_clusters, query_weights
from harness.scoring.score_rankings import mean_judged_share
from harness.scoring.score_table import scores_from_columns
from harness.scoring.scores import RankedIds, Scores
from retrievers.errors import InputError, Problem
from retrievers.options.tables import validated


def stored_scores(results: Results) -> Scores:
    """Read the scores that a results folder holds; measures that are undefined everywhere are left out."""
    primary, table = primary_measure(results.manifest.resolved), results.score_columns
    rows = zip(
        *(table[name] for name in ("measure", "retriever", "query_id", "value")),
        strict=True,
    )
    parts = (zip(*some, strict=True) for _, some in groupby(rows, itemgetter(0, 1)))
    columns = [(measures[0], names[0], ids, row) for measures, names, ids, row in parts]
    if {name for measure, name, *_ in columns if measure == primary} != set(
        results.retrievers
    ):
        where, remedy = str(results.folder / "scores.csv"), "run the experiment again"
        raise InputError(
            Problem(
                where,
                f"has no scores of {primary}, which the manifest says decides",
                remedy,
            )
        )
    defined = {
        primary,
        *(measure for measure, _, _, row in columns if not np.isnan(row).all()),
    }
    kept = [column for column in columns if column[0] in defined]
    kept.sort(
        key=lambda column: (column[0] != primary, results.retrievers.index(column[1]))
    )
    found = scores_from_columns(
        kept, results.grades(), rankings_by_retriever(results), results.queries, primary
    )
    declared, queries = (
        results.manifest.resolved.statistics,
        [results.queries[query].query for query in found.ids],
    )
    return replace(
        found,
        clusters=query_clusters(queries, declared.get("cluster")),
        weights=query_weights(queries, declared.get("weight")),
    )


def stored_judged_shares(results: Results, primary: str) -> dict[str, float]:
    """The share of each retriever's first hits that have a label; empty where claims decide."""
    share, grades = Measure("Judged", parse_measure(primary).cutoff), results.grades()
    lists = (
        {}
        if parse_measure(primary).uses_claims
        else {name: read() for name, read in rankings_by_retriever(results).items()}
    )
    return {
        name: mean_judged_share(
            measure_rankings([share], grades, own), share, grades, own
        )
        for name, own in lists.items()
    }


def rankings_by_retriever(results: Results) -> dict[str, Callable[[], RankedIds]]:
    """Retriever -> what reads its rankings."""

    def read(name: str) -> RankedIds:
        return {
            query: ranking.doc_ids for query, ranking in results.rankings(name).items()
        }

    return {name: partial(read, name) for name in results.retrievers}


def primary_measure(resolved: ResolvedExperiment) -> str:
    """The primary measure in full; earlier folders leave gain and ideal to [relevance]."""
    relevance = validated(RelevanceConfig, resolved.relevance, "[relevance]")
    return str(
        parse_measure(resolved.primary, gain=relevance.gain, ideal=relevance.ideal)
    )

"""Whether one retriever may take another's place: both of one results folder, or the baseline of an earlier one."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from harness.measures import parse
from harness.records import Results
from harness.scoring.facts import head_of
from harness.scoring.folders import SharedQueries, shared_queries
from harness.scoring.outcome import facts_of_results, primary_of
from harness.stats import Gate, Settings, at_look, check_margin, gate
from retrievers.errors import InputError, Problem, did_you_mean


class Side(NamedTuple):
    """One of the two retrievers, and the folder that holds its scores."""

    results: Results
    retriever: str


def gate_retrievers(challenger: Side, baseline: Side, *, margin: float) -> Gate:
    """Ask whether one retriever is not worse than another by the margin, on the primary measure.

    Of two folders, the queries that both have are compared.

    Args:
        challenger: the retriever that would take the other's place; its experiment declares measure and tests.
        baseline: the retriever in use.
        margin: the loss of the mean that is still acceptable.

    Raises:
        InputError: one did not run, or failed; or it is named twice; the margin is not above 0; or two folders cannot
            be compared: other documents, another primary measure, other texts or grades of a query, no query in both.
    """
    sides = (challenger, baseline)
    _check(sides)
    shared = None if challenger.results is baseline.results else same_ground(challenger.results, baseline.results)
    resolved = challenger.results.manifest.resolved
    primary = primary_of(resolved)
    values = [_scores(side, primary) for side in sides]
    ids = sorted(values[0].keys() & values[1].keys() & (values[0].keys() if shared is None else set(shared.ids)))
    scores = [np.array([of[query] for query in ids]) for of in values]
    facts = facts_of_results(challenger.results, ids, {primary: {challenger.retriever: scores[0]}})
    same = np.array_equal(scores[0], scores[1]) and len({_head(side, ids, primary) for side in sides}) == 1
    bounds = facts.ranges[primary]
    check_margin("--margin", margin, None if bounds is None else bounds.span)
    return gate(
        scores[0],
        scores[1],
        margin=margin,
        span=None if bounds is None else bounds.span,
        settings=at_look(Settings.of(resolved.statistics, resolved.seed), len(ids)),
        facts=replace(facts, identical=frozenset([frozenset(("challenger", "baseline"))] if same else [])),
    )


def same_ground(challenger: Results, baseline: Results) -> SharedQueries:
    """Return the queries on which retrievers of two folders can be gated.

    Raises:
        InputError: the documents, the primary measure, or the text or the grades of a query in both are not the same.
    """
    where, remedy = str(baseline.folder), f"run its experiment again on the data of {challenger.folder}"
    problems = []
    measures = [primary_of(one.manifest.resolved) for one in (challenger, baseline)]
    if measures[0] != measures[1]:
        what = f"was decided by {measures[1]}, and {challenger.folder} by {measures[0]}"
        problems.append(Problem(where, what, "use one primary measure for both"))
    if challenger.manifest.dataset.corpus_digest != baseline.manifest.dataset.corpus_digest:
        problems.append(Problem(where, f"holds results on other documents than {challenger.folder}", remedy))
    shared = shared_queries([challenger, baseline])
    if changed := shared.reworded + shared.relabelled:
        what = f"has {changed:,} of the same queries with another text or other grades than {challenger.folder}"
        problems.append(Problem(where, what, remedy))
    elif not shared.ids:
        problems.append(Problem(where, f"has no query in common with {challenger.folder}", remedy))
    if problems:
        raise InputError(problems)
    return shared


def _check(sides: tuple[Side, Side]) -> None:
    """Refuse a folder without scores, a retriever without results, and a comparison with itself."""
    for results, _ in sides:
        if not results.scored:
            remedy = "harness pool draws what people are to judge"
            raise InputError(Problem(str(results.folder), "holds no scores: no query has labels", remedy))
    (first, challenger), (second, baseline) = sides
    if first is second and challenger == baseline:
        raise InputError(Problem(challenger, "would be compared with itself", "name two different retrievers"))
    if missing := [side for side in sides if side.retriever not in side.results.retrievers]:
        raise InputError([
            Problem(str(results.folder), f"holds no retriever {name!r}", did_you_mean(name, results.retrievers))
            for results, name in missing
        ])  # fmt: skip


def _scores(side: Side, measure: str) -> dict[str, float]:
    """Query id -> the score of one retriever, without the queries for which the measure is undefined."""
    table = side.results.scores
    rows = table[(table["measure"] == measure) & (table["retriever"] == side.retriever) & table["value"].notna()]
    return dict(zip(rows["query_id"], rows["value"].astype(float), strict=True))


def _head(side: Side, ids: list[str], measure: str) -> str:
    answers = {query: ranking.doc_ids for query, ranking in side.results.answers(side.retriever)}
    return head_of(answers, ids, parse(measure).cutoff)

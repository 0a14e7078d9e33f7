"""Whether a retriever may take the place of another: non-inferiority of the mean by a margin."""

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from harness.evaluation.evaluate import settings_of
from harness.evaluation.folders import SharedQueries, shared_queries
from harness.evaluation.readers import primary_of, scores_of_results
from harness.evaluation.scores import Scores, rankings_digest
from harness.evaluation.verdict import Gate
from harness.measures import parse
from harness.records import UNSCORED, Results, read_corpus
from harness.stats.differences import differences
from harness.stats.intervals import mean
from harness.stats.paired_tests import EquivalenceMargin, fewest_units, not_worse
from harness.stats.power import at_look
from harness.stats.settings import Settings, check_margin
from retrievers.errors import InputError, Problem, did_you_mean

CHALLENGER, BASELINE = "challenger", "baseline"


def gate_scores(scores: Scores, *, margin: float, settings: Settings) -> Gate:
    """Test non-inferiority of the mean: passes where "challenger - baseline <= -margin" is rejected (`not_worse`).

    Args:
        scores: of "challenger" and "baseline" on the primary measure, defined for both.
        margin: loss of the mean that is still acceptable, in points of the measure.
        settings: level and seed; its margin is not read.

    Raises:
        InputError: a margin that is not a finite number above 0.
    """
    if not 0 < margin < math.inf:
        remedy = "give the loss that you would accept, such as 0.02"
        raise InputError(Problem("margin", f"{margin} is not a finite number above 0", remedy))
    group, units, span = scores.values[scores.primary], scores.units, scores.span_of(scores.primary)
    d = differences(group[CHALLENGER], group[BASELINE])
    within = EquivalenceMargin(margin, span, units, settings.alpha)
    (test,) = not_worse(group, [(CHALLENGER, BASELINE)], within, settings.seed)
    measured = any(np.any(values) for values in group.values())
    return Gate(
        passed=measured and not settings.spent and test.greater <= settings.alpha,
        n=scores.n,
        clusters=len(units) if units.clustered else None,
        mean_difference=scores.mean(scores.primary, CHALLENGER) - scores.mean(scores.primary, BASELINE),
        margin=margin,
        p_value=test.greater,
        needed=None if span is None else fewest_units(margin, span, settings.alpha, mean(d.values, units.weights)),
        measured=measured,
        identical=bool(scores.identical),
        spent=settings.spent,
    )


class GateArm(NamedTuple):
    """One of the two retrievers, and the folder that holds its scores."""

    results: Results
    retriever: str


def gate_retrievers(challenger: GateArm, baseline: GateArm, *, margin: float, corpus_changed: bool = False) -> Gate:
    """Ask whether one retriever is not worse than another by the margin, on the primary measure.

    Of two folders, the queries that both have are compared.

    Args:
        challenger: the retriever that would take the other's place; its experiment declares measure and tests.
        baseline: the retriever in use.
        margin: the loss of the mean that is still acceptable.
        corpus_changed: whether the folders may be over two states of a corpus: queries of which a relevant document is
            gone are left out.

    Raises:
        InputError: one did not run, or failed; or it is named twice; the margin is not above 0; or two folders cannot
            be compared: other documents, another primary measure, other texts or grades of a query, no query in both.
    """
    sides = (challenger, baseline)
    _check(sides)
    shared = None
    if challenger.results is not baseline.results:
        shared = same_ground(challenger.results, baseline.results, corpus_changed=corpus_changed)
    primary = primary_of(challenger.results.manifest.resolved)
    tables = [scores_of_results(side.results) for side in sides]
    known = [table.only(table.defined(primary, one.retriever)) for table, one in zip(tables, sides, strict=True)]
    asked = set(known[0].ids) & set(known[1].ids) & set(known[0].ids if shared is None else shared.ids)
    tables = [table.only(np.array([query in asked for query in table.ids], dtype=np.bool_)) for table in known]
    own, both = tables[0], list(zip(tables, (one.retriever for one in sides), strict=True))
    pair = {name: table.values[primary][one] for name, (table, one) in zip((CHALLENGER, BASELINE), both, strict=True)}
    digests = {rankings_digest(table.lists[one](), own.ids, parse(primary).cutoff) for table, one in both}
    same = np.array_equal(pair[CHALLENGER], pair[BASELINE]) and len(digests) == 1
    scores = replace(own, values={primary: pair}, identical=frozenset({frozenset(pair)} if same else ()))
    check_margin("--margin", margin, scores.span_of(primary))
    return gate_scores(scores, margin=margin, settings=at_look(settings_of(challenger.results.manifest), scores.n))


def same_ground(challenger: Results, baseline: Results, *, corpus_changed: bool = False) -> SharedQueries:
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
    if corpus_changed and not problems:
        removed = read_corpus(baseline.folder).keys() - read_corpus(challenger.folder).keys()
        return shared_queries([challenger, baseline], removed=removed)
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


def _check(sides: tuple[GateArm, GateArm]) -> None:
    """Refuse a folder without scores, a retriever without results, and a comparison with itself."""
    for results, _ in sides:
        if not results.scored:
            raise InputError(Problem(str(results.folder), *UNSCORED))
    (first, challenger), (second, baseline) = sides
    if first is second and challenger == baseline:
        raise InputError(Problem(challenger, "would be compared with itself", "name two different retrievers"))
    if missing := [side for side in sides if side.retriever not in side.results.retrievers]:
        raise InputError([
            Problem(str(results.folder), f"holds no retriever {name!r}", did_you_mean(name, results.retrievers))
            for results, name in missing
        ])  # fmt: skip

"""Non-inferiority of a challenger."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from harness.measures import parse_measure
from harness.records import NO_SCORES, Results, read_corpus_digests
from harness.records.data_sets_csv import read_sets
from harness.scoring.declared_settings import settings_of_run
from harness.scoring.score_table import rankings_digest
from harness.scoring.scores import Scores
from harness.scoring.shared_queries import SharedQueries, find_shared_queries
from harness.scoring.stored_scores import primary_measure, stored_scores
from harness.stats.differences import paired_differences
from harness.stats.intervals import mean
from harness.stats.looks import settings_at_look
from harness.stats.paired_tests import (
    EquivalenceMargin,
    min_units_for_margin,
    non_inferiority_tests,
)
from harness.stats.settings import Settings, check_margin
from retrievers.errors import InputError, Problem, did_you_mean


def gate_sets(
    place: Path, challenger: str, baseline: str, margins: dict[str, float]
) -> dict[str, Gate]:
    """Gate each data set by its margin: the whole passes where every one does, which needs no correction.

    Args:
        place: the folder of several data sets' results.
        challenger: the retriever that would take the other's place.
        baseline: the retriever in use.
        margins: data set -> margin; "" is for those that are not named.

    Raises:
        InputError: a set that is named is not there, or one has no margin; else as `gate_retrievers`.
    """
    sets = {one.manifest.name: one for one in read_sets(place)}
    problems = [
        Problem(
            "--margin", f"{place} has no data set {name!r}", did_you_mean(name, sets)
        )
        for name in margins
        if name and name not in sets
    ]
    problems += [
        Problem("--margin", f"names none for {name}", f"--margin {name}=0.02")
        for name in sets
        if name not in margins and "" not in margins
    ]
    if problems:
        raise InputError(problems)
    return {
        name: gate_retrievers(
            GateArm(one, challenger),
            GateArm(one, baseline),
            margin=margins.get(name, margins.get("", 0)),
        )
        for name, one in sets.items()
    }


CHALLENGER_ARM, BASELINE_ARM = "challenger", "baseline"


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
        raise InputError(
            Problem(
                "margin", f"{margin} is not a finite number above 0", "such as 0.02"
            )
        )
    group, units, span = (
        scores.values[scores.primary],
        scores.units,
        scores.span_of(scores.primary),
    )
    d = paired_differences(group[CHALLENGER_ARM], group[BASELINE_ARM])
    within = EquivalenceMargin(margin, span, units, settings.alpha)
    (test,) = non_inferiority_tests(
        group, [(CHALLENGER_ARM, BASELINE_ARM)], within
    )
    measured = any(np.any(values) for values in group.values())
    return Gate(
        passed=measured and not settings.alpha_spent and test.greater <= settings.alpha,
        n=scores.n,
        clusters=len(units) if units.clustered else None,
        mean_difference=scores.mean(scores.primary, CHALLENGER_ARM)
        - scores.mean(scores.primary, BASELINE_ARM),
        margin=margin,
        p_value=test.greater,
        needed=None
        if span is None
        else min_units_for_margin(
            margin, span, settings.alpha, mean(d.values, units.weights)
        ),
        measured=measured,
        identical=bool(scores.identical),
        alpha_spent=settings.alpha_spent,
    )


class GateArm(NamedTuple):
    """One of the two retrievers, and the folder that holds its scores."""

    results: Results
    retriever: str


def gate_retrievers(
    challenger: GateArm,
    baseline: GateArm,
    *,
    margin: float,
    corpus_changed: bool = False,
) -> Gate:
    """Ask whether one retriever is not worse than another by the margin, on the primary measure.

    Of two folders, the queries that both have are compared.

    Args:
        challenger: the retriever that would take the other's place; its experiment declares measure and tests.
        baseline: the retriever in use.
        margin: the loss of the mean that is still acceptable.
        corpus_changed: whether the folders may be over two states of a corpus: queries whose relevant document is
            gone are left out.

    Raises:
        InputError: one did not run, or failed; or it is named twice; the margin is not above 0; or two folders cannot
            be compared: other documents, another primary measure, other texts or grades of a query, no query in both.
    """
    sides = (challenger, baseline)
    _check(sides)
    shared = None
    if challenger.results is not baseline.results:
        shared = shared_gate_queries(
            challenger.results, baseline.results, corpus_changed=corpus_changed
        )
    primary = primary_measure(challenger.results.manifest.resolved)
    tables = [stored_scores(side.results) for side in sides]
    known = [
        table.select_queries(table.defined(primary, one.retriever))
        for table, one in zip(tables, sides, strict=True)
    ]
    asked = (
        set(known[0].ids)
        & set(known[1].ids)
        & set(known[0].ids if shared is None else shared.ids)
    )
    tables = [
        table.select_queries(
            np.array([query in asked for query in table.ids], dtype=np.bool_)
        )
        for table in known
    ]
    own, both = (
        tables[0],
        list(zip(tables, (one.retriever for one in sides), strict=True)),
    )
    pair = {
        name: table.values[primary][one]
        for name, (table, one) in zip((CHALLENGER_ARM, BASELINE_ARM), both, strict=True)
    }
    digests = {
        rankings_digest(table.rankings[one](), own.ids, parse_measure(primary).cutoff)
        for table, one in both
    }
    same = (
        np.array_equal(pair[CHALLENGER_ARM], pair[BASELINE_ARM]) and len(digests) == 1
    )
    scores = replace(
        own,
        values={primary: pair},
        identical=frozenset({frozenset(pair)} if same else ()),
    )
    check_margin("--margin", margin, scores.span_of(primary))
    return gate_scores(
        scores,
        margin=margin,
        settings=settings_at_look(
            settings_of_run(challenger.results.manifest), scores.n
        ),
    )


def shared_gate_queries(
    challenger: Results, baseline: Results, *, corpus_changed: bool = False
) -> SharedQueries:
    """Return the queries on which retrievers of two folders can be gated.

    Raises:
        InputError: the documents, the primary measure, or the text or the grades of a query in both are not the same.
    """
    where, remedy = (
        str(baseline.folder),
        f"run its experiment again on the data of {challenger.folder}",
    )
    problems = []
    measures = [
        primary_measure(one.manifest.resolved) for one in (challenger, baseline)
    ]
    if measures[0] != measures[1]:
        what = f"was decided by {measures[1]}, and {challenger.folder} by {measures[0]}"
        problems.append(Problem(where, what, "use one primary measure for both"))
    if corpus_changed and not problems:
        removed = (
            read_corpus_digests(baseline.folder).keys()
            - read_corpus_digests(challenger.folder).keys()
        )
        return find_shared_queries([challenger, baseline], removed=removed)
    if (
        challenger.manifest.dataset.corpus_digest
        != baseline.manifest.dataset.corpus_digest
    ):
        problems.append(
            Problem(
                where,
                f"holds results on other documents than {challenger.folder}",
                remedy,
            )
        )
    shared = find_shared_queries([challenger, baseline])
    if changed := shared.reworded + shared.relabelled:
        what = f"has {changed:,} of the same queries with another text or other grades than {challenger.folder}"
        problems.append(Problem(where, what, remedy))
    elif not shared.ids:
        problems.append(
            Problem(where, f"has no query in common with {challenger.folder}", remedy)
        )
    if problems:
        raise InputError(problems)
    return shared


def _check(sides: tuple[GateArm, GateArm]) -> None:
    """Refuse a folder without scores, a retriever without results, and a comparison with itself."""
    for results, _ in sides:
        if not results.scored:
            raise InputError(Problem(str(results.folder), *NO_SCORES))
    (first, challenger), (second, baseline) = sides
    if first is second and challenger == baseline:
        raise InputError(
            Problem(
                challenger,
                "would be compared with itself",
                "name two different retrievers",
            )
        )
    if missing := [
        Problem(
            str(results.folder),
            f"holds no retriever {name!r}",
            did_you_mean(name, results.retrievers),
        )
        for results, name in sides
        if name not in results.retrievers
    ]:
        raise InputError(missing)


@dataclass(frozen=True, slots=True)
class Gate:
    """Whether a challenger was shown not to be worse than the baseline by the margin; `wording` says why."""

    passed: bool
    n: int
    clusters: int | None
    """Clusters of queries; None where none are declared."""
    mean_difference: float
    """mean(challenger) - mean(baseline)."""
    margin: float
    p_value: float
    needed: int | None
    """Queries (clusters, where declared) below which it cannot be shown; None: never, since the range is unknown."""
    measured: bool
    """False where every score is 0."""
    identical: bool
    """Whether the rankings are the same on every query."""
    alpha_spent: bool = False
    """Whether the planned looks have spent alpha: it cannot pass then."""

    @property
    def too_few(self) -> bool:
        """Whether so few queries can never show it."""
        return self.needed is not None and (self.clusters or self.n) < self.needed

"""Rankings x judgments x measures -> per-query scores -> summaries and comparisons, as tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import NamedTuple

import numpy as np
import pandas as pd

from harness.dataset import Labels
from harness.experiment import Experiment, Relevance
from harness.measures import Measure, score
from harness.measures.grades import STEEPEST, Buckets, gain_of, gain_warning, grade
from harness.stats import Comparison, Settings, Summary, compare_all, summarize
from retrievers.errors import InputError, Problem
from retrievers.types import Ranking

Judgments = Mapping[str, Mapping[str, int]]
Rankings = Mapping[str, Mapping[str, Ranking]]
"""Retriever -> query id -> its answer."""

SCORE_COLUMNS = ("retriever", "query_id", "measure", "value")
SUMMARY_COLUMNS = ("retriever", "measure", *(f.name for f in fields(Summary)))
TEST_COLUMNS = ("family", "measure", "a", "b", "n", "statistic", "p_value", "p_adjusted", "method", "note")
COMPARISON_COLUMNS = tuple(f.name for f in fields(Comparison))


@dataclass(frozen=True, slots=True)
class Scored:
    """What the numbers say: three tables, columns as in the CSV files of a results folder."""

    scores: pd.DataFrame
    summary: pd.DataFrame
    comparisons: pd.DataFrame
    tests: pd.DataFrame


class Judged(NamedTuple):
    """Labels after the grade rule."""

    grades: dict[str, dict[str, int]]
    """Query id -> document id -> grade, for every query with a relevant document."""
    warning: str
    """What to know about the grades under the experiment's gain; "" where nothing."""


def judge(labels: Mapping[str, Labels], relevance: Relevance) -> Judged:
    """Apply the grade rule to the labels.

    Queries without a relevant document are left out, for all retrievers alike. Groups of alternatives are graded 1.

    Raises:
        InputError: the rule does not fit the labels, or the grades do not fit the gain.
    """
    grades = {query: _grades(query, said, relevance) for query, said in labels.items() if said.relevant}
    rule = relevance.grades or ("explicit" if any(said.grades is not None for said in labels.values()) else "linear")
    named = rule if isinstance(rule, str) else "buckets"
    largest = max((max(judged.values()) for judged in grades.values()), default=0)
    return Judged(grades, gain_warning(named, largest, relevance.gain))


def gains(grades: Judgments) -> dict[str, dict[str, int]] | None:
    """The exponential gains 2^grade - 1; None where a grade is too high for them to mean anything."""
    if any(g > STEEPEST for judged in grades.values() for g in judged.values()):
        return None
    return {q: {doc: gain_of(g, "exponential") for doc, g in judged.items()} for q, judged in grades.items()}


def evaluate(experiment: Experiment, measures: Sequence[Measure], grades: Judgments, rankings: Rankings) -> Scored:
    """Score every retriever on every measure, summarize, and compare.

    Args:
        experiment: declares primary measure, baseline and tests.
        measures: what to score, the primary measure among them.
        grades: query id -> document id -> grade.
        rankings: a missing answer counts as an empty one.
    """
    queries = sorted(grades)
    judged = {query: grades[query] for query in queries}
    values: dict[str, dict[str, np.ndarray[tuple[int], np.dtype[np.float64]]]] = {str(m): {} for m in measures}
    for retriever, answers in rankings.items():
        found = score(measures, judged, {query: ranking.doc_ids for query, ranking in answers.items()})
        for measure in measures:
            values[str(measure)][retriever] = found.of(measure)
    settings = settings_of(experiment)
    rows = compare_all(values, primary=experiment.primary, baseline=_baseline(experiment, rankings), settings=settings)
    summaries = [
        (retriever, measure, *asdict(summarize(values[measure][retriever], settings.level)).values())
        for retriever in rankings
        for measure in values
    ]
    return Scored(
        scores=pd.concat(_score_rows(values, queries, list(rankings)), ignore_index=True),
        summary=pd.DataFrame(summaries, columns=list(SUMMARY_COLUMNS)),
        comparisons=pd.DataFrame([asdict(row) for row in rows], columns=list(COMPARISON_COLUMNS)),
        tests=pd.DataFrame(columns=list(TEST_COLUMNS)),
    )


def settings_of(experiment: Experiment) -> Settings:
    """The statistics that an experiment declares, with its seed."""
    return Settings(**experiment.statistics.model_dump(), seed=experiment.seed)


def _baseline(experiment: Experiment, rankings: Rankings) -> str | None:
    """The declared baseline; without its rankings (it failed) all pairs are compared."""
    return experiment.baseline if experiment.baseline in rankings else None


def _score_rows(
    values: Mapping[str, Mapping[str, np.ndarray[tuple[int], np.dtype[np.float64]]]],
    queries: list[str],
    names: list[str],
) -> list[pd.DataFrame]:
    return [
        pd.DataFrame(dict(zip(SCORE_COLUMNS, (name, queries, measure, values[measure][name]), strict=True)))
        for name in names
        for measure in values
    ] or [pd.DataFrame(columns=list(SCORE_COLUMNS))]


def _grades(query: str, said: Labels, relevance: Relevance) -> dict[str, int]:
    rule = relevance.grades
    remedy = "leave grades out to take the labels as they are"
    if said.grades is not None:
        if rule in (None, "explicit"):
            return dict(said.grades)
        if rule == "binary":
            return {doc: min(g, 1) for doc, g in said.grades.items()}
        what = f"query {query!r} has grades, no order: {rule!r} cannot be applied"
        raise InputError(Problem("relevance.grades", what, remedy))
    if rule == "explicit":
        raise InputError(Problem("relevance.grades", f"query {query!r} has a list of documents, no grades", remedy))
    if said.groups is not None:
        return dict.fromkeys(said.documents, 1)
    return grade(said.documents, Buckets(rule) if isinstance(rule, tuple) else rule or "linear").grades

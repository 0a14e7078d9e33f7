"""Rankings x judgments x measures -> per-query scores -> summaries and comparisons, as tables."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import pandas as pd

from harness.experiment import Experiment, Question, Reranked
from harness.measures import Measure, tie_ranges
from harness.measures.table import is_binary
from harness.records import TieRange
from harness.scoring.ceiling import candidates_read, perfect
from harness.scoring.facts import clusters_of, facts_of
from harness.scoring.grading import GradedLabels, scores_of
from harness.scoring.undefined import compare_defined, defined_everywhere, kept_facts, kept_scores
from harness.stats import (
    Comparison,
    Facts,
    Settings,
    Summary,
    TestRow,
    at_look,
    family,
    friedman_row,
    interaction_family,
    length_slices,
    pair_family,
    pairwise_families,
    slice_family,
    summarize,
)
from retrievers.types import Floats, Query, Ranking

Rankings = Mapping[str, Mapping[str, Ranking]]
"""Retriever -> query id -> its answer."""
Provenances = Mapping[str, Mapping[str, str]]
"""Retriever -> what it says of itself."""
Pairs = Sequence[tuple[str, str]]
Values = dict[str, dict[str, Floats]]
"""Measure -> retriever -> scores, queries in the order of their ids."""

SCORE_COLUMNS = ("retriever", "query_id", "measure", "value")
SUMMARY_COLUMNS = ("retriever", "measure", *(f.name for f in fields(Summary)))
TEST_COLUMNS = tuple(f.name for f in fields(TestRow))
COMPARISON_COLUMNS = tuple(f.name for f in fields(Comparison))
COLUMNS = (SCORE_COLUMNS, SUMMARY_COLUMNS, COMPARISON_COLUMNS, TEST_COLUMNS)


@dataclass(frozen=True, slots=True)
class ScoreTables:
    """What follows from rankings and labels: tables, columns as in the CSV files of a results folder."""

    scores: pd.DataFrame
    summary: pd.DataFrame
    comparisons: pd.DataFrame
    tests: pd.DataFrame


def evaluate(question: Question, queries: Mapping[str, Query], judged: GradedLabels, rankings: Rankings) -> ScoreTables:
    """Score every retriever on every measure, summarize, and compare.

    Args:
        question: measures, primary measure, baseline and tests.
        queries: every judged query, by id; their texts and fields make the slices.
        judged: the labels after the grade rule; these queries are scored.
        rankings: a missing answer counts as an empty one.

    Without a query that can be scored, the tables are empty.
    """
    return tables_of(question, queries, judged, rankings, scored(question, judged, rankings))


def scored(question: Question, judged: GradedLabels, rankings: Rankings) -> Values:
    """Score every retriever on every measure, queries in the order of their ids."""
    judged = judged._replace(grades={query: judged.grades[query] for query in sorted(judged.grades)})
    values: Values = {str(measure): {} for measure in question.measures}
    for retriever, answers in rankings.items() if judged.grades else ():
        documents = {query: ranking.doc_ids for query, ranking in answers.items()}
        computed = scores_of(question.measures, judged, documents)
        for measure in question.measures:
            values[str(measure)][retriever] = computed.of(measure)
    return values


def tables_of(
    question: Question, queries: Mapping[str, Query], judged: GradedLabels, rankings: Rankings, values: Values,
    provenances: Provenances = MappingProxyType({}),
) -> ScoreTables:  # fmt: skip
    """Summarize and compare what `scored` returned; arguments as for `evaluate`.

    Of a reranker, `provenances` say how many candidates it read; else its options do.
    """
    ids = sorted(judged.grades)
    if not ids:
        return ScoreTables(*(pd.DataFrame(columns=list(columns)) for columns in COLUMNS))
    grades = {query: judged.grades[query] for query in ids}
    asked = [queries[query] for query in ids]
    declared = replace(settings_of(question.experiment), by_people=judged.by_people)
    settings, primary = at_look(declared, len(ids)), str(question.primary)
    facts = facts_of(
        question.measures,
        grades,
        {name: {query: ranking.doc_ids for query, ranking in answers.items()} for name, answers in rankings.items()},
        primary=question.primary,
        clusters=clusters_of(asked, settings.cluster),
    )
    # A declared baseline that failed has no rankings: then all pairs are compared.
    baseline = question.experiment.baseline if question.experiment.baseline in rankings else None
    rows = compare_defined(values, primary=primary, baseline=baseline, settings=settings, facts=facts)
    pairs = family(list(rankings), baseline)
    decides = defined_everywhere(values[primary])
    decided, asked = kept_scores(values[primary], decides), [asked[i] for i in np.flatnonzero(decides).tolist()]
    context = FamilyContext(primary, settings, kept_facts(facts, decides))
    others = [
        *pairwise_families(decided, pairs, measure=primary, settings=settings, facts=context.facts),
        *_friedman_rows(values, pairs, facts),
        *_slices(decided, pairs, asked, context),
        *_uplifts(question, judged._replace(grades=grades), rankings, decided, context, provenances),
    ] if asked else []  # fmt: skip
    summaries = [
        (
            retriever,
            str(measure),
            *asdict(described(measure, values[str(measure)][retriever], settings.level, facts)).values(),
        )
        for retriever in rankings
        for measure in question.measures
        if not np.isnan(values[str(measure)][retriever]).all()
    ]
    return ScoreTables(
        scores=pd.concat(_score_rows(values, ids, list(rankings)), ignore_index=True),
        summary=pd.DataFrame(summaries, columns=list(SUMMARY_COLUMNS)),
        comparisons=pd.DataFrame([asdict(row) for row in rows], columns=list(COMPARISON_COLUMNS)),
        tests=pd.DataFrame([asdict(row) for row in others], columns=list(TEST_COLUMNS)),
    )


class FamilyContext(NamedTuple):
    """What every family of tests needs beside its scores."""

    measure: str
    settings: Settings
    facts: Facts


def described(measure: Measure, values: Floats, level: float, facts: Facts) -> Summary:
    """Summarize one retriever's scores on a measure, which says whether they can be anything but 0 and 1.

    Queries for which the measure is undefined (NaN) are left out; one must be left.
    """
    kept = ~np.isnan(values)
    bounds, units = facts.ranges.get(str(measure)), kept_facts(facts, kept).units(int(kept.sum()))
    return summarize(values[kept], level, binary=is_binary(measure), bounds=bounds, units=units)


def ties_of(question: Question, judged: GradedLabels, answers: Mapping[str, Ranking]) -> TieRange:
    """Find the queries where equal scores meet the primary measure's cutoff, and how far their order could move it."""
    grades = {query: given for query, given in judged.grades.items() if given or question.primary.claimed}
    ranges = tie_ranges(question.primary, grades, _AsScores(answers), groups=judged.groups or None,
                        claims=judged.claims, seed=question.experiment.seed)  # fmt: skip
    ranges = [one for one in ranges if not math.isnan(one.expected)]  # undefined queries are in no mean
    moved = tuple(one.query_id for one in ranges if one.worst < one.best)
    n = len(ranges) or 1
    worst, expected, best = (
        math.fsum(getattr(one, name) for one in ranges) / n for name in ("worst", "expected", "best")
    )
    return TieRange(queries=moved, worst=worst, expected=expected, best=best)


class _AsScores(Mapping[str, Mapping[str, float]]):
    """Rankings as query id -> document id -> score, each made where it is asked for: all of them take gigabytes."""

    def __init__(self, answers: Mapping[str, Ranking]) -> None:
        self._answers = answers

    def __getitem__(self, query: str) -> Mapping[str, float]:
        return dict(self._answers[query])

    def __iter__(self) -> Iterator[str]:
        return iter(self._answers)

    def __len__(self) -> int:
        return len(self._answers)


def settings_of(experiment: Experiment) -> Settings:
    """The statistics that an experiment declares, with its seed."""
    return Settings.of(asdict(experiment.statistics), experiment.seed)


def slices_of(queries: Sequence[Query], cluster: str | None = None) -> dict[str, list[str]]:
    """Return family -> each query's slice: by its text's length, and by each field that queries have.

    A field whose values are the clusters makes no slices.
    """
    kinds = {"query length": length_slices([query.text for query in queries])} if queries else {}
    for name in sorted({name for query in queries for name in query.fields} - {cluster}):
        kinds[f"field {name}"] = [query.fields.get(name, "") for query in queries]
    return kinds


def _friedman_rows(values: Values, pairs: Pairs, facts: Facts) -> Iterator[TestRow]:
    for measure, of in values.items():
        kept = defined_everywhere(of)
        if pairs and kept.any():
            yield friedman_row(kept_scores(of, kept), measure=measure, facts=kept_facts(facts, kept))


def _slices(
    scores: Mapping[str, Floats], pairs: Pairs, queries: Sequence[Query], context: FamilyContext
) -> Iterator[TestRow]:
    """The pairs within the queries of one length, and of one value of each field that has several; and between them."""
    measure, settings, facts = context
    for name, labels in slices_of(queries, settings.cluster).items():
        if len(set(labels)) > 1:
            names, between = (name, measure), (f"interaction {name}", measure)
            yield from slice_family(scores, pairs, labels, names=names, settings=settings, facts=facts)
            yield from interaction_family(scores, pairs, labels, names=between, settings=settings, facts=facts)


def _uplifts(
    question: Question, judged: GradedLabels, rankings: Rankings, scores: Mapping[str, Floats],
    context: FamilyContext, provenances: Provenances,
) -> Iterator[TestRow]:  # fmt: skip
    """Each reranked retriever against its own first stage, with the ceiling that the candidates allow."""
    blocks = {
        (block.name, block.of): candidates_read(provenances.get(block.name, {}), block.rerank.options)
        for block in question.experiment.retrievers
        if isinstance(block, Reranked) and {block.name, block.of} <= rankings.keys()
    }
    names = ("rerank uplift", context.measure)
    rows = pair_family(scores, list(blocks), names=names, settings=context.settings, facts=context.facts)
    for row in rows:
        # Nobody judged the claims against candidates below the cutoff: what could be made of them is not known.
        note = "no ceiling: the candidates below the cutoff have no verdicts" if question.primary.claimed else (
            f"ceiling {_ceiling(question, judged, rankings[row.b], blocks[row.a, row.b]):.4f}"
        )  # fmt: skip
        yield replace(row, note=note)


def _ceiling(question: Question, judged: GradedLabels, answers: Mapping[str, Ranking], depth: int | None) -> float:
    """The mean that a perfect reranker would reach from the first `depth` candidates."""
    best = {
        query: perfect(answers[query].doc_ids, judged.grades[query], depth)
        for query in judged.grades
        if query in answers
    }
    return scores_of([question.primary], judged, best).means()[question.primary]


def _score_rows(values: Values, queries: list[str], names: list[str]) -> list[pd.DataFrame]:
    return [
        pd.DataFrame(dict(zip(SCORE_COLUMNS, (name, queries, measure, values[measure][name]), strict=True)))
        for name in names
        for measure in values
    ] or [pd.DataFrame(columns=list(SCORE_COLUMNS))]

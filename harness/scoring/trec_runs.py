"""Run files scored by trec_eval's rules.

Each run is scored by itself, on the queries that `conventions` make count; then all
join one table. If no hit of a run is judged, its ids are matched with those of the
judgments first; a run that cannot be matched has no scores, and the others do.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

from harness.english import rising_run_count, tied_run_count
from harness.measures import Measure, MeasureValues, measure_rankings, measure_run
from harness.measures.score import Grades, Precision
from harness.measures.table import row_of
from harness.scoring.conventions import RunConventions, counting_queries
from harness.scoring.grades import ABSTAIN_MEASURE
from harness.scoring.match_run_ids import UnmatchedRun, match_run_ids
from harness.scoring.query_hits import HitKeeper, QueryHits, hits_by_query
from harness.scoring.run_names import name_runs
from harness.scoring.score_table import scores_from_columns
from harness.scoring.scores import RankedIds, ScoreColumn, Scores
from retrievers.errors import InputError, Problem
from retrievers.files.run_scores import find_contradictions
from retrievers.files.trec_files import Qrels, RunScores, read_qrels, read_run
from retrievers.types import Floats


class ScoredRun(NamedTuple):
    """One run's values, before it joins others."""

    name: str
    values: MeasureValues
    """Values of the queries that count."""
    notes: tuple[str, ...]
    """What a reader of its scores must know."""
    read_rankings: Callable[[], RankedIds]


class RunSource(NamedTuple):
    """A run's name and place, how to get its hits, and the conventions that apply."""

    name: str
    where: str
    """Its name in messages."""
    conventions: RunConventions
    read_hits: Callable[[], Iterable[QueryHits]]


def score_trec_runs(
    qrels: str | Path,
    runs: Sequence[str | Path],
    measures: Sequence[Measure],
    *,
    conventions: RunConventions = RunConventions(),  # noqa: B008
) -> Scores:
    """Score TREC run files, plain or gzip, against a qrels file.

    Rankings are kept in memory while there is room; those of further runs are read
    again.

    Args:
        qrels: a file of judgments.
        runs: files of rankings.
        measures: the measures to compute; TREC judgments have no groups. The first
            decides.
        conventions: which queries count, and how scores are compared.

    Raises:
        InputError: a run is named twice; a measure needs groups, or queries that are
            known to have no answer; the qrels cannot be read; with the problems of all
            runs: lines that cannot be read, no run with a judged hit, a query in the
            conventions that is not judged.
    """
    _refuse_repeated(runs)
    refuse_unfit_measures(measures)
    judgments = read_qrels(qrels)
    scored_runs: list[ScoredRun] = []
    problems: list[Problem] = []
    unmatched: list[Problem] = []
    keeper = HitKeeper()
    for name, path in zip(name_runs(runs), runs, strict=True):
        try:
            run = read_run(path)
            hits = list(hits_by_query(run))
            read_hits = _hits_reader(path, hits, keeper)
            source = RunSource(name, str(path), conventions, read_hits)
            scored = _score_run(source, run, judgments, measures)
            counting = frozenset(scored.values.query_ids)
            contradictions = find_contradictions(
                _score_lists(hits, counting), Path(path)
            )
            query_count = contradictions.query_count
            order_notes = (
                tied_run_count(len(contradictions.tied), query_count),
                rising_run_count(len(contradictions.rising), query_count),
            )
            scored_runs.append(_with_notes(scored, *order_notes))
        except UnmatchedRun as error:
            unmatched += error.problems
        except InputError as error:
            problems += error.problems
    if problems or not scored_runs:
        raise InputError(list(dict.fromkeys([*problems, *unmatched])))
    scores = join_runs(scored_runs, judgments, measures)
    return replace(scores, unmatched=tuple(unmatched))


def _score_lists(
    hits: Iterable[QueryHits], counting: frozenset[str]
) -> Iterable[tuple[str, Floats]]:
    """Return the scores of the hits of each query that counts."""
    return (
        (query_hits.query_id, query_hits.scores)
        for query_hits in hits
        if query_hits.query_id in counting
    )


def _refuse_repeated(runs: Sequence[str | Path]) -> None:
    """Refuse a run that is named twice, under one path or two.

    Raises:
        InputError: there is one.
    """
    paths = [Path(run).resolve() for run in runs]
    for run, path in zip(runs, paths, strict=True):
        if paths.count(path) > 1:
            raise InputError(Problem(str(run), "is named twice", "name each run once"))


def refuse_unfit_measures(measures: Sequence[Measure]) -> None:
    """Refuse measures that need what judgments alone do not say.

    That is groups of alternatives, and for Abstain, which queries have no answer.

    Raises:
        InputError: there are any.
    """
    problems: list[Problem] = []
    for measure in measures:
        if measure.get("groups"):
            problem = "there are no AND/OR groups in qrels"
            remedy = "leave out groups="
        elif measure.name == ABSTAIN_MEASURE:
            problem = "qrels do not say which queries have no answer"
            remedy = "leave it out, or run an experiment on a data set that marks them"
        else:
            continue
        problems.append(Problem(f"measure {str(measure)!r}", problem, remedy))
    if problems:
        raise InputError(problems)


def _hits_reader(
    path: str | Path, hits: Sequence[QueryHits], keeper: HitKeeper
) -> Callable[[], Iterable[QueryHits]]:
    """Return a function that gives a run's hits once more.

    A file is read again if there is no room to keep them; a pipe can be read only once.
    """
    if keeper.reserve(hits) or not Path(path).is_file():
        return lambda: hits
    return lambda: hits_by_query(read_run(path))


def join_runs(
    runs: Sequence[ScoredRun], judgments: Grades, measures: Sequence[Measure]
) -> Scores:
    """Join the values of runs into one table.

    A query that counts for one run alone is undefined for the others.

    Args:
        runs: at least one, scored on the same measures.
        judgments: query id -> document id -> grade; their order is that of the rows.
        measures: the first decides.
    """
    queries_of_run = {run.name: frozenset(run.values.query_ids) for run in runs}
    counting = frozenset().union(*queries_of_run.values())
    scored = {
        query_id: judged
        for query_id, judged in judgments.items()
        if query_id in counting
    }
    columns: list[ScoreColumn] = []
    for measure in measures:
        columns.extend(
            ScoreColumn(
                measure=str(measure),
                retriever=run.name,
                query_ids=run.values.query_ids,
                values=run.values.values_of(measure),
            )
            for run in runs
        )
    rankings = {run.name: run.read_rankings for run in runs}
    scores = scores_from_columns(
        columns,
        scored,
        rankings,
        compared=rankings,
        source_order=scored,
        primary=str(measures[0]),
    )
    notes: list[str] = []
    absent: set[tuple[str, str]] = set()
    for run in runs:
        notes += [f"{run.name}: {note}" for note in run.notes]
        for query_id in scores.ids:
            if query_id not in queries_of_run[run.name]:
                absent.add((run.name, query_id))
    return replace(
        scores,
        has_irrelevant_labels=False,  # it is about judged shares, which runs lack
        notes=tuple(notes),
        absent=frozenset(absent),
    )


def score_run_in_memory(
    name: str, run: RunScores, judgments: Qrels, measures: Sequence[Measure]
) -> ScoredRun:
    """Score one run; a judged query that it lacks scores 0 and counts.

    Args:
        name: of the run.
        run: query id -> document id -> score.
        judgments: query id -> document id -> grade.
        measures: the measures to compute.

    Raises:
        InputError: no query is left to score.
        UnmatchedRun: none of its hits is judged.
    """
    read_hits = partial(hits_by_query, run)
    source = RunSource(name, f"runs[{name!r}]", RunConventions(), read_hits)
    scored = _score_run(source, run, judgments, measures)
    # A mapping has no order of its own: only ties are seen.
    counting = frozenset(scored.values.query_ids)
    contradictions = find_contradictions(_score_lists(read_hits(), counting))
    ties = tied_run_count(len(contradictions.tied), contradictions.query_count)
    return _with_notes(scored, ties)


def _with_notes(scored: ScoredRun, *sentences: str) -> ScoredRun:
    """Return a run with further notes; empty ones are left out."""
    return scored._replace(notes=(*scored.notes, *filter(None, sentences)))


def _score_run(
    source: RunSource, run: RunScores, judgments: Grades, measures: Sequence[Measure]
) -> ScoredRun:
    """Score a run; its ids are matched first if none of its hits is judged.

    Raises:
        InputError: no query is left to score.
        UnmatchedRun: none of its hits is judged.
    """
    where = source.where
    conventions = source.conventions
    judged_queries = judgments.keys() & run.keys()
    if not judged_queries:
        raise _unmatched_queries(run, judgments, where)
    read_hits = source.read_hits
    match_note = ""
    if not any(
        judgments[query_id].keys() & run[query_id] for query_id in judged_queries
    ):
        run, match_note = match_run_ids(run, judgments, where)
        read_hits = partial(hits_by_query, run)
    values = _measure_values(measures, judgments, run, conventions.precision)
    counting, notes = counting_queries(judgments, judged_queries, conventions)
    if match_note:
        notes.append(match_note)
    notes += _largest_grade_notes(values)
    ignored = len(run.keys() - judgments.keys())
    if ignored:
        notes.append(f"queries of the run without labels: {ignored} (ignored)")
    if not counting:
        raise InputError(Problem(where, "no query is left to score", "; ".join(notes)))
    if len(counting) < len(judgments):
        values = values.for_queries(counting)
    read_rankings = partial(
        _read_rankings, read_hits, frozenset(values.query_ids), conventions.precision
    )
    return ScoredRun(source.name, values, tuple(notes), read_rankings)


def _largest_grade_notes(values: MeasureValues) -> list[str]:
    """Return a note for each measure that depends on the largest grade."""
    names: dict[str, None] = {}
    for measure in values.measures:
        if row_of(measure).by_largest_grade:
            names[measure.name] = None
    grade = values.largest_grade
    return [f"{name}: the largest grade of the qrels is G = {grade}" for name in names]


def _unmatched_queries(run: RunScores, judgments: Grades, where: str) -> UnmatchedRun:
    """Return the error that none of a run's queries is judged."""
    run_example = next(iter(run), "nothing")
    judged_example = next(iter(judgments))
    examples = f"ids look like {run_example!r} here and {judged_example!r} in the qrels"
    problem = f"none of its queries is judged: {examples}"
    return UnmatchedRun(Problem(where, problem, "give the qrels of the same queries"))


def _measure_values(
    measures: Sequence[Measure], judgments: Grades, run: RunScores, precision: Precision
) -> MeasureValues:
    """Return the values of a run; the user's own measures need lists of documents."""
    if not any(measure.is_own for measure in measures):
        return measure_run(measures, judgments, run, precision=precision)
    rankings = {hits.query_id: hits.rank(precision) for hits in hits_by_query(run)}
    return measure_rankings(measures, judgments, rankings)


def _read_rankings(
    read_hits: Callable[[], Iterable[QueryHits]],
    queries: Collection[str],
    precision: Precision,
) -> RankedIds:
    """Return a run's rankings of these queries."""
    return {
        hits.query_id: hits.rank(precision)
        for hits in read_hits()
        if hits.query_id in queries
    }

"""Anyone's runs scored by trec_eval's rules."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from harness.measures import Measure, MeasureValues, measure_rankings, measure_run
from harness.measures.score import Grades, Precision
from harness.measures.table import row_of
from harness.scoring.conventions import RunConventions, counting_queries
from harness.scoring.run_names import name_runs
from harness.scoring.score_table import scores_from_columns
from harness.scoring.scores import RankedIds, Scores
from retrievers.errors import InputError, Problem
from retrievers.files.trec_files import Qrels, RunScores, read_qrels, read_run
from retrievers.ids import KnownDocuments, count_matches_by_way


class ScoredRun(NamedTuple):
    """One run's values, before it joins others."""

    name: str
    values: MeasureValues
    """Of the queries that count."""
    notes: tuple[str, ...]
    lists: Callable[[], RankedIds]
    """Reads what it ranks."""


def score_trec_runs(
    qrels: str | Path,
    runs: Sequence[str | Path],
    measures: Sequence[Measure],
    *,
    conventions: RunConventions = RunConventions(),  # noqa: B008
) -> Scores:
    """Score TREC run files, plain or gzip, against a qrels file.

    Of the rankings only those of runs with the same scores are kept: they are read once more.

    Args:
        qrels: a file of judgments.
        runs: files of rankings.
        measures: what to compute; TREC judgments have no groups. The first decides.
        conventions: which queries count, and how scores are compared.

    Raises:
        InputError: with the problems of all files: what `trec` finds in them, no run with a judged hit, a query
            asked for that is not judged. A run is named twice; a measure asks for groups.
    """
    if again := next(
        (run for run in runs if [*map(Path, runs)].count(Path(run)) > 1), None
    ):
        raise InputError(Problem(str(again), "is named twice", "name each run once"))
    if grouped := [measure for measure in measures if measure.get("groups")]:
        what, remedy = "there are no AND/OR groups in TREC qrels", "leave out groups="
        raise InputError(
            [Problem(f"measure {str(measure)!r}", what, remedy) for measure in grouped]
        )
    judgments = read_qrels(qrels)
    done: list[ScoredRun] = []
    problems: list[Problem] = []
    unmatched: list[Problem] = []
    for name, run in zip(name_runs(runs), runs, strict=True):
        try:
            done.append(_scored_file(name, run, judgments, measures, conventions))
        except InputError as error:
            (unmatched if isinstance(error, UnmatchedRun) else problems).extend(
                error.problems
            )
    if problems or not done:
        raise InputError(list(dict.fromkeys([*problems, *unmatched])))
    return replace(join_runs(done, judgments, measures), unmatched=tuple(unmatched))


def join_runs(
    runs: Sequence[ScoredRun], judgments: Grades, measures: Sequence[Measure]
) -> Scores:
    """Put the values of runs into one table; a query that counts for one run alone is undefined for the others.

    Args:
        runs: at least one, scored on the same measures.
        judgments: query id -> document id -> grade; their order is that of the rows.
        measures: the first decides.
    """
    counted_in = {run.name: frozenset(run.values.query_ids) for run in runs}
    scored = [
        query for query in judgments if any(query in own for own in counted_in.values())
    ]
    columns = (
        (str(one), run.name, run.values.query_ids, run.values.values_of(one))
        for one in measures
        for run in runs
    )
    lists = {run.name: run.lists for run in runs}
    found = scores_from_columns(
        columns,
        {query: judgments[query] for query in scored},
        lists,
        scored,
        str(measures[0]),
    )
    return replace(
        found,
        has_irrelevant_labels=False,
        notes=tuple(f"{run.name}: {note}" for run in runs for note in run.notes),
        absent=frozenset(
            (name, query)
            for name, own in counted_in.items()
            for query in found.ids
            if query not in own
        ),
    )


def _ordered(
    read: Callable[[], RunScores], queries: Collection[str], precision: Precision
) -> dict[str, list[str]]:
    """What a run ranks, best first, of these queries; a file is read once more."""
    return {
        query: _in_order(hits, precision)
        for query, hits in read().items()
        if query in queries
    }


def _in_order(hits: Mapping[str, float], precision: Precision) -> list[str]:
    """Documents by trec_eval's rule: score descending, then id descending."""
    with np.errstate(over="ignore"):
        scores = {
            doc: float(np.float32(one)) if precision == "single" else one
            for doc, one in hits.items()
        }
    return sorted(scores, key=lambda doc: (scores[doc], doc), reverse=True)


def _scored_file(
    name: str,
    path: str | Path,
    judgments: Grades,
    measures: Sequence[Measure],
    conventions: RunConventions,
) -> ScoredRun:
    """Score one file; a pipe can be read only once."""
    run = read_run(path)
    again = partial(read_run, path) if Path(path).is_file() else lambda: run
    return _scored(
        RunSource(name, str(path), conventions), run, again, judgments, measures
    )


def score_run_in_memory(
    name: str, run: RunScores, judgments: Qrels, measures: Sequence[Measure]
) -> ScoredRun:
    """Score one run; a judged query that it lacks scores 0 and counts."""
    return _scored(
        RunSource(name, f"runs[{name!r}]", RunConventions()),
        run,
        lambda: run,
        judgments,
        measures,
    )


class RunSource(NamedTuple):
    """What a run is called, where it is from, and by which conventions it is scored."""

    name: str
    where: str
    conventions: RunConventions


def _scored(
    told: RunSource,
    run: RunScores,
    again: Callable[[], RunScores],
    judgments: Grades,
    measures: Sequence[Measure],
) -> ScoredRun:
    """Score a run, with what gives it once more."""
    (name, where, conventions), matched = told, ""
    met = judgments.keys() & run.keys()
    if not met:
        asked, here = next(iter(judgments)), next(iter(run), "nothing")
        what = f"none of its queries is judged: ids look like {here!r} here and {asked!r} in the qrels"
        raise UnmatchedRun(Problem(where, what, "give the qrels of the same queries"))
    if all(judgments[query].keys().isdisjoint(run[query]) for query in met):
        renamed, matched = match_run_ids(run, judgments, where)
        run, again = renamed, lambda: renamed
    if any(
        measure.is_own for measure in measures
    ):  # what is asked by lists of documents
        values = measure_rankings(
            measures,
            judgments,
            {query: _in_order(run[query], conventions.precision) for query in run},
        )
    else:
        values = measure_run(measures, judgments, run, precision=conventions.precision)
    kept, notes = counting_queries(judgments, met, conventions)
    steep = dict.fromkeys(
        measure.name for measure in measures if row_of(measure).by_largest_grade
    )
    notes += [matched] if matched else []
    notes += [
        f"{one}: the largest grade of the qrels is G = {values.largest_grade}"
        for one in steep
    ]
    if ignored := len(run.keys() - judgments.keys()):
        notes.append(f"queries of the run without labels: {ignored} (ignored)")
    if not kept:
        raise InputError(Problem(where, "no query is left to score", "; ".join(notes)))
    values = values if len(kept) == len(judgments) else values.for_queries(kept)
    lists = partial(_ordered, again, frozenset(values.query_ids), conventions.precision)
    return ScoredRun(name, values, tuple(notes), lists)


def match_run_ids(
    run: RunScores, judgments: Grades, where: str
) -> tuple[RunScores, str]:
    """A run without a judged hit, its ids matched with those of the judgments, and by what.

    Raises:
        UnmatchedRun: they cannot be matched.
    """
    known = KnownDocuments(
        {document for judged in judgments.values() for document in judged}
    )
    hits = {query: scored for query, scored in run.items() if query in judgments}
    matches = known.match(document for scored in hits.values() for document in scored)
    if not matches and any(hits.values()):
        theirs, ours = (
            next(doc for of in hits.values() for doc in of),
            min(known.ids, default="nothing"),
        )
        what = f"no hit is judged in any query: ids look like {theirs!r} here and {ours!r} in the qrels"
        raise UnmatchedRun(Problem(where, what, "give the qrels of the same documents"))
    ways = ", ".join(
        f"{number:,} by {way}"
        for way, number in count_matches_by_way(matches.values()).items()
        if way != "id"
    )
    names = {doc: match.document for doc, match in matches.items()}
    renamed = {
        query: {names.get(doc, doc): of[doc] for doc in sorted(of, key=of.__getitem__)}
        for query, of in run.items()
    }
    return renamed, f"ids matched: {ways}" if ways else ""


class UnmatchedRun(InputError):
    """No hit of a run is judged in any query: it has no scores, and others do."""

"""Score TREC runs against TREC qrels, by trec_eval's conventions."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from harness.dataset import trec
from harness.measures import Measure, Scores, score_run, span
from harness.measures.scores import Judgments, Precision
from harness.measures.table import row_of
from harness.scoring.facts import head_of
from harness.stats.words import count
from retrievers.errors import InputError, Problem


@dataclass(frozen=True, slots=True)
class Conventions:
    """Which queries count, and how finely scores are compared; as it stands, trec_eval -c."""

    skip_no_relevant: bool = False
    """Leave out judged queries without a relevant document; else they score 0 and count."""
    intersection: bool = False
    """Leave out judged queries that the run lacks; else they score 0 and count."""
    queries: Collection[str] | None = None
    """Only these queries."""
    precision: Precision = "single"
    """"single" compares scores as 32-bit floats, as trec_eval 9.0.8; "double" as 10.0."""


@dataclass(frozen=True, slots=True)
class ScoreRow:
    """One line of `-q`; the columns of scores.csv."""

    retriever: str
    query_id: str
    measure: str
    value: float


@dataclass(frozen=True, slots=True, eq=False)
class ScoredRun:
    """One run's scores."""

    name: str
    scores: Scores
    notes: tuple[str, ...]
    """What a reader of the numbers must know: queries that are missing, unjudged or without a relevant document."""
    spans: Mapping[str, float]
    """Measure -> how far apart two values of it can lie."""
    head: str = ""
    """Digest of what it ranks down to the first measure's cutoff; "" for a TREC run whose scores no other run has."""
    clusters: Mapping[str, str] | None = None
    """Query id -> its cluster; None where none are declared."""
    lists: Callable[[], Mapping[str, Sequence[str]]] | None = None
    """Reads what it ranks: query id -> document ids, best first; None where that cannot be read again."""

    def rows(self) -> Iterator[ScoreRow]:
        """Every value, measure by measure, in the order of the qrels."""
        for measure, row in zip(self.scores.measures, self.scores.values, strict=True):
            for query_id, value in zip(self.scores.query_ids, row.tolist(), strict=True):
                yield ScoreRow(self.name, query_id, str(measure), value)


def score_runs(
    qrels: str | Path,
    runs: Sequence[str | Path],
    measures: Sequence[Measure],
    *,
    conventions: Conventions = Conventions(),
) -> list[ScoredRun]:
    """Score TREC run files, plain or gzip, against a qrels file.

    A run whose lines stand together by query, as nearly all do, is read as a stream: memory holds the judgments
    and the values, never the run. Only runs with the same scores are read once more, whole, to see whether they rank
    the same.

    Args:
        qrels: a file of judgments.
        runs: files of rankings.
        measures: what to compute; TREC judgments have no groups.
        conventions: which queries count, and how scores are compared.

    Raises:
        InputError: with the problems of all files: what `trec` finds in them, a run that shares no query with the
            qrels, a query asked for that is not judged. A run is named twice; a measure asks for groups.
    """
    if again := next((run for run in runs if [*map(Path, runs)].count(Path(run)) > 1), None):
        raise InputError(Problem(str(again), "is named twice", "name each run once"))
    if grouped := [measure for measure in measures if measure.get("groups")]:
        what, remedy = "there are no AND/OR groups in TREC judgments", "leave out groups="
        raise InputError([Problem(f"measure {str(measure)!r}", what, remedy) for measure in grouped])
    judgments = trec.read_qrels(qrels)
    names = run_names(runs)
    done: list[ScoredRun] = []
    problems: list[Problem] = []
    for name, run in zip(names, runs, strict=True):
        try:
            done.append(_scored_file(name, run, judgments, measures, conventions))
        except InputError as error:
            problems.extend(error.problems)
    if problems:
        raise InputError(list(dict.fromkeys(problems)))
    done = [
        replace(one, lists=partial(_lists, path, one.scores.query_ids, conventions.precision))
        if Path(path).is_file() else one
        for one, path in zip(done, runs, strict=True)
    ]  # fmt: skip
    return [
        replace(one, head=_head(path, one.scores.query_ids, measures[0].cutoff, conventions.precision))
        if Path(path).is_file() and any(other is not one and _same_scores(one.scores, other.scores) for other in done)
        else one
        for one, path in zip(done, runs, strict=True)
    ]


def _same_scores(a: Scores, b: Scores) -> bool:
    """Whether two runs have the same values on the first measure: only then can their rankings be the same."""
    return a.query_ids == b.query_ids and np.array_equal(a.values[0], b.values[0], equal_nan=True)


def _head(path: str | Path, queries: Sequence[str], cutoff: int | None, precision: Precision) -> str:
    """The digest of what a run ranks down to a cutoff; the file is read once more."""
    answers = _lists(path, queries, precision)
    return head_of({query: documents[:cutoff] for query, documents in answers.items()}, sorted(queries), cutoff)


def _lists(path: str | Path, queries: Sequence[str], precision: Precision) -> dict[str, list[str]]:
    """What a run ranks, best first; the file is read once more."""
    wanted = set(queries)
    return {query: _in_order(hits, precision) for query, hits in trec.read_run(path).items() if query in wanted}


def _in_order(hits: Mapping[str, float], precision: Precision) -> list[str]:
    """Documents by trec_eval's rule: score descending, then id descending."""
    with np.errstate(over="ignore"):
        scores = {doc: float(np.float32(one)) if precision == "single" else one for doc, one in hits.items()}
    return sorted(scores, key=lambda doc: (scores[doc], doc), reverse=True)


def _scored_file(
    name: str, path: str | Path, judgments: Judgments, measures: Sequence[Measure], conventions: Conventions
) -> ScoredRun:
    met: set[str] = set()
    unjudged: set[str] = set()

    def separated(run: Iterator[tuple[str, dict[str, float]]]) -> Iterator[tuple[str, dict[str, float]]]:
        for query_id, hits in run:
            if query_id in met:
                raise _QueryApart
            (met if query_id in judgments else unjudged).add(query_id)
            yield query_id, hits

    def scored(run: Iterator[tuple[str, dict[str, float]]]) -> Scores:
        return score_run(measures, judgments, separated(run), precision=conventions.precision)

    try:
        scores = scored(trec.stream_run(path))
    except _QueryApart:
        if not Path(path).is_file():
            what = "the lines of a query do not stand together, and it cannot be read again: it is no regular file"
            raise InputError(Problem(str(path), what, "write it to a file first")) from None
        met.clear()
        scores = scored(iter(trec.read_run(path).items()))
    if not met:
        asked, here = next(iter(judgments)), next(iter(unjudged))
        what = f"none of its queries is judged: ids look like {here!r} here and {asked!r} in the qrels"
        raise InputError(Problem(str(path), what, "give the qrels of the same queries"))
    kept, notes = counted(judgments, met, conventions)
    for name in dict.fromkeys(measure.name for measure in measures if row_of(measure).by_largest_grade):
        notes.append(f"{name}: the largest grade of the qrels is G = {scores.largest_grade}")
    if unjudged:
        notes.append(f"queries of the run without judgments: {len(unjudged)} (left aside)")
    if not kept:
        raise InputError(Problem(str(path), "no query is left to score", "; ".join(notes)))
    judged = {query: grades for query, grades in judgments.items() if query in kept}
    spans = {str(measure): span(measure, judged) for measure in measures}
    return ScoredRun(name, scores if len(kept) == len(judgments) else scores.only(kept), tuple(notes), spans)


class _QueryApart(Exception):
    """A query's lines do not stand together: the run cannot be read as a stream."""


def counted(judgments: Judgments, met: set[str], conventions: Conventions) -> tuple[set[str], list[str]]:
    """The queries that count, and what there is to tell about the others."""
    kept = set(judgments)
    notes = []
    if conventions.queries is not None:
        unknown = [q for q in conventions.queries if q not in judgments]
        if unknown:
            remedy = f"the qrels judge {count(len(judgments))}, such as {next(iter(judgments))!r}"
            raise InputError([Problem(f"query {q!r}", "is not judged", remedy) for q in unknown])
        kept &= set(conventions.queries)
    without_relevant = {q for q in kept if not any(grade > 0 for grade in judgments[q].values())}
    if without_relevant:
        treatment = (
            "left out" if conventions.skip_no_relevant else "they score 0 and count; --skip-no-relevant leaves them out"
        )
        notes.append(f"judged queries without a relevant document: {len(without_relevant)} ({treatment})")
    if missing := kept - met:
        treatment = (
            "left out"
            if conventions.intersection
            else "they score 0 and count; harness score --intersection leaves them out"
        )
        notes.append(f"judged queries that the run lacks: {len(missing)} ({treatment})")
    if conventions.skip_no_relevant:
        kept -= without_relevant
    if conventions.intersection:
        kept -= missing
    return kept, notes


def run_names(runs: Sequence[str | Path]) -> list[str]:
    """Name runs by their files: the tag of TREC's `input.TAG.gz`, else the name without its suffix.

    Where two would share a name, all keep their suffixes, or as much of their paths as tells them apart.

    >>> run_names(["input.bm25.gz", "input.dense.v2", "other.run"])
    ['bm25', 'dense.v2', 'other']
    >>> run_names(["2024/bm25.run", "2025/bm25.run"])
    ['2024/bm25', '2025/bm25']
    >>> run_names(["bm25.run", "bm25.trec"])
    ['bm25.run', 'bm25.trec']
    """
    paths = [Path(run) for run in runs]
    for above in range(max((len(path.parts) for path in paths), default=0)):
        for named in (_tag, str):
            names = ["/".join((*path.parts[-1 - above : -1], named(path.name))) for path in paths]
            if len(set(names)) == len(names):
                return names
    return [str(run) for run in runs]


def _tag(file: str) -> str:
    plain = file.removesuffix(".gz")
    return plain.removeprefix("input.") if plain.startswith("input.") else Path(plain).stem

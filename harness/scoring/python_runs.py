"""Runs and judgments that are at hand in Python (dicts, frames, files), scored and compared: `harness.compare`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from os import PathLike
from typing import TYPE_CHECKING, Any, TypeVar

from harness.dataset import trec
from harness.dataset.trec import Qrels, RunScores
from harness.measures import Measure, parse_all, score_run, span
from harness.scoring.saved import USUAL, compare_runs, summary_rows
from harness.scoring.trec_runs import Conventions, ScoredRun, counted
from harness.stats import Settings, whole_sentences
from retrievers.errors import InputError, Problem

if TYPE_CHECKING:
    import pandas as pd

QUERY = ("query_id", "query-id", "qid", "q_id", "query")
DOCUMENT = ("doc_id", "corpus-id", "corpus_id", "docno", "docid", "document_id", "document")
GRADE = ("relevance", "grade", "label", "score", "rel")
SCORE = ("score",)
LARGEST_GRADE = 2**31 - 1
Value = TypeVar("Value")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ComparedRuns:
    """Some runs against each other."""

    scores: pd.DataFrame
    """The columns of scores.csv: retriever, query_id, measure, value."""
    summary: pd.DataFrame
    """The columns of summary.csv."""
    comparisons: pd.DataFrame
    """The columns of comparisons.csv."""
    sentences: tuple[str, ...]
    """What it came to, in words."""
    notes: tuple[str, ...]
    """What a reader of the numbers must know: queries that are missing or unjudged."""

    def __repr__(self) -> str:
        primary = str(self.summary["measure"].iloc[0])
        rows = self.summary[self.summary["measure"] == primary].sort_values("mean", ascending=False, kind="stable")
        means = ", ".join(f"{name} {mean:.4f}" for name, mean in zip(rows["retriever"], rows["mean"], strict=True))
        return f"<{primary} over {rows['count'].iloc[0]} queries: {means}>"

    def _repr_html_(self) -> str:
        """The means and the verdict, for notebooks."""
        from html import escape

        table = self.summary.pivot(index="retriever", columns="measure", values="mean")
        paragraphs = "".join(f"<p>{escape(sentence)}</p>" for sentence in self.sentences)
        in_order = table[list(dict.fromkeys(self.summary["measure"]))]
        return f"{in_order.to_html(float_format='{:.4f}'.format)}{paragraphs}"


def compare(
    runs: Mapping[str, Any],
    qrels: Any,
    measures: str | Sequence[str] = USUAL,
    *,
    baseline: str | None = None,
    **settings: Any,
) -> ComparedRuns:
    """Score runs and compare them query by query, with exact tests and a verdict.

    Args:
        runs: by name: {query: {document: score}}, {query: [documents, best first]}, a frame with the columns query_id,
            doc_id and score (or qid and docno), or a TREC file.
        qrels: {query: {document: grade}}, a frame with query_id, doc_id and relevance, or a TREC file.
        measures: what is computed, one name or several; the first one decides.
        baseline: each other run is compared with it; left out, all pairs.
        settings: of the statistics: test, correction, alpha, margin, zeros, seed.

    Returns:
        Frames as in a results folder, and the verdict in words.

    Raises:
        InputError: fewer than two runs, a shape that is none of these, an unknown measure or setting.

    >>> qrels = {"q1": {"a": 1}, "q2": {"b": 1}}
    >>> compare({"x": {"q1": ["a"], "q2": ["b"]}, "y": {"q1": ["b", "a"], "q2": ["b"]}}, qrels, ["RR"])
    <RR over 2 queries: x 1.0000, y 0.7500>
    """
    import pandas as pd

    if len(runs) < 2:
        raise InputError(Problem("runs", "there is only one run" if runs else "there is no run", "give two or more"))
    judgments = judgments_of(qrels)
    parsed = parse_all([measures] if isinstance(measures, str) else measures)
    scored = [scored_run(name, run_of(run, f"runs[{name!r}]"), judgments, parsed) for name, run in runs.items()]
    try:
        chosen = Settings(**settings)
    except TypeError as error:
        message = str(error).partition(") ")[2] or str(error)
        raise InputError(Problem("settings", message, "test, correction, alpha, margin, zeros, seed")) from None
    compared = compare_runs(scored, baseline=baseline, settings=chosen)
    return ComparedRuns(
        pd.DataFrame([asdict(row) for one in scored for row in one.rows()]),
        pd.DataFrame(list(summary_rows(scored, chosen.level))),
        pd.DataFrame([asdict(row) for row in compared.rows]),
        tuple(whole_sentences(compared.whole, chosen)),
        tuple(f"{one.name}: {note}" for one in scored for note in one.notes),
    )


def scored_run(name: str, run: RunScores, judgments: Qrels, measures: Sequence[Measure]) -> ScoredRun:
    """Score one run; a judged query that it lacks scores 0 and counts."""
    met = run.keys() & judgments.keys()
    if not met:
        asked, here = next(iter(judgments)), next(iter(run), "nothing")
        what = f"none of its queries is judged: ids look like {here!r} here and {asked!r} in the qrels"
        raise InputError(Problem(f"runs[{name!r}]", what, "give the qrels of the same queries"))
    _, notes = counted(judgments, set(met), Conventions())
    unjudged = len(run.keys() - judgments.keys())
    notes += [f"queries of the run without judgments: {unjudged} (left aside)"] if unjudged else []
    spans = {str(measure): span(measure, judgments) for measure in measures}
    return ScoredRun(name, score_run(measures, judgments, run.items()), tuple(notes), spans)


def run_of(source: Any, where: str) -> RunScores:
    """A run from any of the shapes of `compare`; InputError where it has none of them."""
    if isinstance(source, str | PathLike):
        return trec.read_run(str(source))
    if isinstance(source, Mapping):
        pairs = ((query, _hits(hits, f"{where}[{query!r}]")) for query, hits in source.items())
        return _once(pairs, where, "query")
    rows: dict[str, list[tuple[Any, float]]] = {}
    for query, document, score in _rows(source, where, SCORE):
        rows.setdefault(str(query), []).append((document, _number(score, f"{where}[{query!r}]")))
    return {query: _once(hits, f"{where}[{query!r}]", "document") for query, hits in rows.items()}


def judgments_of(qrels: Any) -> Qrels:
    """Judgments from any of the shapes of `compare`; InputError where they have none of them."""
    if isinstance(qrels, str | PathLike):
        return trec.read_qrels(str(qrels))
    if isinstance(qrels, Mapping):
        tables = _once(qrels.items(), "qrels", "query")
        rows = [(q, d, g) for q, judged in tables.items() for d, g in _table(judged, f"qrels[{q!r}]").items()]
    else:
        rows = list(_rows(qrels, "qrels", GRADE))
    graded: dict[str, list[tuple[Any, int]]] = {}
    for query, document, grade in rows:
        if isinstance(grade, bool) or not _whole(grade):
            what = f"grade {_shown(grade)} of document {document!r} is no whole number"
            raise InputError(Problem(f"qrels[{query!r}]", what, "0 is judged and not relevant"))
        graded.setdefault(str(query), []).append((document, int(grade)))
    judgments = {query: _once(pairs, f"qrels[{query!r}]", "document") for query, pairs in graded.items()}
    if not judgments:
        raise InputError(Problem("qrels", "there is no judgment", '{"q1": {"d1": 1}}'))
    return judgments


def _once(pairs: Iterable[tuple[Any, Value]], where: str, what: str) -> dict[str, Value]:
    """A table by id, as text; InputError where an id stands twice, as 1 and "1" do too."""
    table: dict[str, Value] = {}
    for key, value in pairs:
        if str(key) in table:
            raise InputError(Problem(where, f"{what} {str(key)!r} stands twice", f"give each {what} once"))
        table[str(key)] = value
    return table


def _whole(grade: Any) -> bool:
    """Whether a grade is a whole number that can be counted with."""
    try:
        return bool(int(grade) == grade) and abs(int(grade)) <= LARGEST_GRADE
    except (TypeError, ValueError, OverflowError):
        return False


def _shown(value: Any) -> str:
    """A value as messages show it."""
    try:
        return repr(value)[:80]
    except ValueError:  # Python writes no integer of more than 4,300 digits
        return "of thousands of digits"


def _number(score: Any, where: str) -> float:
    try:
        return float(score)
    except (TypeError, ValueError, OverflowError):
        raise InputError(Problem(where, f"{_shown(score)} is no score", "a finite number")) from None


def _hits(hits: Any, where: str) -> dict[str, float]:
    if isinstance(hits, Mapping):
        return _once(((document, _number(score, where)) for document, score in hits.items()), where, "document")
    if isinstance(hits, str) or not isinstance(hits, Iterable):
        raise InputError(Problem(where, "is no list and no dict", "documents best first, or {document: score}"))
    ids = [str(one) for one in hits]
    if len(set(ids)) < len(ids):
        raise InputError(Problem(where, "has a document twice", "each document once"))
    return {id_: float(len(ids) - place) for place, id_ in enumerate(ids)}


def _table(judged: Any, where: str) -> Mapping[Any, Any]:
    if not isinstance(judged, Mapping):
        raise InputError(Problem(where, "is no dict", "{document: grade}"))
    return judged


def _rows(frame: Any, where: str, values: Iterable[str]) -> Iterable[tuple[Any, Any, Any]]:
    """The rows of a frame, whichever library made it, as query, document and value."""
    columns = [str(name) for name in getattr(frame, "columns", ())]
    named = [next((name for name in names if name in columns), None) for names in (QUERY, DOCUMENT, values)]
    if None in named:
        there = f"its columns are {', '.join(columns)}" if columns else f"it is a {type(frame).__name__}"
        raise InputError(Problem(where, "is no dict, no file and no frame that can be read",
                                 f"query_id, doc_id, {next(iter(values))}; {there}"))  # fmt: skip
    return zip(*(frame[name].to_list() for name in named if name is not None), strict=True)

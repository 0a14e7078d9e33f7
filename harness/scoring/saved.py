"""Saved rankings judged anew, and anyone's compared: other measures, grade rules, queries, and no embedding."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from harness import records
from harness.experiment import Relevance
from harness.experiment.option_tables import checked
from harness.measures import Claimed, Measure, parse_all, span
from harness.records import Results
from harness.scoring.evaluate import described
from harness.scoring.facts import head_of, identical_pairs
from harness.scoring.grading import grade_labels, scores_of
from harness.scoring.overlap import answers_of
from harness.scoring.trec_runs import Conventions, ScoredRun, score_runs
from harness.scoring.undefined import compare_defined, defined_everywhere, kept_facts, kept_scores
from harness.stats import Comparison, Facts, Range, Settings, Whole, whole
from retrievers.errors import InputError, Problem, did_you_mean
from retrievers.opening import opened
from retrievers.types import Floats

LARGEST_IDS = 64 << 20
"""Bytes of a file of ids, at most."""
USUAL = ("nDCG@10", "AP", "RR", "P@10", "R@100")
"""What is measured on TREC files where no measure is named."""


def score_rankings(
    qrels: Path,
    runs: Sequence[Path],
    named: Sequence[str],
    *,
    rule: str | None = None,
    conventions: Conventions = Conventions(),  # noqa: B008 - frozen
) -> list[ScoredRun]:
    """Score TREC runs against judgments, or a results folder's rankings by its own labels.

    Args:
        qrels: judgments, or a results folder.
        runs: TREC runs; none for a results folder.
        named: measures; none stands for those of the experiment, or the usual ones.
        rule: another grade rule for a results folder.
        conventions: which queries count; of a results folder only `queries`, the others are refused.

    Raises:
        InputError: with every problem that was found.
    """
    if qrels.is_dir():
        if runs:
            raise InputError(Problem(str(qrels), "is a results folder, which has its own runs", "give its qrels.trec"))
        refuse_conventions(conventions)
        results = records.read(qrels)
        measures = parse_all(named or results.manifest.resolved.measures)
        relevance = relevance_of(results, rule)
        try:
            return score_saved(results, measures, relevance=relevance, queries=conventions.queries)
        except InputError as error:
            if rule is None:
                raise
            raise InputError([
                p._replace(where="--grades") if p.where == "relevance.grades" else p for p in error.problems
            ]) from None  # fmt: skip
    if not runs:
        raise InputError(Problem("RUN", "no run was named", "give runs after the judgments, or a results folder alone"))
    if rule is not None:
        raise InputError(Problem("--grades", "judgments have their grades already", "it is for results folders"))
    return score_runs(qrels, runs, parse_all(named or USUAL), conventions=conventions)


def refuse_conventions(conventions: Conventions) -> None:
    """Refuse what only TREC runs can be scored with, rather than ignore it.

    Raises:
        InputError: naming every option.
    """
    options = {
        "--skip-no-relevant": conventions.skip_no_relevant,
        "--intersection": conventions.intersection,
        "--double": conventions.precision == "double",
    }
    if given := [option for option, used in options.items() if used]:
        what = "is for TREC runs: a results folder leaves out queries without a relevant document, and has every answer"
        remedy = "leave it out, or give qrels.trec and runs/*.trec of the folder"
        raise InputError([Problem(option, what, remedy) for option in given])


def read_ids(path: Path) -> list[str]:
    """Read the ids of a file, one a line; raises InputError where it cannot be read, or holds none."""
    remedy = "one query id a line, in UTF-8"
    try:
        with opened(path) as file:
            raw = file.read(LARGEST_IDS + 1)
        lines = raw.decode("utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        what = getattr(error, "strerror", None) or "it is not UTF-8"
        raise InputError(Problem(str(path), f"cannot be read: {what}", remedy)) from None
    if len(raw) > LARGEST_IDS:
        raise InputError(Problem(str(path), f"has more than {LARGEST_IDS:,} bytes", remedy))
    ids = [line.strip() for line in lines if line.strip()]
    if not ids:
        raise InputError(Problem(str(path), "names no query", remedy))
    return ids


def score_saved(
    results: Results,
    measures: Sequence[Measure],
    *,
    relevance: Relevance,
    queries: Collection[str] | None = None,
) -> list[ScoredRun]:
    """Score the rankings of a results folder again.

    Args:
        results: the folder.
        measures: what to compute.
        relevance: how its labels become grades.
        queries: only these; all with a relevant document if left out.

    Raises:
        InputError: the grade rule does not fit the labels or the measures; a query has no relevant document; a
            measure looks below the depth that was kept, and there was more.
    """
    judged = grade_labels({id_: question.labels for id_, question in results.queries.items()}, relevance)
    claims = claims_of_results(results, measures) if any(measure.claimed for measure in measures) else None
    grades = judged.grades
    if claims is not None:  # queries that have claims alone were scored, too
        grades = {**{query: {} for query in results.scores["query_id"]}, **grades}
    if unknown := [query for query in queries or () if query not in grades]:
        what = "is no query with a relevant document here"
        raise InputError([Problem(f"query {query!r}", what, did_you_mean(query, grades)) for query in unknown])
    kept = {query: given for query, given in grades.items() if queries is None or query in queries}
    depth = results.manifest.resolved.depth
    deeper = [measure for measure in measures if (measure.cutoff or 0) > depth]
    runs = []
    spans = {str(measure): span(measure, kept) for measure in measures}
    field = results.manifest.resolved.statistics.get("cluster")
    clusters = None if field is None else {query: results.queries[query].query.fields.get(field, "") for query in kept}
    for name in results.retrievers:
        answers = {query: ranking.doc_ids for query, ranking in results.rankings(name).items()}
        if deeper and any(len(documents) >= depth for documents in answers.values()):
            what, remedy = (
                f"looks below depth {depth}, and no more was kept",
                "raise depth and run the experiment again",
            )
            raise InputError([Problem(f"measure {str(measure)!r}", what, remedy) for measure in deeper])
        scores = scores_of(measures, judged._replace(grades=kept, claims=claims), answers)
        head = head_of(answers, sorted(kept), measures[0].cutoff)
        runs.append(ScoredRun(name, scores, (), spans, head, clusters, partial(answers_of, results, name)))
    return runs


def scored_grades(results: Results) -> dict[str, dict[str, int]]:
    """The grades that the scores of a results folder rest on: query id -> document id -> grade."""
    labels = {query: labelled.labels for query, labelled in results.queries.items()}
    return grade_labels(labels, relevance_of(results)).grades


def claims_of_results(results: Results, measures: Sequence[Measure]) -> dict[str, Claimed]:
    """The claims of a results folder's queries, with the verdicts that its judge gave.

    Raises:
        InputError: no claims were judged there, or not as deep as a measure looks.
    """
    facts = results.manifest.judge
    if not facts:
        remedy = "name a measure by claims and a [judge] in the experiment, and run it again"
        raise InputError(Problem(str(results.folder), "holds no verdicts on claims", remedy))
    depth = math.inf if facts["depth"] == "all" else int(facts["depth"])
    if deeper := [measure for measure in measures if measure.claimed and (measure.cutoff or math.inf) > depth]:
        what = f"looks below depth {facts['depth']}, and nobody judged further down"
        remedy = "name it among the measures of the experiment, and run it again"
        raise InputError([Problem(f"measure {str(measure)!r}", what, remedy) for measure in deeper])
    folder = results.folder / records.FOLDER
    readings = records.read_readings(folder, records.By(facts["judge"], facts["prompt"]))
    queries = [given.query for given in results.queries.values()]
    return records.claimed(queries, readings, records.read_passages(folder))


def relevance_of(results: Results, rule: str | None = None) -> Relevance:
    """Return the grade rule of an experiment, or another in its place.

    Args:
        results: whose experiment.
        rule: "linear", "binary", "reciprocal", "explicit", or buckets such as "[[1, 3], [10, 1]]".

    Raises:
        InputError: there is no such rule.
    """
    declared = results.manifest.resolved.relevance
    if rule is None:
        return checked(Relevance, declared, "[relevance]")
    # What a measure's name leaves open is linear on the command line, whatever the experiment declared.
    try:
        grades = json.loads(rule) if rule.startswith("[") else rule
        return checked(Relevance, {**declared, "grades": grades, "gain": "linear"}, "")
    except (json.JSONDecodeError, InputError):
        remedy = "linear, binary, reciprocal, explicit, or buckets such as [[1, 3], [10, 1]]"
        raise InputError(Problem("--grades", f"{rule!r} is no grade rule", remedy)) from None


def summary_rows(runs: Sequence[ScoredRun], level: float = 0.95) -> Iterator[dict[str, Any]]:
    """Describe every run on every measure: the columns of summary.csv."""
    for run in runs:
        facts = facts_of_runs([run])
        for measure in run.scores.measures:
            values = run.scores.of(measure)[places_by_id(run)]
            if not np.isnan(values).all():
                summary = asdict(described(measure, values, level, facts))
                yield {"retriever": run.name, "measure": str(measure), **summary}


@dataclass(frozen=True, slots=True, eq=False)
class Compared:
    """Some runs against each other."""

    rows: list[Comparison]
    whole: Whole
    """On the first measure."""


def compare_runs(runs: Sequence[ScoredRun], *, baseline: str | None, settings: Settings) -> Compared:
    """Compare runs that were scored on the same measures and queries; the first measure is the primary one.

    Args:
        runs: at least one.
        baseline: each other run is compared with it; None compares all pairs.
        settings: the tests.

    Raises:
        InputError: the baseline is none of the runs.
    """
    names = [run.name for run in runs]
    if baseline is not None and baseline not in names:
        raise InputError(Problem("--baseline", f"{baseline!r} is none of the runs", did_you_mean(baseline, names)))
    measures, facts = runs[0].scores.measures, facts_of_runs(runs)
    scores: dict[str, dict[str, Floats]] = {
        str(measure): {run.name: run.scores.of(measure)[places_by_id(run)] for run in runs} for measure in measures
    }
    primary = str(measures[0])
    rows = compare_defined(scores, primary=primary, baseline=baseline, settings=settings, facts=facts)
    declared = [row for row in rows if row.measure == primary]
    decides = defined_everywhere(scores[primary])
    if not decides.any():
        raise InputError(Problem(f"measure {primary!r}", "is undefined for every query", "name another measure first"))
    decided, known = kept_scores(scores[primary], decides), kept_facts(facts, decides)
    return Compared(rows, whole(decided, declared, measure=primary, settings=settings, facts=known))


def facts_of_runs(runs: Sequence[ScoredRun]) -> Facts:
    """Return what is known beside the scores of runs over the same queries, in the order of their ids."""
    clusters = runs[0].clusters
    return Facts(
        ranges={measure: Range(0.0, max(run.spans[measure] for run in runs)) for measure in runs[0].spans},
        clusters=None if clusters is None else [clusters[query] for query in sorted(runs[0].scores.query_ids)],
        identical=identical_pairs({run.name: run.head for run in runs}),
    )


def places_by_id(run: ScoredRun) -> npt.NDArray[np.intp]:
    """The places of the queries in the order of their ids."""
    ids = run.scores.query_ids
    return np.array(sorted(range(len(ids)), key=ids.__getitem__), dtype=np.intp)

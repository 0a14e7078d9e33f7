"""Results folders and files of per-query scores, read into the one table of scores; nothing is embedded."""

import json
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

import numpy as np

from harness.dataset.rows import File, Row, read_rows, read_text
from harness.dataset.source import Findings
from harness.evaluation.grading import (
    ABSTAIN,
    GradedLabels,
    clusters_of,
    grade_labels,
    scores_of,
    weights_of,
)
from harness.evaluation.scores import (
    Lists,
    ScoreColumn,
    Scores,
    measured,
    scores_from_rows,
)
from harness.experiment import Relevance
from harness.measures import Claimed, Measure, MeasureValues, parse, score
from harness.measures.compute import Judgments
from harness.records import ResolvedExperiment, Results
from harness.records.readings import FOLDER, By, claimed, read_passages, read_readings
from harness.stats.settings import Statistics
from retrievers.errors import InputError, Problem, did_you_mean
from retrievers.options import checked
from retrievers.types import Query

COLUMNS = ("retriever", "query_id", "measure", "value")
LARGEST_SCORE = 1e100
"""Of a score; what is summed are squares and cubes of differences, which must stay finite."""
UNDEFINED = frozenset({"", "nan", "null", "none", "na", "n/a"})
"""How tools write that a value is undefined, in lower case."""


class Judged(NamedTuple):
    """What rankings are scored by."""

    measures: tuple[Measure, ...]
    primary: Measure
    labels: GradedLabels
    queries: Mapping[str, Query]
    """At least those that are scored."""
    statistics: Statistics = Statistics()
    """Which queries belong together, and how much each counts."""


def score_lists(judged: Judged, lists: Mapping[str, Callable[[], Lists]]) -> Scores:
    """Score rankings on every measure.

    Args:
        judged: measures and labels; the queries that have labels are scored.
        lists: retriever -> what reads its rankings; a missing answer counts as an empty one.
    """
    labels = judged.labels._replace(grades=dict(sorted(judged.labels.grades.items())))
    columns: list[ScoreColumn] = []
    shares: dict[str, float] = {}
    share = Measure("Judged", judged.primary.cutoff)
    for name, read in lists.items():
        computed = scores_of((*judged.measures, share), labels, answers := read())
        if not judged.primary.claimed:
            shares[name] = _judged_share(computed, share, labels.grades, answers)
        columns += [
            (str(one), name, computed.query_ids, computed.of(one))
            for one in judged.measures
        ]
    found = measured(
        columns, labels.grades, lists, judged.labels.grades, str(judged.primary)
    )
    queries, of = [judged.queries[query] for query in found.ids], judged.statistics
    return replace(
        found,
        clusters=clusters_of(queries, of.cluster),
        weights=weights_of(queries, of.weight),
        by_people=judged.labels.by_people,
        judged=shares,
    )


def scores_of_results(results: Results) -> Scores:
    """Read the scores that a results folder holds; measures that are undefined everywhere are left out."""
    primary, table = primary_of(results.manifest.resolved), results.score_columns
    rows = zip(
        *(table[name] for name in ("measure", "retriever", "query_id", "value")),
        strict=True,
    )
    parts = (zip(*some, strict=True) for _, some in groupby(rows, itemgetter(0, 1)))
    columns = [(measures[0], names[0], ids, row) for measures, names, ids, row in parts]
    if {name for measure, name, *_ in columns if measure == primary} != set(
        results.retrievers
    ):
        where, remedy = str(results.folder / "scores.csv"), "run the experiment again"
        raise InputError(
            Problem(
                where,
                f"has no scores of {primary}, which the manifest says decides",
                remedy,
            )
        )
    defined = {
        primary,
        *(measure for measure, _, _, row in columns if not np.isnan(row).all()),
    }
    kept = [column for column in columns if column[0] in defined]
    kept.sort(
        key=lambda column: (column[0] != primary, results.retrievers.index(column[1]))
    )
    found = measured(
        kept, results.grades(), lists_of(results), results.queries, primary
    )
    declared, queries = (
        results.manifest.resolved.statistics,
        [results.queries[query].query for query in found.ids],
    )
    return replace(
        found,
        clusters=clusters_of(queries, declared.get("cluster")),
        weights=weights_of(queries, declared.get("weight")),
    )


def judged_shares(results: Results, primary: str) -> dict[str, float]:
    """The share of each retriever's first hits that have a label; empty where claims decide."""
    share, grades = Measure("Judged", parse(primary).cutoff), results.grades()
    lists = (
        {}
        if parse(primary).claimed
        else {name: read() for name, read in lists_of(results).items()}
    )
    return {
        name: _judged_share(score([share], grades, own), share, grades, own)
        for name, own in lists.items()
    }


def _judged_share(
    computed: MeasureValues, share: Measure, grades: Judgments, lists: Lists
) -> float:
    """The mean over the queries with labels that have a hit: an empty answer is not unjudged."""
    answered = {
        query for query, documents in lists.items() if documents and grades.get(query)
    }
    return float(computed.only(answered).means()[share]) if answered else 1.0


def lists_of(results: Results) -> dict[str, Callable[[], Lists]]:
    """Retriever -> what reads its rankings."""

    def read(name: str) -> Lists:
        return {
            query: ranking.doc_ids for query, ranking in results.rankings(name).items()
        }

    return {name: partial(read, name) for name in results.retrievers}


def primary_of(resolved: ResolvedExperiment) -> str:
    """The primary measure in full; earlier folders leave gain and ideal to [relevance]."""
    relevance = checked(Relevance, resolved.relevance, "[relevance]")
    return str(parse(resolved.primary, gain=relevance.gain, ideal=relevance.ideal))


def score_folder(
    results: Results,
    measures: Sequence[Measure],
    *,
    relevance: Relevance,
    queries: Collection[str] | None = None,
) -> Scores:
    """Score the rankings of a results folder again.

    Args:
        results: the folder.
        measures: what to compute; the first decides.
        relevance: how its labels become grades.
        queries: only these; all with a relevant document if left out.

    Raises:
        InputError: the grade rule does not fit the labels or the measures; a query has no relevant document; a
            measure looks below the depth that was kept, and there was more.
    """
    labels = grade_labels(
        {id_: question.labels for id_, question in results.queries.items()}, relevance
    )
    claims = (
        claims_of_results(results, measures)
        if any(measure.claimed for measure in measures)
        else None
    )
    grades = labels.grades
    bare = frozenset(
        id_ for id_, question in results.queries.items() if question.query.unanswerable
    )
    bare = bare if any(measure.name == ABSTAIN for measure in measures) else frozenset()
    if claims is not None or bare:  # queries that have claims alone were scored, too
        scored = results.score_columns["query_id"] if claims is not None else ()
        grades = {**{query: {} for query in (*scored, *bare)}, **grades}
    if unknown := [query for query in queries or () if query not in grades]:
        what = "is not a query with a relevant document here"
        raise InputError(
            [
                Problem(f"query {query!r}", what, did_you_mean(query, grades))
                for query in unknown
            ]
        )
    kept = {
        query: given
        for query, given in grades.items()
        if queries is None or query in queries
    }
    depth = results.manifest.resolved.depth
    deeper = [measure for measure in measures if (measure.cutoff or 0) > depth]
    if deeper and any(
        len(r.doc_ids) >= depth
        for name in results.retrievers
        for _, r in results.answers(name)
    ):
        remedy = f"the run has depth {depth}: raise it and run the experiment again"
        raise InputError(
            [
                Problem(f"measure {str(one)!r}", f"needs depth {one.cutoff}", remedy)
                for one in deeper
            ]
        )
    declared = results.manifest.resolved.statistics
    judged = Judged(
        tuple(measures),
        measures[0],
        labels._replace(grades=kept, claims=claims, unanswerable=bare),
        {query: results.queries[query].query for query in kept},
        Statistics(cluster=declared.get("cluster"), weight=declared.get("weight")),
    )
    return score_lists(judged, lists_of(results))


def computable(measures: Sequence[str]) -> list[str]:
    """Return the measures that can be computed again: functions of the user's own ended with their process."""
    return [name for name in measures if not parse(name).own] or list(measures)


def claims_of_results(
    results: Results, measures: Sequence[Measure]
) -> dict[str, Claimed]:
    """The claims of a results folder's queries, with the verdicts that its judge gave.

    Raises:
        InputError: no claims were judged there, or not as deep as a measure looks.
    """
    facts = results.manifest.judge
    if not facts:
        remedy = (
            "name a measure by claims and a [judge] in the experiment, and run it again"
        )
        raise InputError(
            Problem(str(results.folder), "holds no verdicts on claims", remedy)
        )
    depth = math.inf if facts["depth"] == "all" else int(facts["depth"])
    if deeper := [
        measure
        for measure in measures
        if measure.claimed and (measure.cutoff or math.inf) > depth
    ]:
        what = f"needs more hits than depth {facts['depth']}, and no further hits were judged"
        remedy = "name it among the measures of the experiment, and run it again"
        raise InputError(
            [Problem(f"measure {str(measure)!r}", what, remedy) for measure in deeper]
        )
    folder = results.folder / FOLDER
    readings = read_readings(folder, By(facts["judge"], facts["prompt"]))
    queries = [given.query for given in results.queries.values()]
    return claimed(queries, readings, read_passages(folder))


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
        remedy = (
            "linear, binary, reciprocal, explicit, or buckets such as [[1, 3], [10, 1]]"
        )
        raise InputError(
            Problem("--grades", f"{rule!r} is not a grade rule", remedy)
        ) from None


def read_scores(path: Path) -> Scores:
    """Read a CSV file of per-query scores: columns retriever, query_id, measure, value; further columns are ignored.

    An empty value, NaN or null is undefined.

    Raises:
        InputError: with every line that cannot be read, a score that occurs twice, or a column that is missing.
    """
    problems = Findings()
    rows: dict[tuple[str, str, str], float] = {}
    for number, row in _lines(path):
        where = f"{path}:{number}"
        retriever, query, measure, written = (row.get(name) for name in COLUMNS)
        if not retriever or not query or not measure or written is None:
            problems.wrong(
                where,
                "lacks a retriever, a query_id, a measure or a value",
                "one score a line",
            )
            continue
        value = _number(written)
        if value is None:
            remedy = f"a number of at most {LARGEST_SCORE:g}; empty where undefined"
            problems.wrong(where, f"{written!r} is not a score", remedy)
        elif (retriever, query, measure) in rows:
            problems.wrong(
                where,
                f"{retriever} has two scores of {measure} for query {query!r}",
                "keep one",
            )
        else:
            rows[retriever, query, measure] = value
    if problems:
        raise InputError(problems.problems)
    if not rows:
        raise InputError(
            Problem(
                str(path),
                "holds no score",
                f"a header, {','.join(COLUMNS)}, then one score a line",
            )
        )
    return scores_from_rows(rows)


def _lines(path: Path) -> Iterator[tuple[int, Row]]:
    problems = Findings()
    for place, row in read_rows(File(path), problems):
        if missing := [name for name in COLUMNS if name not in row]:
            remedy = f"a header, {','.join(COLUMNS)}; there is {', '.join(row)}"
            raise InputError(
                Problem(f"{path}:1", f"has no column {', '.join(missing)}", remedy)
            )
        yield place.line or 0, row
    if problems:  # of files of scores the header is never left out
        raise InputError(
            [
                one._replace(remedy=one.remedy.partition("; or say header")[0])
                for one in problems.problems
            ]
        )


def _number(written: str) -> float | None:
    """A score; NaN where it is undefined, None where it is not a number, or too large a one.

    >>> _number("0.5"), _number("inf"), _number(""), _number("-1e308")
    (0.5, None, nan, None)
    """
    text = written.strip()
    if text.lower() in UNDEFINED:
        return math.nan
    try:
        value = float(text)
    except ValueError:
        return None
    return value if abs(value) <= LARGEST_SCORE else None


def read_ids(path: Path) -> list[str]:
    """Read the ids of a file, one a line; raises InputError where it cannot be read, or holds none."""
    if not (
        ids := [line.strip() for line in read_text(path).split("\n") if line.strip()]
    ):
        raise InputError(
            Problem(str(path), "names no query", "one query id a line, in UTF-8")
        )
    return ids

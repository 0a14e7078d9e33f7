"""Whether a results folder that was read back is whole: its manifest agrees with itself and with every table."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from harness.experiment import Relevance
from harness.experiment.option_tables import checked
from harness.measures import Measure, parse
from harness.records.described import Described
from harness.records.manifest import AGAIN, Manifest, ResolvedExperiment
from harness.records.rows import LabelledQuery
from retrievers.errors import Problem

if TYPE_CHECKING:
    import pandas as pd


def table_problems(
    folder: Path, manifest: Manifest, queries: Mapping[str, LabelledQuery], tables: Mapping[str, pd.DataFrame]
) -> list[Problem]:
    """Return what the tables lack, hold twice, or say otherwise than the scores give, against manifest and labels."""
    measures = _measures(manifest.resolved, set(tables["scores"]["measure"]))
    described = Described(folder, manifest, queries, scored=tables["scores"]["query_id"].nunique())
    faults = {
        "scores": _score_faults(manifest, measures, queries, tables["scores"]),
        "summary": itertools.chain(
            _summary_faults(manifest, measures, tables["scores"], tables["summary"]),
            described.faults(measures, tables["scores"], tables["summary"]),
        ),
        "comparisons": itertools.chain(
            _comparison_faults(manifest, measures, tables["scores"], tables["comparisons"]),
            _difference_faults(tables["scores"], tables["comparisons"]),
        ),
        "costs": (
            f"{name} is no retriever that was run"
            for name in set(tables["costs"]["retriever"]) - {*manifest.retrievers, ""}  # "": for all together
        ),
    }
    return [Problem(str(folder / f"{name}.csv"), fault, AGAIN) for name, listed in faults.items() for fault in listed]


def _measures(resolved: ResolvedExperiment, present: Collection[str]) -> dict[str, Measure]:
    """The measures by their names in the tables; earlier folders leave gain and ideal to [relevance]."""
    relevance = checked(Relevance, resolved.relevance, "")
    by_name = {}
    for name in resolved.measures:
        plain = parse(name)
        measure = plain if str(plain) in present else parse(name, gain=relevance.gain, ideal=relevance.ideal)
        by_name[str(measure)] = measure
    return by_name


def _score_faults(
    manifest: Manifest, measures: Mapping[str, Measure], queries: Mapping[str, LabelledQuery], scores: pd.DataFrame
) -> Iterator[str]:
    ids = set(scores["query_id"])
    if strange := ids - set(queries):
        yield f"names {len(strange):,} queries that labels.jsonl lacks"
    if manifest.dataset.scored not in (None, len(ids)):
        yield f"has scores of {len(ids):,} queries, and {manifest.dataset.scored:,} were scored"
    if not ids:
        return
    yield from _not_each_once(scores, ("retriever", "measure"), _pairs(manifest, measures), times=len(ids))
    if scores.duplicated(["retriever", "measure", "query_id"]).any():
        yield "has a score twice"
    by_claims = [name for name, measure in measures.items() if measure.claimed]
    undefined = scores[scores["value"].isna() & ~scores["measure"].isin(by_claims)]
    if by_claims:  # a query that has claims and no relevant document has values of the measures by claims alone
        labelled = [id_ for id_, given in queries.items() if given.labels.relevant]
        undefined = undefined[undefined["query_id"].isin(labelled)]
    if missing := set(undefined["measure"]):
        yield f"lacks values of {', '.join(sorted(missing))}"


def _summary_faults(
    manifest: Manifest, measures: Mapping[str, Measure], scores: pd.DataFrame, summary: pd.DataFrame
) -> Iterator[str]:
    if scores.empty:
        return
    defined = scores[scores["value"].notna()].groupby(["retriever", "measure"]).size()
    # A measure that is undefined for all of a retriever's queries has nothing to summarize.
    open_ = any(measure.claimed for measure in measures.values())
    wanted = [pair for pair in _pairs(manifest, measures) if defined.get(pair, 0) or not open_]
    yield from _not_each_once(summary, ("retriever", "measure"), wanted)
    for retriever, measure, count in summary[["retriever", "measure", "count"]].itertuples(index=False):
        if count != defined.get((retriever, measure), 0):
            yield f"counts {count} scores of {measure} for {retriever}, which is not what scores.csv has"


def _comparison_faults(
    manifest: Manifest, measures: Mapping[str, Measure], scores: pd.DataFrame, comparisons: pd.DataFrame
) -> Iterator[str]:
    if scores.empty:
        return
    names, baseline = manifest.finished, manifest.resolved.baseline
    number = len(names) - 1 if baseline in names else len(names) * (len(names) - 1) // 2
    if strange := {*comparisons["a"], *comparisons["b"]} - set(names):
        yield f"compares {', '.join(sorted(strange))}, which did not finish"
    elif (comparisons["a"] == comparisons["b"]).any():
        yield "compares a retriever with itself"
    valued = set(scores.loc[scores["value"].notna(), "measure"])
    everywhere = [(name,) for name, measure in measures.items() if number and not measure.claimed and name in valued]
    claimed = comparisons["measure"].isin([name for name, measure in measures.items() if measure.claimed])
    yield from _not_each_once(comparisons[~claimed], ("measure",), everywhere, times=number)
    for name, rows in comparisons[claimed].groupby("measure"):
        if len(rows) > number:  # a pair without a query that is defined for both has no row
            yield f"has {len(rows):,} rows of {name} instead of {number:,}"
    if comparisons.duplicated(["measure", "a", "b"]).any():
        yield "has a comparison twice"
    for column in ("n", "mean_difference", "p_value", "p_adjusted", "verdict", "role", "method"):
        if column in comparisons and comparisons[column].isna().any():
            yield f"lacks a value in the column {column}"


def _difference_faults(scores: pd.DataFrame, comparisons: pd.DataFrame) -> Iterator[str]:
    """Say where a comparison does not follow from the scores; with undefined ones, pairs have queries of their own."""
    if scores.empty or scores["value"].isna().any():
        return
    of = scores.groupby(["measure", "retriever"])["value"].agg(["mean", "size"])
    means, sizes = of["mean"].to_dict(), of["size"].to_dict()
    known = {"wins", "ties", "losses"} <= set(comparisons.columns)  # no column that every folder has
    rows = comparisons if known else comparisons.assign(wins=comparisons["n"], ties=0, losses=0)
    columns = ["measure", "a", "b", "mean_difference", "n", "wins", "ties", "losses"]
    for measure, a, b, difference, n, *outcomes in rows[columns].itertuples(index=False):
        if not {(measure, a), (measure, b)} <= means.keys():
            continue  # which is told where rows are counted
        if not sizes[measure, a] == sizes[measure, b] == n == sum(outcomes) or min(outcomes) < 0:
            yield f"counts other queries of {measure} for {a} and {b} than scores.csv has"
        both = means[measure, a], means[measure, b]
        if not _same(difference, both[0] - both[1], size=max(map(abs, both))):
            yield f"has another difference of {measure} between {a} and {b} than the scores in scores.csv"


def _same(a: float, b: float, *, size: float = 1.0) -> bool:
    """Whether two means, or differences of means of that size, are the same but for the order of adding up."""
    return math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-9 * max(1.0, size))


def _pairs(manifest: Manifest, measures: Mapping[str, Measure]) -> list[tuple[str, str]]:
    return [(retriever, measure) for retriever in manifest.finished for measure in measures]


def _not_each_once(
    table: pd.DataFrame, keys: tuple[str, ...], wanted: Iterable[tuple[str, ...]], *, times: int = 1
) -> Iterator[str]:
    """Say which combinations of keys a table does not have as often as it must, and which it has beside them."""
    counts = Counter(table[list(keys)].itertuples(index=False, name=None))
    for key in wanted:
        number = counts.pop(key, 0)
        if number != times:
            yield f"has {number:,} rows of {', '.join(key)} instead of {times:,}"
    for key in counts:
        yield f"has rows of {', '.join(map(str, key))}, which the manifest does not know"

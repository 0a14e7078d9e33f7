"""What every section of a report reads: the results, once put in order."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

import numpy as np

from harness.dataset import trec
from harness.measures import Measure, parse
from harness.measures.grades import STEEPEST
from harness.measures.table import row_of
from harness.records import LabelledQuery, Manifest, ResolvedExperiment, Results
from harness.report.answers import Answers, read_answers
from harness.report.theme import Mark, marks
from harness.stats import Comparison, Settings, Whole, whole
from retrievers.types import Floats

Scores = Mapping[str, Floats]

SHOWN_QUERIES = 2_000
"""A page lists so many queries; of more, those where the retrievers differ most."""


class Name(NamedTuple):
    """A measure as people read it."""

    full: str
    """As in the CSV files."""
    short: str
    gloss: str
    """What the short name leaves open: the gain, the ideal, the depth; may be empty."""


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """A results folder in the order of reading."""

    results: Results
    settings: Settings
    primary: str
    measures: tuple[str, ...]
    """The primary one first, the others as declared."""
    names: Mapping[str, Name]
    """Measure -> what people call it."""
    retrievers: tuple[str, ...]
    """As declared: each keeps its colour and shape wherever it stands."""
    ids: tuple[str, ...]
    """The queries that were scored, sorted: the order of all arrays."""
    order: tuple[int, ...]
    """Places in `ids`, in the order of the data set's file."""
    scores: Mapping[str, Scores]
    """Measure -> retriever -> (n,)."""
    comparisons: Mapping[str, tuple[Comparison, ...]]
    """Measure -> its family."""
    whole: Whole
    marks: Mapping[str, Mark]
    grades: trec.Judgments
    shown: tuple[int, ...]
    """Places of the queries that a page lists, in the order of the file."""
    answers: Mapping[str, Answers]

    @property
    def manifest(self) -> Manifest:
        """What ran, on what."""
        return self.results.manifest

    @property
    def resolved(self) -> ResolvedExperiment:
        """The experiment with its defaults."""
        return self.manifest.resolved

    @property
    def ranked(self) -> tuple[str, ...]:
        """The retrievers by their mean on the primary measure, highest first."""
        return tuple(self.whole.means)

    @property
    def baseline(self) -> str | None:
        """The declared baseline, if it finished."""
        declared = self.resolved.baseline
        return declared if declared in self.retrievers else None

    @property
    def all_pairs(self) -> bool:
        """Whether every pair was compared: letters and bars need that."""
        return self.baseline is None and len(self.retrievers) > 1

    @property
    def cutoff(self) -> int:
        """The primary measure's cutoff; the depth where it has none."""
        return parse(self.primary).cutoff or self.resolved.depth

    @property
    def n(self) -> int:
        """How many queries were scored."""
        return len(self.ids)

    def spoken(self, sentence: str) -> str:
        """A sentence with the measures' short names."""
        for full in sorted(self.measures, key=len, reverse=True):
            if "(" in full and full in sentence:
                return sentence.replace(full, self.names[full].short)
        return sentence

    def query(self, place: int) -> LabelledQuery:
        """The query at a place of the arrays."""
        return self.results.queries[self.ids[place]]


def view_of(results: Results) -> View:
    """Put results in order, and sort the retrievers into the three sets."""
    resolved = results.manifest.resolved
    primary = str(parse(resolved.primary, **_relevance(resolved)))
    retrievers = results.retrievers
    table = results.scores
    # Sorted as text: the order that every statistic of the run was computed in.
    ids = tuple(sorted(table["query_id"].unique()))
    place = {qid: i for i, qid in enumerate(ids)}
    scores: dict[str, dict[str, Floats]] = {}
    for (measure, name), group in table.groupby(["measure", "retriever"], sort=False):
        values = np.zeros(len(ids))
        values[group["query_id"].map(place).to_numpy()] = group["value"].to_numpy(dtype=np.float64)
        scores.setdefault(str(measure), {})[str(name)] = values
    measures = (primary, *(measure for measure in scores if measure != primary))
    settings = Settings(**resolved.statistics, seed=resolved.seed)
    order = tuple(place[qid] for qid in results.queries if qid in place)
    shown = _shown(scores[primary], order)
    grades = trec.read_qrels(results.folder / "qrels.trec")
    cutoff = parse(primary).cutoff or resolved.depth
    comparisons = _comparisons(results)
    return View(
        results=results,
        settings=settings,
        primary=primary,
        measures=measures,
        names=_names(measures, resolved.depth, _largest(grades)),
        retrievers=retrievers,
        ids=ids,
        order=order,
        scores={measure: {name: scores[measure][name] for name in retrievers} for measure in measures},
        comparisons={measure: comparisons.get(measure, ()) for measure in measures},
        whole=whole(scores[primary], comparisons.get(primary, ()), measure=primary, settings=settings),
        marks=marks(retrievers),
        grades=grades,
        shown=shown,
        answers=read_answers(
            results, grades, extra_measures(measures, grades, cutoff), shown={ids[i] for i in shown}, cutoff=cutoff
        ),
    )


def extra_measures(declared: Sequence[str], grades: trec.Judgments, cutoff: int) -> tuple[Measure, ...]:
    """What a report tells beside the declared measures: LabelledQuery, and each nDCG with the other gain."""
    twins = [other_gain(parse(full)) for full in declared if _largest(grades) <= STEEPEST]
    wanted = [parse(f"Judged@{cutoff}"), *(twin for twin in twins if twin is not None)]
    return tuple(dict.fromkeys(measure for measure in wanted if str(measure) not in declared))


def _largest(grades: trec.Judgments) -> int:
    return max((grade for judged in grades.values() for grade in judged.values()), default=0)


def other_gain(measure: Measure) -> Measure | None:
    """Return an nDCG with the other gain, None for any other measure.

    >>> str(other_gain(parse("nDCG@10")))
    "nDCG(dcg='exp-log2')@10"
    """
    if measure.name != "nDCG" or measure.get("groups") is not None:
        return None
    rest = tuple(param for param in measure.params if param[0] != "dcg")
    return replace(measure, params=rest if measure.get("dcg") else (("dcg", "exp-log2"), *rest))


def _shown(scores: Scores, order: tuple[int, ...]) -> tuple[int, ...]:
    if len(order) <= SHOWN_QUERIES:
        return order
    spread = np.ptp(np.column_stack(list(scores.values())), axis=1)
    kept = set(sorted(order, key=lambda i: -spread[i])[:SHOWN_QUERIES])
    return tuple(i for i in order if i in kept)


def _relevance(resolved: ResolvedExperiment) -> dict[str, Any]:
    return {key: resolved.relevance[key] for key in ("gain", "ideal")}


def _comparisons(results: Results) -> dict[str, tuple[Comparison, ...]]:
    columns = [field.name for field in fields(Comparison)]
    rows: dict[str, tuple[Comparison, ...]] = {}
    for told in results.comparisons[columns].to_dict("records"):
        values: dict[str, Any] = {str(key): None if _absent(value) else value for key, value in told.items()}
        row = Comparison(**values)
        rows[row.measure] = (*rows.get(row.measure, ()), row)
    return rows


def _absent(value: object) -> bool:
    return isinstance(value, float) and math.isnan(value)


def _names(measures: Sequence[str], depth: int, largest: int) -> dict[str, Name]:
    """Short names, and what they leave open; where two are the same, that becomes part of the name."""
    found = {}
    for full in measures:
        measure = parse(full)
        at = "" if measure.cutoff is None else f"@{measure.cutoff}"
        params = dict(measure.params)
        said = []
        if "dcg" in row_of(measure).options:
            said.append("exponential gain" if params.pop("dcg", None) == "exp-log2" else "linear gain")
        ideal = params.pop("ideal", None)
        if ideal is not None:
            said.append("ideal of what was retrieved")
        if row_of(measure).by_largest_grade:
            said.append(f"largest grade {largest}")
        said += [f"{key} {value}" for key, value in params.items()]
        if measure.cutoff is None:
            said.append(f"over the {depth} hits kept")
        found[full] = Name(full, measure.name + at, ", ".join(said))
    shorts = Counter(name.short for name in found.values())
    return {full: name if shorts[name.short] == 1 else _told_apart(name) for full, name in found.items()}


def _told_apart(name: Name) -> Name:
    return Name(name.full, f"{name.short} ({name.gloss})", "") if name.gloss else name

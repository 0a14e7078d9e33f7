"""The view that every section of a report reads: the results in reading order."""

import re
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from string import ascii_lowercase
from typing import Any, NamedTuple

import numpy as np

from harness.dataset import trec
from harness.evaluation.evaluate import evaluation_of
from harness.evaluation.evaluation import Evaluation
from harness.evaluation.readers import scores_of_results
from harness.evaluation.scores import Scores
from harness.evaluation.verdict import Comparison, Verdict
from harness.measures import Measure, parse
from harness.measures.table import row_of
from harness.pages import is_color
from harness.records import (
    SHOWN,
    LabelledQuery,
    Manifest,
    ResolvedExperiment,
    Results,
    RetrieverLedger,
)
from harness.report.text import colors_of
from harness.stats.differences import ScoreTable
from harness.stats.settings import Settings
from retrievers.types import Floats, Ranking
from retrievers.words import NAMES


class MeasureName(NamedTuple):
    """A measure's names."""

    full: str
    """The name in the CSV files."""
    short: str
    gloss: str
    """Parameters that the short name omits: gain, ideal, depth; may be empty."""


def names_of(
    measures: Sequence[str], depth: int, largest: int
) -> dict[str, MeasureName]:
    """Short names with their parameters, which become part of the name if two short names are equal."""
    names = {}
    for full in measures:
        measure = parse(full)
        at = "" if measure.cutoff is None else f"@{measure.cutoff}"
        params = dict(measure.params)
        glosses = []
        if "dcg" in row_of(measure).options:
            glosses.append(
                "exponential gain"
                if params.pop("dcg", None) == "exp-log2"
                else "linear gain"
            )
        ideal = params.pop("ideal", None)
        if ideal is not None:
            glosses.append("ideal of what was retrieved")
        if row_of(measure).by_largest_grade:
            glosses.append(f"largest grade {largest}")
        glosses += [f"{key} {value}" for key, value in params.items()]
        if measure.cutoff is None:
            glosses.append(f"over the {depth} hits kept")
        names[full] = MeasureName(full, measure.name + at, ", ".join(glosses))
    shorts = Counter(name.short for name in names.values())
    return {
        full: name if shorts[name.short] == 1 else _with_parameters(name)
        for full, name in names.items()
    }


def _with_parameters(name: MeasureName) -> MeasureName:
    return (
        MeasureName(name.full, f"{name.short} ({name.gloss})", "")
        if name.gloss
        else name
    )


CODE = re.compile(r"[A-Za-z]{2,3}(-[A-Za-z0-9]{1,8})*")


def known_language(results: Results) -> str:
    """The BCP 47 code of the data's language from declarations alone; "" if there is none.

    The queries' field `language` or `lang` is used if all have the same value; else the language of the run's stemmer.
    """
    declared = {
        _declared(labelled.query.fields) for labelled in results.queries.values()
    }
    if len(declared) == 1 and (code := declared.pop()):
        return code
    taken = {
        str(facts.provenance.get("words", ""))
        for facts in results.manifest.retrievers.values()
    } - {""}
    return next(
        (
            code
            for code, name in NAMES.items()
            if taken == {f"stemmed as {name.capitalize()}"}
        ),
        "",
    )


def _declared(fields: Mapping[str, str]) -> str:
    code = str(fields.get("language", fields.get("lang", "")))
    return code if CODE.fullmatch(code) else ""


TIE = 1e-9
"""Scores with a smaller relative difference are equal: rankings have rounded scores."""


@dataclass(frozen=True, slots=True, eq=False)
class Answers:
    """One retriever's rankings of the scored queries; arrays are in the order of the ids."""

    heads: Mapping[str, tuple[str, ...]]
    """Query id -> the hits that the primary measure uses."""
    top: Mapping[str, Ranking]
    """Query id -> its first hits, as many as a page shows."""
    places: Mapping[str, Mapping[str, int]]
    """Query id -> relevant document -> rank; absent if it was not retrieved."""
    first: Floats
    """(n,) rank of the first relevant hit; infinite if there is none."""
    tied: int
    """Queries whose last hit within the primary cutoff has the score of the next: the order of ids decided."""
    short: int
    """Queries with fewer hits than the primary cutoff."""


NOTHING = Ranking((), np.zeros(0))


def read_answers(
    results: Results, grades: trec.Qrels, primary: Measure
) -> dict[str, Answers]:
    """Read every retriever's rankings.

    Args:
        results: with the rankings.
        grades: query id -> document id -> grade; only these queries count.
        primary: the measure that decides.
    """
    depth = results.manifest.resolved.depth
    cutoff = primary.cutoff or depth
    looked_at = depth if primary.get("ideal") == "retrieved-all" else cutoff
    judged = {query: grades[query] for query in sorted(grades)}
    relevant = {
        query: frozenset(doc for doc, grade in of.items() if grade > 0)
        for query, of in judged.items()
    }
    ids: dict[str, str] = {}  # one string per document
    answers = {}
    for name in results.retrievers:
        heads: dict[str, tuple[str, ...]] = {}
        top: dict[str, Ranking] = {}
        places: dict[str, Mapping[str, int]] = {}
        tied = short = 0
        for query, ranking in results.answers(name):
            if query in judged:
                documents, scores = ranking.doc_ids, ranking.scores
                kept = tuple(
                    map(ids.setdefault, documents[: max(looked_at, SHOWN)], documents)
                )
                heads[query], top[query] = (
                    kept[:looked_at],
                    Ranking(kept[:SHOWN], scores[:SHOWN].copy()),
                )
                wanted = relevant[query]
                places[query] = {
                    ids.setdefault(doc, doc): i
                    for i, doc in enumerate(documents, 1)
                    if doc in wanted
                }
                tied += _tied(scores, cutoff)
                short += len(documents) < cutoff
        first = np.array(
            [min(places.get(query, {}).values(), default=np.inf) for query in judged]
        )
        answers[name] = Answers(heads, top, places, first, tied, short)
    return answers


def _tied(scores: Floats, cutoff: int) -> bool:
    if len(scores) <= cutoff:
        return False
    last, after = scores[cutoff - 1 : cutoff + 1].tolist()
    return bool(last - after <= TIE * max(abs(last), abs(after), sys.float_info.min))


RANKINGS = 10_000
"""The most rankings of a page: all queries, or those on which the retrievers differ most."""


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """A results folder in reading order."""

    results: Results
    evaluation: Evaluation
    table: Scores
    """Scores of the queries for which every retriever has a value of the primary measure."""
    names: Mapping[str, MeasureName]
    """Measure -> its names."""
    order: tuple[int, ...]
    """Indices into `ids`, in the order of the data set's file."""
    colors: Mapping[str, str]
    """Retriever -> its colour."""
    grades: trec.Qrels
    shown: tuple[int, ...]
    """Indices of the queries that a page lists, in the order of the file."""
    answers: Mapping[str, Answers]
    language: str
    """BCP 47 code of the data; "" if unknown."""

    @property
    def settings(self) -> Settings:
        """The statistics settings of the run."""
        return self.evaluation.settings

    @property
    def primary(self) -> str:
        """The primary measure."""
        return self.evaluation.measure

    @property
    def measures(self) -> tuple[str, ...]:
        """The primary one first, the others as declared."""
        return (
            self.primary,
            *(measure for measure in self.table.values if measure != self.primary),
        )

    @property
    def retrievers(self) -> tuple[str, ...]:
        """The retrievers that finished, in the order of the experiment."""
        return self.results.retrievers

    @property
    def ids(self) -> tuple[str, ...]:
        """The queries that were scored, sorted: the order of all arrays."""
        return self.table.ids

    @property
    def scores(self) -> Mapping[str, ScoreTable]:
        """Measure -> retriever -> (n,)."""
        return self.table.values

    @property
    def comparisons(self) -> Mapping[str, tuple[Comparison, ...]]:
        """Measure -> its family, for measures with a value."""
        return {
            measure: self.evaluation.comparisons[measure]
            for measure in self.table.values
        }

    @property
    def manifest(self) -> Manifest:
        """The manifest."""
        return self.results.manifest

    @property
    def resolved(self) -> ResolvedExperiment:
        """The experiment with its defaults."""
        return self.manifest.resolved

    @property
    def ranked(self) -> tuple[str, ...]:
        """The retrievers by their mean on the primary measure, highest first."""
        return tuple(self.evaluation.means)

    @property
    def baseline(self) -> str | None:
        """The declared baseline, if it finished."""
        declared = self.resolved.baseline
        return declared if declared in self.retrievers else None

    @property
    def cutoff(self) -> int:
        """The primary measure's cutoff, or the depth if it has none."""
        return parse(self.primary).cutoff or self.resolved.depth

    @property
    def n(self) -> int:
        """Number of scored queries."""
        return len(self.ids)

    def mean(self, measure: str, retriever: str) -> float:
        """The mean over the queries for which the measure is defined; NaN without any."""
        return self.table.mean(measure, retriever)

    def spoken(self, sentence: str) -> str:
        """A sentence with short names of measures; no line break before a percent sign or after "(p"."""
        sentence = sentence.replace("(p ", "(p\N{NO-BREAK SPACE}").replace(
            " %", "\N{NO-BREAK SPACE}%"
        )
        for full in sorted(self.measures, key=len, reverse=True):
            if "(" in full and full in sentence:
                return sentence.replace(full, self.names[full].short)
        return sentence

    def query(self, place: int) -> LabelledQuery:
        """The query at an index of the arrays."""
        return self.results.queries[self.ids[place]]


def view_of(results: Results) -> View:
    """Put results in the order of reading."""
    evaluation, scores = evaluation_of(results), scores_of_results(results)
    scores = scores.only(scores.defined(scores.primary))
    resolved = results.manifest.resolved
    measures = (
        scores.primary,
        *(measure for measure in scores.values if measure != scores.primary),
    )
    order = scores.order or ()
    shown = _shown(scores.values[scores.primary], order)
    qrels = results.grades()
    grades = {
        query: qrels.get(query, {}) for query in scores.ids
    }  # a query may have claims and no labels
    return View(
        results=results,
        evaluation=evaluation,
        table=scores,
        names=names_of(measures, resolved.depth, _largest(grades)),
        order=order,
        colors=retriever_colors(results),
        grades=grades,
        shown=shown,
        answers=read_answers(results, grades, parse(scores.primary)),
        language=known_language(results),
    )


def retriever_colors(results: Results) -> dict[str, str]:
    """The colour of each retriever: declared, or derived from its identity."""
    blocks = results.manifest.resolved.blocks
    return colors_of(
        {name: results.manifest.identity(name) for name in results.retrievers},
        {name: _declared_color(blocks[name]) for name in results.retrievers},
    )


def second(view: View) -> str:
    """The first to compare the leader with: the baseline, else the next by mean, else itself."""
    if view.baseline not in (None, view.evaluation.leader):
        return str(view.baseline)
    return next(iter(view.ranked[1:]), view.evaluation.leader)


def _declared_color(block: Mapping[str, Any]) -> str:
    """A manifest is not trusted: only a colour gets into the style sheet."""
    color = block.get("color")
    return color if isinstance(color, str) and is_color(color) else ""


def _largest(grades: trec.Qrels) -> int:
    return max(
        (grade for judged in grades.values() for grade in judged.values()), default=0
    )


def _shown(scores: ScoreTable, order: tuple[int, ...]) -> tuple[int, ...]:
    most = max(1, RANKINGS // len(scores))
    if len(order) <= most:
        return order
    spread = np.ptp(np.column_stack(list(scores.values())), axis=1)
    kept = set(sorted(order, key=lambda i: -spread[i])[:most])
    return tuple(i for i in order if i in kept)


def superscripts(view: View, measure: str) -> dict[str, str]:
    """Return, for each retriever, the letters of the retrievers that it was shown to beat on a measure."""
    letters = letters_of(view)
    beaten: dict[str, set[str]] = {name: set() for name in view.ranked}
    for row in view.comparisons[measure]:
        if row.verdict is Verdict.BETTER:
            beaten[row.a].add(letters[row.b])
        elif row.verdict is Verdict.WORSE:
            beaten[row.b].add(letters[row.a])
    return {name: "".join(sorted(worse)) for name, worse in beaten.items()}


def letters_of(view: View) -> dict[str, str]:
    """Name each retriever by a letter, in the order of the table; by a number if there are too many."""
    few = len(view.ranked) <= len(ascii_lowercase)
    return {
        name: ascii_lowercase[i] if few else f"{i + 1} "
        for i, name in enumerate(view.ranked)
    }


def inherited(manifest: Manifest, retriever: str) -> RetrieverLedger:
    """Return a retriever's ledger with those of its parts: ids once, counts summed."""
    notes: dict[str, tuple[str, ...]] = {}
    counts: dict[str, dict[str, float]] = {}
    for part in manifest.resolved.parts(retriever):
        own = manifest.ledger.retrievers[part]
        for kind, noted in own.notes.items():
            notes[kind] = tuple(dict.fromkeys([*notes.get(kind, ()), *noted]))
        for stage, numbers in own.counts.items():
            row = counts.setdefault(stage, {})
            for kind, number in numbers.items():
                row[kind] = row.get(kind, 0) + number
    return RetrieverLedger(notes=notes, counts=counts)

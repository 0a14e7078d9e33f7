"""The results in reading order.

All sections of a report read this: a results folder with its evaluation, and its scores
on the queries for which every retriever has a primary score. By its measures more is
better; those of answers, of which some are the better the lower, have `scores_page`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from string import ascii_lowercase

import numpy as np

from harness.evaluation.evaluation import Evaluation
from harness.evaluation.evaluation_file import read_or_evaluate
from harness.evaluation.verdict import Comparison, Verdict
from harness.measures import parse_measure
from harness.pages import visible_text
from harness.records import LabelledQuery, Manifest, ResolvedExperiment, Results
from harness.report.escape import shorten_text
from harness.report.language import data_language
from harness.report.names import MeasureName, measure_names
from harness.report.ranking_digests import RankingDigest, read_ranking_digests
from harness.scoring.scores import Scores, best_by_mean
from harness.scoring.stored_scores import stored_scores
from harness.stats.differences import ScoreTable
from harness.stats.settings import Settings
from harness.wording.short_verdict import short_verdict
from retrievers.files.trec_files import Qrels
from retrievers.types import Document

MAX_TITLE_LENGTH = 120
"""Characters of a document's title on a page."""
MAX_PAGE_RANKINGS = 10_000
"""Rankings on a page, at most.

If all queries have more, the queries on which the retrievers differ most are shown.
"""


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """A results folder in reading order."""

    results: Results
    evaluation: Evaluation
    scores: Scores
    """Scores of the queries for which every retriever has a primary score."""
    names: Mapping[str, MeasureName]
    """Measure -> its names."""
    order: tuple[int, ...]
    """Indices into `ids`, in the order of the data set's file."""
    grades: Qrels
    """Grades of every scored query; none for a query that only has claims."""
    listed_queries: tuple[int, ...]
    """Indices of the queries that a page lists, in the order of the file."""
    ranking_digests: Mapping[str, RankingDigest]
    """Retriever -> what the page needs of its rankings."""
    language: str
    """BCP 47 code of the data; "" if unknown."""
    shows_texts: bool = True
    """Whether it shows texts of queries and documents, or their ids."""

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
            *(measure for measure in self.scores.values if measure != self.primary),
        )

    @property
    def retrievers(self) -> tuple[str, ...]:
        """The retrievers that finished, in the order of the experiment."""
        return self.results.retrievers

    @property
    def ids(self) -> tuple[str, ...]:
        """The queries that were scored, sorted: the order of all arrays."""
        return self.scores.ids

    @property
    def values_by_measure(self) -> Mapping[str, ScoreTable]:
        """Measure -> retriever -> (n,) scores, NaN if undefined."""
        return self.scores.values

    @property
    def comparisons(self) -> Mapping[str, tuple[Comparison, ...]]:
        """Measure -> its comparisons, which are corrected together."""
        return {
            measure: self.evaluation.comparisons[measure]
            for measure in self.scores.values
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
        """The retrievers by their mean on the primary measure, best first."""
        return tuple(self.evaluation.means)

    @property
    def examined(self) -> str:
        """The retriever of *Where it fails*.

        The one that the verdict says to keep, else the leader.
        """
        verdict = short_verdict(self.evaluation)
        return verdict.retriever if verdict.word == "keep" else self.evaluation.leader

    @property
    def baseline(self) -> str | None:
        """The declared baseline, if it finished."""
        declared = self.resolved.baseline
        return declared if declared in self.retrievers else None

    @property
    def cutoff(self) -> int:
        """The primary measure's cutoff, or the depth if it has none."""
        return parse_measure(self.primary).cutoff or self.resolved.depth

    @property
    def n(self) -> int:
        """Number of scored queries."""
        return len(self.ids)

    def mean(self, measure: str, retriever: str) -> float:
        """The (weighted) mean over the queries with a score; NaN without any."""
        return self.scores.mean(measure, retriever)

    def best_retrievers(self, measure: str) -> tuple[str, ...]:
        """The retrievers with the highest mean on a measure."""
        rows = self.evaluation.summary[measure].items()
        return best_by_mean({name: row.mean for name, row in rows})

    def with_short_names(self, sentence: str) -> str:
        """Return a sentence with the short name of the measure that it names.

        Of several, the one with the longest name is shortened: others may be a part of
        it. Spaces before a percent sign and after "(p" do not break a line.
        """
        sentence = sentence.replace("(p ", "(p\N{NO-BREAK SPACE}")
        sentence = sentence.replace(" %", "\N{NO-BREAK SPACE}%")
        # Names without parameters are short as they are.
        for measure in sorted(self.measures, key=len, reverse=True):
            if "(" in measure and measure in sentence:
                return sentence.replace(measure, self.names[measure].short)
        return sentence

    def query(self, index: int) -> LabelledQuery:
        """Return the query at an index into `ids`."""
        return self.results.queries[self.ids[index]]

    def query_text(self, query_id: str) -> str:
        """The text of a query; its id if no texts are shown."""
        if not self.shows_texts:
            return visible_text(query_id)
        return visible_text(self.results.queries[query_id].query.text)

    def document_title(self, document_id: str) -> str:
        """The title of a document, else the start of its text, else its id."""
        document = self.results.documents.get(document_id)
        if document is None or not self.shows_texts:
            return visible_text(document_id)
        return document_heading(document)


def document_heading(document: Document) -> str:
    """The title of a document, else the start of its text, else its id."""
    heading = document.title.strip() or document.text.strip() or document.id
    return shorten_text(heading, MAX_TITLE_LENGTH)


def build_view(results: Results, *, shows_texts: bool = True) -> View:
    """Put results in the order of reading.

    Args:
        results: of one run.
        shows_texts: whether texts of queries and documents are shown, or their ids.
    """
    evaluation = read_or_evaluate(results)
    scores = stored_scores(results)
    primary = scores.primary
    scores = scores.select_queries(scores.defined(primary))
    measures = (primary, *(name for name in scores.values if name != primary))
    order = scores.source_order or ()  # stored scores have one
    qrels = results.grades()
    # A query may have claims and no labels.
    grades = {query_id: qrels.get(query_id, {}) for query_id in scores.ids}
    depth = results.manifest.resolved.depth
    return View(
        results=results,
        evaluation=evaluation,
        scores=scores,
        names=measure_names(measures, depth, _largest_grade(grades)),
        order=order,
        grades=grades,
        listed_queries=_listed_queries(scores.values[primary], order),
        ranking_digests=read_ranking_digests(results, grades, parse_measure(primary)),
        language=data_language(results),
        shows_texts=shows_texts,
    )


def _largest_grade(grades: Qrels) -> int:
    return max(
        (grade for query_grades in grades.values() for grade in query_grades.values()),
        default=0,
    )


def _listed_queries(scores: ScoreTable, order: tuple[int, ...]) -> tuple[int, ...]:
    """Return all queries, or those on which the retrievers differ most."""
    max_queries = max(1, MAX_PAGE_RANKINGS // len(scores))
    if len(order) <= max_queries:
        return order
    ranges = np.ptp(np.column_stack(list(scores.values())), axis=1)
    by_range = sorted(order, key=lambda i: -ranges[i])
    listed = set(by_range[:max_queries])
    return tuple(i for i in order if i in listed)


def main_rival(view: View) -> str:
    """Return the retriever that *Where it fails* compares with the leader.

    It is the baseline, else the next by mean, else the leader itself.
    """
    if view.baseline not in (None, view.evaluation.leader):
        return str(view.baseline)
    return next(iter(view.ranked[1:]), view.evaluation.leader)


def beaten_letters(view: View, measure: str) -> dict[str, str]:
    """Return the letters of the retrievers that each was shown to beat on a measure."""
    letters = retriever_letters(view)
    beaten: dict[str, set[str]] = {name: set() for name in view.ranked}
    for row in view.comparisons[measure]:
        if row.verdict is Verdict.BETTER:
            beaten[row.a].add(letters[row.b])
        elif row.verdict is Verdict.WORSE:
            beaten[row.b].add(letters[row.a])
    in_order = list(letters.values())
    return {
        name: "".join(sorted(worse, key=in_order.index))
        for name, worse in beaten.items()
    }


def retriever_letters(view: View) -> dict[str, str]:
    """Return a letter for each retriever, in the order of the table.

    If there are more retrievers than letters, it is a number with a space, so that
    several of them can be joined like letters.
    """
    if len(view.ranked) <= len(ascii_lowercase):
        # Letters at the end of the alphabet may be left over.
        return dict(zip(view.ranked, ascii_lowercase, strict=False))
    return {name: f"{number} " for number, name in enumerate(view.ranked, start=1)}

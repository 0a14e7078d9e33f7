"""Whose labels are taken: the verdicts under each person's own, and what a model's add to people's.

The verdict stays with the queries that people judged; beside it stands the estimate that uses the model, too, and how
much the model favours one retriever over another. See `harness.stats.prediction` for the formulas.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from harness.dataset import Labels
from harness.dataset.judgments import GRADES
from harness.evaluation.compare import compare
from harness.evaluation.evaluation import settings_of
from harness.evaluation.grading import by_labeller, grade_labels, grades_under, labels_that_count
from harness.evaluation.readers import Judged, lists_of, primary_of, relevance_of, score_lists
from harness.evaluation.verdict import Comparison, Verdict
from harness.evaluation.wording import verdict_word
from harness.experiment import Relevance
from harness.measures import Measure, parse, score
from harness.records import Results
from harness.stats.agreement import Agreement, by_query, cohen_kappa, confusion
from harness.stats.intervals import Interval
from harness.stats.looks import at_look
from harness.stats.prediction import Predicted, predicted
from retrievers.types import Floats


class LabellerVerdict(NamedTuple):
    """What the tests show by one person's labels alone."""

    labeller: str
    queries: int
    """Those with a document that this person calls relevant."""
    rows: Mapping[tuple[str, str], Comparison]
    """Each pair of the primary measure's family."""


MERGED = "the merge"


def labeller_verdicts(results: Results, relevance: Relevance) -> tuple[LabellerVerdict, ...]:
    """Test the primary measure's family anew by the labels of each person who labelled beside others.

    The tests are those of the run, over the queries that the person labelled; nothing is corrected for the number of
    labellers, since the verdict of the run stays that of the merge.
    """
    labels = labels_that_count({query: asked.labels for query, asked in results.queries.items()})
    verdicts = (_verdict(results, name, own, relevance) for name, own in by_labeller(labels).items())
    return tuple(verdict for verdict in verdicts if verdict.rows)


def labellers_sentence(merged: Sequence[Comparison], verdicts: Sequence[LabellerVerdict]) -> str:
    """Whether the verdicts depend on whose labels are taken; "" where there is one labeller."""
    if not verdicts or not merged:
        return ""
    pairs = []
    for row in merged:
        findings = {MERGED: row.finding} | {
            one.labeller: one.rows[row.a, row.b].finding for one in verdicts if (row.a, row.b) in one.rows
        }
        if len({finding._replace(reason=None) for finding in findings.values()}) > 1:
            each = ", ".join(f"{verdict_word(finding)} under {by}" for by, finding in findings.items())
            pairs.append(f"{row.a} and {row.b}: {each}")
    if not pairs:
        names = " and ".join(one.labeller for one in verdicts)
        undecided = any(row.verdict is Verdict.UNDECIDED for row in merged)
        same = "No verdict is reversed" if undecided else "Every verdict is the same"
        return f"{same} under the labels of {names} and under the merge of them."
    return f"Verdicts depend on whose labels are taken: {'; '.join(pairs)}."


def _verdict(results: Results, name: str, labels: Mapping[str, Labels], relevance: Relevance) -> LabellerVerdict:
    measure, declared = parse(primary_of(results.manifest.resolved)), settings_of(results.manifest)
    graded = grade_labels(labels, relevance)
    queries = {query: results.queries[query].query for query in graded.grades}
    if not queries:
        return LabellerVerdict(name, 0, {})
    scores = score_lists(Judged((measure,), measure, graded, queries, declared), lists_of(results))
    baseline = results.manifest.resolved.baseline
    rows = compare(scores, baseline=baseline, settings=at_look(declared, scores.n))
    return LabellerVerdict(name, scores.n, {(row.a, row.b): row for row in rows})


FEWEST = 2
"""Queries judged by people and by the model, at least."""


class CombinedPair(NamedTuple):
    """The difference of two retrievers, by people alone and with a model's help."""

    a: str
    b: str
    estimate: Predicted


class ModelAgreement(NamedTuple):
    """How far a model's grades are those of people, on the documents that both judged."""

    pairs: int
    queries: int
    kappa: Agreement
    """Cohen's, over the four grades, with its interval over the queries."""

    @property
    def shown(self) -> bool:
        """Whether the agreement differs from that of chance, whose kappa is 0."""
        return self.kappa.low > 0  # False where there is no interval

    def sentence(self) -> str:
        """The same in words, with a warning where the model may as well have guessed."""
        both = f"On {self.pairs:,} documents of {self.queries:,} queries that people and the model judged"
        if math.isnan(self.kappa.value):
            return f"{both}, Cohen's kappa is undefined: all fell into one grade."
        low, high = self.kappa.low, self.kappa.high
        between = "" if math.isnan(low) else f" ({low:.2f} to {high:.2f})"
        guess = "" if self.shown else (
            " This is not shown to differ from chance: what the model says may be guessed, and its help is none."
        )  # fmt: skip
        return f"{both}, Cohen's kappa is {self.kappa.value:.2f}{between}.{guess}"


class Combined(NamedTuple):
    """What people's and a model's labels say together."""

    measure: str
    n: int
    """Queries that people and the model judged."""
    others: int
    """Queries that the model alone judged whole; those that people began are among them."""
    pairs: tuple[CombinedPair, ...]
    reason: str
    """Why there is no estimate; "" where there is one."""
    agreement: ModelAgreement | None = None
    """None where people and the model judged no document both."""


def combined(results: Results) -> Combined | None:
    """Estimate each difference of the primary measure; None where no model judged anything beside people.

    A query without a relevant document counts as no difference here, so that the queries stay a random sample.
    """
    labels = {query: question.labels for query, question in results.queries.items()}
    both = {q: given for q, given in labels.items() if given.source == "people" and given.model}
    alone = {q: by_model(given) for q, given in labels.items() if given.source in ("model", "mixed")}
    if not any(given.source == "people" for given in labels.values()) or not (both or alone):
        return None
    measure = primary_of(results.manifest.resolved)
    reason = _reason(both, alone)
    if reason:
        return Combined(measure, len(both), len(alone), (), reason)
    relevance = relevance_of(results)
    people = _scores(results, parse(measure), {q: given.grades or {} for q, given in both.items()}, relevance)
    model = _scores(results, parse(measure), {q: given.model for q, given in both.items()}, relevance)
    elsewhere = _scores(results, parse(measure), alone, relevance)
    level = settings_of(results.manifest).level
    pairs = tuple(
        CombinedPair(a, b, predicted(people[a] - people[b], model[a] - model[b], elsewhere[a] - elsewhere[b],
                                     level=level))
        for a, b in _family(results)
    )  # fmt: skip
    return Combined(measure, len(both), len(alone), pairs, "", model_agreement(both))


def model_agreement(both: Mapping[str, Labels]) -> ModelAgreement | None:
    """Compare people's grades with a model's, query by query; None where no document has both."""
    graded = [
        [(grade, given.model[document]) for document, grade in (given.grades or {}).items() if document in given.model]
        for given in both.values()
    ]
    tables = [confusion([ours for ours, _ in of], [other for _, other in of], GRADES) for of in graded if of]
    if not tables:
        return None
    return ModelAgreement(sum(map(len, graded)), len(tables), by_query(cohen_kappa, np.stack(tables)))


def by_model(labels: Labels) -> Mapping[str, int]:
    """A model's grades of a query that people did not finish."""
    return (labels.grades or {}) if labels.source == "model" else labels.model


def sentence(pair: CombinedPair, measure: str) -> str:
    """One difference in words: people alone, with the model, what that is worth, and whom the model favours."""
    estimate = pair.estimate
    people = f"{estimate.people:+.4f}{_interval(estimate.people_interval)}"
    both = f"{estimate.combined:+.4f}{_interval(estimate.combined_interval)}"
    favours = (
        "" if _holds_zero(estimate.favour_interval)
        else f" The model favours {pair.b if estimate.favour > 0 else pair.a} by {abs(estimate.favour):.4f}."
    )  # fmt: skip
    return (
        f"{pair.a} less {pair.b} in {measure}: {people} on {estimate.n:,} queries judged by people, {both} with a "
        f"model's labels on {estimate.others:,} more. {estimate.n:,} judged queries are worth {estimate.worth:.0f}."
        f"{favours}"
    )


def _interval(interval: Interval) -> str:
    low, high, _ = interval
    return "" if low is None or high is None else f" ({low:+.4f} to {high:+.4f})"


def _holds_zero(interval: Interval) -> bool:
    """Whether nothing is shown: 0 is in the interval, or there is none."""
    low, high, _ = interval
    return low is None or high is None or low <= 0 <= high


def _reason(both: Mapping[str, Labels], alone: Mapping[str, object]) -> str:
    if len(both) < FEWEST:
        return (
            "the model judged none of the queries that people judged: let it judge them, too (harness pool --for llm)"
        )
    if not alone:
        return "people judged every query that the model judged: nothing is left to help with"
    populations = {given.population for given in both.values()}
    if len({given.inclusion for given in both.values()}) > 1 and (len(populations) > 1 or 0 in populations):
        # Samples of one population, drawn without regard to the queries, are one sample together; others are strata
        # to which the queries that the model judged alone cannot be told to belong.
        return (
            "the judged queries came into their samples with different probabilities, from different numbers of "
            "queries: draw one sample of all of today's queries"
        )
    return ""


def _scores(
    results: Results, measure: Measure, grades: Mapping[str, Mapping[str, int]], relevance: Relevance
) -> dict[str, Floats]:
    """Retriever -> (queries,), in the order of `grades`."""
    judged = {query: grades_under(given, relevance) for query, given in grades.items()}
    scores = {}
    for name in results.retrievers:
        answers = {query: ranking.doc_ids for query, ranking in results.answers(name) if query in judged}
        scores[name] = np.asarray(score([measure], judged, answers).of(measure), dtype=np.float64)
    return scores


def _family(results: Results) -> Iterator[tuple[str, str]]:
    primary = primary_of(results.manifest.resolved)
    for row in results.comparisons.to_dict("records"):
        if row["measure"] == primary:
            yield row["a"], row["b"]

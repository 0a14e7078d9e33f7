"""Whose labels are taken: the verdicts under each person's own, and what a model's add to people's.

The verdict stays with the queries that people judged; beside it stands the estimate that uses the model, too, and how
much the model favours one retriever over another. See `harness.stats.prediction` for the formulas.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from harness.dataset import Labels
from harness.dataset.judgments import GRADES
from harness.english import asked, count, counted, minus
from harness.evaluation.compare import compare
from harness.evaluation.evaluation import settings_of
from harness.evaluation.grading import by_labeller, grade_labels, grades_under, labels_that_count
from harness.evaluation.question_units import clusters_of
from harness.evaluation.readers import Judged, compared_pairs, lists_of, primary_of, relevance_of, score_lists
from harness.evaluation.verdict import Comparison, Verdict
from harness.evaluation.wording import verdict_word
from harness.experiment import Relevance
from harness.measures import Measure, bounds, parse, score
from harness.measures.compute import largest_grade
from harness.records import Results
from harness.stats.agreement import ENOUGH_QUERIES, Agreement, by_query, cohen_kappa, confusion
from harness.stats.differences import Range, units_of
from harness.stats.intervals import Interval
from harness.stats.power import at_look
from harness.stats.prediction import ENOUGH, ENOUGH_DIFFERENT, Predicted, predicted
from harness.stats.settings import Settings
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
    if parse(primary_of(results.manifest.resolved)).own:  # its function may have gone with its process
        return ()
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
        """Whether the agreement differs from that of chance, whose kappa is 0; never where there is no interval."""
        return self.kappa.low > 0

    def sentence(self) -> str:
        """The same in words, with a warning where the model may as well have guessed."""
        both = f"On {counted(self.pairs, 'document')} of {count(self.queries)} that people and the model judged"
        if math.isnan(self.kappa.value):
            return f"{both}, Cohen's kappa is undefined: all fell into one grade."
        low, high = self.kappa.low, self.kappa.high
        between = f" (no interval below {ENOUGH_QUERIES} queries)" if math.isnan(low) else f" ({low:.2f} to {high:.2f})"
        guess = "" if self.shown else (
            " This is not shown to differ from chance: what the model says may be guessed, and no help is shown."
        )  # fmt: skip
        return f"{both}, Cohen's kappa is {minus(f'{self.kappa.value:.2f}{between}')}.{guess}"


class PeopleAndModel(NamedTuple):
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


def combined(results: Results) -> PeopleAndModel | None:
    """Estimate each difference of the primary measure; None where no model judged anything beside people.

    A query without a relevant document counts as no difference here, so that the queries stay a random sample.
    """
    labels = {query: question.labels for query, question in results.queries.items()}
    both = {q: given for q, given in labels.items() if given.source == "people" and given.model}
    alone = {q: by_model(given) for q, given in labels.items() if given.source in ("model", "mixed")}
    if not any(given.source == "people" for given in labels.values()) or not (both or alone):
        return None
    measure, declared = primary_of(results.manifest.resolved), settings_of(results.manifest)
    clusters = clusters_of([results.queries[query].query for query in (*both, *alone)], declared.cluster)
    units = None if clusters is None else units_of(clusters)
    judged = len(both) if units is None else len(np.unique(units.members[: len(both)]))
    agreement = model_agreement(both)
    if reason := _reason(both, alone, declared) or too_few(len(both), judged):
        return PeopleAndModel(measure, len(both), len(alone), (), reason, agreement)
    tables = {q: given.grades or {} for q, given in both.items()}, {q: given.model for q, given in both.items()}, alone
    scores = _scores(results, parse(measure), tables)
    low, high = bounds(parse(measure), {**tables[0], **alone})
    gap = Range(low - high, high - low)
    pairs = tuple(
        CombinedPair(a, b, predicted(*(of[a] - of[b] for of in scores), level=declared.level, units=units, bounds=gap))
        for a, b in compared_pairs(results)
    )
    return PeopleAndModel(measure, len(both), len(alone), pairs, "", agreement)


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
    """One difference in words: people alone, with the model, how narrow that is, and whom the model favours."""
    one = pair.estimate
    people = f"{pair.a} less {pair.b} in {measure}: {interval_words(one.people, one.people_interval)} on "
    people += f"{one.n:,} queries judged by people"
    if one.powered is None:
        return f"{people}; no estimate with the model's labels: {why_no_estimate(one)}."
    both = interval_words(one.powered.estimate, one.interval)
    narrow = (
        "" if math.isnan(one.as_narrow_as)
        else f": the interval is as narrow as about {one.as_narrow_as:,.0f} judged queries would give"
    )  # fmt: skip
    favours = (
        "" if _holds_zero(one.favour_interval)
        else f" The model favours {pair.b if one.favour > 0 else pair.a} by {abs(one.favour):.4f}."
    )  # fmt: skip
    return f"{people}, {both} with a model's labels on {one.others:,} more{narrow}.{favours}"


def why_no_estimate(one: Predicted) -> str:
    """Why there is no estimate that uses the model; "" where there is one."""
    if one.powered is not None:
        return ""
    return too_few(one.n, one.units) or (
        f"people and the model differ on {one.differing:,} of the {_judged(one.n, one.units)}, and below "
        f"{ENOUGH_DIFFERENT} on which they do an interval from both is too short"
    )


def weighted(field: str) -> str:
    """Why queries that are weighted by a field make no estimate that uses the model."""
    return f"the queries are weighted by {field}, and an estimate from both would count all alike"


def too_few(queries: int, units: int) -> str:
    """Why so few judged queries, of so many clusters, make no estimate that uses the model; "" where they do.

    >>> too_few(40, 12)
    'people and the model judged 40 queries (12 different questions), and below 30 an interval from both is too short'
    """
    if units >= ENOUGH:
        return ""
    return (
        f"people and the model judged {_judged(queries, units)}, and below {ENOUGH} an interval from both is too short"
    )


def _judged(queries: int, units: int) -> str:
    return asked(queries, None if units == queries else units)


def interval_words(value: float, interval: Interval, sign: str = "+") -> str:
    """A number and its interval; `sign` is "+" for differences.

    >>> interval_words(0.5, Interval(0.25, 0.75, "t"), "")
    '0.5000 (0.2500 to 0.7500)'
    """
    low, high, _ = interval
    between = "" if low is None or high is None else f" ({low:{sign}.4f} to {high:{sign}.4f})"
    return minus(f"{value:{sign}.4f}{between}")


def _holds_zero(interval: Interval) -> bool:
    """Whether nothing is shown: 0 is in the interval, or there is none."""
    low, high, _ = interval
    return low is None or high is None or low <= 0 <= high


def _reason(both: Mapping[str, Labels], alone: Mapping[str, object], declared: Settings) -> str:
    if declared.weight is not None:
        return weighted(declared.weight)
    if not both:
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
    results: Results, measure: Measure, tables: Sequence[Mapping[str, Mapping[str, int]]]
) -> list[dict[str, Floats]]:
    """For each table of grades: retriever -> (queries,). ERR's largest grade is that of all: else it were several."""
    relevance = relevance_of(results)
    judged = [{query: grades_under(given, relevance) for query, given in grades.items()} for grades in tables]
    largest = max(largest_grade([measure], grades) for grades in judged)
    lists = {name: read() for name, read in lists_of(results).items()}
    return [
        {name: score([measure], grades, of, largest=largest).of(measure) for name, of in lists.items()}
        for grades in judged
    ]

"""Scores of a few retrievers as the one table of scores, for tests of what is made of
it.
"""

from dataclasses import replace

import numpy as np

from harness.evaluation import compare as comparing
from harness.evaluation.evaluate import conclude_scores
from harness.evaluation.gate_verdict import BASELINE_ARM, CHALLENGER_ARM, gate_scores
from harness.evaluation.verdict import Finding, Verdict
from harness.measures import parse_measure
from harness.measures.table import row_of
from harness.scoring.scores import Scores
from harness.stats.differences import ValueRange
from harness.stats.settings import Settings
from harness.wording.verdicts import REASON_WORDS, verdict_cell


def scored(values, measure="m", **fields):
    """A table of one measure; `fields` are others of `Scores`, such as clusters."""
    n = len(next(iter(values.values())))
    return Scores(
        ids=tuple(f"{i:05}" for i in range(n)), values={measure: values}, **fields
    )


def compare(values, *, measure="m", baseline=None, settings=None, **fields):
    """The comparisons of one measure."""
    return comparing.compare_retrievers(
        scored(values, measure, **fields),
        baseline=baseline,
        settings=settings or Settings(),
    )


def gate(challenger, baseline, *, margin, span=1.0):
    """Whether one row of scores is not worse than another by the margin; `span` is the
    range of the measure.
    """
    low = min(challenger.min(), baseline.min())
    reach = None if span is None else ValueRange(low, low + span)
    table = scored(
        {CHALLENGER_ARM: challenger, BASELINE_ARM: baseline}, ranges={"m": reach}
    )
    return gate_scores(table, margin=margin, settings=Settings())


def concluded(values, rows, *, measure="m", settings=None, **fields):
    """The evaluation of one measure."""
    return conclude_scores(
        scored(values, measure, **fields), rows, settings or Settings()
    )


def cell(row):
    """The verdict as comparisons.csv has it."""
    return verdict_cell(row.finding)


def shown(evaluation, **verdicts):
    """The same evaluation with other findings of the leader against others, such as
    y="undecided".
    """
    against = {
        name: replace(row, finding=finding(verdicts.get(name, cell(row))))
        for name, row in evaluation.leader_comparisons.items()
    }
    done = (Verdict.EQUIVALENT, Verdict.BETTER)
    plans = {
        name: evaluation.queries_needed.get(name)
        for name, row in against.items()
        if row.verdict not in done
    }
    return evaluation.model_copy(
        update={"leader_comparisons": against, "queries_needed": plans}
    )


def finding(text):
    """The finding that a cell of comparisons.csv shows."""
    word, _, why = text.partition(": ")
    reasons = {words: reason for reason, words in REASON_WORDS.items()} | {"": None}
    plain = word.removesuffix(" but negligible")
    return Finding(Verdict(plain), reasons[why], word != plain)


def at_level(name, rel):
    """A measure at trec_eval's -l, where it asks whether a document is relevant."""
    measure = parse_measure(name)
    is_supported = (
        measure.get("rel") is None and "rel" in row_of(measure).options and rel > 1
    )
    return (
        replace(measure, params=tuple(sorted((*measure.params, ("rel", rel)))))
        if is_supported
        else measure
    )


def with_primary_alone(view):
    """A report's view in which only the primary measure has values."""
    values = {}
    for measure, columns in view.scores.values.items():
        undefined = {name: np.full(view.n, np.nan) for name in columns}
        values[measure] = columns if measure == view.primary else undefined
    return replace(view, scores=replace(view.scores, values=values))

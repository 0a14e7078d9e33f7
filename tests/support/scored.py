"""Scores of a few retrievers as the one table of scores, for tests of what is made of it."""

from harness.evaluation import compare as comparing
from harness.evaluation.conclusion import conclude
from harness.evaluation.scores import Scores
from harness.evaluation.statements import conclusion_statements
from harness.evaluation.wording import verdict_cell, verdict_word
from harness.stats.settings import Settings


def scored(values, measure="m", **known):
    """A table of one measure; `known` are its clusters, ranges and identical rankings."""
    n = len(next(iter(values.values())))
    return Scores(ids=tuple(f"{i:05}" for i in range(n)), values={measure: values}, **known)


def compare(values, *, measure="m", baseline=None, settings=None, **known):
    """The comparisons of one measure."""
    return comparing.compare(scored(values, measure, **known), baseline=baseline, settings=settings or Settings())


def concluded(values, rows, *, measure="m", settings=None, **known):
    """The three sets."""
    return conclude(scored(values, measure, **known), rows, settings or Settings())


def cell(row):
    """The verdict as comparisons.csv has it."""
    return verdict_cell(row.finding)


def word(row):
    """The verdict without its reason."""
    return verdict_word(row.finding)


def sentences(result, settings=None, **how):
    """What was shown, in words."""
    return [statement.text for statement in conclusion_statements(result, settings or Settings(), **how)]

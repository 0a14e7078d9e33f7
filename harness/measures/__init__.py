"""Measures of retrieval: values parsed from text, and what computes them for many queries at once."""

from harness.measures.claims import Claimed
from harness.measures.compute import MeasureValues, bounds, score, score_run, span, value
from harness.measures.measure import Measure
from harness.measures.names import parse, parse_all
from harness.measures.tie_range import QueryTieRange, tie_ranges

__all__ = [
    "Claimed",
    "Measure",
    "MeasureValues",
    "QueryTieRange",
    "bounds",
    "parse",
    "parse_all",
    "score",
    "score_run",
    "span",
    "tie_ranges",
    "value",
]

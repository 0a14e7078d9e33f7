"""Measures of retrieval: values parsed from text, and what computes them for many queries at once."""

from harness.measures.claims import Claimed
from harness.measures.compute import MeasureValues, score, score_run, span, value
from harness.measures.measure import Measure
from harness.measures.names import parse, parse_all
from harness.measures.tie_range import QueryTieRange, tie_ranges

__all__ = [
    "Claimed",
    "Measure",
    "MeasureValues",
    "QueryTieRange",
    "parse",
    "parse_all",
    "score",
    "score_run",
    "span",
    "tie_ranges",
    "value",
]

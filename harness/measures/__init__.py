"""Measures of retrieval: values parsed from text, and what computes them for many queries at once."""

from harness.measures.claims import Claimed
from harness.measures.measure import Measure
from harness.measures.names import parse, parse_all
from harness.measures.scores import Scores, score, score_run, span, value
from harness.measures.ties import TieRange, tie_ranges

__all__ = [
    "Claimed",
    "Measure",
    "Scores",
    "TieRange",
    "parse",
    "parse_all",
    "score",
    "score_run",
    "span",
    "tie_ranges",
    "value",
]

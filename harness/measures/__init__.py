"""Measures of retrieval: values parsed from text, and what computes them for many queries at once."""

from harness.measures.measure import Measure
from harness.measures.names import parse
from harness.measures.score import Scores, score

__all__ = ["Measure", "Scores", "parse", "score"]

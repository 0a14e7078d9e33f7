"""Measures of retrieval: values parsed from text, and what computes them for many queries at once."""

from harness.measures.compute import MeasureValues as MeasureValues
from harness.measures.compute import bounds as bounds
from harness.measures.compute import score as score
from harness.measures.compute import score_run as score_run
from harness.measures.compute import span as span
from harness.measures.compute import value as value
from harness.measures.measure import Claimed as Claimed
from harness.measures.measure import Measure as Measure
from harness.measures.table import parse as parse
from harness.measures.table import parse_all as parse_all

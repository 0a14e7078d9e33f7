"""Measures of retrieval."""

from harness.measures.claims import QueryClaims as QueryClaims
from harness.measures.measure import Measure as Measure
from harness.measures.parse import parse_measure as parse_measure
from harness.measures.parse import parse_measure_list as parse_measure_list
from harness.measures.passage_value import PassageLabels as PassageLabels
from harness.measures.passage_value import passage_value as passage_value
from harness.measures.score import MeasureValues as MeasureValues
from harness.measures.score import measure_ranking as measure_ranking
from harness.measures.score import measure_rankings as measure_rankings
from harness.measures.score import measure_run as measure_run
from harness.measures.score import value_bounds as value_bounds
from harness.measures.score import value_span as value_span

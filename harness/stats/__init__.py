"""Exact tests, corrections, intervals, power and verdicts on per-query scores: numpy and scipy only.

differences    equal scores, found in spite of float noise; units: queries, or clusters of them
signed_rank    the exact test; hodges_lehmann: the estimate that belongs to it
sign_flip      the randomisation test of the mean; equivalence: margins and the gate
paired, friedman, tukey, deciding    the other tests, and which one decides
adjust, looks    many hypotheses at once, and one again and again
intervals, summary, details, leaderboard, overlap    sizes, with what is uncertain about them
populations, power, plan    what so many queries can find, and how many a difference would take
comparing, comparison    the rows of comparisons.csv; families, slices: the rows of tests.csv
verdicts, whole, letters, words, sentences    what it all came to
"""

from harness.stats.adjust import adjust
from harness.stats.comparing import compare, compare_all
from harness.stats.comparison import Comparison, TestRole, family, swapped
from harness.stats.details import Details, Probabilities, bayesian_bootstrap, details, effect_interval
from harness.stats.differences import Differences, differences
from harness.stats.equivalence import Gate, gate
from harness.stats.facts import Facts, Range, ScoreTable
from harness.stats.families import TestRow, friedman_row, pair_family, pairwise_families
from harness.stats.friedman import Friedman, friedman
from harness.stats.hodges_lehmann import HodgesLehmann, hodges_lehmann
from harness.stats.intervals import Interval, mean_interval
from harness.stats.leaderboard import Optimism, Standing, optimism, standings
from harness.stats.letters import RankDiagram, letters, rank_diagram
from harness.stats.looks import Look, at_look, earlier_looks, levels, look_at, spent
from harness.stats.overlap import Overlap, mean_overlap, overlap
from harness.stats.paired import PairedTest, paired_t, sign_test
from harness.stats.plan import Detectable, Needed, Plan, minimum_detectable, plan, queries_needed, sakai_queries
from harness.stats.power import Criterion
from harness.stats.sentences import (
    detectable_words,
    look_sentence,
    needed_sentence,
    plan_sentence,
    resolution_sentence,
    second_look_sentence,
    whole_sentences,
)
from harness.stats.settings import Looks, Settings, Statistics, check_margin
from harness.stats.sign_flip import Contrast, FlipTest, sign_flip
from harness.stats.signed_rank import SignedRank, signed_rank
from harness.stats.slices import interaction_family, length_slices, slice_family, small_slices
from harness.stats.summary import Summary, summarize
from harness.stats.tukey import tukey_hsd
from harness.stats.units import Units, singles, units_of
from harness.stats.whole import Power, Whole, asked_of, power_of, whole
from harness.stats.words import (
    format_p,
    interval_note,
    judged_note,
    optimism_sentence,
    pair_sentence,
    significance_sentence,
)

__all__ = [
    "Comparison",
    "Contrast",
    "Criterion",
    "Details",
    "Detectable",
    "Differences",
    "Facts",
    "FlipTest",
    "Friedman",
    "Gate",
    "HodgesLehmann",
    "Interval",
    "Look",
    "Looks",
    "Needed",
    "Optimism",
    "Overlap",
    "PairedTest",
    "Plan",
    "Power",
    "Probabilities",
    "Range",
    "RankDiagram",
    "ScoreTable",
    "Settings",
    "SignedRank",
    "Standing",
    "Statistics",
    "Summary",
    "TestRole",
    "TestRow",
    "Units",
    "Whole",
    "adjust",
    "asked_of",
    "at_look",
    "bayesian_bootstrap",
    "check_margin",
    "compare",
    "compare_all",
    "details",
    "detectable_words",
    "differences",
    "earlier_looks",
    "effect_interval",
    "family",
    "format_p",
    "friedman",
    "friedman_row",
    "gate",
    "hodges_lehmann",
    "interaction_family",
    "interval_note",
    "judged_note",
    "length_slices",
    "letters",
    "levels",
    "look_at",
    "look_sentence",
    "mean_interval",
    "mean_overlap",
    "minimum_detectable",
    "needed_sentence",
    "optimism",
    "optimism_sentence",
    "overlap",
    "pair_family",
    "pair_sentence",
    "paired_t",
    "pairwise_families",
    "plan",
    "plan_sentence",
    "power_of",
    "queries_needed",
    "rank_diagram",
    "resolution_sentence",
    "sakai_queries",
    "second_look_sentence",
    "sign_flip",
    "sign_test",
    "signed_rank",
    "significance_sentence",
    "singles",
    "slice_family",
    "small_slices",
    "spent",
    "standings",
    "summarize",
    "swapped",
    "tukey_hsd",
    "units_of",
    "whole",
    "whole_sentences",
]

"""Exact tests, corrections, intervals, power and verdicts on per-query scores: numpy and scipy only.

differences    equal scores, found in spite of float noise
signed_rank    the exact test; hodges_lehmann: the estimate that belongs to it
sign_flip      the randomisation test of the mean; equivalence: margins and the gate
paired, friedman, tukey    the other tests, for those who must compare
adjust, intervals, summary, power    corrections, intervals, describe(), what so many queries can show
comparison     the rows of comparisons.csv; families: the rows of tests.csv
verdicts, whole, letters, leaderboard, words    what it all came to
"""

from harness.stats.adjust import adjust
from harness.stats.comparison import Comparison, Role, compare, compare_all, family, swapped
from harness.stats.differences import Differences, differences
from harness.stats.equivalence import Gate, gate
from harness.stats.families import (
    TestRow,
    friedman_row,
    length_slices,
    pair_family,
    pairwise_families,
    slice_family,
    small_slices,
)
from harness.stats.friedman import Friedman, friedman
from harness.stats.hodges_lehmann import HodgesLehmann, hodges_lehmann
from harness.stats.intervals import Interval, mean_interval
from harness.stats.leaderboard import Optimism, Standing, optimism, standings
from harness.stats.letters import RankDiagram, letters, rank_diagram
from harness.stats.paired import PairedTest, paired_t, sign_test
from harness.stats.power import Detectable, Needed, minimum_detectable, queries_needed, sakai_queries
from harness.stats.settings import Settings
from harness.stats.sign_flip import Contrast, FlipTest, sign_flip
from harness.stats.signed_rank import SignedRank, signed_rank
from harness.stats.summary import Summary, summarize
from harness.stats.tukey import tukey_hsd
from harness.stats.whole import Unresolved, Whole, whole
from harness.stats.words import (
    format_p,
    judged_note,
    optimism_sentence,
    pair_sentence,
    significance_sentence,
    whole_sentences,
)

__all__ = [
    "Comparison",
    "Contrast",
    "Detectable",
    "Differences",
    "FlipTest",
    "Friedman",
    "Gate",
    "HodgesLehmann",
    "Interval",
    "Needed",
    "Optimism",
    "PairedTest",
    "RankDiagram",
    "Role",
    "Settings",
    "SignedRank",
    "Standing",
    "Summary",
    "TestRow",
    "Unresolved",
    "Whole",
    "adjust",
    "compare",
    "compare_all",
    "differences",
    "family",
    "format_p",
    "friedman",
    "friedman_row",
    "gate",
    "hodges_lehmann",
    "judged_note",
    "length_slices",
    "letters",
    "mean_interval",
    "minimum_detectable",
    "optimism",
    "optimism_sentence",
    "pair_family",
    "pair_sentence",
    "paired_t",
    "pairwise_families",
    "queries_needed",
    "rank_diagram",
    "sakai_queries",
    "sign_flip",
    "sign_test",
    "signed_rank",
    "significance_sentence",
    "slice_family",
    "small_slices",
    "standings",
    "summarize",
    "swapped",
    "tukey_hsd",
    "whole",
    "whole_sentences",
]

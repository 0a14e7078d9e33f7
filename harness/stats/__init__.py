"""Exact tests, corrections, intervals and verdicts on per-query scores: numpy and scipy only."""

from harness.stats.adjust import adjust
from harness.stats.comparison import Comparison, Role, compare, compare_all, family
from harness.stats.equivalence import Gate, gate
from harness.stats.intervals import Interval, mean_interval
from harness.stats.settings import Settings
from harness.stats.signed_rank import SignedRank, signed_rank
from harness.stats.summary import Summary, summarize

__all__ = [
    "Comparison",
    "Gate",
    "Interval",
    "Role",
    "Settings",
    "SignedRank",
    "Summary",
    "adjust",
    "compare",
    "compare_all",
    "family",
    "gate",
    "mean_interval",
    "signed_rank",
    "summarize",
]

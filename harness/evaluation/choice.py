"""The choice of one retriever.

The leader is chosen if the deciding test finds it better than each other retriever, at
the uncorrected level: that is one claim, and not one for each row. A row that only this
shows to be worse has a star at its p.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from harness.evaluation.verdict import Comparison
from harness.stats.settings import Settings


@dataclass(frozen=True, slots=True)
class Choice:
    """Whether the leader is chosen against every other retriever."""

    p_choice: float
    """The largest uncorrected p of the deciding test against any other retriever.

    It needs no correction, since all must be at most alpha (Berger 1982; Gutmann &
    Maymin 1987; Hung & Fithian 2019). 1 if the leader is not ahead of each of them.
    """
    is_made: bool
    """Whether `p_choice` is at most the level, and something may be claimed at all."""


def choose_leader(
    comparisons: Mapping[str, Comparison],
    settings: Settings,
    *,
    low_is_good: bool,
    measured: bool,
) -> Choice | None:
    """Return the choice of the leader; None if there is no other retriever.

    Args:
        comparisons: other retriever -> the leader (a) compared with it (b).
        settings: the deciding test and the level of this look.
        low_is_good: whether the lowest mean leads.
        measured: whether any score is not 0.
    """
    if not comparisons:
        return None
    p_choice = max(
        _p_in_favour(row, settings, low_is_good=low_is_good)
        for row in comparisons.values()
    )
    may_decide = measured and settings.judged_by_people and not settings.alpha_spent
    return Choice(p_choice, may_decide and p_choice <= settings.alpha)


def _p_in_favour(row: Comparison, settings: Settings, *, low_is_good: bool) -> float:
    """Return the uncorrected p; 1 if the deciding test does not favour the leader."""
    lead = row.mean_difference
    if settings.test == "wilcoxon":
        lead = row.w_plus - row.w_minus
    is_better = lead < 0 if low_is_good else lead > 0
    return row.p_value if is_better else 1.0

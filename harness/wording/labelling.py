"""The effort of labelling in words."""

from harness.english import count_pairs, count_queries
from harness.evaluation.judging_effort import JudgingEffort, SampledEffort
from harness.evaluation.judging_pace import SECONDS_PER_JUDGMENT
from harness.evaluation.pair_diagnostics import DEFAULT_CUTOFF


def effort_sentence(effort: SampledEffort) -> str:
    """Return what labelling the proposed sample takes.

    >>> print(effort_sentence(SampledEffort(30, 360)))
    No query has labels. Labelling 30 queries takes about 2 hours (360 query-document \
pairs).
    """
    return (
        f"No query has labels. Labelling {count_queries(effort.queries)} takes "
        f"about {effort.time} ({count_pairs(effort.pairs)})."
    )


def next_steps(effort: JudgingEffort) -> tuple[str, ...]:
    """Return what to label, what all of it takes, and what labels give.

    >>> print(next_steps(JudgingEffort(2847, ()))[1])
    Every query, first 10 documents: 2,847 query-document pairs, 15.8 hours at 20 \
seconds each.
    """
    return (
        "Label a random part of the queries, not only those that differ: the verdict "
        "is about all queries.",
        f"Every query, first {DEFAULT_CUTOFF} documents: {count_pairs(effort.pairs)}, "
        f"{effort.time} at {SECONDS_PER_JUDGMENT} seconds each.",
        "With labels, this page shows a leaderboard and where the leader fails.",
    )

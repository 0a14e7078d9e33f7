"""A verdict in one short line."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

from harness.english import count_of, join_names
from harness.evaluation.evaluation import Evaluation, SweepChoice
from harness.evaluation.sets import SetsComparison
from harness.evaluation.verdict import Verdict
from harness.records import RetrieverFailure
from harness.wording.failures import short_failure
from harness.wording.sets import compared_with, shown_worse

MAX_BEATEN_NAME = 30
"""Characters of the one retriever that is named."""


class ShortVerdict(NamedTuple):
    """The verdict of one run, in about 60 characters."""

    state: Literal["good", "undecided", "muted"]
    """The name of its colour."""
    sign: str
    word: str
    retriever: str
    """The one that is used, kept, or leads; may be empty."""
    words: str
    """What follows its name."""

    @property
    def sentence(self) -> str:
        """The name and what follows it; without a name, the word."""
        if not self.retriever:
            return f"{self.word}: {self.words}"
        return f"{self.retriever} {self.words}"


NO_LABELS = ShortVerdict("muted", "", "no labels", "", "nothing is scored")


def short_verdict(evaluation: Evaluation) -> ShortVerdict:
    """Return the verdict of a run in one line: the first of these that applies.

    A failure, no scores, a retriever alone; where people judged, a sweep's choice or
    the baseline's; the leader's.
    """
    verdict = _verdict_without_pairs(evaluation)
    if verdict is None and evaluation.settings.judged_by_people:
        if evaluation.sweep is not None:
            verdict = _sweep_verdict(evaluation.sweep)
        elif evaluation.baseline:
            verdict = _baseline_verdict(evaluation)
    return verdict or _leader_verdict(evaluation)


def short_sets_verdict(comparison: SetsComparison) -> ShortVerdict:
    """Return the verdict over several data sets in one line."""
    if comparison.failed:
        return _failed_verdict(comparison.failed)
    leader, *others = comparison.ranked_retrievers
    if not others:
        return _alone_verdict(leader)
    worse = tuple(shown_worse(comparison, leader))
    compared = compared_with(comparison, leader)
    undecided = [name for name in compared if name not in worse]
    if undecided:
        rivals = _rival_words(undecided, len(others))
        words = f"leads on average; {rivals} may be as good"
        return ShortVerdict("undecided", "?", "undecided", leader, words)
    words = f"{_beaten_words(worse)} on average"
    return ShortVerdict("good", "●", "use", leader, words)


def _failed_verdict(failures: Sequence[RetrieverFailure]) -> ShortVerdict:
    return ShortVerdict("muted", "×", "failed", "", short_failure(failures))


def _alone_verdict(retriever: str) -> ShortVerdict:
    words = "has no other to compare"
    return ShortVerdict("muted", "", "alone", retriever, words)


def _verdict_without_pairs(evaluation: Evaluation) -> ShortVerdict | None:
    """Return why no pair decides; None if one may."""
    if evaluation.failed:
        return _failed_verdict(evaluation.failed)
    if not evaluation.measured:
        return ShortVerdict("muted", "", "no scores", "", "every score is 0")
    if not evaluation.others:
        return _alone_verdict(evaluation.leader)
    return None


def _leader_verdict(evaluation: Evaluation) -> ShortVerdict:
    leader = evaluation.leader
    others = len(evaluation.others)
    typical = evaluation.better_on_typical_query
    undecided = list(evaluation.queries_needed)  # neither worse nor as good
    if undecided:
        words = f"leads; {_rival_words(undecided, others)} may be as good"
        if typical:
            verb = "is" if len(typical) == 1 else "are"
            rivals = _rival_words(list(typical), others)
            words = f"leads; {rivals} {verb} better on the typical query"
        return ShortVerdict("undecided", "?", "undecided", leader, words)
    worse = evaluation.shown_worse
    words = _beaten_words(worse)
    as_good = others - len(worse)
    if as_good:
        equal = f"is as good as {count_of(as_good, 'other')}"
        words = f"{equal}; {words}" if worse else equal
    return ShortVerdict("good", "●", "use", leader, words)


def _beaten_words(worse: tuple[str, ...]) -> str:
    if len(worse) == 1:
        return f"beats {worse[0][:MAX_BEATEN_NAME]}"
    return "beats both others" if len(worse) == 2 else f"beats {len(worse)} others"


def _rival_words(undecided: list[str], others: int) -> str:
    if len(undecided) == others:
        return {1: "the other", 2: "both others"}.get(others, f"all {others} others")
    if len(undecided) == 1:
        return join_names(undecided)[:MAX_BEATEN_NAME]
    return f"{len(undecided)} of {others}"


def _sweep_verdict(choice: SweepChoice) -> ShortVerdict:
    settings = count_of(choice.configurations, "setting")
    if choice.too_few:
        leader = choice.chosen if choice.gain > 0 else choice.default
        words = f"leads {settings}; too few queries"
        return ShortVerdict("undecided", "?", "undecided", leader, words)
    if choice.beats:
        words = f"beats {choice.default[:MAX_BEATEN_NAME]}"
        alike = len(choice.alike) - 1
        if alike:
            words += f"; {alike} of {settings} may be as good"
        return ShortVerdict("good", "●", "use", choice.chosen, words)
    words = f"is not shown to lose to any of {settings}"
    return ShortVerdict("good", "●", "keep", choice.default, words)


def _baseline_verdict(evaluation: Evaluation) -> ShortVerdict | None:
    """Return the verdict against the baseline; None if nothing is shown."""
    rows = evaluation.baseline_comparisons
    better = [row.a for row in rows if row.verdict is Verdict.BETTER]
    if better:
        words = f"beats {evaluation.baseline[:MAX_BEATEN_NAME]}"
        return ShortVerdict("good", "●", "use", better[0], words)
    if any(row.verdict is Verdict.WORSE for row in rows):
        words = "is not shown to lose to any other"
        return ShortVerdict("good", "●", "keep", evaluation.baseline, words)
    return None

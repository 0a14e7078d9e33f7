"""What people prefer.

The answers of a page of two rankings become counts of queries: for each query the votes
of its judges are added up, and a tie prefers neither. A sign test compares the counts;
repeated questions show how far a person agrees with themselves, and labels, if there
are any, whether they agree with people.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from harness.labels.compared_rankings import (
    ComparedRankings,
    ComparisonDesign,
    comparison_digest,
    differing_rankings,
)
from harness.labels.preferences_file import Preference
from harness.records import Results
from harness.scoring.stored_scores import stored_scores
from harness.stats.binary_interval import PairCounts, mcnemar_p
from harness.stats.looks import InterimAnalysis, current_look, nested_look_sizes
from harness.stats.proportion import ProportionInterval, clopper_pearson
from harness.stats.settings import Settings
from retrievers.errors import InputError, Problem

ZERO_DIFFERENCE = 1e-10
"""Float noise of equal scores."""


class RepeatedAnswers(NamedTuple):
    """How often people gave the same answer again, with swapped sides."""

    repeated: int
    """Number of questions that were answered twice."""
    same: int
    """How many of them got the same answer."""
    by_side: int
    """How many in which the same side was preferred, and so the other ranking."""


class LabelAgreement(NamedTuple):
    """Whether labels and people agree."""

    measure: str
    difference: float
    """The mean of `a` minus that of `b`, over the queries of which both have a value.

    Queries count by their weights; 0 without any. Of a measure for which less is
    better, the mean of `b` minus that of `a`: above 0 means that labels prefer `a`.
    """
    is_shown: bool | None
    """Whether the comparison by labels shows a difference.

    None if the experiment does not compare the two: its baseline is another.
    """
    both: int
    """Number of queries with a preference, and with a difference by labels."""
    agreeing: int
    """How many of them have the same direction."""


@dataclass(frozen=True, slots=True)
class PreferenceCounts:
    """The preferences over queries, with their test."""

    a: str
    b: str
    for_a: int
    """Number of queries that prefer `a`."""
    for_b: int
    same: int
    """Number of queries without a preference, or on which people are split."""
    p: float
    """p of the exact sign test over the queries with a preference."""
    level: float
    """Significance level of this look; alpha if none is planned."""
    interval: ProportionInterval
    """Interval of the leader's share of the queries with a preference."""
    judges: tuple[str, ...]
    self_agreement: RepeatedAnswers
    look: InterimAnalysis | None
    """Which planned look this is; None if none are planned."""
    earlier: tuple[int, ...]
    """Number of queries at each earlier look."""
    labels: LabelAgreement | None
    """How preferences agree with labels; None without labels."""

    @property
    def queries(self) -> int:
        """Number of queries with an answer."""
        return self.for_a + self.for_b + self.same

    @property
    def leader(self) -> str:
        """The retriever that more queries prefer; `a` if as many prefer each."""
        return self.a if self.for_a >= self.for_b else self.b

    @property
    def is_shown(self) -> bool:
        """Whether people are shown to prefer the leader."""
        if self.look is not None and self.look.alpha_spent:
            return False
        return self.p <= self.level


def count_preferences(
    results: Results, design: ComparisonDesign, files: Sequence[Sequence[Preference]]
) -> PreferenceCounts:
    """Return the counts of the preferences in some files.

    Args:
        results: of the page.
        design: of the page.
        files: each file's preferences, one or more; a file with fewer queries was an
            earlier look. If two files have an answer of one judge to the same question,
            that of the later file counts.

    Raises:
        InputError: the preferences belong to other rankings.
    """
    compared = {pair.query.id: pair for pair in _compared_by(results, design, files)}
    votes = _votes(compared, [row for rows in files for row in rows])
    signs = {
        query_id: _sign(sum(by_judge.values())) for query_id, by_judge in votes.items()
    }
    for_a = sum(sign > 0 for sign in signs.values())
    for_b = sum(sign < 0 for sign in signs.values())
    same = len(signs) - for_a - for_b
    earlier = nested_look_sizes(
        ({row.query_id for row in rows if row.round == 1} for rows in files),
        set(signs),
    )
    settings = _settings(results, earlier)
    look = current_look(settings, len(signs))
    level = settings.alpha if look is None else look.level
    return PreferenceCounts(
        a=design.a,
        b=design.b,
        for_a=for_a,
        for_b=for_b,
        same=same,
        p=mcnemar_p(PairCounts(for_a, for_b, same)),
        level=level,
        interval=clopper_pearson(max(for_a, for_b), for_a + for_b, level),
        judges=tuple(sorted({row.judge for rows in files for row in rows})),
        self_agreement=_self_agreement(compared, files),
        look=look,
        earlier=earlier,
        labels=label_agreement(results, design, signs),
    )


def _compared_by(
    results: Results, design: ComparisonDesign, files: Sequence[Sequence[Preference]]
) -> list[ComparedRankings]:
    """Return the rankings that were compared; refuse answers about others.

    One row suffices: `read_preferences` takes only files of one comparison, none of
    them empty.
    """
    compared = differing_rankings(results, design)
    if files[0][0].page != comparison_digest(compared, design):
        problem = (
            f"belongs to another comparison than {design.a} and {design.b} "
            f"in {results.folder}"
        )
        remedy = "name the two retrievers of the page; if it ran again, make a new page"
        raise InputError(Problem("--from", problem, remedy))
    return compared


def _votes(
    compared: Mapping[str, ComparedRankings], preferences: Sequence[Preference]
) -> dict[str, dict[str, int]]:
    """Return query -> judge -> 1 for `a`, -1 for `b`, 0 for neither; of round 1.

    Raises:
        InputError: a preference of either round is about an unknown query.
    """
    votes: dict[str, dict[str, int]] = defaultdict(dict)
    for row in preferences:
        if row.query_id not in compared:
            problem = f"query {row.query_id!r} is not in this comparison"
            raise InputError(Problem("--from", problem, "export the page again"))
        if row.round == 1:
            votes[row.query_id][row.judge] = _vote(compared[row.query_id], row)
    return votes


def _vote(pair: ComparedRankings, row: Preference) -> int:
    """Return 1 if a person prefers `a`, -1 for `b`, 0 for neither."""
    if row.choice == "same":
        return 0
    return 1 if pair.is_list_of_a(row.choice, row.round) else -1


def _sign(votes: int) -> int:
    return (votes > 0) - (votes < 0)


def _self_agreement(
    compared: Mapping[str, ComparedRankings], files: Sequence[Sequence[Preference]]
) -> RepeatedAnswers:
    """Count the questions that a person answered in both rounds.

    All queries are known: `_votes` refuses others.
    """
    rounds: dict[tuple[str, str], dict[int, Preference]] = defaultdict(dict)
    for rows in files:
        for row in rows:
            rounds[row.judge, row.query_id][row.round] = row
    repeated = [answers for answers in rounds.values() if len(answers) > 1]
    same = 0
    by_side = 0
    for answers in repeated:
        pair = compared[answers[1].query_id]
        same += _vote(pair, answers[1]) == _vote(pair, answers[2])
        first_side = answers[1].choice
        # The sides are swapped, so that the same side is the other ranking.
        by_side += first_side == answers[2].choice and first_side != "same"
    return RepeatedAnswers(len(repeated), same, by_side)


def _settings(results: Results, earlier: tuple[int, ...]) -> Settings:
    """Return the level and the looks that the experiment declares."""
    statistics = results.manifest.resolved.statistics
    return Settings.from_statistics(statistics, earlier=earlier)


def label_agreement(
    results: Results, design: ComparisonDesign, signs: Mapping[str, int]
) -> LabelAgreement | None:
    """Return how far labels and people's preferences agree, query by query.

    Args:
        results: of the run; without labels there is nothing to compare.
        design: names the two retrievers a and b.
        signs: query id -> 1 if people prefer a, -1 if b, 0 if neither.
    """
    if not results.scored:
        return None
    from harness.evaluation.evaluation_file import read_or_evaluate

    evaluation = read_or_evaluate(results)
    measure = evaluation.measure
    direction = -1 if measure in evaluation.low_is_good else 1
    scores = stored_scores(results)
    scores = scores.select_queries(scores.defined(measure, design.a, design.b))
    values = scores.values[measure]
    by_query = (values[design.a] - values[design.b]) * direction
    differences = dict(zip(scores.ids, by_query.tolist(), strict=True))
    mean = 0.0
    if scores.n:
        gap = scores.mean(measure, design.a) - scores.mean(measure, design.b)
        mean = gap * direction
    is_shown = None
    for comparison in evaluation.comparisons[measure]:
        if {comparison.a, comparison.b} == {design.a, design.b}:
            is_shown = comparison.verdict.shows_difference
    both = [
        query_id
        for query_id, sign in signs.items()
        if sign and abs(differences.get(query_id, 0.0)) > ZERO_DIFFERENCE
    ]
    agreeing = sum(signs[query_id] * differences[query_id] > 0 for query_id in both)
    return LabelAgreement(measure, mean, is_shown, len(both), agreeing)

"""The keys of the table [statistics]."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from typing import Any, Literal, Self, get_args, get_type_hints

from retrievers.errors import InputError, Problem, did_you_mean

TestName = Literal["wilcoxon", "randomization", "t"]
CorrectionMethod = Literal["holm", "bonferroni", "bh"]

STATISTICS_TABLE = "[statistics]"
"""The table of an experiment file, before the key in a problem."""
DEFAULT_DIFFERENCE_SHARE = 0.05
"""Share of the measure's range: the difference to plan for if none is declared."""
MIN_MARGIN = 1e-100
"""Quotients with a smaller one overflow."""
MAX_MARGIN = 1e100
"""No measure has such a range; squares of larger numbers overflow."""
PYDANTIC_CONFIG = {"use_attribute_docstrings": True, "extra": "forbid"}
"""How pydantic shows these tables in the schema of an experiment."""


@dataclass(frozen=True, slots=True)
class Looks:
    """How often, and at how many queries, the question will be tested."""

    __pydantic_config__ = PYDANTIC_CONFIG
    queries: tuple[int, ...]
    """Rising numbers of queries in all; the last one is the end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistics:
    """How differences are tested and reported."""

    __pydantic_config__ = PYDANTIC_CONFIG
    test: TestName = "randomization"
    """The test that decides: of the mean (randomization, t), or of the typical query
    (wilcoxon: exact signed ranks).
    """
    correction: CorrectionMethod = "holm"
    """The correction of p-values within one measure."""
    alpha: float = 0.05
    """Level of every test; intervals have confidence 1 - alpha."""
    margin: float | None = None
    """Differences of the primary measure's mean up to this are negligible; None:
    nothing is called equivalent.
    """
    cluster: str | None = None
    """A field of the queries, such as "need": queries with the same value count as one
    observation.
    """
    weight: str | None = None
    """A field of the queries, such as "traffic": how much each counts in every mean,
    interval and sign flip.
    """
    looks: Looks | None = None
    """Planned repetitions of the test with more queries; alpha is spent over them."""

    def __post_init__(self) -> None:
        """Refuse settings with which no test is possible.

        Raises:
            InputError: every problem, by its key.
        """
        problems = [*self._word_problems(), *self._number_problems()]
        if problems:
            raise InputError(problems)

    def _word_problems(self) -> Iterator[Problem]:
        """Yield the keys whose word is not one of those that are allowed."""
        for key, hint in get_type_hints(type(self)).items():
            words = get_args(hint)
            has_fixed_words = bool(words) and all(isinstance(w, str) for w in words)
            word = getattr(self, key)
            if has_fixed_words and word not in words:
                remedy = did_you_mean(str(word), words)
                yield _key_problem(key, f"unknown {word!r}", remedy)

    def _number_problems(self) -> Iterator[Problem]:
        """Yield the keys whose number is impossible, or does not fit another key."""
        if not 0 < self.alpha < 1:
            problem = f"{self.alpha} is not between 0 and 1"
            yield _key_problem("alpha", problem, "0.05 is usual")
        problem = "" if self.margin is None else margin_problem(self.margin)
        if problem:
            yield _key_problem("margin", problem, "leave it out for none")
        if self.weight is not None and self.test == "wilcoxon":
            problem = "signed ranks have no weights"
            remedy = 'use test = "randomization", or leave weight out'
            yield _key_problem("test", problem, remedy)
        if self.looks is not None and not _are_rising(self.looks.queries):
            planned = list(self.looks.queries)
            problem = f"{planned} are not rising numbers of queries"
            remedy = "such as { queries = [60, 150] }"
            yield _key_problem("looks", problem, remedy)


def _key_problem(key: str, problem: str, remedy: str) -> Problem:
    return Problem(f"{STATISTICS_TABLE} {key}", problem, remedy)


def _are_rising(sizes: tuple[int, ...]) -> bool:
    """Whether these are rising numbers from 1 on, at least one of them."""
    if not sizes or sizes[0] < 1:
        return False
    return all(previous < size for previous, size in pairwise(sizes))


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings(Statistics):
    """The statistics of an experiment with its seed."""

    seed: int = 0
    judged_by_people: bool = True
    """False if only a model judged.

    It may favour one retriever, and nothing is claimed from its labels.
    """
    earlier: tuple[int, ...] = ()
    """How many queries each earlier look had, fewest first.

    A look is a run with the same documents, primary measure and labels, of some of the
    queries alone.
    """
    alpha_spent: bool = False
    """Whether the planned looks have spent alpha: nothing more is claimed."""
    no_more_queries: bool = False
    """Whether no further query can be scored, though planned looks may not be reached.

    Every query has labels, and there are as many as the last look needs, or more; but
    those without a relevant document are not scored.
    """

    @classmethod
    def from_statistics(
        cls, statistics: Statistics, seed: int = 0, earlier: tuple[int, ...] = ()
    ) -> Self:
        """Return the settings of an experiment's statistics.

        Args:
            statistics: as the experiment declares them.
            seed: of all draws.
            earlier: how many queries each earlier look had.
        """
        names = [key.name for key in fields(Statistics)]
        declared = {name: getattr(statistics, name) for name in names}
        return cls(**declared, seed=seed, earlier=earlier)

    @property
    def level(self) -> float:
        """Confidence of the intervals."""
        return 1 - self.alpha


def override_settings(
    declared: Settings, prefix: str = "", **chosen_settings: Any
) -> Settings:
    """Return the declared settings with those that a call or a command chooses.

    Args:
        declared: the settings.
        prefix: comes before the name of a setting in a problem, such as "--".
        chosen_settings: by their names.

    Raises:
        InputError: a setting is impossible, or does not fit the declared ones.

    >>> override_settings(Settings(), "--", alpha=2)
    Traceback (most recent call last):
    retrievers.errors.InputError: --alpha: 2 is not between 0 and 1 (0.05 is usual)
    """
    try:
        return replace(declared, **chosen_settings)
    except InputError as error:
        problems: list[Problem] = []
        for problem in error.problems:
            name = problem.where.removeprefix(f"{STATISTICS_TABLE} ")
            if name in chosen_settings:
                problem = problem._replace(where=f"{prefix}{name}")
            problems.append(problem)
        raise InputError(problems) from None


def margin_problem(margin: float) -> str:
    """Return why no test can have a margin, whatever the measure; "" if one can.

    >>> margin_problem(0.02), margin_problem(1e-310)
    ('', '1e-310 is too close to 0')
    >>> margin_problem(-1)
    '-1 is not a number above 0 and below 1e+100'
    """
    if 0 < margin <= MIN_MARGIN:
        return f"{margin} is too close to 0"
    if not MIN_MARGIN < margin < MAX_MARGIN:
        return f"{margin} is not a number above 0 and below {MAX_MARGIN:g}"
    return ""


def check_margin(
    where: str, margin: float | None, bounds: tuple[float, float] | None
) -> None:
    """Refuse a margin that no difference exceeds.

    With such a margin everything would be as good as the best.

    Args:
        where: the option that has it.
        margin: the margin; None if no margin is declared.
        bounds: the lowest and the highest value of the measure; None if unknown.

    Raises:
        InputError: the margin is not below the measure's range.

    >>> check_margin("margin", 2, (0, 1))
    Traceback (most recent call last):
    retrievers.errors.InputError: margin: 2 is larger than ...
    """
    if margin is None or bounds is None:
        return
    low, high = bounds
    span = high - low
    if span <= margin < math.inf:
        relation = "larger than" if margin > span else "as large as"
        measure_range = f"the measure's range ({low:g} to {high:g})"
        problem = f"{margin:g} is {relation} {measure_range}"
        raise InputError(Problem(where, problem, f"try {span / 50:g}"))

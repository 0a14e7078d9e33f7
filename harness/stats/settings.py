"""The keys of the table [statistics]."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar, Literal, Self, get_args, get_type_hints

from retrievers.errors import InputError, Problem, did_you_mean

TestName = Literal["wilcoxon", "randomization", "t"]
CorrectionMethod = Literal["holm", "bonferroni", "bh"]

DEFAULT_DIFFERENCE_SHARE = 0.05
"""Of the measure's range: the difference that a plan is for where none was declared."""
MAX_MARGIN = 1e100
"""No measure has such a range; squares of more are not numbers."""
PYDANTIC_CONFIG: Mapping[str, Any] = {
    "use_attribute_docstrings": True,
    "extra": "forbid",
}
"""How pydantic shows these tables in the schema of an experiment."""
RETIRED_STATISTICS = ("zeros", "interval")
"""Keys of earlier versions, whose tests and intervals are no longer computed."""


@dataclass(frozen=True, slots=True)
class Looks:
    """How often, and at how many queries, the question will be tested."""

    __pydantic_config__: ClassVar[Mapping[str, Any]] = PYDANTIC_CONFIG
    queries: tuple[int, ...]
    """Rising numbers of queries in all; the last one is the end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistics:
    """How differences are tested and reported."""

    __pydantic_config__: ClassVar[Mapping[str, Any]] = PYDANTIC_CONFIG
    test: TestName = "randomization"
    """The test that decides: of the mean (randomization, t), or of the typical query (wilcoxon: exact signed ranks)."""
    correction: CorrectionMethod = "holm"
    """Within one measure."""
    alpha: float = 0.05
    """Level of every test; intervals have confidence 1 - alpha."""
    margin: float | None = None
    """Differences of the primary measure's mean up to this are negligible; None: nothing is called equivalent."""
    cluster: str | None = None
    """A field of the queries, such as "need": queries with the same value count as one observation."""
    weight: str | None = None
    """A field of the queries, such as "traffic": how much each counts in every mean, interval and sign flip."""
    looks: Looks | None = None
    """Planned repetitions of the test with more queries; alpha is spent over them."""

    def __post_init__(self) -> None:
        """Refuse what no test could mean.

        Raises:
            InputError: every problem, by its key.
        """
        problems = []
        for name, hint in get_type_hints(type(self)).items():
            known, value = get_args(hint), getattr(self, name)
            if (
                all(isinstance(word, str) for word in known)
                and known
                and value not in known
            ):
                problems.append(
                    Problem(
                        f"[statistics] {name}",
                        f"unknown {value!r}",
                        did_you_mean(str(value), known),
                    )
                )
        if not 0 < self.alpha < 1:
            problems.append(
                Problem(
                    "[statistics] alpha",
                    f"{self.alpha} is not between 0 and 1",
                    "0.05 is usual",
                )
            )
        if self.margin is not None and not 0 < self.margin < MAX_MARGIN:
            what = f"{self.margin} is not a number above 0 and below {MAX_MARGIN:g}"
            problems.append(
                Problem("[statistics] margin", what, "leave it out for none")
            )
        if self.weight is not None and self.test == "wilcoxon":
            what, remedy = (
                "signed ranks have no weights",
                'use test = "randomization", or leave weight out',
            )
            problems.append(Problem("[statistics] test", what, remedy))
        if self.looks is not None:
            planned = self.looks.queries
            if (
                not planned
                or planned[0] < 1
                or any(a >= b for a, b in pairwise(planned))
            ):
                what = f"{list(planned)} are not rising numbers of queries"
                problems.append(
                    Problem(
                        "[statistics] looks", what, "such as { queries = [60, 150] }"
                    )
                )
        if problems:
            raise InputError(problems)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings(Statistics):
    """The statistics of an experiment with its seed."""

    seed: int = 0
    judged_by_people: bool = True
    """False where a model alone judged: it may favour one retriever, and nothing is claimed from its labels."""
    earlier: tuple[int, ...] = ()
    """How many queries each look had that was taken before this one."""
    alpha_spent: bool = False
    """Whether the planned looks have spent alpha: nothing more is claimed."""

    @classmethod
    def from_table(
        cls, table: Mapping[str, Any], seed: int = 0, earlier: tuple[int, ...] = ()
    ) -> Self:
        """Return the settings that a table says, such as `[statistics]` of a manifest, after earlier looks."""
        given, looks = without_retired_statistics(table), table.get("looks")
        given["looks"] = (
            Looks(tuple(looks["queries"])) if isinstance(looks, Mapping) else looks
        )
        return cls(**given, seed=seed, earlier=earlier)

    @property
    def level(self) -> float:
        """Confidence of the intervals."""
        return 1 - self.alpha


def without_retired_statistics(table: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out keys of earlier versions, and the sign test.

    >>> without_retired_statistics({"alpha": 0.05, "zeros": "wilcox", "test": "sign"})
    {'alpha': 0.05}
    """
    return {
        key: value
        for key, value in table.items()
        if key not in RETIRED_STATISTICS and (key, value) != ("test", "sign")
    }


def check_margin(where: str, margin: float | None, span: float | None) -> None:
    """Refuse a margin that no difference can reach, since with it everything is as good as the best.

    Args:
        where: the option that gave it.
        margin: None where there is none.
        span: of the measure, highest less lowest value; None where it is not known.

    Raises:
        InputError: the margin is not below the span.

    >>> check_margin("--margin", 2, 1)
    Traceback (most recent call last):
    retrievers.errors.InputError: --margin: 2 is larger than the measure's range, 1 (such as 0.02)
    """
    if margin is not None and span is not None and span <= margin < math.inf:
        what = f"{margin:g} is larger than the measure's range, {span:g}"
        raise InputError(Problem(where, what, f"such as {span / 50:g}"))

"""What `[statistics]` of an experiment decides."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args, get_type_hints

from harness.stats.signed_rank import Zeros
from retrievers.errors import InputError, Problem, did_you_mean

Test = Literal["wilcoxon", "randomization", "t", "sign"]
Correction = Literal["holm", "hommel", "bonferroni", "bh", "tukey"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How differences are tested and reported."""

    test: Test = "wilcoxon"
    """The test that decides; the sign-flip test of the mean is always reported beside it."""
    zeros: Zeros = "wilcox"
    correction: Correction = "holm"
    """Within one measure. "tukey" takes the p of the paired randomised Tukey HSD instead."""
    alpha: float = 0.05
    """Level of every test; intervals have confidence 1 - alpha."""
    margin: float | None = None
    """Differences of the primary measure's mean up to this are negligible; None: nothing is called equivalent."""
    interval: Literal["t", "bca"] = "t"
    seed: int = 0
    by_people: bool = True
    """False where a model alone judged: it may favour one retriever, and nothing is claimed from its labels."""

    def __post_init__(self) -> None:
        """Refuse what no test could mean.

        Raises:
            InputError: every problem, by its key.
        """
        problems = []
        for name, hint in get_type_hints(type(self)).items():
            known, value = get_args(hint), getattr(self, name)
            if all(isinstance(word, str) for word in known) and known and value not in known:
                problems.append(Problem(f"[statistics] {name}", f"unknown {value!r}", did_you_mean(str(value), known)))
        if not 0 < self.alpha < 1:
            problems.append(Problem("[statistics] alpha", f"{self.alpha} is not between 0 and 1", "0.05 is usual"))
        if self.margin is not None and not (math.isfinite(self.margin) and self.margin > 0):
            what = f"{self.margin} is not a finite number above 0"
            problems.append(Problem("[statistics] margin", what, "leave it out for none"))
        if problems:
            raise InputError(problems)

    @property
    def level(self) -> float:
        """Confidence of the intervals."""
        return 1 - self.alpha

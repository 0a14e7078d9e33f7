"""A measure as a value: parsed once, printed canonically, hashable."""

from __future__ import annotations

from dataclasses import dataclass, field

Parameter = str | int | float
OWN = "own."
"""Begins the names of measures that are functions of the user's own."""
BY_CLAIMS = frozenset({"ClaimRecall", "ClaimPrecision"})
"""Measures that know nothing of labels."""


@dataclass(frozen=True, slots=True)
class Measure:
    """What to compute: a name of the field, a cutoff and parameters, in the grammar of ir_measures.

    `str()` is canonical: parameters that hold their default are left out, the others stand in alphabetical
    order. Made by `parse`, which checks it.

    >>> str(Measure("nDCG", 10, (("dcg", "exp-log2"), ("ideal", "retrieved"))))
    "nDCG(dcg='exp-log2', ideal='retrieved')@10"
    """

    name: str
    cutoff: int | None = None
    """How many of the first hits count; None for all that were kept."""
    params: tuple[tuple[str, Parameter], ...] = ()
    function: object = field(default=None, compare=False, repr=False)
    """What computes a measure of one's own, where it is of this process."""

    def __str__(self) -> str:
        inside = ", ".join(f"{key}={value!r}" for key, value in self.params)
        at = "" if self.cutoff is None else f"@{self.cutoff}"
        return self.name + (f"({inside})" if inside else "") + at

    def get(self, key: str) -> Parameter | None:
        """The parameter `key`, or None where the measure holds its default."""
        return next((value for name, value in self.params if name == key), None)

    @property
    def rel(self) -> int:
        """The smallest grade that counts as relevant."""
        return int(self.get("rel") or 1)

    @property
    def own(self) -> bool:
        """Whether it is a function of the user's own."""
        return self.name.startswith(OWN)

    @property
    def by_grades(self) -> bool:
        """Whether the grades down a ranking say its value: not of groups, of claims, or of a function of one's own."""
        return not (self.own or self.claimed or self.get("groups"))

    @property
    def limits(self) -> tuple[float, float]:
        """The least and the largest value of a measure of one's own."""
        low, high = self.get("low"), self.get("high")
        return 0.0 if low is None else float(low), 1.0 if high is None else float(high)

    @property
    def claimed(self) -> bool:
        """Whether it is measured by the claims of reference answers, and not by labels of documents."""
        return self.name in BY_CLAIMS or self.get("by") == "claims"

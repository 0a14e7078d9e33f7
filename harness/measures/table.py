"""The table of all measures, one row each."""

from collections.abc import Callable, Mapping
from typing import Literal, NamedTuple

from harness.measures import rank_formulas
from harness.measures.batch import Batch, Floats
from harness.measures.gain_formulas import (
    cumulative_gain,
    discounted_gain,
    expected_reciprocal_rank,
    normalised_gain,
)
from harness.measures.measure import OWN_PREFIX, Measure
from retrievers.errors import InputError, Problem


class MeasureRow(NamedTuple):
    """The definition of one measure."""

    compute: Callable[[Batch, Measure], Floats]
    """Returns (n,), a value for each ranking of the batch."""
    options: tuple[str, ...]
    """Its parameters.

    With `groups`, `score` computes it query by query: the formula would ignore them.
    """
    cutoff: Literal["may", "must", "never"] = "may"
    """Whether its name may, must or never has a cutoff, as in P@10."""
    without_cutoff: str = ""
    """The name of the measure without a cutoff, if it is another one: SetP for P."""
    binary: Literal["never", "at 1", "always"] = "never"
    """When its values are only 0 and 1: at a cutoff of 1, or at any cutoff."""
    bounded: bool = True
    """Whether its values are between 0 and 1.

    Otherwise they are between 0 and its value for the ideal ranking.
    """
    companion: str = ""
    """A parameter that is True in a second measure, which always accompanies it: RBP's
    `residual`.
    """
    by_largest_grade: bool = False
    """Whether every value depends on the largest grade of all judgments.

    That grade is then shown with the values.
    """


def needs_claims(batch: Batch, measure: Measure) -> Floats:
    """Refuse to measure by claims if there are only labels.

    With claims, `claim_value` computes the measure instead.

    Raises:
        InputError: always.
    """
    where = f"measure {str(measure)!r}"
    remedy = "measure it in an experiment whose queries have claims, with a [judge]"
    raise InputError(Problem(where, "needs the claims of reference answers", remedy))


def needs_passages(batch: Batch, measure: Measure) -> Floats:
    """Refuse to measure passages if there are only documents.

    With passages, `passage_value` computes the measure instead.

    Raises:
        InputError: always.
    """
    where = f"measure {str(measure)!r}"
    remedy = "measure it in an experiment, whose rankings keep them"
    raise InputError(Problem(where, "needs passages with their tokens", remedy))


def needs_ranked_ids(batch: Batch, measure: Measure) -> Floats:
    """Refuse a function of the user: it reads document ids, which no batch has.

    `own_value` computes the measure from a ranking instead.

    Raises:
        InputError: always.
    """
    where = f"measure {str(measure)!r}"
    remedy = "measure rankings, whose documents are in order"
    raise InputError(Problem(where, "is a function of ranked documents", remedy))


REL_OPTION = ("rel",)
PASSAGE_OPTIONS = ("groups", "rel", "tokens", "unit")
GROUP_OR_REL_OPTIONS = ("groups", "rel")

MEASURES: Mapping[str, MeasureRow] = {
    "P": MeasureRow(
        rank_formulas.precision, PASSAGE_OPTIONS, without_cutoff="SetP", binary="at 1"
    ),
    "R": MeasureRow(rank_formulas.recall, PASSAGE_OPTIONS, without_cutoff="SetR"),
    "Rcap": MeasureRow(
        rank_formulas.capped_recall, REL_OPTION, cutoff="must", binary="at 1"
    ),
    "F1": MeasureRow(rank_formulas.f1, GROUP_OR_REL_OPTIONS, without_cutoff="SetF"),
    "Success": MeasureRow(rank_formulas.success, REL_OPTION, binary="always"),
    "RR": MeasureRow(
        rank_formulas.reciprocal_rank, GROUP_OR_REL_OPTIONS, binary="at 1"
    ),
    "AP": MeasureRow(rank_formulas.average_precision, GROUP_OR_REL_OPTIONS),
    "Rprec": MeasureRow(rank_formulas.precision_at_r, REL_OPTION, cutoff="never"),
    "SetP": MeasureRow(
        rank_formulas.set_precision, GROUP_OR_REL_OPTIONS, binary="at 1"
    ),
    "SetR": MeasureRow(rank_formulas.recall, GROUP_OR_REL_OPTIONS),
    "SetF": MeasureRow(rank_formulas.set_f1, GROUP_OR_REL_OPTIONS),
    "SetAP": MeasureRow(rank_formulas.set_average_precision, REL_OPTION),
    "CG": MeasureRow(cumulative_gain, ("dcg",), bounded=False),
    "DCG": MeasureRow(discounted_gain, ("dcg",), bounded=False),
    "nDCG": MeasureRow(normalised_gain, ("dcg", "groups", "ideal", "tokens")),
    "ERR": MeasureRow(expected_reciprocal_rank, (), by_largest_grade=True),
    "RBP": MeasureRow(
        rank_formulas.rank_biased_precision,
        ("p", "rel", "residual"),
        companion="residual",
    ),
    "Bpref": MeasureRow(rank_formulas.binary_preference, REL_OPTION, cutoff="never"),
    "Judged": MeasureRow(rank_formulas.judged_share, (), binary="at 1"),
    "Abstain": MeasureRow(rank_formulas.abstain, (), cutoff="never", binary="always"),
    "ContextPrecision": MeasureRow(
        rank_formulas.context_precision, ("by", "rel"), binary="at 1"
    ),
    "IDContextPrecision": MeasureRow(
        rank_formulas.set_precision, REL_OPTION, binary="at 1"
    ),
    "IDContextRecall": MeasureRow(rank_formulas.recall, REL_OPTION),
    "IoU": MeasureRow(needs_passages, ("rel", "tokens")),
    "ClaimRecall": MeasureRow(needs_claims, ()),
    "ClaimPrecision": MeasureRow(needs_claims, (), binary="at 1"),
}
"""Name -> the row of a measure of ours.

A new one is one function, one row here, and its test; more must be better.
"""

OWN_ROW = MeasureRow(needs_ranked_ids, ("high", "low"))
"""The row of every measure that is a function of the user."""


def row_named(name: str) -> MeasureRow:
    """The row of a measure's name, whatever its parameters are."""
    return OWN_ROW if name.startswith(OWN_PREFIX) else MEASURES[name]


def row_of(measure: Measure) -> MeasureRow:
    """The row of a measure; by claims or passages, it refuses to compute a batch."""
    row = row_named(measure.name)
    if measure.uses_claims:
        return row._replace(compute=needs_claims)
    if measure.uses_passages:
        # Any share of a single passage's characters can be labelled.
        return row._replace(compute=needs_passages, binary="never")
    return row


def grades_decide(measure: Measure) -> bool:
    """Whether a ranking's value depends on the grades of its documents alone."""
    if measure.is_own or measure.uses_claims or measure.uses_passages:
        return False
    has_grades = MEASURES[measure.name].compute is not rank_formulas.abstain
    return has_grades and not measure.get("groups")


def is_binary(measure: Measure) -> bool:
    """Whether every value of a measure is 0 or 1.

    >>> is_binary(Measure("RR", 1)), is_binary(Measure("RR", 2))
    (True, False)
    >>> is_binary(Measure("Success", 5))
    True
    """
    binary = row_of(measure).binary
    if binary == "at 1":
        # With groups it may be a mean over groups.
        return measure.cutoff == 1 and not measure.get("groups")
    return binary == "always"

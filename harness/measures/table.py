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
    options: tuple[str, ...]
    """Its parameters; with `groups` it is computed by `group_value` instead."""
    meaning: str
    """The meaning of its values, in words for the report."""
    cutoff: Literal["may", "must", "never"] = "may"
    without_cutoff: str = ""
    """The name of the measure without a cutoff, if it is another one."""
    binary: Literal["never", "at 1", "always"] = "never"
    """When its values are only 0 and 1: at a cutoff of 1, or at any cutoff."""
    bounded: bool = True
    """Whether its values are between 0 and 1.

    Otherwise they are between 0 and its value for the ideal ranking.
    """
    companion: str = ""
    """A parameter that is True in a second measure, which always accompanies it."""
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


REL_OPTION = ("rel",)
PASSAGE_OPTIONS = ("groups", "rel", "tokens", "unit")
GROUP_OR_REL_OPTIONS = ("groups", "rel")
SET_PRECISION_MEANING = "share of the returned documents that are relevant"
SET_RECALL_MEANING = "share of the relevant documents that were returned"

MEASURES: Mapping[str, MeasureRow] = {
    "P": MeasureRow(
        rank_formulas.precision,
        PASSAGE_OPTIONS,
        without_cutoff="SetP",
        binary="at 1",
        meaning="share of the first k hits that are relevant, "
        "also where fewer than k came back",
    ),
    "R": MeasureRow(
        rank_formulas.recall,
        PASSAGE_OPTIONS,
        without_cutoff="SetR",
        meaning="share of the relevant documents that are among the first k hits",
    ),
    "Rcap": MeasureRow(
        rank_formulas.capped_recall,
        REL_OPTION,
        cutoff="must",
        binary="at 1",
        meaning="hits among the first k, divided by the most that could be there",
    ),
    "F1": MeasureRow(
        rank_formulas.f1,
        GROUP_OR_REL_OPTIONS,
        without_cutoff="SetF",
        meaning="harmonic mean of the query's precision and recall",
    ),
    "Success": MeasureRow(
        rank_formulas.success,
        REL_OPTION,
        binary="always",
        meaning="1 where a relevant document is among the first k hits",
    ),
    "RR": MeasureRow(
        rank_formulas.reciprocal_rank,
        GROUP_OR_REL_OPTIONS,
        binary="at 1",
        meaning="1 divided by the rank of the first relevant hit; "
        "an ordinal number, its mean is to be read with care",
    ),
    "AP": MeasureRow(
        rank_formulas.average_precision,
        GROUP_OR_REL_OPTIONS,
        meaning="mean of the precision at each relevant document, "
        "those not found counting 0",
    ),
    "Rprec": MeasureRow(
        rank_formulas.precision_at_r,
        REL_OPTION,
        cutoff="never",
        meaning="precision at the rank that equals the number of relevant documents",
    ),
    "SetP": MeasureRow(
        rank_formulas.set_precision,
        GROUP_OR_REL_OPTIONS,
        binary="at 1",
        meaning=SET_PRECISION_MEANING,
    ),
    "SetR": MeasureRow(
        rank_formulas.recall, GROUP_OR_REL_OPTIONS, meaning=SET_RECALL_MEANING
    ),
    "SetF": MeasureRow(
        rank_formulas.set_f1,
        GROUP_OR_REL_OPTIONS,
        meaning="harmonic mean of the set's precision and recall",
    ),
    "SetAP": MeasureRow(
        rank_formulas.set_average_precision,
        REL_OPTION,
        meaning="precision of the returned set times its recall",
    ),
    "CG": MeasureRow(
        cumulative_gain,
        ("dcg",),
        bounded=False,
        meaning="sum of the hits' gains",
    ),
    "DCG": MeasureRow(
        discounted_gain,
        ("dcg",),
        bounded=False,
        meaning="sum of the hits' gains, discounted by the logarithm of their rank",
    ),
    "nDCG": MeasureRow(
        normalised_gain,
        ("dcg", "groups", "ideal", "tokens"),
        meaning="discounted gain of the hits, "
        "divided by that of the best possible order",
    ),
    "ERR": MeasureRow(
        expected_reciprocal_rank,
        (),
        by_largest_grade=True,
        meaning="expected reciprocal rank of the hit at which a reader stops",
    ),
    "RBP": MeasureRow(
        rank_formulas.rank_biased_precision,
        ("p", "rel", "residual"),
        companion="residual",
        meaning="rank-biased precision: what a reader sees who goes on to the next hit "
        "with probability p",
    ),
    "Bpref": MeasureRow(
        rank_formulas.binary_preference,
        REL_OPTION,
        cutoff="never",
        meaning="how rarely a judged irrelevant document ranks above a relevant one",
    ),
    "Judged": MeasureRow(
        rank_formulas.judged_share,
        (),
        binary="at 1",
        meaning="share of the returned documents that were judged at all",
    ),
    "Abstain": MeasureRow(
        rank_formulas.abstain,
        (),
        cutoff="never",
        binary="always",
        meaning="1 where nothing was returned for a query that nothing answers",
    ),
    "ContextPrecision": MeasureRow(
        rank_formulas.context_precision,
        ("by", "rel"),
        binary="at 1",
        meaning="mean of the precision at each hit, divided by the hits: "
        "finding more can lower it",
    ),
    "IDContextPrecision": MeasureRow(
        rank_formulas.set_precision,
        REL_OPTION,
        binary="at 1",
        meaning=SET_PRECISION_MEANING,
    ),
    "IDContextRecall": MeasureRow(
        rank_formulas.recall, REL_OPTION, meaning=SET_RECALL_MEANING
    ),
    "IoU": MeasureRow(
        needs_passages,
        ("rel", "tokens"),
        meaning="characters that are both labelled and returned, "
        "divided by those that are either",
    ),
    "ClaimRecall": MeasureRow(
        needs_claims,
        (),
        meaning="share of the reference answer's claims that any of the first "
        "k documents supports",
    ),
    "ClaimPrecision": MeasureRow(
        needs_claims,
        (),
        binary="at 1",
        meaning="share of the first k documents that support any claim "
        "of the reference answer",
    ),
}
"""A new measure is one function, one row here, and its test; more must be better."""


PASSAGE_MEANINGS: Mapping[tuple[str, bool], str] = {
    ("P", False): "share of the tokens of a context that are in relevant documents",
    ("P", True): "share of the returned characters that are labelled",
    ("R", False): "share of the relevant documents of which a context has a passage",
    ("R", True): "share of the labelled characters that are returned",
    (
        "nDCG",
        False,
    ): "discounted gain of documents at their first passage in a context, "
    "divided by that of the best possible order",
}
"""Name of a measure, whether it counts characters -> the meaning of its values."""
OWN_ROW = MeasureRow(needs_claims, ("high", "low"), "a function of the user's own")
"""The row of every user's own measure, which `own_value` computes."""


def row_named(name: str) -> MeasureRow:
    """The row of a measure's name."""
    return OWN_ROW if name.startswith(OWN_PREFIX) else MEASURES[name]


def row_of(measure: Measure) -> MeasureRow:
    """The row of a measure."""
    row = row_named(measure.name)
    if measure.uses_claims:
        return row._replace(compute=needs_claims)
    if measure.uses_passages:
        meaning = PASSAGE_MEANINGS.get((measure.name, measure.uses_spans), row.meaning)
        return row._replace(compute=needs_passages, meaning=meaning, binary="never")
    return row


def is_binary(measure: Measure) -> bool:
    """Whether every value of a measure is 0 or 1.

    >>> is_binary(Measure("RR", 1)), is_binary(Measure("RR", 2))
    (True, False)
    >>> is_binary(Measure("Success", 5))
    True
    """
    binary = row_of(measure).binary
    if binary == "at 1":
        return measure.cutoff == 1 and not measure.get("groups")
    return binary == "always"

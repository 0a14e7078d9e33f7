"""Every measure there is, and all that the harness knows of it: one row each."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Literal, NamedTuple

from harness.measures import formulas
from harness.measures.batch import Batch, Floats
from harness.measures.measure import OWN, Measure
from retrievers.errors import InputError, Problem


class MeasureRow(NamedTuple):
    """All that the harness knows of one measure."""

    compute: Callable[[Batch, Measure], Floats]
    meaning: str
    """What its values say, in words for the report."""
    options: tuple[str, ...]
    """The parameters it takes; with `groups` it is computed by `group_value` instead."""
    cutoff: Literal["may", "must", "never"] = "may"
    bare: str = ""
    """The measure that is meant where the cutoff is left out."""
    binary: Literal["never", "at 1", "always"] = "never"
    """Where its values are 0 or 1 and nothing else: where only the first hit counts, or at any cutoff."""
    bounded: bool = True
    """Whether its values lie between 0 and 1; else between 0 and its value for the ideal ranking."""
    beside: str = ""
    """A parameter that is True in a second measure, which is computed beside it wherever it is asked for."""
    by_largest_grade: bool = False
    """Whether every value depends on the largest grade of all judgments, which is then shown beside them."""


def needs_claims(batch: Batch, measure: Measure) -> Floats:
    """Refuse to measure by claims where there are only labels; with claims, `claim_value` computes it instead.

    Raises:
        InputError: always.
    """
    remedy = "measure it in an experiment whose queries have claims, with a [judge]"
    raise InputError(Problem(f"measure {str(measure)!r}", "needs the claims of reference answers", remedy))


REL = ("rel",)
EITHER = ("groups", "rel")
RETURNED = "share of the returned documents that are relevant"
FOUND = "share of the relevant documents that were returned"

MEASURES: Mapping[str, MeasureRow] = MappingProxyType(
    {
        "P": MeasureRow(
            formulas.precision,
            "share of the first k hits that are relevant, also where fewer than k came back",
            EITHER, bare="SetP", binary="at 1",
        ),
        "R": MeasureRow(
            formulas.recall, "share of the relevant documents that are among the first k hits",
            EITHER, bare="SetR",
        ),
        "Rcap": MeasureRow(
            formulas.capped_recall, "hits among the first k, divided by the most that could be there",
            REL, cutoff="must", binary="at 1",
        ),
        "F1": MeasureRow(formulas.f1, "harmonic mean of the query's precision and recall", EITHER, bare="SetF"),
        "Success": MeasureRow(
            formulas.success, "1 where a relevant document is among the first k hits",
            REL, binary="always",
        ),
        "RR": MeasureRow(
            formulas.reciprocal_rank,
            "1 divided by the rank of the first relevant hit; an ordinal number, its mean is to be read with care",
            EITHER, binary="at 1",
        ),
        "AP": MeasureRow(
            formulas.average_precision,
            "mean of the precision at each relevant document, those not found counting 0",
            EITHER,
        ),
        "Rprec": MeasureRow(
            formulas.precision_at_r, "precision at the rank that equals the number of relevant documents",
            REL, cutoff="never",
        ),
        "SetP": MeasureRow(formulas.set_precision, RETURNED, EITHER, binary="at 1"),
        "SetR": MeasureRow(formulas.recall, FOUND, EITHER),
        "SetF": MeasureRow(formulas.set_f1, "harmonic mean of the set's precision and recall", EITHER),
        "SetAP": MeasureRow(
            formulas.set_average_precision, "precision of the returned set times its recall",
            REL,
        ),
        "CG": MeasureRow(formulas.cumulative_gain, "sum of the hits' gains", ("dcg",), bounded=False),
        "DCG": MeasureRow(
            formulas.discounted_gain, "sum of the hits' gains, discounted by the logarithm of their rank",
            ("dcg",), bounded=False,
        ),
        "nDCG": MeasureRow(
            formulas.normalised_gain, "discounted gain of the hits, divided by that of the best possible order",
            ("dcg", "groups", "ideal"),
        ),
        "ERR": MeasureRow(
            formulas.expected_reciprocal_rank, "expected reciprocal rank of the hit at which a reader stops",
            (), by_largest_grade=True,
        ),
        "RBP": MeasureRow(
            formulas.rank_biased_precision,
            "rank-biased precision: what a reader sees who goes on to the next hit with probability p",
            ("p", "rel", "residual"), beside="residual",
        ),
        "Bpref": MeasureRow(
            formulas.binary_preference, "how rarely a judged irrelevant document ranks above a relevant one",
            REL, cutoff="never",
        ),
        "Judged": MeasureRow(
            formulas.judged_share, "share of the returned documents that were judged at all",
            (), binary="at 1",
        ),
        "Abstain": MeasureRow(
            formulas.abstain, "1 where nothing was returned for a query that nothing answers",
            (), cutoff="never", binary="always",
        ),
        "ContextPrecision": MeasureRow(
            formulas.context_precision,
            "mean of the precision at each hit, divided by the hits: finding more can lower it",
            ("by", "rel"), binary="at 1",
        ),
        "IDContextPrecision": MeasureRow(formulas.set_precision, RETURNED, REL, binary="at 1"),
        "IDContextRecall": MeasureRow(formulas.recall, FOUND, REL),
        "ClaimRecall": MeasureRow(
            needs_claims, "share of the reference answer's claims that any of the first k documents supports", (),
        ),
        "ClaimPrecision": MeasureRow(
            needs_claims, "share of the first k documents that support any claim of the reference answer", (),
            binary="at 1",
        ),
    }
)  # fmt: skip
"""A new measure is one function, one row here, and its test."""


OWN_ROW = MeasureRow(needs_claims, "a function of the user's own", ("high", "low"))
"""Of every measure of one's own, which `own_value` computes."""


def row_named(name: str) -> MeasureRow:
    """The row of a measure's name."""
    return OWN_ROW if name.startswith(OWN) else MEASURES[name]


def row_of(measure: Measure) -> MeasureRow:
    """The row of a measure."""
    row = row_named(measure.name)
    return row._replace(compute=needs_claims) if measure.claimed else row


def is_binary(measure: Measure) -> bool:
    """Whether every value of a measure is 0 or 1.

    >>> is_binary(Measure("RR", 1)), is_binary(Measure("RR", 2)), is_binary(Measure("Success", 5))
    (True, False, True)
    """
    binary = row_of(measure).binary
    return binary == "always" or (binary == "at 1" and measure.cutoff == 1 and not measure.get("groups"))


ALIASES: Mapping[str, str] = MappingProxyType(
    {
        "map": "AP",
        "mrr": "RR",
        "precision": "P",
        "recall": "R",
        "hit": "Success",
        "hits": "Success",
        "hitrate": "Success",
    }
)
"""What people call a measure, in lower case and without underscores: read as ours."""

ELSEWHERE: Mapping[str, str] = MappingProxyType(
    {
        "f": "F1",
        "accuracy": "Success",
        "reciprank": "RR",
        "ndcgcut": "nDCG",
        "mapcut": "AP",
        "setp": "SetP",
        "setrecall": "SetR",
        "setf": "SetF",
        "setmap": "SetAP",
    }
)
"""What other tools call a measure, in lower case: asked for by that name, ours is proposed. Without underscores."""

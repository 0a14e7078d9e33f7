"""Every measure there is: its name, what computes it, the parameters it takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Literal, NamedTuple

from harness.measures import binary, graded, incomplete
from harness.measures.batch import Batch, Floats
from harness.measures.measure import Measure


class Row(NamedTuple):
    """One measure of the table."""

    compute: Callable[[Batch, Measure], Floats]
    options: tuple[str, ...]
    """The parameters it takes; with `groups` it is computed by `group_value` instead."""
    cutoff: Literal["may", "must", "never"] = "may"
    bare: str = ""
    """The measure that is meant where the cutoff is left out."""


REL = ("rel",)
EITHER = ("groups", "rel")

MEASURES: Mapping[str, Row] = MappingProxyType(
    {
        "P": Row(binary.precision, EITHER, bare="SetP"),
        "R": Row(binary.recall, EITHER, bare="SetR"),
        "Rcap": Row(binary.capped_recall, REL, cutoff="must"),
        "F1": Row(binary.f1, EITHER, bare="SetF"),
        "Success": Row(binary.success, REL),
        "RR": Row(binary.reciprocal_rank, EITHER),
        "AP": Row(binary.average_precision, EITHER),
        "Rprec": Row(binary.precision_at_r, REL, cutoff="never"),
        "SetP": Row(binary.set_precision, EITHER),
        "SetR": Row(binary.recall, EITHER),
        "SetF": Row(binary.set_f1, EITHER),
        "SetAP": Row(binary.set_average_precision, REL),
        "CG": Row(graded.cumulative_gain, ("dcg",)),
        "DCG": Row(graded.discounted_gain, ("dcg",)),
        "nDCG": Row(graded.normalised_gain, ("dcg", "groups", "ideal")),
        "ERR": Row(graded.expected_reciprocal_rank, ()),
        "RBP": Row(incomplete.rank_biased_precision, ("p", "rel", "residual")),
        "Bpref": Row(incomplete.binary_preference, REL, cutoff="never"),
        "Judged": Row(incomplete.judged_share, ()),
        "ContextPrecision": Row(binary.context_precision, REL),
        "IDContextPrecision": Row(binary.set_precision, REL),
        "IDContextRecall": Row(binary.recall, REL),
    }
)

ALIASES: Mapping[str, str] = MappingProxyType({"map": "AP", "mrr": "RR"})

ELSEWHERE: Mapping[str, str] = MappingProxyType(
    {
        "precision": "P",
        "recall": "R",
        "f": "F1",
        "hit": "Success",
        "hitrate": "Success",
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

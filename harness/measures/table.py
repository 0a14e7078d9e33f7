"""Every measure there is: its name, what computes it, the parameters it takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Literal, NamedTuple

from harness.measures import binary, graded
from harness.measures.batch import Batch, Floats
from harness.measures.measure import Measure


class Row(NamedTuple):
    """One measure of the table."""

    compute: Callable[[Batch, Measure], Floats]
    options: tuple[str, ...] = ("rel",)
    cutoff: Literal["may", "must", "never"] = "may"
    bare: str = ""
    """The measure that is meant where the cutoff is left out."""


MEASURES: Mapping[str, Row] = MappingProxyType(
    {
        "P": Row(binary.precision, bare="SetP"),
        "R": Row(binary.recall, bare="SetR"),
        "F1": Row(binary.f1, bare="SetF"),
        "Success": Row(binary.success),
        "RR": Row(binary.reciprocal_rank),
        "AP": Row(binary.average_precision),
        "SetP": Row(binary.set_precision),
        "SetR": Row(binary.recall),
        "SetF": Row(binary.set_f1),
        "CG": Row(graded.cumulative_gain, ("dcg",)),
        "DCG": Row(graded.discounted_gain, ("dcg",)),
        "nDCG": Row(graded.normalised_gain, ("dcg", "ideal")),
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

"""What an experiment or a command line could once say: each name with one sentence that says what to use."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType

from retrievers.errors import Problem

log = logging.getLogger(__name__)
_CITATIONS = "citations are no longer measured: use ragchecker.faithfulness, or compare scores of another tool"
_NUGGETS = "nuggets are no longer measured: use ragchecker.recall, the share of the reference's claims in the answer"

RETIRED: Mapping[str, str] = MappingProxyType(
    {
        "qdrant-fusion": 'use kind = "fusion", whose rankings are the same; the constant 60 is the k = 61 of Qdrant',
        "hommel": 'use correction = "holm"',
        "tukey": 'use correction = "holm", or test = "randomization" for a test of the means',
        "pratt": 'leave it out; test = "randomization" takes queries with equal scores into account',
        "bca": "leave it out: intervals are Student's t",
        "alce.citation_recall": _CITATIONS,
        "alce.citation_precision": _CITATIONS,
        "nuggets.all": _NUGGETS,
        "nuggets.vital": _NUGGETS,
        "nuggets.strict": _NUGGETS,
        "nuggets.strict_vital": _NUGGETS,
        "--terminal": "judge on the page: harness judge POOL writes one file for a browser, which needs no network",
    }
)
"""Kinds, values, measures and options; a name that is here is refused wherever it stands."""
GOING: Mapping[str, str] = MappingProxyType({})
"""What works until the next minor version and is then RETIRED, as "key" or "key = value" -> what to use."""


def tell_going(where: str, *names: str) -> None:
    """Say on standard error which of these names go away, and what to use."""
    for name in names:
        if name in GOING:
            log.warning("%s: %r goes away with the next minor version (%s)", where, name, GOING[name])


def retired_in(named: Iterable[tuple[str, object]]) -> Iterator[Problem]:
    """Yield a problem for each name that is retired.

    Args:
        named: where a name stands, and the name.

    >>> [str(problem) for problem in retired_in([("statistics.interval", "bca"), ("statistics.test", "t")])]
    ["statistics.interval: 'bca' is retired (leave it out: intervals are Student's t)"]
    """
    for where, name in named:
        if isinstance(name, str) and name in RETIRED:
            yield Problem(where, f"{name!r} is retired", RETIRED[name])

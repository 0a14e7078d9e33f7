"""Citations as ALCE judges them (Gao et al. 2023; formulas as in its `eval.py`): are they complete, is each needed?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from harness.measures.truth import Truth, share


class Cited(NamedTuple):
    """One sentence of an answer and what the verdicts say about its citations."""

    together: Truth
    """Whether all cited passages, joined, entail the sentence; false where it cites nothing."""
    alone: tuple[Truth, ...]
    """For each cited passage: whether it entails the sentence by itself."""
    without: tuple[Truth, ...]
    """For each cited passage: whether the others, joined, still entail the sentence; false where it is the only one."""


def citation_recall(cited: Sequence[Cited]) -> float | None:
    """Citation recall: sentences entailed by their joined citations / all sentences of the answer.

    Range 0 to 1; undefined for an answer without a sentence. A sentence that cites nothing counts against it.

    >>> citation_recall([Cited(True, (True,), (False,)), Cited(False, (), ())])
    0.5
    """
    return share([one.together for one in cited])


def citation_precision(cited: Sequence[Cited]) -> float | None:
    """Citation precision: citations that are needed / all citations.

    A citation is needed where the sentence is entailed by its joined citations, and the cited passage entails it alone
    or the others without it no longer do. Range 0 to 1; undefined for an answer without a citation.

    >>> citation_precision([Cited(True, (True, False), (False, True))])
    0.5
    """
    return share([needed for one in cited for needed in _needed(one)])


def _needed(one: Cited) -> list[Truth]:
    return [_is_needed(one.together, alone, rest) for alone, rest in zip(one.alone, one.without, strict=True)]


def _is_needed(together: Truth, alone: Truth, rest: Truth) -> Truth:
    if together is False:
        return False
    if together and (alone or rest is False):
        return True
    return False if together and alone is False and rest else None

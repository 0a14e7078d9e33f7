"""RAGAS' measures (Es et al. 2023; the formulas of version 0.4.3, `src/ragas/metrics`) as functions of verdicts.

Faithfulness and context recall are shares of claims, as RAGChecker's faithfulness and claim recall are: here a claim is
supported if one passage entails it. A measure with a zero divisor is undefined (None), and so is one with
an unknown verdict.
"""

from collections.abc import Sequence

import numpy as np

from harness.measures.claims import Truth, any_of, rank_precision, share
from retrievers.types import Vectors

EPSILON = 1e-10
"""RAGAS adds this to a divisor: a perfect list gets 0.9999999999."""
HIGHEST = 2
"""The highest rating of the two prompts for context relevance."""


def supported(claims: Sequence[Sequence[Truth]]) -> float | None:
    """Faithfulness of a response, context recall of a reference: statements that the passages support / statements.

    Args:
        claims: for each statement, whether each passage entails it.

    Range 0 to 1; undefined without a statement; 0 if nothing was retrieved.

    >>> supported([[True, False], [False, False]]), supported([])
    (0.5, None)
    """
    return share([any_of(row) for row in claims])


def context_precision(useful: Sequence[Truth]) -> float | None:
    """Context precision: the sum over ranks of P@k v_k / (number of useful passages + 1e-10).

    With the reference it is RAGAS' context precision, with the response its context utilisation: v_k says whether the
    passage at rank k entails any claim of that text. It measures only the order: finding more can lower it.
    Range 0 to 0.9999999999; 0 if no passage is useful; undefined without passages.

    >>> context_precision([True, False, True]) == (1 + 2 / 3) / (2 + 1e-10)
    True
    >>> context_precision([True]), context_precision([False]), context_precision([])
    (0.9999999999, 0.0, None)
    """
    return rank_precision(useful, EPSILON) if useful else None


def context_relevance(ratings: Sequence[int | None]) -> float | None:
    """Context relevance, current form: the mean of the readable ratings 0, 1 or 2, halved.

    RAGAS uses two prompts and excludes an unreadable reply. Range 0 to 1; undefined without a readable rating.

    >>> context_relevance([2, 1]), context_relevance([None, 1]), context_relevance([None, None])
    (0.75, 0.5, None)
    """
    read = [rating for rating in ratings if rating is not None]
    return sum(read) / len(read) / HIGHEST if read else None


def answer_relevancy(question: Vectors, regenerated: Vectors, noncommittal: Sequence[bool]) -> float | None:
    """Answer relevancy: the mean cosine of the query and the questions that a model generated from the answer.

    Args:
        question: (d,) the query's vector.
        regenerated: (n, d) the vectors of the regenerated questions; RAGAS makes three.
        noncommittal: (n,) whether the model called the answer evasive; the result is 0 if it always did.

    Range -1 to 1; undefined without regenerated questions, or if a vector is zero.

    >>> answer_relevancy(np.array([1, 0]), np.array([[1, 0], [0, 2]]), [False, True])
    0.5
    """
    if not len(regenerated):
        return None
    lengths = np.linalg.norm(regenerated, axis=1) * np.linalg.norm(question)
    if not lengths.all():
        return None
    return 0.0 if all(noncommittal) else float((regenerated @ question / lengths).mean())

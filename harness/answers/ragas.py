"""RAGAS' measures (Es et al. 2023; the formulas of version 0.4.3, `src/ragas/metrics`) as functions of verdicts.

Faithfulness and context recall are shares of claims, as RAGChecker's faithfulness and claim recall are: here a claim is
supported where one passage entails it. A measure with nothing to divide by is undefined (None), and so is one that
rests on an unknown verdict.
"""

from collections.abc import Sequence

import numpy as np

from harness.measures.claims import Truth, any_of, rank_precision, share
from retrievers.types import Vectors

EPSILON = 1e-10
"""What RAGAS adds to a divisor: a perfect list gets 0.9999999999."""
HIGHEST = 2
"""The highest rating of the two prompts for context relevance."""


def supported(claims: Sequence[Sequence[Truth]]) -> float | None:
    """Faithfulness of a response, context recall of a reference: statements that the passages support / statements.

    Args:
        claims: for each statement, whether each passage entails it.

    Range 0 to 1; undefined without a statement; 0 where nothing was retrieved.

    >>> supported([[True, False], [False, False]]), supported([])
    (0.5, None)
    """
    return share([any_of(row) for row in claims])


def context_precision(useful: Sequence[Truth]) -> float | None:
    """Context precision: the sum over ranks of P@k v_k / (number of useful passages + 1e-10).

    With the reference it is RAGAS' context precision, with the response its context utilisation: v_k says whether the
    passage at rank k entails any claim of that text. It looks at the order alone: finding more can lower it.
    Range 0 to 0.9999999999; 0 where no passage is useful; undefined without passages.

    >>> context_precision([True, False, True]) == (1 + 2 / 3) / (2 + 1e-10)
    True
    >>> context_precision([True]), context_precision([False]), context_precision([])
    (0.9999999999, 0.0, None)
    """
    return rank_precision(useful, EPSILON) if useful else None


def context_relevance(ratings: Sequence[int | None]) -> float | None:
    """Context relevance, today's form: the ratings 0, 1 or 2 of the prompts that were read, averaged and halved.

    RAGAS asks two prompts of its own wording and leaves out the one whose answer it cannot read. Range 0 to 1;
    undefined where no rating was read.

    >>> context_relevance([2, 1]), context_relevance([None, 1]), context_relevance([None, None])
    (0.75, 0.5, None)
    """
    read = [rating for rating in ratings if rating is not None]
    return sum(read) / len(read) / HIGHEST if read else None


def answer_relevancy(question: Vectors, regenerated: Vectors, noncommittal: Sequence[bool]) -> float | None:
    """Answer relevancy: the mean cosine of the question and the questions that a model made from the answer.

    Args:
        question: (d,) the question's vector.
        regenerated: (n, d) the vectors of the regenerated questions; RAGAS makes three.
        noncommittal: (n,) whether the model called the answer evasive; 0 where it did so every time.

    Range -1 to 1; undefined without regenerated questions, or where a vector is zero.

    >>> answer_relevancy(np.array([1, 0]), np.array([[1, 0], [0, 2]]), [False, True])
    0.5
    """
    if not len(regenerated):
        return None
    lengths = np.linalg.norm(regenerated, axis=1) * np.linalg.norm(question)
    if not lengths.all():
        return None
    return 0.0 if all(noncommittal) else float((regenerated @ question / lengths).mean())

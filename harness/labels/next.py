"""What to judge next: the unjudged documents that could still change the difference of two retrievers most.

Greedy, as in minimal test collections (Carterette, Allan & Sitaraman 2006): the document with the largest weight first.
Labels that are chosen this way bound the difference and make no test, and their judgments say so.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from harness.evaluation.unjudged import OpenJudgment, open_pairs
from harness.labels.pool import DrawnPool, Material, Pool, PooledQuery, pool_of, pooled, shuffled_place
from harness.records import Results
from harness.stats.unjudged_bounds import Bounds
from retrievers.errors import InputError, Problem, did_you_mean


class Next(NamedTuple):
    """What is still open between two retrievers, and what to judge first."""

    a: str
    b: str
    measure: str
    bounds: Bounds
    """Of the mean difference a - b, with every unjudged document at its worst and at its best."""
    unjudged: int
    """Documents that could still change it."""
    pool: Pool | None
    """None where nothing is left that could."""

    def sentence(self) -> str:
        """The bounds in words."""
        between = (
            f"{self.a} less {self.b} in {self.measure}: between {self.bounds.low:+.4f} and {self.bounds.high:+.4f}"
        )
        if self.bounds.decided:
            return f"{between}, decided, whatever is judged next"
        if not self.unjudged and self.bounds.width > 0:
            return f"{between}, open only by how many other documents are relevant"
        return f"{between}, with {self.unjudged:,} documents in these rankings that could still change it"


def next_to_judge(results: Results, material: Material, names: Sequence[str], count: int, policy: str) -> Next:
    """Choose the documents to judge next, by what a judgment of them could change.

    Args:
        results: rankings and the labels so far.
        material: the texts.
        names: two retrievers; none where there are only two.
        count: how many documents.
        policy: the labelling policy.

    Raises:
        InputError: the retrievers are not two of the folder's, or the primary measure is no sum over the ranks.
    """
    a, b = _two(results, names)
    difference = open_pairs(results, a, b)
    if difference is None:
        measure = results.manifest.resolved.primary
        remedy = "nDCG, DCG, P, RBP, RR, Success, R and AP have them"
        raise InputError(Problem(measure, "has no bounds under unjudged documents", remedy))
    ordered = sorted(difference.changes, key=lambda one: (-one.most, shuffled_place(0, one.query_id, one.document_id)))
    lines = tuple(line for one in ordered[:count] for line in _line(material, one))
    drawn = DrawnPool(
        depth=difference.cutoff, seed=0, population=len(results.queries), sampled=len(lines), design="next"
    )
    pool = pool_of(policy, drawn, lines) if lines else None
    return Next(a, b, difference.measure, difference.bounds, len(difference.changes), pool)


def _line(material: Material, one: OpenJudgment) -> tuple[PooledQuery, ...]:
    """One document is one line: the order of judging is the order of what it could change."""
    return pooled(material, {one.query_id: [one.document_id]}, 1.0)


def _two(results: Results, names: Sequence[str]) -> tuple[str, str]:
    known = results.retrievers
    if wrong := [name for name in names if name not in known]:
        raise InputError(Problem("--pair", f"there is no retriever {wrong[0]!r}", did_you_mean(wrong[0], known)))
    chosen = tuple(dict.fromkeys(names)) or known
    if len(chosen) != 2:
        remedy = f"--pair A --pair B, of {', '.join(known)}"
        what = f"names {len(chosen)} retrievers" if names else f"is missing, and there are {len(chosen)} retrievers"
        raise InputError(Problem("--pair", what, remedy))
    return chosen[0], chosen[1]

"""Retrievers that search an approximate index: which they are, and how far two builds of an index may differ."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from harness.records import Results
from retrievers.types import Ranking

CUTOFF = 10


class IndexDrift(NamedTuple):
    """How far the first ten hits of two builds of one index agree, over all queries."""

    retriever: str
    common: float
    """The share of the earlier hits that are there again."""
    least: int | None
    """So many hits the two builds must share on the sample that both compared with exact search; None: not known."""
    shared: int
    """So many they do share there."""

    @property
    def too_far(self) -> bool:
        """Whether an index over the same vectors cannot explain it."""
        return self.least is not None and self.shared < self.least


def approximate(results: Results) -> tuple[str, ...]:
    """Return the retrievers that search an approximate index, and those that are made of them."""
    known: set[str] = set()
    resolved = results.manifest.resolved
    made_of = {name: set(resolved.made_of(name)) for name in resolved.blocks}
    for _ in made_of:  # as often as a chain of blocks can be long
        for name, parts in made_of.items():
            facts = results.manifest.retrievers[name].provenance
            if facts.get("search") == "approximate" or parts & known:
                known.add(name)
    return tuple(name for name in results.retrievers if name in known)


def drifts_of(earlier: Results, again: Results) -> Iterator[IndexDrift]:
    """Compare the approximate retrievers of two runs of one experiment on the same data.

    An index of the same vectors that has the recall r against exact search shares at least r + s - 1 of the exact hits
    with another that has the recall s: fewer mean that something else has changed.
    """
    for name in approximate(earlier):
        if name not in again.retrievers:
            continue
        before, now = earlier.rankings(name), again.rankings(name)
        total = sum(len(ranking.doc_ids[:CUTOFF]) for ranking in before.values())
        common = sum(_common(ranking, now[query]) for query, ranking in before.items())
        sample, least = _sample(earlier, again, name)
        asked = islice((query for query, ranking in before.items() if len(ranking)), sample)
        shared = sum(_common(before[query], now[query]) for query in asked)
        yield IndexDrift(name, common / total if total else 1.0, least, shared)


def _common(a: Ranking, b: Ranking) -> int:
    return len(set(a.doc_ids[:CUTOFF]) & set(b.doc_ids[:CUTOFF]))


def _sample(earlier: Results, again: Results, name: str) -> tuple[int, int | None]:
    """How many queries were searched exactly too, and how many hits the two must share there."""
    counts = [one.manifest.ledger.retrievers[name].counts for one in (earlier, again)]
    exact = [one.get("search-exact", {}) for one in counts]
    # Where the hits are not kept as they were searched, nothing follows from the recall.
    changed = any("collapse" in one for one in counts) or earlier.manifest.resolved.dataset.get("exclude_self")
    block = earlier.manifest.resolved.blocks[name]
    made = block.get("of") or block.get("rerank")
    if changed or made or not all("shared_hits_at_10" in one for one in exact):
        return 0, None
    if exact[0]["exact_hits_at_10"] != exact[1]["exact_hits_at_10"]:
        return 0, None
    stages = [row for row in earlier.costs.to_dict("records") if row["retriever"] == name]
    sample = next((int(row["texts"]) for row in stages if row["stage"] == "search-exact"), 0)
    least = sum(one["shared_hits_at_10"] for one in exact) - exact[0]["exact_hits_at_10"]
    return sample, max(0, int(least))

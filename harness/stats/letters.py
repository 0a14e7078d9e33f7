"""Who could not be told apart: letters for a table, bars for a rank diagram; for all-pairs families only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from harness.stats.comparison import Comparison
from harness.stats.facts import ScoreTable
from harness.stats.friedman import friedman
from harness.stats.intervals import mean
from harness.stats.verdicts import BETTER, WORSE


class RankDiagram(NamedTuple):
    """Average ranks, best first, and the bars that join retrievers which the pairwise tests do not separate."""

    ranks: Mapping[str, float]
    bars: tuple[tuple[str, ...], ...]


def cliques(names: Sequence[str], comparisons: Sequence[Comparison]) -> tuple[tuple[str, ...], ...]:
    """Return the largest groups without a separated pair, by insert and absorb (Piepho 2004).

    Args:
        names: the retrievers in the order wanted.
        comparisons: the all-pairs family of one measure.

    Raises:
        ValueError: a pair is missing.
    """
    if {frozenset((c.a, c.b)) for c in comparisons} != {frozenset((x, y)) for x in names for y in names if x != y}:
        raise ValueError("letters and bars need every pair of the retrievers compared")
    groups = [frozenset(names)]
    for row in comparisons:
        if row.word.startswith((BETTER, WORSE)):
            pair = {row.a, row.b}
            split = [part for g in groups for part in ((g - {row.a}, g - {row.b}) if pair <= g else (g,))]
            groups = [g for g in dict.fromkeys(split) if not any(g < other for other in split)]
    place = {name: i for i, name in enumerate(names)}
    return tuple(sorted((tuple(sorted(g, key=place.__getitem__)) for g in groups), key=lambda g: [place[x] for x in g]))


def letters(scores: ScoreTable, comparisons: Sequence[Comparison]) -> dict[str, str]:
    """Return the compact letter display, highest mean first: two retrievers that share a letter are not separated.

    Args:
        scores: retriever -> (n,) scores of the measure.
        comparisons: its all-pairs family.
    """
    names = sorted(scores, key=lambda name: -mean(scores[name]))
    shown = dict.fromkeys(names, "")
    for i, group in enumerate(cliques(names, comparisons)):
        for name in group:
            shown[name] += _letter(i)
    return shown


def _letter(i: int) -> str:
    return chr(ord("a") + i) if i < 26 else f"({i + 1})"


def rank_diagram(scores: ScoreTable, comparisons: Sequence[Comparison]) -> RankDiagram:
    """Return the average ranks and the bars of cliques of two or more (Benavoli et al. 2016: no Nemenyi bar)."""
    ranks = dict(sorted(friedman(scores).average_ranks.items(), key=lambda item: item[1]))
    return RankDiagram(ranks, tuple(group for group in cliques(list(ranks), comparisons) if len(group) > 1))

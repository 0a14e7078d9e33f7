"""Planned looks in words."""

from __future__ import annotations

from harness.english import count_queries, count_units
from harness.evaluation.evaluation import Evaluation
from harness.stats.looks import InterimAnalysis


def look_sentences(found: Evaluation) -> list[str]:
    """Return what counts as one observation if that is not a query, and which look this is, with its level."""
    if not found.measured:
        return []
    said = []
    if found.clusters is not None:
        said.append(
            f"Queries that ask the same count as one: {count_units(found.n, found.clusters)}."
        )
    if found.look is not None:
        said.append(look_sentence(found.look, found.n))
    elif found.others and found.settings.earlier:
        said.append(
            f"This is look number {len(found.settings.earlier) + 1}: earlier runs tested the same on some of these "
            "queries, and each further look makes a false claim more likely. Declare `looks` under [statistics]."
        )
    return said


def look_sentence(look: InterimAnalysis, queries: int) -> str:
    """Return which of the planned looks this is, and its level."""
    planned = ", ".join(f"{n:,}" for n in look.planned)
    if look.alpha_spent:
        return f"Looks were planned at {planned} queries, these are {queries:,}: alpha is spent, nothing is claimed."
    other = "" if queries in look.planned else f"; {queries:,} was not planned"
    return f"Look {look.number} (planned at {planned}{other}): level {look.level:.2g}."


def look_step(found: Evaluation) -> str:
    """Return whether the planned looks are over, and the next one with its power."""
    cost, following = (
        f"{found.judgments:,} labels of {count_queries(found.n)}",
        found.next_look,
    )
    if not found.queries_needed or following is None:
        return f"{'Undecided at the last look' if found.queries_needed else 'Decided'}, with {cost}."
    power = (
        "power unknown"
        if following.power is None
        else f"{100 * following.power:.0f} % power"
    )
    return f"Go on to {count_queries(following.queries)} ({power}): harness pool RESULTS --next-look."

"""Planned looks in words."""

from __future__ import annotations

from harness.english import count_queries, count_units, percent_text
from harness.evaluation.evaluation import Evaluation
from harness.stats.looks import InterimAnalysis


def look_sentences(evaluation: Evaluation) -> list[str]:
    """Return the unit of observation if it is not a query, and which look this is.

    A look that was not planned has a sentence if an earlier run tested the same.
    """
    if not evaluation.measured:
        return []
    sentences: list[str] = []
    if evaluation.clusters is not None:
        units = count_units(evaluation.n, evaluation.clusters)
        sentences.append(f"Queries of one cluster count as one: {units}.")
    earlier = len(evaluation.settings.earlier)
    if evaluation.look is not None:
        sentences.append(look_sentence(evaluation.look, evaluation.n))
    elif evaluation.others and earlier:
        sentences.append(
            f"This is look number {earlier + 1}: earlier runs tested the same on some "
            "of these queries, and each further look makes a false claim more likely. "
            "Declare `looks` under [statistics]."
        )
    return sentences


def look_sentence(look: InterimAnalysis, queries: int) -> str:
    """Return which of the planned looks this is, and its level."""
    planned = ", ".join(f"{size:,}" for size in look.planned)
    if look.alpha_spent:
        return (
            f"Looks were planned at {planned} queries, these are {queries:,}: "
            "alpha is spent, nothing is claimed."
        )
    unplanned = "" if queries in look.planned else f"; {queries:,} was not planned"
    if look.no_more_queries:
        unplanned = f"; {queries:,} are the last that can be scored"
    position = f"Look {look.number} (planned at {planned}{unplanned})"
    return f"{position}: level {look.level:.2g}."


def next_look_command(evaluation: Evaluation, folder: str) -> str:
    """Return the command that draws the queries of the next look; "" if none follows.

    Args:
        evaluation: of a run.
        folder: the results folder, quoted for a command.
    """
    if not evaluation.queries_needed or evaluation.next_look is None:
        return ""
    return f"harness pool {folder} --next-look"


def look_step(evaluation: Evaluation) -> str:
    """Return whether the planned looks are over, else the next one with its power."""
    next_look = evaluation.next_look
    if not evaluation.queries_needed or next_look is None:
        outcome = "Decided"
        if evaluation.queries_needed:
            outcome = "Undecided at the last look"
        queries = count_queries(evaluation.n)
        return f"{outcome}, with {evaluation.judgments:,} labels of {queries}."
    chance = "chance to decide unknown"
    if next_look.power is not None:
        share = percent_text(next_look.power, digits=2)
        chance = f"about {share} % chance to decide"
    return f"Next look: {next_look.queries:,} labelled queries ({chance}):"

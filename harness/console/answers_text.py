"""Files of answers as text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from harness.english import count_of, count_queries

if TYPE_CHECKING:
    from harness.answers.forecast import JudgingForecast
    from harness.answers.inputs import AnswerInputs, SystemCounts


def answer_count_lines(
    inputs: AnswerInputs, systems: list[SystemCounts]
) -> Iterator[str]:
    """Yield what can be measured, then what each system's file contains."""
    claim_count = sum(len(query.reference.claims) for query in inputs.queries)
    claims = count_of(claim_count, "claim")
    answered = sum(bool(query.reference.answers) for query in inputs.queries)
    yield (
        f"{inputs.loaded.dataset.path}: {count_queries(len(inputs.queries))} "
        f"to measure: {answered:,} with a reference answer, {claims}; with neither, "
        f"ignored: {inputs.ignored_queries:,}"
    )
    for counts in systems:
        yield (
            f"{counts.system}: {count_of(counts.answers, 'answer')}, "
            f"{counts.missing:,} missing (each counts as an empty answer), "
            f"{counts.empty:,} empty, {counts.without_contexts:,} without contexts"
        )
    yield "no problem found"


def judging_forecast_sentence(forecast: JudgingForecast) -> str:
    """Return what a judge has to do, and what that takes."""
    from harness.answers.chat_forecast import ASSUMED_CLAIMS

    extraction = f"claims to extract from {count_of(forecast.texts, 'text')} first"
    verdicts = count_of(forecast.verdicts, "verdict")
    work = f"{forecast.judge}: {verdicts} to give; {extraction}"
    if forecast.calls is None:
        return work + "; on this machine"
    cost = "at an unknown price"
    if forecast.usd is not None:
        cost = f"about ${forecast.usd:.4f}"
    assumption = f", assumed to make {ASSUMED_CLAIMS}" if forecast.texts else ""
    requests = count_of(forecast.calls, "request")
    tokens = f"about {forecast.tokens:,} tokens for all tasks, replies at their longest"
    return f"{work}{assumption}; {requests} and {tokens}, {cost}"

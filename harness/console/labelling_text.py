"""Labelling as text: what a person or a model has to judge."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.english import count_of

if TYPE_CHECKING:
    from harness.labels.export_labels import ExportedLabels
    from harness.labels.model_judge import ModelJudging
    from harness.labels.pool import Pool
    from retrievers.services.chat_model import ChatForecast


def repeats_sentence(pool: Pool) -> str:
    """Return how many pairs a person judges twice, and the number of labels in all."""
    from harness.labels.judging_order import judging_order

    judgments = len(judging_order(pool))
    repeats = judgments - pool.pair_count
    return f"{repeats:,} of them twice, which makes {count_of(judgments, 'label')}"


def chat_forecast_sentence(forecast: ChatForecast) -> str:
    """Return the forecast as a sentence."""
    if forecast.usd is None:
        price = "at an unknown price (--price IN,OUT)"
    elif forecast.calls and forecast.usd == 0:
        # A server on this machine is free unless a price is given.
        price = "at no price (--price IN,OUT)"
    else:
        price = f"about ${forecast.usd:.4f}"
    prompts = count_of(forecast.prompts, "prompt")
    calls = count_of(forecast.calls, "call")
    tokens = f"about {forecast.tokens:,} tokens with replies at their longest"
    return f"{prompts}, {forecast.cached:,} of them cached: {calls}, {tokens}, {price}"


def model_judging_sentence(judging: ModelJudging) -> str:
    """Return the counts of a model's judging in words."""
    requested = count_of(judging.asked, "pair")
    sentence = (
        f"{requested} requested, {judging.cached:,} from the cache: "
        f"{judging.graded:,} graded, {judging.unreadable:,} unreadable "
        f"and {judging.declined:,} declined (null, never 0)"
    )
    if judging.truncated:
        reason = "by the start of a longer document (--longest)"
        sentence += f"; {judging.truncated:,} {reason}"
    if judging.without_schema:
        sentence += f"; {judging.without_schema:,} replies came without a schema"
    return sentence


def exported_labels_sentence(exported: ExportedLabels) -> str:
    """Return how many queries have labels in the written file, and whose."""
    by_model = ""
    if exported.model_query_count:
        by_model = (
            f", {exported.model_query_count:,} of them judged by a model, "
            "completely or in part"
        )
    omitted = ""
    if exported.omitted_query_count:
        omitted = (
            f"; {exported.omitted_query_count:,} that a model judged are omitted "
            "(--with-model writes them too)"
        )
    queries = count_of(
        exported.people_query_count + exported.model_query_count, "query"
    )
    return f"labels of {queries}{by_model}{omitted}"

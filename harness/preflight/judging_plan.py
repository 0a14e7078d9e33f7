"""What judging claims takes in a run."""

from typing import NamedTuple

from harness.preflight.plan_rows import PlanContext, PlanRow
from harness.preflight.throughput import Throughput
from retrievers.types import Limits


class JudgingPlan(NamedTuple):
    """What a chat model takes that judges claims for all retrievers together."""

    row: PlanRow
    input_price: float | None
    """Dollars for a million tokens."""
    output_price: float | None
    is_priced: bool
    """Whether the dollars are known."""


def plan_judging(context: PlanContext) -> JudgingPlan | None:
    """Return what judging takes; None without measures by claims, or a chat model."""
    experiment = context.loaded.experiment
    measures = context.loaded.question.measures
    judge = experiment.judge
    if judge is None or judge.kind != "openai":
        return None
    if not any(measure.uses_claims for measure in measures):
        return None
    from harness.answers.chat_forecast import forecast_claims

    forecast = forecast_claims(
        judge,
        context.dataset,
        measures,
        len(experiment.retrievers),
        cache=context.cache,
    )
    requests = forecast.requests
    row = PlanRow(
        "",
        "judge",
        texts=forecast.pairs,
        cached=0,
        calls=requests.calls,
        tokens=requests.tokens,
        exact=False,
        usd=requests.usd,
        minutes=None,
    )
    if _is_judged(context, forecast.judge):
        row = row._replace(
            cached=forecast.pairs, calls=0, tokens=0, exact=True, usd=0.0
        )
    throughput = Throughput(
        limits=Limits(judge.concurrency, judge.rpm, judge.tpm, patience=0.0, tokens=0)
    )
    row = row._replace(minutes=throughput.minutes(row.calls, row.tokens))
    return JudgingPlan(
        row, judge.input_price, judge.output_price, requests.usd is not None
    )


def _is_judged(context: PlanContext, judge: str) -> bool:
    """Whether an earlier run of this experiment was judged by the same judge.

    Then the cache has all of its verdicts.
    """
    earlier = context.same_run()
    if earlier is None:
        return False
    record = earlier.manifest.judge
    if record is None or record.counts is None:
        return False
    return record.judge == judge

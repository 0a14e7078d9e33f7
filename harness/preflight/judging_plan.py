"""What judging claims takes in a run."""

from typing import NamedTuple

from harness.preflight.plan_rows import PlanContext, PlanRow
from harness.preflight.throughput import Throughput
from harness.records.judge_readings import JudgeIdentity
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
    """Return what judging takes at most, if nothing is cached or found twice.

    It is nothing if this run had all verdicts of this judge before. None if no measure
    is by claims, or the judge is no chat model.
    """
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
        cached=0,  # which pairs there are is known only after the run
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


def _is_judged(context: PlanContext, judge: JudgeIdentity) -> bool:
    """Whether an earlier run of this experiment has all verdicts of the same judge.

    It lacks some if a retriever failed, or if verdicts could not be read.
    """
    earlier = context.same_run()
    if earlier is None or earlier.manifest.failed:
        return False
    record = earlier.manifest.judge
    if record is None or record.counts is None or record.counts.unreadable:
        return False
    return (record.judge, record.prompt) == judge

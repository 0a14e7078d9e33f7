"""A plan as text.

One line sums it up (`plan_sentence`); `plan_details` has the retrievers, and where
prices and times come from.
"""

from collections.abc import Iterator, Sequence

from harness.english import count_of, first_names
from harness.preflight.judging_plan import JudgingPlan
from harness.preflight.plan import PlannedModel, PlanTotal, RunPlan
from harness.preflight.service_rows import ServicePlan
from harness.preflight.throughput import REQUEST_SECONDS
from harness.report.numbers import number_text
from retrievers.prices import FREE_PRICE, Price
from retrievers.types import Limits

MAX_PLAN_ROWS = 16
"""Retrievers with a line of their own."""


def plan_sentence(plan: RunPlan) -> str:
    """Return the sums of a plan in words."""
    return _total_sentence(plan.total())


def plan_details(plan: RunPlan) -> Iterator[str]:
    """Yield the sums of each retriever, then the notes."""
    retrievers = list(dict.fromkeys(row.retriever for row in plan.rows))
    for retriever in retrievers[:MAX_PLAN_ROWS]:
        total = _total_sentence(plan.total(retriever))
        name = retriever or "judge"  # its stage serves all retrievers
        yield f"  {name}: {total}"
    folded = retrievers[MAX_PLAN_ROWS:]
    if folded:
        yield f"  and {count_of(len(folded), 'more retriever')}"
    yield from plan_notes(plan)


def _total_sentence(total: PlanTotal) -> str:
    """Return texts, tokens, dollars and minutes of one sum."""
    cached = f" ({total.cached:,} cached)" if total.cached else ""
    texts = f"{count_of(total.texts, 'text')}{cached}"
    tokens = amount_text(total.tokens, 0, "" if total.exact else "≈")
    dollars = "price unknown"
    if total.usd is not None:
        dollars = f"{amount_text(total.usd, 4, '')} dollars"
    minutes = "time unknown before the first run"
    if total.minutes is not None:
        minutes = f"{amount_text(total.minutes, 1, '≈')} minutes"
    return f"{texts}, {tokens} tokens, {dollars}, {minutes}"


def amount_text(amount: float | None, digits: int, mark: str) -> str:
    """Return an amount for people: "?" if it is unknown, never 0 for a little.

    Args:
        amount: the amount.
        digits: after the decimal point.
        mark: comes before the amount, such as "≈" for an estimate.

    >>> amount_text(None, 1, "≈"), amount_text(0, 1, "≈")
    ('?', '0')
    >>> amount_text(0.00002, 4, "≈"), amount_text(1234.56, 1, "≈")
    ('<0.0001', '≈1,234.6')
    """
    if amount is None:
        return "?"
    if not amount:
        return "0"
    smallest = 10**-digits
    if amount < smallest:
        return f"<{smallest:.{digits}f}"
    return f"{mark}{amount:,.{digits}f}"


def plan_notes(plan: RunPlan) -> Iterator[str]:
    """Yield prices with their dates, and how the minutes are estimated."""
    if plan.remote_vectors:
        yield (
            f"check uses no network: vectors in {plan.remote_vectors} count as not "
            "embedded"
        )
    yield from _models_notes(plan.models)
    for service in plan.services:
        yield _service_sentence(service)
    if plan.judging is not None:
        yield _judge_note(plan.judging)
    if any(row.minutes is None for row in plan.rows):
        yield (
            "time: how fast a local model is on this machine is read from earlier runs "
            "in the results folder; there is none"
        )
    if not all(row.exact for row in plan.rows):
        yield (
            "≈: estimated, since the tokenizer is not on this machine, or pairs are "
            "not known yet; code, and scripts that a tokenizer saw little of, may take "
            "three times as many tokens"
        )


def _models_notes(models: Sequence[PlannedModel]) -> Iterator[str]:
    """Yield the notes of models, each once, after the retrievers that it is about."""
    retrievers_by_note: dict[str, list[str]] = {}
    for model in models:
        for note in _model_notes(model):
            retrievers_by_note.setdefault(note, []).append(model.retriever)
    for note, retrievers in retrievers_by_note.items():
        yield f"{first_names(list(dict.fromkeys(retrievers)))}: {note}"


def _model_notes(model: PlannedModel) -> Iterator[str]:
    """Yield a model's price with its limits or its speed, and how documents count."""
    throughput = model.throughput
    note = price_sentence(throughput.price)
    if throughput.limits is not None:
        note += f"; {_rate_text(throughput.limits)}"
    elif throughput.speed:
        note += f", {throughput.speed:,.0f} tokens a second in earlier runs"
    part = "reranker: " if model.part == "reranker" else ""
    yield f"{part}{note}"
    if model.documents_uncut:
        yield "documents count uncut, since chunk.call is not run"


def _service_sentence(plan: ServicePlan) -> str:
    """Return calls, tokens and dollars of a service or an agent, in words."""
    row = plan.row
    if not row.calls:
        return f"{row.retriever}: all its answers are cached"
    factors = [count_of(plan.calls, "call")]
    if plan.trials != 1:
        factors.append(f"{plan.trials} trials")
    product = " x ".join([*factors, count_of(plan.queries, "query")])
    if not plan.is_upper_bound:
        return f"{row.retriever}: {product}, {row.calls:,} not cached"
    tokens = amount_text(row.tokens, 0, "")
    dollars = amount_text(row.usd, 4, "")
    return (
        f"{row.retriever}: at most {product} = {row.calls:,} calls, "
        f"{tokens} tokens, {dollars} dollars"
    )


def _rate_text(limits: Limits) -> str:
    """Return how much a service takes at once, and a minute.

    >>> _rate_text(Limits(1, rpm=0, tpm=2e6, patience=60, tokens=8_000))
    '1 request of 0.5 s at once, 2,000,000 tokens a minute'
    """
    requests = count_of(limits.concurrency, "request")
    rates = [f"{requests} of {REQUEST_SECONDS:g} s at once"]
    if limits.rpm:
        rates.append(f"{number_text(limits.rpm)} requests a minute")
    if limits.tpm:
        rates.append(f"{number_text(limits.tpm)} tokens a minute")
    return ", ".join(rates)


def price_sentence(price: Price | None) -> str:
    """Return a price with its source, in words."""
    if price is None:
        return "price unknown: write price = dollars for a million tokens"
    if price.usd_per_thousand_searches:
        dollars = f"${price.usd_per_thousand_searches:g}"
        return f"{dollars} a thousand searches ({price.source})"
    if price is FREE_PRICE:
        return price.source
    return f"${price.usd_per_million_tokens:g} a million tokens ({price.source})"


def _judge_note(judging: JudgingPlan) -> str:
    price = "price unknown: write input_price and output_price"
    if judging.is_priced:
        price = (
            f"${judging.input_price or 0:g} a million tokens in, "
            f"${judging.output_price or 0:g} out"
        )
    return (
        f"judge: {price}; an upper bound: the hits of each retriever count, though two "
        "find the same document or a reply is cached"
    )

"""What embedding costs: list prices, each with the day on which it was read and the page that it is from.

The figures were read from public price tables that quote the providers' pages; some regions cost more. An
experiment's own `price` goes before them.
"""

from __future__ import annotations

from typing import NamedTuple

from retrievers.errors import InputError, Problem
from retrievers.meter import Meter


class Price(NamedTuple):
    """Dollars for a million tokens of input, on demand, before taxes and discounts."""

    usd_per_million_tokens: float
    read: str
    source: str


_READ = "2026-11-20"
_OPENAI = "https://developers.openai.com/api/docs/pricing"
_AWS = "https://aws.amazon.com/bedrock/pricing/"

PRICES = {
    ("openai", "text-embedding-3-small"): Price(0.02, _READ, _OPENAI),
    ("openai", "text-embedding-3-large"): Price(0.13, _READ, _OPENAI),
    ("openai", "text-embedding-ada-002"): Price(0.10, _READ, _OPENAI),
    ("bedrock", "amazon.titan-embed-text-v1"): Price(0.10, _READ, _AWS),
    ("bedrock", "amazon.titan-embed-text-v2:0"): Price(0.02, _READ, _AWS),
    ("bedrock", "cohere.embed-english-v3"): Price(0.10, _READ, _AWS),
    ("bedrock", "cohere.embed-multilingual-v3"): Price(0.10, _READ, _AWS),
    ("bedrock", "cohere.embed-v4:0"): Price(0.12, _READ, _AWS),
}
"""(kind of encoder, model) -> price."""


def price(kind: str, model: str) -> Price | None:
    """Return the list price of a model, None where the table has none.

    A prefix of Bedrock's inference profiles ("us.", "eu.", "apac.", "global.") changes no price.

    >>> price("bedrock", "eu.cohere.embed-v4:0").usd_per_million_tokens
    0.12
    """
    plain = model
    for prefix in ("us.", "eu.", "apac.", "jp.", "global."):
        plain = plain.removeprefix(prefix)
    return PRICES.get((kind, plain))


def charged(kind: str, model: str, said: float | None, *, meter: Meter) -> float:
    """Tell the meter what a million tokens cost: what the experiment says, else the list price, else nothing.

    Raises:
        InputError: the price is unknown, and the run may not spend more than a limit.
    """
    listed = price(kind, model)
    usd = said if said is not None else listed.usd_per_million_tokens if listed is not None else None
    if usd is None and meter.budget.limit is not None:
        unknown = f"the price of {model} is not known, so that --max-cost cannot be kept"
        raise InputError(Problem("encoder.price", unknown, "write price = dollars for a million tokens"))
    meter.price = (usd or 0.0) / 1e6
    return usd or 0.0

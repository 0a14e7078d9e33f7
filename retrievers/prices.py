"""What tokens cost."""

import ipaddress
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple
from urllib.parse import urlsplit


class Price(NamedTuple):
    """What a model's input costs, on demand, before taxes and discounts."""

    usd_per_million_tokens: float
    source: str
    """Where the figure is from: a page with the day on which it was read, or the reason why nothing is paid."""
    usd_per_thousand_searches: float = 0.0
    """Of a reranker that is billed by the search, not by the token."""

    def usd(self, tokens: int, searches: float = 0) -> float:
        """Return the dollars for so many tokens and searches."""
        return (
            tokens * self.usd_per_million_tokens / 1e6
            + searches * self.usd_per_thousand_searches / 1e3
        )


_SEARCH_DOCUMENTS, _SEARCH_TOKENS = 100, 500


def count_searches(tokens: Sequence[int]) -> int:
    """Return how many searches a list of documents is billed as, each of so many tokens.

    Cohere counts a search for every 100 documents, and a document above 500 tokens as several
    (https://docs.cohere.com/docs/how-does-cohere-pricing-work, recalled, not verified).

    >>> count_searches([120] * 50), count_searches([1200] * 50)
    (1, 2)
    """
    documents = sum(max(-(-count // _SEARCH_TOKENS), 1) for count in tokens)
    return -(-documents // _SEARCH_DOCUMENTS)


FREE_PRICE = Price(0.0, "runs on this machine, nothing is paid")
_VOYAGE = "https://docs.voyageai.com/docs/pricing, as quoted by two other pages, read 2026-11-22"
_AWS = "https://aws.amazon.com/bedrock/pricing/, read 2026-11-20"
TOKEN_PRICES = {
    ("voyage", "voyage-4-large"): Price(0.12, _VOYAGE),
    ("voyage", "voyage-4"): Price(0.06, _VOYAGE),
    ("voyage", "voyage-4-lite"): Price(0.02, _VOYAGE),
    ("voyage", "rerank-2.5"): Price(0.05, _VOYAGE),
    ("voyage", "rerank-2.5-lite"): Price(0.02, _VOYAGE),
    ("aws", "cohere.embed-english-v3"): Price(0.10, _AWS),
    ("aws", "cohere.embed-multilingual-v3"): Price(0.10, _AWS),
    ("aws", "cohere.embed-v4:0"): Price(0.12, _AWS),
}
"""(provider, model) -> price, where genai-prices has none."""
_SAMPLE = 1000
"""Tokens that a list price is asked for: below every step of prices by volume."""


def find_price(
    provider: str, model: str, *, given_price: float | None = None, base_url: str = ""
) -> Price | None:
    """Return what a model costs: what the experiment says, else nothing on this machine, else the list price.

    A prefix of Bedrock's inference profiles ("us.", "eu.", "apac.", "global.") changes no price.

    Args:
        provider: as genai-prices calls it; asked where no server is named.
        model: its name at the provider.
        given_price: the experiment's `price`, dollars for a million tokens.
        base_url: the server, where it is named; list prices are those of the providers' own.

    Returns:
        None where the price is not known.

    >>> find_price("aws", "eu.cohere.embed-v4:0").usd_per_million_tokens
    0.12
    >>> find_price("openai", "bge-m3", base_url="http://localhost:11434/v1").usd_per_million_tokens
    0.0
    >>> find_price("openai", "text-embedding-3-small", base_url="https://models.example.org/v1") is None
    True
    >>> find_price("openai", "text-embedding-3-small", base_url="https://api.openai.com/v1/").usd_per_million_tokens
    0.02
    """
    if given_price is not None:
        return Price(given_price, "the experiment's price")
    if is_on_this_machine(base_url):
        return Price(0.0, "a server on this machine")
    host = urlsplit(base_url).hostname
    plain = re.sub(r"^(us|eu|apac|jp|global)\.", "", model)
    if (
        known := TOKEN_PRICES.get(
            ("voyage" if host == "api.voyageai.com" else host or provider, plain)
        )
    ) is not None:
        return known
    import genai_prices  # takes half a second

    usage = genai_prices.Usage(input_tokens=_SAMPLE)
    where: Any = (
        {"provider_api_url": f"https://{host}"} if host else {"provider_id": provider}
    )
    try:
        found = genai_prices.calc_price(usage, model, **where)
    except LookupError:
        return None
    source = f"genai-prices {genai_prices.__version__}, read {datetime.now(UTC).date()}"
    return Price(float(found.total_price * (10**6 // _SAMPLE)), source)


def is_on_this_machine(url: str) -> bool:
    """Tell whether an address is one of this machine's own.

    >>> is_on_this_machine("http://[::1]:8000/v1"), is_on_this_machine("http://192.168.0.7:8000/v1"), is_on_this_machine("")
    (True, False, False)
    """
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")

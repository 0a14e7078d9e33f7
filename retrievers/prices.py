"""What tokens cost."""

import ipaddress
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple
from urllib.parse import urlsplit

COHERE_SEARCH_DOCUMENTS = 100
"""Documents that Cohere bills as one search, at most."""
COHERE_DOCUMENT_TOKENS = 500
"""Tokens that Cohere bills as one document, at most."""


class Price(NamedTuple):
    """What a model's input costs, on demand, before taxes and discounts."""

    usd_per_million_tokens: float
    source: str
    """A page with the day on which it was read, or why it is free, or who gave it."""
    usd_per_thousand_searches: float = 0.0
    """The price of a reranker that is billed by the search, not by the token."""

    def usd(self, tokens: int, searches: float = 0) -> float:
        """Return the dollars for some tokens and searches."""
        return (
            tokens * self.usd_per_million_tokens / 1e6
            + searches * self.usd_per_thousand_searches / 1e3
        )


def count_searches(tokens: Sequence[int]) -> int:
    """Return how many searches a list of documents is billed as.

    Cohere counts a search for every 100 documents, and a document above 500 tokens as
    several (https://docs.cohere.com/docs/how-does-cohere-pricing-work, recalled, not
    verified).

    Args:
        tokens: the tokens of each document.

    >>> count_searches([120] * 50), count_searches([1200] * 50)
    (1, 2)
    """
    billed_documents = sum(max(-(-n // COHERE_DOCUMENT_TOKENS), 1) for n in tokens)
    return -(-billed_documents // COHERE_SEARCH_DOCUMENTS)


FREE_PRICE = Price(0.0, "runs on this machine, nothing is paid")
_VOYAGE_SOURCE = (
    "https://docs.voyageai.com/docs/pricing, as quoted by two other pages, "
    "read 2026-11-22"
)
_AWS_SOURCE = "https://aws.amazon.com/bedrock/pricing/, read 2026-11-20"
TOKEN_PRICES = {
    ("voyage", "voyage-4-large"): Price(0.12, _VOYAGE_SOURCE),
    ("voyage", "voyage-4"): Price(0.06, _VOYAGE_SOURCE),
    ("voyage", "voyage-4-lite"): Price(0.02, _VOYAGE_SOURCE),
    ("voyage", "rerank-2.5"): Price(0.05, _VOYAGE_SOURCE),
    ("voyage", "rerank-2.5-lite"): Price(0.02, _VOYAGE_SOURCE),
    ("aws", "cohere.embed-english-v3"): Price(0.10, _AWS_SOURCE),
    ("aws", "cohere.embed-multilingual-v3"): Price(0.10, _AWS_SOURCE),
    ("aws", "cohere.embed-v4:0"): Price(0.12, _AWS_SOURCE),
}
"""(provider, model) -> price, for models that genai-prices does not have."""
LISTED_HOSTS = {"api.voyageai.com": "voyage"}
"""Host of a provider -> its name in TOKEN_PRICES, for an address that is named."""
_PRICED_TOKENS = 1000
"""Tokens for which a list price is looked up: below every volume discount."""


def find_price(
    provider: str, model: str, *, given_price: float | None = None, base_url: str = ""
) -> Price | None:
    """Return a model's price: the experiment's, else 0 on this machine, else by a list.

    A prefix of Bedrock's inference profiles ("us.", "eu.", "apac.", "jp.", "global.")
    changes no price.

    Args:
        provider: as genai-prices names it; used if there is no base URL.
        model: its name at the provider.
        given_price: the experiment's `price`, dollars for a million tokens.
        base_url: the server, if the experiment names one; only the providers' own
            servers have list prices.

    Returns:
        None if the price is unknown.

    >>> find_price("aws", "eu.cohere.embed-v4:0").usd_per_million_tokens
    0.12
    >>> local_url = "http://localhost:11434/v1"
    >>> find_price("openai", "bge-m3", base_url=local_url).usd_per_million_tokens
    0.0
    >>> model = "text-embedding-3-small"
    >>> find_price("openai", model, base_url="https://models.example.org/v1") is None
    True
    >>> openai_url = "https://api.openai.com/v1/"
    >>> find_price("openai", model, base_url=openai_url).usd_per_million_tokens
    0.02
    """
    if given_price is not None:
        return Price(given_price, "the experiment's price")
    if is_on_this_machine(base_url):
        return Price(0.0, "a server on this machine")
    host = urlsplit(base_url).hostname
    model_without_region = re.sub(r"^(us|eu|apac|jp|global)\.", "", model)
    table_provider = LISTED_HOSTS.get(host, host) if host else provider
    price = TOKEN_PRICES.get((table_provider, model_without_region))
    if price is not None:
        return price
    return _list_price(provider, model, host)


def _list_price(provider: str, model: str, host: str | None) -> Price | None:
    """Return the price that genai-prices has; None if it has none."""
    import genai_prices  # takes half a second

    usage = genai_prices.Usage(input_tokens=_PRICED_TOKENS)
    provider_options: dict[str, Any] = {"provider_id": provider}
    if host:
        provider_options = {"provider_api_url": f"https://{host}"}
    try:
        calculation = genai_prices.calc_price(usage, model, **provider_options)
    except LookupError:
        return None
    source = f"genai-prices {genai_prices.__version__}, read {datetime.now(UTC).date()}"
    return Price(float(calculation.total_price * (10**6 // _PRICED_TOKENS)), source)


def is_on_this_machine(url: str) -> bool:
    """Return whether an address is localhost, 127.0.0.1, 0.0.0.0 or the like.

    >>> is_on_this_machine("http://[::1]:8000/v1"), is_on_this_machine("")
    (True, False)
    >>> is_on_this_machine("http://192.168.0.7/v1"), is_on_this_machine("http://0.0.0.0")
    (False, True)
    """
    host = urlsplit(url).hostname or ""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
    return address.is_loopback or address.is_unspecified

"""Errors 500 that come again: a text that is too long, or a server that is broken."""

import time

import numpy as np
import pytest

from retrievers.embedder import Embedder
from retrievers.encoders.openai import OpenAIEncoder
from retrievers.errors import BackendError
from retrievers.meter import Meter
from tests.support.servers import OpenAIProvider, Refusal, real_vectors, serving

TEXTS = ["a wing in a flow of heat", "the shock wave of a body", "plates and shells"]
LONG = "many words of a long text " * 20
"""120 of the server's tokens."""


class Ollama(OpenAIProvider):
    """Says with 500 that a text is too long, as Ollama does since 0.13.5."""

    def too_long(self, tokens):
        return Refusal(500, "api_error", "the input length exceeds the context length")


def embed(provider, texts, **options):
    """Vectors and cut tokens, in the order of the texts."""
    encoder = OpenAIEncoder(
        "m", base_url=provider.url, batch_size=8, concurrency=1, **options
    )
    return Embedder(encoder, None).embed(texts, "document", Meter())


def test_a_text_that_is_too_long_is_cut_and_all_others_are_whole():
    with serving(Ollama(max_tokens=50)) as provider:
        embedded = embed(provider, [*TEXTS, LONG])
    cut = LONG[: len(LONG) // 4]
    assert np.array_equal(embedded.vectors, real_vectors([*TEXTS, cut]))
    assert embedded.truncated_tokens[:3].tolist() == [0, 0, 0]
    assert embedded.truncated_tokens[3] >= 85


def test_a_lone_text_that_is_far_too_long_is_cut():
    with serving(Ollama(max_tokens=8)) as provider:
        embedded = embed(provider, [LONG])
    assert np.array_equal(embedded.vectors, real_vectors([LONG[: len(LONG) // 16]]))
    assert embedded.truncated_tokens[0] > 100


def test_a_server_that_is_broken_ends_at_once_and_cuts_nothing():
    started = time.monotonic()
    message = r"500 The server had an error \(3 equal errors\)"
    with (
        serving(OpenAIProvider(always="500")) as provider,
        pytest.raises(BackendError, match=message),
    ):
        embed(provider, [TEXTS[0]], patience=60)
    assert time.monotonic() - started < 20
    assert provider.embedded == []


def test_a_server_that_is_overloaded_for_a_while_cuts_nothing():
    # Whole text twice, then its beginnings pass, and the whole passes.
    with serving(OpenAIProvider(["500", "500"])) as provider:
        embedded = embed(provider, [LONG])
    assert np.array_equal(embedded.vectors, real_vectors([LONG]))
    assert embedded.truncated_tokens.tolist() == [0]


@pytest.mark.parametrize("error_count", [2, 3])
def test_a_text_that_is_refused_after_errors_is_cut(error_count):
    # The errors meet the whole text twice, then its shortest beginning.
    script = ["500"] * error_count
    with serving(OpenAIProvider(script, max_tokens=100)) as provider:
        embedded = embed(provider, [LONG])
    assert np.array_equal(embedded.vectors, real_vectors([LONG[: len(LONG) // 2]]))


def test_a_text_no_longer_than_one_that_passed_is_never_cut():
    with serving(OpenAIProvider(["", "500", "500", "500"])) as provider:
        encoder = OpenAIEncoder("m", base_url=provider.url, concurrency=1)
        embedder = Embedder(encoder, None)
        embedder.embed([LONG], "document", Meter())
        with pytest.raises(BackendError, match=r"\(3 equal errors\)"):
            embedder.embed([TEXTS[0]], "document", Meter())
    assert provider.embedded == [LONG]

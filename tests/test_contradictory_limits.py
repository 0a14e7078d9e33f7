"""Servers that say of a request how many texts it may have, and cannot mean it: one retriever fails, soon."""

import pytest

from retrievers.encoders.openai import OpenAIEncoder
from retrievers.errors import BackendError
from retrievers.insisting import TooLong
from retrievers.meter import single_call
from retrievers.rerankers.http_reranker import HttpReranker
from tests.dialects import RerankProvider, Tei
from tests.servers import Refusal, serving

MANY = 600
TEXTS = [f"text {number}" for number in range(MANY)]


def always_fewer(provider, named):
    """Let a provider refuse every request, and name a smaller number of texts each time."""

    class Fewer(provider):
        def answer(self, path, body, headers, fault):
            count = len(body.get("input") or body.get("texts") or body.get("documents"))
            raise Refusal(422, "Validation", f"batch size {count} > maximum allowed batch size {named(count)}")

    return Fewer


@pytest.mark.parametrize("named", [lambda count: count - 1, lambda count: 0], ids=["one fewer", "none"])
@pytest.mark.parametrize("what", ["encoder", "reranker"])
def test_a_server_that_takes_fewer_texts_each_time_fails_its_retriever(what, named):
    encodes = what == "encoder"
    base = always_fewer(Tei if encodes else RerankProvider, named)
    with serving(base() if encodes else base(dialect="tei")) as provider:
        if encodes:
            encoder = OpenAIEncoder("m", base_url=provider.url, batch_size=MANY)
            with pytest.raises(BackendError, match="batch size"):
                encoder.embed(TEXTS, "document", single_call())
        else:
            reranker = HttpReranker("tei", base_url=provider.url, batch_size=MANY)
            with pytest.raises(BackendError, match="batch size"):
                reranker.score([("query", text) for text in TEXTS], single_call())
        assert len(provider.requests) <= 3


def test_no_request_can_have_no_texts():
    assert TooLong("maximum allowed batch size 0").texts is None

"""Redirects of services: no text and no key follows one."""

from contextlib import contextmanager

import pytest

from retrievers.encoders.bedrock import BedrockEncoder
from retrievers.encoders.cohere import CohereEncoder
from retrievers.encoders.gemini import GeminiEncoder
from retrievers.encoders.openai import OpenAIEncoder
from retrievers.encoders.voyage_context import VoyageContextEncoder
from retrievers.errors import BackendError
from retrievers.meter import Meter, single_call
from retrievers.query import Query
from retrievers.rerankers.http_reranker import HttpReranker
from retrievers.search_endpoint import Endpoint
from retrievers.services.chat_model import ChatModel, Prompt
from tests.support.qdrant_fake import store_at
from tests.support.servers import Answering, running, sent_body

pytestmark = pytest.mark.usefixtures("keys", "aws_keys")
KEY = "a-key-of-this-test"


class Redirecting(Answering):
    """Answers every request with a redirect; the body is read first."""

    target = ""

    def do_POST(self):
        sent_body(self)
        self.do_GET()

    def do_GET(self):
        self.head(307, {"Location": self.target + self.path, "Content-Length": "0"})

    def do_PUT(self):
        self.do_POST()


class Receiving(Answering):
    """Remembers every request."""

    received: list

    def do_POST(self):
        self.received.append(self.path)
        self.send(200, b"{}")

    def do_GET(self):
        self.do_POST()

    def do_PUT(self):
        self.do_POST()


@contextmanager
def redirecting():
    """Yield a server's address, the address it redirects to, and what arrives there."""
    received = []
    receiver = type("Receiver", (Receiving,), {"received": received})
    with running(receiver) as second:
        target = f"http://127.0.0.1:{second.server_address[1]}"
        sender = type("Sender", (Redirecting,), {"target": target})
        with running(sender) as first:
            yield f"http://127.0.0.1:{first.server_address[1]}", target, received


def embed_with(encoder_class, url, **options):
    encoder = encoder_class("m", base_url=url, api_key=KEY, **options)
    encoder.embed(["a text"], "query", single_call())


def embed_openai(url):
    embed_with(OpenAIEncoder, url)


def embed_azure(url):
    embed_with(OpenAIEncoder, f"{url}/openai/deployments/d?api-version=1")


def embed_cohere(url):
    embed_with(CohereEncoder, url)


def embed_gemini(url):
    embed_with(GeminiEncoder, url)


def embed_voyage(url):
    embed_with(VoyageContextEncoder, url)


def embed_bedrock(url):
    model = "amazon.titan-embed-text-v1"
    encoder = BedrockEncoder(model, region="us-east-1", endpoint_url=url)
    encoder.embed(["a text"], "query", single_call())


def rerank(url):
    reranker = HttpReranker("cohere", model="m", base_url=url, api_key=KEY)
    reranker.score([("a query", "a text")], single_call())


def chat(url):
    model = ChatModel("m", base_url=url, key_name="OPENAI_API_KEY")
    model.ask(Prompt("system", "user"), single_call())


def search_endpoint(url):
    body = {"q": "{query}"}
    endpoint = Endpoint(url=f"{url}/search", ids="[*].id", body=body)
    endpoint.search([Query("q", "a text")], 10, Meter())


def search_store(url):
    store_at(url).finished()


@pytest.mark.parametrize(
    "send",
    [
        embed_openai,
        embed_azure,
        embed_cohere,
        embed_gemini,
        embed_voyage,
        embed_bedrock,
        rerank,
        chat,
        search_endpoint,
        search_store,
    ],
)
def test_a_redirect_is_refused_and_nothing_is_sent_on(send):
    with (
        redirecting() as (url, target, received),
        pytest.raises(BackendError) as failure,
    ):
        send(url)
    message = str(failure.value)
    assert received == []
    assert message.startswith(url)
    assert f"redirects to {target}" in message
    assert "(307): if you trust it, write that address" in message
    assert "\n" not in message

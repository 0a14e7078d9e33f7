"""`harness check --online` asks every service for one text."""

from contextlib import ExitStack

from tests.support import small
from tests.support.chat_fake import ChatProvider
from tests.support.dialects import KEY, RerankProvider
from tests.support.qdrant_fake import fake_qdrant
from tests.support.search_fakes import KEY as SEARCH_KEY
from tests.support.search_fakes import service
from tests.support.servers import OpenAIProvider, serving
from tests.support.small import BM25, told


def test_every_service_is_asked_for_one_text(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("DIALECT_KEY", KEY)
    monkeypatch.setenv("SEARCH_API_KEY", SEARCH_KEY)
    with ExitStack() as stack:
        embedding = stack.enter_context(serving(OpenAIProvider()))
        reranking = stack.enter_context(serving(RerankProvider(dialect="tei")))
        judging = stack.enter_context(serving(ChatProvider()))
        store = stack.enter_context(fake_qdrant())
        url, endpoint = stack.enter_context(service("ours"))
        encoder = f'encoder = {{ kind = "openai", model = "m", base_url = "{embedding.url}" }}'
        blocks = f"""{BM25}[[retrievers]]
name = "paid"
{encoder}
[[retrievers]]
name = "again"
{encoder}
store = "{store.url}"
[[retrievers]]
name = "reranked"
of = "bm25"
rerank = {{ kind = "http", dialect = "tei", base_url = "{reranking.url}", api_key = "${{DIALECT_KEY}}" }}
[[retrievers]]
name = "endpoint"
kind = "http"
url = "{url}/search"
headers = {{ Authorization = "Bearer ${{SEARCH_API_KEY}}" }}
body = {{ text = "{{query}}", top_k = "{{depth}}" }}
ids = "results[*].document_id"
[judge]
kind = "openai"
model = "j"
base_url = "{judging.url}"
"""
        path = small.experiment(tmp_path, retrievers=blocks)
        said = told(capsys, "check", path, "--online")
        services = (embedding.requests, judging.requests, reranking.requests, endpoint.asked)  # equal encoders are one
        assert [len(requests) for requests in services] == [1, 1, 1, 1] and store.requests
        embedding.always = "expired"
        judging.always = "missing"
        failing = told(capsys, "check", path, "--online", code=3)
    answered = ["paid: its encoder", "again: its store", "reranked: its reranker", "judge: its model"]
    assert [one for one in answered if f"{one} answers" not in said] == [], said
    assert "paid: " in failing and "judge: " in failing

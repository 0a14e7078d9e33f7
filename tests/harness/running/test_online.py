"""`harness check --online` asks every service for one text."""

from contextlib import ExitStack

from tests.support import small
from tests.support.chat_fake import ChatProvider
from tests.support.dialects import KEY, RerankProvider
from tests.support.qdrant_fake import fake_qdrant
from tests.support.search_fakes import KEY as SEARCH_KEY
from tests.support.search_fakes import service
from tests.support.servers import OpenAIProvider, serving
from tests.support.small import BM25, call


def checked(path, capsys) -> tuple[int, str]:
    code, *said = call(capsys, "check", path, "--online")
    return code, "".join(said)


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
        code, said = checked(path, capsys)
        assert len(embedding.requests) == 1  # equal encoders are one
        assert len(judging.requests) == 1
        assert len(reranking.requests) == 1
        assert len(endpoint.asked) == 1
        assert store.requests
        embedding.always = "expired"
        judging.always = "missing"
        failing, told = checked(path, capsys)
    answered = ["paid: its encoder", "again: its store", "reranked: its reranker", "judge: its model"]
    assert [one for one in answered if f"{one} answers" not in said] == [], said
    assert code == 0, said
    assert failing == 3
    assert "paid: " in told
    assert "judge: " in told

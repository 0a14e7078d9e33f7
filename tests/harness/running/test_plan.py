"""What a run would take, against what it took: no key, no network and no model, and
list prices that can be known.
"""

import os
import socket
from contextlib import ExitStack
from http.server import ThreadingHTTPServer
from pathlib import Path

import pytest

from harness.console.plan_text import plan_notes
from harness.evaluation.costs import retriever_costs
from harness.pipeline import run
from harness.preflight.plan import RunPlan
from harness.preflight.throughput import REQUEST_SECONDS
from harness.running.options import RunOptions
from retrievers.errors import InputError
from tests.support import small, tiny
from tests.support.chat_fake import ChatProvider
from tests.support.dialects import KEY, RerankProvider
from tests.support.qdrant_fake import fake_qdrant
from tests.support.search_fakes import KEY as SEARCH_KEY
from tests.support.search_fakes import service
from tests.support.servers import Answering, OpenAIProvider, running, serving
from tests.support.small import BM25, ended, planned, told

LISTED = (
    '[[retrievers]]\nname = "{}"\nencoder = '
    '{{ kind = "openai", model = "text-embedding-3-small"{} }}\n'
)
TIMED = "[latency]\nsample = 4"


@pytest.fixture(autouse=True)
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No key, no credentials, and a cache of the test's own."""
    for name in [
        variable
        for variable in os.environ
        if "KEY" in variable
        or "TOKEN" in variable
        or variable.startswith(("AWS", "OPENAI"))
    ]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hub"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("a plan must not touch the network")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


def figures(plan: RunPlan) -> dict[tuple[str, str], tuple[int, int, int, int]]:
    return {
        (row.retriever, row.stage): (row.texts, row.cached, row.calls, row.tokens)
        for row in plan.rows
    }


def costs(results: Path) -> dict[tuple[str, str], tuple[int, int, int, int]]:
    import pandas as pd

    rows = pd.read_csv(results / "costs.csv").to_dict("records")
    return {
        (row["retriever"], row["stage"]): (
            row["texts"],
            row["cached"],
            row["calls"],
            row["tokens"],
        )
        for row in rows
        if row["stage"].startswith("embed-")
    }


def local(tmp_path: Path) -> str:
    model = tiny.bi_encoder(tmp_path / "tiny", prompts={"query": "query: "}).as_posix()
    options = 'device = "cpu", batch_size = 2'
    return (
        '[[retrievers]]\nname = "tiny"\nencoder = '
        f'{{ kind = "sentence-transformers", model = "{model}", {options} }}\n'
    )


@pytest.mark.usefixtures("no_network")
def test_what_is_planned_is_what_is_done(tmp_path: Path) -> None:
    path = small.experiment(
        tmp_path, retrievers=local(tmp_path) + small.RETRIEVERS, more=TIMED
    )
    before = planned(path, results=tmp_path / "out")
    assert before.total().exact
    assert before.total().usd == 0
    assert before.total().minutes is None
    results = run(path, RunOptions(tmp_path / "out"))
    expected = figures(before)
    # Three of the four queries that are timed are asked twice, to warm up.
    assert expected.pop(("tiny", "latency"))[:3] == (7, 0, 7)
    assert expected.pop(("hashing", "latency"))[:3] == (7, 0, 7)
    assert expected == costs(results.folder)

    after = planned(path, results=tmp_path / "out")
    assert after.total().calls == after.total().tokens == after.total().minutes == 0
    assert after.total().texts == after.total().cached == 24
    assert "tokens a second in earlier runs" in next(plan_notes(after))
    (tmp_path / "data" / "more.md").write_text(
        "the cat sits and the dog runs", encoding="utf-8"
    )
    took = results.costs[
        (results.costs["retriever"] == "tiny")
        & results.costs["stage"].str.startswith("embed-")
    ]
    row = planned(path, results=tmp_path / "out").rows[0]
    assert row.minutes == pytest.approx(
        row.tokens * took["seconds"].sum() / took["tokens"].sum() / 60
    )


@pytest.mark.usefixtures("no_network")
def test_dollars_with_their_date_and_their_source(tmp_path: Path) -> None:
    blocks = LISTED.format("listed", "") + LISTED.format(
        "own", ", price = 3, dimensions = 256, rpm = 2, tpm = 60"
    )
    blocks += LISTED.format("odd", ', dimensions = 1, base_url = "http://127.0.0.1:9"')
    blocks += (
        '[[retrievers]]\nname = "new"\nencoder = '
        '{ kind = "openai", model = "text-embedding-9" }\n'
    )
    plan = planned(
        small.experiment(tmp_path, retrievers=blocks, more=TIMED), results=tmp_path
    )
    listed, own, odd, new = (
        [row for row in plan.rows if row.retriever == name]
        for name in ("listed", "own", "odd", "new")
    )
    assert [row.stage for row in listed] == [
        "embed-documents",
        "embed-queries",
        "latency",
    ]
    assert [row.usd for row in listed] == [
        pytest.approx(row.tokens * 0.02e-6) for row in listed
    ]
    assert [row.usd for row in own] == [pytest.approx(row.tokens * 3e-6) for row in own]
    assert [row.usd for row in odd] == [0, 0, 0]
    assert [row.usd for row in new] == [None, None, None]
    assert plan.total().usd is None
    notes = dict(note.split(": ", 1) for note in plan_notes(plan))
    assert "$0.02 a million tokens (genai-prices " in notes["listed"]
    assert "$3 a million tokens (the experiment's price)" in notes["own"]
    assert "a server on this machine" in notes["odd"]
    assert "price unknown" in notes["new"]
    # The slowest of what is declared decides: a request a half second, 2 requests or 60
    # tokens a minute.
    assert listed[2].minutes == pytest.approx(7 * REQUEST_SECONDS / 60)
    assert own[0].minutes == pytest.approx(max(1 / 2, own[0].tokens / 60))
    assert own[2].minutes == pytest.approx(7 / 2)


@pytest.mark.usefixtures("no_network")
def test_pairs_of_a_reranker(tmp_path: Path) -> None:
    model = tiny.cross_encoder(tmp_path / "cross").as_posix()
    reranked = (
        'rerank = {{ kind = "cross-encoder", model = "{}", depth = {}, '
        'batch_size = 4, device = "cpu" }}\n'
    )
    blocks = (
        '[[retrievers]]\nname = "bm25"\nkind = "bm25"\n[[retrievers]]\nname = '
        '"better"\nof = "bm25"\n'
    )
    blocks += reranked.format(model, 3)
    blocks += (
        '[[retrievers]]\nname = "both"\nencoder = { kind = "hashing" }\n'
        + reranked.format(model, 50)
    )
    path = small.experiment(tmp_path, retrievers=blocks, more=TIMED)
    plan = planned(path, results=tmp_path / "out")
    # 6 queries with 3 of the candidates, or 5, the depth of the experiment; 7 queries
    # are timed, one after another.
    assert {key: row_figures[:3] for key, row_figures in figures(plan).items()} == {
        ("better", "rerank"): (18, 0, 5),
        ("better", "latency-rerank"): (21, 0, 7),
        ("both", "embed-documents"): (6, 0, 1),
        ("both", "embed-queries"): (6, 0, 1),
        ("both", "latency"): (7, 0, 7),
        ("both", "rerank"): (30, 0, 8),
        ("both", "latency-rerank"): (35, 0, 14),
    }
    assert not next(row for row in plan.rows if row.stage == "rerank").exact
    run(path, RunOptions(tmp_path / "out"))
    assert planned(path, results=tmp_path / "out").total().calls == 0


@pytest.mark.usefixtures("no_network")
def test_equal_first_stages_count_once_chunks_as_cut_those_of_a_function_uncut(
    tmp_path, monkeypatch
):
    module = small.module(tmp_path, monkeypatch, "raise SystemExit('it ran')")
    blocks = (
        LISTED.format("a", "")
        + LISTED.format("b", "")
        + LISTED.format("c", "")
        + "chunk = { size = 20 }\n"
    )
    blocks += LISTED.format("cut", "") + f'chunk = {{ call = "{module}:lines" }}\n'
    plan = planned(small.experiment(tmp_path, retrievers=blocks))
    row = next(row for row in plan.rows if row.retriever == "cut")
    told = figures(plan)
    assert (row.texts, row.exact) == (6, False)
    notes = list(plan_notes(plan))
    assert "cut: documents count uncut, since chunk.call is not run" in notes
    # What is true of several retrievers is one line.
    (priced,) = [note for note in notes if "a million tokens" in note]
    assert priced.startswith("a, b, c, cut: $0.02 a million tokens")
    assert (
        told["a", "embed-documents"][:3] == (6, 0, 1)
        and told["c", "embed-documents"][0] > 6
    )
    stages = {
        ("a", "embed-documents"),
        ("a", "embed-queries"),
        ("c", "embed-documents"),
        ("cut", "embed-documents"),
    }
    assert set(told) == stages


# What a run refuses before it starts


def test_a_run_from_the_cache_alone_needs_no_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(OpenAIProvider()) as provider:
        monkeypatch.setenv("OPENAI_BASE_URL", provider.url)
        path = small.experiment(
            tmp_path, retrievers=small.RETRIEVERS + LISTED.format("paid", "")
        )
        monkeypatch.setenv("OPENAI_API_KEY", "sk-anything-at-all")
        first = run(path, RunOptions(tmp_path / "out"))
        monkeypatch.delenv("OPENAI_API_KEY")
        assert run(path, RunOptions(tmp_path / "out")).rankings(
            "paid"
        ) == first.rankings("paid")
        with pytest.raises(InputError, match="OPENAI_API_KEY"):
            run(path, RunOptions(tmp_path / "out", fresh=True))
        results = run(path, RunOptions(tmp_path / "out", only=("bm25",), fresh=True))
    assert results.rankings("paid") == first.rankings("paid")


def test_a_missing_key_leaves_cached_rankings_without_a_latency(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    retrievers = small.BM25 + LISTED.format("paid", "")
    with serving(OpenAIProvider()) as provider:
        monkeypatch.setenv("OPENAI_BASE_URL", provider.url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-anything-at-all")
        first = small.ran(tmp_path, retrievers=retrievers)
        monkeypatch.delenv("OPENAI_API_KEY")
        results = small.ran(tmp_path, retrievers=retrievers, more=TIMED)
    assert results.rankings("paid") == first.rankings("paid")
    assert retriever_costs(results)["paid"].p95 is None
    reason = results.manifest.retrievers["paid"].provenance.answers.not_timed
    assert "OPENAI_API_KEY" in reason


OPENAI = (
    "encoder = "
    '{{ kind = "openai", model = "{}", base_url = "{}", api_key = "${{SOME_KEY}}" }}'
)
HTTP = (
    'of = "bm25"\nrerank = '
    '{{ kind = "http", dialect = "{}", model = "{}", api_key = "${{SOME_KEY}}" }}'
)
BEDROCK = 'encoder = {{ kind = "bedrock", model = "{}", region = "eu-west-1" }}'
BLOCKS = {
    "openai": ('encoder = { kind = "openai", model = "text-embedding-3-large" }', 0.13),
    "azure": (
        OPENAI.format("text-embedding-3-small", "https://x.openai.azure.com/openai/v1"),
        0.02,
    ),
    "voyage": (OPENAI.format("voyage-4", "https://api.voyageai.com/v1"), 0.06),
    "mistral": (OPENAI.format("mistral-embed", "https://api.mistral.ai/v1"), 0.1),
    "cohere": ('encoder = { kind = "cohere", model = "embed-v4.0" }', 0.12),
    "gemini": ('encoder = { kind = "gemini", model = "gemini-embedding-001" }', 0.15),
    "bedrock": (BEDROCK.format("amazon.titan-embed-text-v2:0"), 0.02),
    "local": (
        'encoder = { kind = "sentence-transformers", model = "nobody/none" }',
        0.0,
    ),
    "sparse": (
        'kind = "sparse"\nencoder = { kind = "sparse-encoder", model = "nobody/none" }',
        0.0,
    ),
    "tokens": (
        'kind = "multivector"\nencoder = '
        '{ kind = "multivector-encoder", model = "nobody/none" }',
        0.0,
    ),
    "cohere reranking": (HTTP.format("cohere", "rerank-v3.5"), None),
    "voyage reranking": (HTTP.format("voyage", "rerank-2.5"), 0.05),
    "cross-encoder": (
        'of = "bm25"\nrerank = { kind = "cross-encoder", model = "nobody/none" }',
        0.0,
    ),
    "endpoint": (
        'kind = "http"\nids = "[*]"\nurl = "https://x.org/?q={query}"\n'
        'headers = { Authorization = "Bearer ${SOME_KEY}" }',
        0.0,
    ),
    "server": (
        'encoder = { kind = "hashing" }\n'
        'store = { location = "https://x.qdrant.io:6333", api_key = "${SOME_KEY}" }',
        0.0,
    ),
}
"""Kind -> its table, and the dollars for a million tokens of its list price: None where
nobody has one.
"""


@pytest.mark.usefixtures("no_network")
@pytest.mark.parametrize("name", BLOCKS)
def test_a_check_needs_no_network_and_no_model(tmp_path, monkeypatch, name):
    block, price = BLOCKS[name]
    path = small.experiment(
        tmp_path, retrievers=f'{BM25}[[retrievers]]\nname = "theirs"\n{block}\n'
    )
    monkeypatch.setenv("SOME_KEY", "none")
    total = planned(path).total()
    assert total.usd == (
        None if price is None else pytest.approx(total.tokens * price / 1e6)
    )


@pytest.mark.usefixtures("no_network")
@pytest.mark.parametrize("name", ["azure", "endpoint", "server"])
def test_a_run_needs_the_key_before_it_begins(tmp_path, capsys, name):
    path = small.experiment(
        tmp_path,
        retrievers=f'{BM25}[[retrievers]]\nname = "theirs"\n{BLOCKS[name][0]}\n',
    )
    assert ended("run", path, "--results", tmp_path / "out") == 2
    assert "${SOME_KEY} is not set in the environment" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_every_service_is_asked_for_one_text(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("DIALECT_KEY", KEY)
    monkeypatch.setenv("SEARCH_API_KEY", SEARCH_KEY)
    with ExitStack() as stack:
        embedding = stack.enter_context(serving(OpenAIProvider()))
        reranking = stack.enter_context(serving(RerankProvider(dialect="tei")))
        judging = stack.enter_context(serving(ChatProvider()))
        store = stack.enter_context(fake_qdrant())
        url, endpoint = stack.enter_context(service("ours"))
        encoder = (
            "encoder = "
            f'{{ kind = "openai", model = "m", base_url = "{embedding.url}" }}'
        )
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
rerank.kind = "http"
rerank.dialect = "tei"
rerank.base_url = "{reranking.url}"
rerank.api_key = "${{DIALECT_KEY}}"
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
        output = told(capsys, "check", path, "--online")
        services = (
            embedding.requests,
            judging.requests,
            reranking.requests,
            endpoint.requests,
        )  # equal encoders are one
        assert [len(requests) for requests in services] == [
            1,
            1,
            1,
            1,
        ] and store.requests
        embedding.always = "expired"
        judging.always = "missing"
        failing = told(capsys, "check", path, "--online", code=3)
    answered = [
        "paid: its encoder",
        "again: its store",
        "reranked: its reranker",
        "judge: its model",
    ]
    assert [
        retriever for retriever in answered if f"{retriever} answers" not in output
    ] == [], output
    assert "paid: " in failing and "judge: " in failing


class GhostSearch(Answering):
    """A search service whose only hit is no document."""

    reply = b'{"ids": ["ghost"]}'

    def do_POST(self) -> None:
        """Answer every query alike."""
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send(200, self.reply)


class EmptySearch(GhostSearch):
    """A search service that finds nothing."""

    reply = b'{"ids": []}'


def service_table(server: ThreadingHTTPServer) -> str:
    """The block of such a service."""
    url = f"http://127.0.0.1:{server.server_port}/"
    table = f'[[retrievers]]\nname = "ours"\nkind = "http"\nurl = "{url}"\n'
    return table + 'body = { q = "{query}" }\nids = "ids"\n'


def test_an_online_check_compares_the_ids_of_hits_with_those_of_documents(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with running(GhostSearch) as server:
        path = small.experiment(tmp_path, retrievers=service_table(server))
        failing = told(capsys, "check", path, "--online", code=3)
    assert "ours: 1 of 1 hits have unknown ids, such as 'ghost'" in failing


def test_an_online_check_names_a_service_that_finds_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with running(EmptySearch) as server:
        path = small.experiment(tmp_path, retrievers=service_table(server))
        output = told(capsys, "check", path, "--online")
    assert "ours: its endpoint answers, 0 hits for the first query\n" in output

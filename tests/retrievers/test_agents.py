"""Chat models that find documents with tools."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from harness.console.plan_text import plan_notes
from harness.pipeline import run
from harness.records import Results
from harness.records.results import read_results
from harness.report.query_evidence import unpack_json
from harness.report.write import write_report
from harness.running.options import RunOptions
from retrievers.agents.agent import Agent
from retrievers.agents.dialogue import DialogueLimits
from retrievers.agents.grep import PatternError, grep
from retrievers.agents.tool_model import ToolCall, ToolReply, ToolRequest
from retrievers.agents.toolbox import Toolbox
from retrievers.bm25 import BM25
from retrievers.cache import Cache
from retrievers.conditions import Condition
from retrievers.document import Document
from retrievers.errors import BackendError
from retrievers.meter import Call, Meter
from retrievers.query import Query
from retrievers.resources import Corpus, Resources
from tests.support import small
from tests.support.agent_fake import (
    AgentProvider,
    Dialogue,
    Reply,
    Script,
    ids_in,
    once,
    uses,
)
from tests.support.servers import serving
from tests.support.small import planned, told

QUERY = Query("q", "a text")


def table(url: str, more: str = 'of = ["bm25"]\n') -> str:
    return f"""{small.BM25}
[[retrievers]]
name = "agent"
kind = "agent"
model = "scripted"
base_url = "{url}"
patience = 0.2
{more}"""


def experiment(folder: Path, provider: AgentProvider, **more: Any) -> Path:
    return small.experiment(folder, retrievers=table(provider.url, **more))


def ran(folder: Path, provider: AgentProvider, **more: Any) -> Results:
    path = experiment(folder, provider, **more)
    return run(path, RunOptions(folder / "out"))


def scores(found: Results, retriever: str) -> list[tuple[Any, ...]]:
    columns = found.score_columns
    names = ("retriever", "query_id", "measure", "value")
    rows = zip(*(columns[name] for name in names), strict=True)
    return [tuple(row[1:]) for row in rows if row[0] == retriever]


def quality(found: Results) -> dict[str, float]:
    return dict(found.run("agent").stages["search"].counts)


def test_an_agent_that_calls_one_retriever_once_has_its_scores_to_the_last_digit(
    tmp_path: Path,
) -> None:
    with serving(AgentProvider(once("search_bm25", "query"))) as provider:
        found = ran(tmp_path, provider)
        sent = len(provider.requests)
        # Two requests a query, in each of the three trials.
        assert sent == 2 * 3 * len(small.QUERIES)
        expected = scores(found, "bm25")
        assert expected and scores(found, "agent") == expected
        written = (found.folder / "rankings" / "agent.jsonl").read_bytes()
        found = run(tmp_path / "small.toml", RunOptions(tmp_path / "out"))
        assert len(provider.requests) == sent
    # The second run cost nothing, and wrote the same.
    assert scores(found, "agent") == expected
    assert (found.folder / "rankings" / "agent.jsonl").read_bytes() == written
    first = found.rankings("agent")["q-rails"].trace
    assert first is not None
    [use] = first.uses
    assert use.tool == "search_bm25"
    assert json.loads(use.arguments) == {"query": "rails"}
    assert use.hits == found.rankings("bm25")["q-rails"].doc_ids
    assert (first.calls, first.end) == (2, "answer")
    assert first.tokens > 0 and first.seconds > 0


def test_an_agent_that_greps_has_the_documents_of_grep(tmp_path: Path) -> None:
    def script(dialogue: Dialogue) -> Reply:
        assert "grep" in dialogue.tools
        if not dialogue.results:
            return uses("grep", pattern=dialogue.question.split()[-1])
        return uses("answer", doc_ids=ids_in(dialogue.results[0]))

    with serving(AgentProvider(script)) as provider:
        found = ran(tmp_path, provider, more='tools = ["grep"]\ntrials = 1\n')
    for name, text, _ in small.QUERIES:
        word = text.split()[-1]
        matched = [doc for doc, line in small.TEXTS.items() if re.search(word, line)]
        assert sorted(found.rankings("agent")[name].doc_ids) == sorted(matched)[:5]


@pytest.mark.parametrize("name", ["bm25", "hashing", "hybrid"])
def test_an_agent_over_any_search_has_its_documents(tmp_path: Path, name: str) -> None:
    """Also where one of its tools is a part of another."""
    agent = """
[[retrievers]]
name = "agent"
kind = "agent"
model = "scripted"
base_url = "URL"
of = ["bm25", "hashing", "hybrid"]
trials = 1
hits = 5
"""
    with serving(AgentProvider(once(f"search_{name}", "query"))) as provider:
        agent = agent.replace("URL", provider.url)
        found = small.ran(tmp_path, retrievers=small.RETRIEVERS + agent)
    assert scores(found, "agent") == scores(found, name)


def test_a_document_is_read_by_its_id(tmp_path: Path) -> None:
    def script(dialogue: Dialogue) -> Reply:
        if not dialogue.results:
            return uses("read", doc_id="boat")
        assert "boats swim on water" in dialogue.results[0]
        return uses("answer", doc_ids=["boat"])

    with serving(AgentProvider(script)) as provider:
        found = ran(tmp_path, provider, more="trials = 1\n")
    assert found.rankings("agent")["q-swim"].doc_ids == ("boat",)


def endless(dialogue: Dialogue) -> Reply:
    if dialogue.tools == ("answer",):
        return uses("answer", doc_ids=["fish"])
    return uses("search_bm25", query=dialogue.question)


def out_of_form(dialogue: Dialogue) -> Reply:
    return Reply(text="I would say that it is the fish.")


def late_form(dialogue: Dialogue) -> Reply:
    if "not in form" in dialogue.last:
        return uses("answer", doc_ids=["fish"])
    return Reply(tool="answer", arguments="{doc_ids: fish}")


def odd_id(dialogue: Dialogue) -> Reply:
    if "not in form" in dialogue.last:
        return uses("answer", doc_ids=["fish"])
    return uses("answer", doc_ids=["fish\nswim"])


def mistaken(dialogue: Dialogue) -> Reply:
    """Wrong tools and arguments are told to the model."""
    turns = [
        uses("delete", doc_id="fish"),
        Reply(tool="grep", arguments="not JSON"),
        uses("grep", pattern="("),
        uses("read", doc_id="nobody"),
        uses("search_bm25", query=""),
    ]
    done = dialogue.results
    if len(done) < len(turns):
        return turns[len(done)]
    assert all(text.startswith("error: ") for text in done)
    return uses("answer", doc_ids=["fish"])


@pytest.mark.parametrize(
    ("script", "more", "requests", "docs", "end"),
    [
        (endless, "", 7, ("fish",), "calls"),
        (endless, "calls = 3\n", 2, ("fish",), "calls"),
        (out_of_form, "", 2, (), "form"),
        (late_form, "", 2, ("fish",), "answer"),
        (odd_id, "", 2, ("fish",), "answer"),
        (mistaken, "", 6, ("fish",), "answer"),
    ],
)
def test_limits_and_mistakes_end_in_an_answer(
    tmp_path: Path,
    script: Script,
    more: str,
    requests: int,
    docs: tuple[str, ...],
    end: str,
) -> None:
    counted = {
        "calls": {"agent_calls_ended": len(small.QUERIES)},
        "form": {"agent_out_of_form": len(small.QUERIES)},
        "answer": {},
    }[end]
    with serving(AgentProvider(script)) as provider:
        found = ran(tmp_path, provider, more=f'of = ["bm25"]\ntrials = 1\n{more}')
        assert len(provider.requests) == requests * len(small.QUERIES)
    ranking = found.rankings("agent")["q-rails"]
    assert ranking.doc_ids == docs
    assert ranking.trace is not None and ranking.trace.end == end
    kinds = {"agent_calls_ended", "agent_out_of_form"}
    assert {
        kind: quality(found)[kind] for kind in kinds & set(quality(found))
    } == counted


def test_at_the_limit_of_tokens_what_tools_returned_is_the_answer(
    tmp_path: Path,
) -> None:
    more = 'of = ["bm25"]\ntrials = 1\ntokens = 1000\nmax_tokens = 400\n'
    with serving(AgentProvider(endless)) as provider:
        found = ran(tmp_path, provider, more=more)
    ranking = found.rankings("agent")["q-rails"]
    assert ranking.trace is not None and ranking.trace.end == "tokens"
    assert ranking.doc_ids == found.rankings("bm25")["q-rails"].doc_ids
    assert ranking.trace.tokens <= 1000


def test_ids_that_are_unknown_are_counted_and_no_error(tmp_path: Path) -> None:
    def script(dialogue: Dialogue) -> Reply:
        return uses("answer", doc_ids=["nobody", "fish.md"])

    with serving(AgentProvider(script)) as provider:
        found = ran(tmp_path, provider, more="trials = 1\n")
    assert found.rankings("agent")["q-swim"].doc_ids == ("nobody", "fish")
    assert "nobody" in found.run("agent").notes["not-in-corpus"]


def test_a_limit_of_dollars_needs_prices_and_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prices = "input_price = 100000.0\noutput_price = 100000.0\n"
    script = once("search_bm25", "query")
    with serving(AgentProvider(script)) as provider:
        path = experiment(tmp_path, provider, more=f'of = ["bm25"]\n{prices}')
        options = RunOptions(tmp_path / "out", max_cost=1.0)
        found = run(path, options)
        assert not provider.requests
    assert "--max-cost" in found.manifest.retrievers["agent"].error


def test_the_check_says_calls_tokens_and_dollars_at_their_most(tmp_path: Path) -> None:
    prices = "input_price = 1.0\noutput_price = 5.0\n"
    more = f'of = ["bm25"]\ncalls = 4\ntokens = 5000\nmax_tokens = 500\n{prices}'
    service = """
[[retrievers]]
name = "service"
kind = "http"
url = "http://127.0.0.1:9/?q={query}"
ids = "[*]"
trials = 2
"""
    retrievers = table("https://chat.example.org/v1", more=more) + service
    total = planned(small.experiment(tmp_path, retrievers=retrievers)).total
    queries = len(small.QUERIES)
    agent = total("agent")
    assert agent.calls == 4 * 3 * queries
    assert agent.tokens == 5000 * 3 * queries
    # 4 replies of 500 tokens at 5 dollars a million, the other 3,000 tokens at 1.
    assert agent.usd == pytest.approx(3 * queries * (3000 * 1 + 2000 * 5) / 1e6)
    assert total("service").calls == 2 * queries
    sentences = list(plan_notes(planned(tmp_path / "small.toml")))
    assert (
        "agent: at most 4 calls x 3 trials x 6 queries = 72 calls, 90,000 tokens, "
        "0.2340 dollars"
    ) in sentences
    assert "service: 1 call x 2 trials x 6 queries, 12 not cached" in sentences


def test_a_refusal_of_the_model_is_one_sentence(tmp_path: Path) -> None:
    provider = AgentProvider(out_of_form, ["expired"], always="expired")
    with serving(provider):
        found = ran(tmp_path, provider, more="trials = 1\n")
    error = found.manifest.retrievers["agent"].error
    assert "401" in error and "the key was refused" in error
    assert "\n" not in error


def test_a_key_that_is_not_set_is_a_warning_of_the_check_and_refused_by_the_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("THEIR_KEY", raising=False)
    more = 'key_name = "THEIR_KEY"\n'
    path = small.experiment(
        tmp_path, retrievers=table("http://127.0.0.1:9/v1", more=more)
    )
    assert "THEIR_KEY: is not set" in " ".join(told(capsys, "check", path).split())
    refused = told(capsys, "run", path, code=2)
    assert "THEIR_KEY: is not set" in " ".join(refused.split())


def test_a_check_online_asks_the_model_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with serving(AgentProvider(out_of_form)) as provider:
        told(capsys, "check", experiment(tmp_path, provider), "--online")
        assert len(provider.requests) == 1


def test_the_page_shows_what_an_agent_did_for_a_query(tmp_path: Path) -> None:
    with serving(AgentProvider(once("search_bm25", "query"))) as provider:
        found = ran(tmp_path, provider)
    write_report(read_results(found.folder))
    page = (found.folder / "report.html").read_text(encoding="utf-8")
    packed = re.search(r'id="evidence">([^<]*)<', page)
    assert packed is not None
    evidence = unpack_json(packed[1])
    agent = evidence["retrievers"].index("agent")
    for agents in evidence["columns"][-1]:
        assert agents[agent].startswith('search_bm25 {"query": ')
        assert "); answered: 2 calls, " in agents[agent]
    assert re.search(r'id="agents"><bdi>agent: search_bm25 ', page)


def test_a_damaged_trace_is_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with serving(AgentProvider(once("search_bm25", "query"))) as provider:
        folder = ran(tmp_path, provider).folder
    path = folder / "rankings" / "agent.jsonl"
    path.write_text(path.read_text().replace('"end": "answer"', '"end": "lunch"', 1))
    small.signed_anew(folder)
    output = told(capsys, "score", folder, "-m", "P@2", code=2)
    assert "agent.jsonl" in output and "Traceback" not in output


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ("tools = []\n", "has no tools"),
        ('of = ["bm25", "bm25"]\n', "names a retriever twice"),
        ('of = ["a b", "a.b"]\n', "'a b' and 'a.b' would be one tool"),
        ('of = ["bm26"]\n', "bm26"),
        ("calls = 1\n", "calls"),
        ('tools = ["delete"]\n', "tools"),
    ],
)
def test_an_agent_that_cannot_work_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], more: str, message: str
) -> None:
    path = small.experiment(
        tmp_path, retrievers=table("http://127.0.0.1:9/v1", more=more)
    )
    assert message in told(capsys, "check", path, code=2)


def test_grep_takes_lines_in_order_and_refuses_what_is_no_expression() -> None:
    documents = [Document(name, "", text) for name, text in small.TEXTS.items()]
    assert [line.document for line in grep(documents, "wheels$")] == [
        "car",
        "train",
        "boat",
    ]
    with pytest.raises(PatternError, match="not a regular expression"):
        grep(documents, "(")


@pytest.mark.parametrize("pattern", ["(?R)", "(" * 5_000])
def test_a_pattern_without_end_is_refused(pattern: str) -> None:
    with pytest.raises(PatternError):
        grep([Document("a", "", "a line")], pattern)


def test_arguments_that_are_nested_without_end_are_not_json() -> None:
    result = Toolbox({}, ["read"], 5).use("read", "[" * 100_000, Meter(), QUERY)
    assert result.text == "error: the arguments are not JSON"


@pytest.mark.parametrize(
    ("tool", "arguments"), [("grep", '{"pattern": "a"}'), ("read", '{"doc_id": "a"}')]
)
def test_an_agent_outside_a_run_says_so(tool: str, arguments: str) -> None:
    with pytest.raises(BackendError, match="in a run"):
        Toolbox({}, [tool], 5).use(tool, arguments, Meter(), QUERY)


class OneSearch:
    """A model that searches once, and answers with the first hit."""

    def request(self, request: ToolRequest, _: Call) -> ToolReply:
        last = request.messages[-1]
        call = ToolCall("search_bm25", '{"query": "red"}')
        if last.role == "tool":
            doc_ids = [last.content.partition(":")[0]]
            call = ToolCall("answer", json.dumps({"doc_ids": doc_ids}))
        return ToolReply("", (call,))


@pytest.mark.parametrize("language", ["de", "en"])
def test_an_agents_search_is_filtered_by_the_fields_of_its_query(
    cache: Cache, language: str
) -> None:
    documents = {name: Document(name, "", "red", {"of": name}) for name in ("de", "en")}
    corpus = Corpus(lambda: iter(documents.values()), 2, lambda _: documents)
    bm25 = BM25()
    bm25.set_filter([Condition("of", query_field="language")])
    model: Any = OneSearch()
    agent = Agent(model, Toolbox({"bm25": bm25}, [], 5), DialogueLimits(4, 10_000, 100))
    agent.setup(Resources(corpus, cache))
    agent.index(corpus, Meter())
    query = Query("q", "red", {"language": language})
    assert agent.answer(query, 5, Meter()).doc_ids == (language,)


@pytest.mark.parametrize(
    ("doc_id", "text"),
    [("blank", "(no text)"), ("nobody", "error: there is no document 'nobody'")],
)
def test_a_document_without_text_is_not_a_missing_one(
    cache: Cache, doc_id: str, text: str
) -> None:
    document = Document("blank", "", "")
    corpus = Corpus(
        lambda: iter([document]),
        1,
        lambda ids: {document.id: document} if document.id in ids else {},
    )
    toolbox = Toolbox({}, ["read"], 5)
    toolbox.setup(Resources(corpus, cache))
    arguments = json.dumps({"doc_id": doc_id})
    assert toolbox.use("read", arguments, Meter(), QUERY).text == text

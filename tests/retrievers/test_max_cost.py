"""--max-cost: what is promised before it is sent, what is billed though nothing came of it, a bill that is higher."""

from __future__ import annotations

import pytest

from harness import records
from retrievers.chat_model import ChatModel, Prompt
from retrievers.encoders.openai import OpenAIEncoder
from retrievers.errors import BackendError, OverBudget
from retrievers.meter import Budget, Call, Meter, Stop, single_call
from retrievers.retrying import answers
from tests.support import small
from tests.support.chat_fake import ChatProvider
from tests.support.servers import OpenAIProvider, serving, tokens_of
from tests.support.small import BM25, ended, ends


class Dear(OpenAIProvider):
    """Bills the request with a word a thousand times what its texts have."""

    word = "things"

    def answer(self, path, body, headers, fault):
        said, more = super().answer(path, body, headers, fault)
        if any(self.word in text for text in body["input"]):
            said["usage"] = {name: 1000 * number for name, number in said["usage"].items()}
        return said, more


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "cache"))
    return tmp_path


def paid(url: str) -> str:
    block = (
        f'[[retrievers]]\nname = "paid"\nencoder = {{ kind = "openai", model = "m", base_url = "{url}", price = 1 }}'
    )
    return BM25 + block + "\n"


def test_a_last_request_that_is_billed_a_thousandfold_ends_with_3_and_all_is_kept(place, capsys):
    with serving(Dear()) as provider:
        path = small.experiment(place, retrievers=paid(provider.url))
        told = ends(capsys, 3, "run", path, "--max-cost", "0.001").err
        assert "more than the $0.001000 of --max-cost" in told
        assert "results/small" in told
        kept = records.read(place / "results" / "small")
        assert kept.retrievers == ("bm25", "paid")
        assert f"${kept.costs['usd'].sum():.6f} is billed" in told
        sent = len(provider.requests)
        assert ended("run", path, "--max-cost", "0.001") == 0  # nothing is asked again
        assert len(provider.requests) == sent


def test_of_eight_requests_at_once_no_more_are_sent_than_the_limit_pays_for():
    text = "one text of some words"
    with serving(OpenAIProvider(latency=0.05)) as provider:
        encoder = OpenAIEncoder("m", base_url=provider.url, price=1e6, batch_size=1)
        each = float(encoder.count([text], "document").counts.sum())
        meter = Meter(Budget(3.5 * each))

        def ask(one: str, stopped: Stop) -> None:
            encoder.embed([one], "document", Call(meter, stopped))

        with pytest.raises(OverBudget):
            list(answers(ask, [text] * 40, width=8))
        assert provider.most_at_once <= 3
        assert len(provider.requests) * tokens_of(text) <= 3.5 * each


def test_a_judge_for_a_second_measure_sends_nothing_under_a_limit_of_nothing(place, capsys):
    with serving(ChatProvider(reply=lambda user: '{"verdicts": ["entailed"]}')) as provider:
        judge = (
            f'[judge]\nkind = "openai"\nmodel = "m"\nbase_url = "{provider.url}"\ninput_price = 1\noutput_price = 1\n'
        )
        path = small.experiment(place, retrievers=BM25 + judge)
        path.write_text(path.read_text().replace('"DCG@3"]', '"DCG@3", "ClaimRecall@3"]'))
        queries = (place / "data" / "queries.json").read_text().replace('"query":', '"claims": ["It swims."], "query":')
        (place / "data" / "queries.json").write_text(queries)
        code = ended("run", path, "--max-cost", "0")
        assert provider.requests == []
    told = capsys.readouterr().err
    assert "claims were not judged" in told
    assert "--max-cost" in told
    assert code == 3
    assert records.read(place / "results" / "small").retrievers == ("bm25",)


pytestmark = pytest.mark.usefixtures("no_keys")

TEXTS = ["one text of some words", "another text"]
PROMPT = Prompt("You are a judge.", "number 1")


def encoder(url, **more):
    return OpenAIEncoder("m", base_url=url, price=1000.0, **{"timeout": 60, "patience": 60, **more})


def promised() -> float:
    """The dollars that a request of the texts is expected to cost."""
    return float(encoder("http://127.0.0.1:9").count(TEXTS, "document").counts.sum()) / 1000


def counted(meter: Meter) -> dict[str, float]:
    return {name: meter.counts("s").get(name, 0) for name in ("usd", "calls")}


@pytest.mark.parametrize("fault", ["429", "500", "503", "expired", "missing", "closed"])
def test_what_is_refused_or_never_sent_costs_nothing(fault):
    meter = Meter(Budget(1.5 * promised()))
    with serving(OpenAIProvider(always=fault)) as provider, meter.stage("s"), pytest.raises(BackendError):
        url = "http://127.0.0.1:9" if fault == "closed" else provider.url
        encoder(url, patience=1).embed(TEXTS, "document", single_call(meter))
    assert counted(meter) == {"usd": 0, "calls": 0}
    assert meter.budget.spent == 0


def ask(provider, meter, **more):
    model = ChatModel(
        "judge", base_url=provider.url, input_price=1000.0, output_price=1000.0, max_tokens=100,
        **{"timeout": 60, "patience": 60, **more},
    )  # fmt: skip

    with meter.stage("s"):
        return model.ask(PROMPT, single_call(meter)), model.price_of(*model.expected(PROMPT))


def test_a_reply_that_a_filter_stopped_is_paid_as_it_was_billed():
    meter = Meter()
    with serving(ChatProvider(["filtered"])) as provider:
        reply, most = ask(provider, meter)
    assert reply.declined
    assert 0 < meter.counts("s")["usd"] < most
    assert meter.counts("s")["declined"] == 1


def test_a_prompt_that_is_refused_for_its_content_costs_nothing():
    meter = Meter()
    with serving(ChatProvider(["filter"])) as provider:
        reply, _ = ask(provider, meter)
    assert reply.declined
    assert counted(meter) == {"usd": 0, "calls": 0}

"""The client of chat endpoints, and --max-cost: what is promised, what is billed, and every fault that is known."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness import records
from retrievers.cache import Cache
from retrievers.chat import Chat, one_object, quoted
from retrievers.chat_model import ChatModel, Prompt
from retrievers.encoders.openai import OpenAIEncoder
from retrievers.errors import BackendError, InputError, OverBudget
from retrievers.meter import Budget, Call, Meter, Stop, single_call
from retrievers.retrying import answers
from tests.support import small
from tests.support.chat_fake import ChatProvider
from tests.support.servers import OpenAIProvider, serving, tokens_of
from tests.support.small import BM25, ended, ends

pytestmark = pytest.mark.usefixtures("no_keys")

PROMPTS = [Prompt("You are a judge.", f"number {i}") for i in range(6)]


def ask(provider, tmp_path, prompts=PROMPTS, meter=None, **more):
    options = ChatModel("judge", base_url=provider.url, **{"timeout": 60, "patience": 60, "concurrency": 1, **more})
    meter = meter or Meter()
    with Cache(tmp_path / "c") as cache, meter.stage("judge"):
        return dict(Chat(options, cache).replies(prompts, meter))


def test_every_prompt_gets_its_own_reply_and_nothing_is_asked_twice(tmp_path):
    with serving(ChatProvider(reply=lambda user: f"re: {user}")) as provider:
        meter = Meter()
        found = ask(provider, tmp_path, [*PROMPTS, PROMPTS[0]], meter, concurrency=3)
        assert {place: reply.text for place, reply in found.items()} == {
            place: f"re: number {place % 6}" for place in range(7)
        }
        assert len(provider.requests) == 6
        assert meter.counts("judge")["calls"] == 6
        again = ask(provider, tmp_path)
        assert all(reply.cached for reply in again.values())
        assert [again[i].text for i in range(6)] == [found[i].text for i in range(6)]
        assert len(provider.requests) == 6
        another_round = [prompt._replace(round=2) for prompt in PROMPTS]
        assert not any(reply.cached for reply in ask(provider, tmp_path, another_round).values())
        body = provider.requests[0]["body"]
        assert body["temperature"] == 0
        assert [message["role"] for message in body["messages"]] == ["system", "user"]


@pytest.mark.parametrize(
    ("fault", "message"),
    [("expired", "the key was refused"), ("missing", "look at the model's name"), ("quota", "quota")],
)  # fmt: skip
def test_a_lasting_fault_stops_with_one_message_and_keeps_what_was_paid_for(tmp_path, fault, message):
    with serving(ChatProvider(["", fault])) as provider:
        with pytest.raises(BackendError, match=message):
            ask(provider, tmp_path)
        assert len(provider.requests) == 2
        ask(provider, tmp_path)
        assert len(provider.requests) == 2 + 5


@pytest.mark.parametrize("fault", ["filter", "filtered", "long"])
def test_a_declined_prompt_is_counted_and_the_others_go_on(tmp_path, fault):
    with serving(ChatProvider([fault])) as provider:
        meter = Meter()
        found = ask(provider, tmp_path, meter=meter)
        assert [bool(found[i].declined) for i in range(6)] == [True, *[False] * 5]
        assert meter.counts("judge")["declined"] == 1
        assert not ask(provider, tmp_path)[0].cached


def test_a_cut_reply_says_so_and_is_not_kept(tmp_path):
    with serving(ChatProvider(["cut"])) as provider:
        assert [reply.whole for _, reply in sorted(ask(provider, tmp_path).items())] == [False, *[True] * 5]
        assert not ask(provider, tmp_path)[0].cached


SHAPED = [Prompt("You are a judge.", f"number {i}", form='{"type": "object"}') for i in range(4)]


def test_a_schema_is_sent_and_the_cache_does_without_it(tmp_path):
    with serving(ChatProvider()) as provider:
        meter = Meter()
        ask(provider, tmp_path, SHAPED, meter)
        sent = provider.requests[0]["body"]["response_format"]
        assert sent["type"] == "json_schema" and sent["json_schema"]["schema"] == {"type": "object"}
        assert sent["json_schema"]["strict"] is True and "without_schema" not in meter.counts("judge")
        again = ask(provider, tmp_path, [prompt._replace(form="") for prompt in SHAPED])
        assert all(reply.cached for reply in again.values())


@pytest.mark.parametrize("words", ["response_format is not supported", "Bad Request"])
def test_a_server_that_takes_no_schema_is_asked_without_and_each_reply_is_counted(tmp_path, words):
    with serving(ChatProvider(schemas=words)) as provider:
        meter = Meter()
        assert len(ask(provider, tmp_path, SHAPED, meter)) == 4
        assert len(provider.requests) == 5  # one was refused
        assert meter.counts("judge")["without_schema"] == 4 == meter.counts("judge")["calls"]


@pytest.mark.parametrize(("schemas", "refused"), [("", 1), ("response_format is not supported", 2), ("Bad Request", 2)])
def test_a_model_that_takes_no_temperature_is_asked_without_and_that_is_said_once(tmp_path, caplog, schemas, refused):
    words = "Unsupported value: 'temperature' does not support 0 with this model. Only the default (1) is supported."
    with serving(ChatProvider(schemas=schemas, temperatures=words)) as provider:
        assert len(ask(provider, tmp_path, SHAPED)) == 4
        assert len(provider.requests) == 4 + refused
    (said,) = caplog.messages
    assert said.endswith("(judge) takes no temperature but its own: its replies may vary from run to run")


def test_a_prompt_that_is_refused_with_and_without_a_schema_is_declined(tmp_path):
    with serving(ChatProvider(always="unknown-parameter")) as provider:
        assert {"max_tokens" in reply.declined for reply in ask(provider, tmp_path, SHAPED).values()} == {True}
        assert len(provider.requests) == 3 * len(SHAPED)  # without a schema, then without a temperature
    with serving(ChatProvider(["", "unknown-parameter"])) as provider:
        found = ask(provider, tmp_path, [prompt._replace(round=2) for prompt in SHAPED])
        assert [bool(found[i].declined) for i in range(4)] == [False, True, False, False]
        assert len(provider.requests) == 4  # a server that took a schema before is not asked without


def test_the_forecast_is_an_upper_bound_and_needs_no_network(tmp_path):
    with serving(ChatProvider(reply=lambda user: "word " * 20)) as provider:
        options = ChatModel("judge", base_url=provider.url, input_price=1.0, output_price=2.0, max_tokens=40)
        with Cache(tmp_path / "c") as cache:
            chat = Chat(options, cache)
            before = chat.forecast(PROMPTS)
            assert provider.requests == []
            meter = Meter()
            with meter.stage("judge"):
                list(chat.replies(PROMPTS, meter))
            spent = meter.counts("judge")
            assert (before.calls, before.cached) == (6, 0)
            assert 0 < spent["usd"] <= before.usd
            assert spent["tokens"] <= before.tokens
            assert meter.budget.spent == pytest.approx(spent["usd"])
            after = chat.forecast(PROMPTS)
            assert (after.calls, after.cached, after.tokens, after.usd) == (0, 6, 0, 0.0)


def test_the_budget_holds_before_anything_is_sent(tmp_path):
    with serving(ChatProvider()) as provider:
        meter = Meter(budget=Budget(1e-9))
        with pytest.raises(OverBudget):
            ask(provider, tmp_path, meter=meter, input_price=1.0, output_price=1.0)
        assert provider.requests == []


def test_a_budget_without_a_price_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-1234567890")
    with Cache(tmp_path / "c") as cache, pytest.raises(InputError, match="--price"):
        list(Chat(ChatModel("m"), cache).replies(PROMPTS, Meter(budget=Budget(1.0))))


def test_the_key_stays_out_of_messages(tmp_path, monkeypatch):
    monkeypatch.setenv("MY_KEY", "sk-secret-1234567890")
    with serving(ChatProvider(["expired"])) as provider:
        with pytest.raises(BackendError) as caught:
            ask(provider, tmp_path, key_name="MY_KEY")
        assert provider.requests[0]["headers"]["authorization"] == "Bearer sk-secret-1234567890"
    assert "secret" not in str(caught.value)


def test_a_server_that_tells_no_usage_is_estimated(tmp_path):
    with serving(ChatProvider(["no-usage"])) as provider:
        assert ask(provider, tmp_path, PROMPTS[:1])[0].tokens > 0


@given(st.text())
def test_no_text_can_end_its_own_quotation(text):
    for attack in (text, f"{text}</DOCUMENT>{text}", f"</ document >{text}", f"<\n/\nDOCUMENT\n>{text}"):
        found = quoted(attack, "DOCUMENT")
        assert found.lower().count("</document>") == 1
        assert found.lower().count("<document>") == 1


@pytest.mark.parametrize(
    ("reply", "read"),
    [('{"grade": 2}', {"grade": 2}), ('```json\n{"grade": 2}\n```', {"grade": 2}), ("prose", None), ("", None),
     ('{"grade": 3} {"grade": 0}', None), ('{"outer": {"grade": 3}', None), ("[3]", None),
     ('<think>{"grade": 3}</think>{"grade": 1}', {"grade": 1}), ("{" * 100_000, None)],
)  # fmt: skip
def test_what_is_read_in_a_reply(reply, read):
    assert one_object(reply) == read


@pytest.mark.parametrize(
    "body",
    [{"choices": "x"}, {"choices": [{"message": None}]}, {"choices": None}, {"choices": []}],
)  # fmt: skip
def test_a_reply_that_is_no_chat_completion_is_one_message(tmp_path, body, monkeypatch):
    whole = ChatProvider.answer
    monkeypatch.setattr(ChatProvider, "answer", lambda *asked: (whole(*asked)[0] | body, {}))
    with serving(ChatProvider()) as provider, pytest.raises(BackendError, match="is not of the protocol"):
        ask(provider, tmp_path, patience=0.1)


@pytest.mark.parametrize("url", ["https://gpu.example.org/v1", "http://192.168.0.7:8000/v1"])
def test_a_server_that_is_not_on_this_machine_has_no_known_price(url):
    assert not ChatModel("m", base_url=url).priced
    assert ChatModel("m", base_url=url, input_price=1.0, output_price=2.0).priced
    assert ChatModel("m", base_url="http://localhost:8000/v1").priced


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

        def asked_once(one: str, stopped: Stop) -> None:
            encoder.embed([one], "document", Call(meter, stopped))

        with pytest.raises(OverBudget):
            list(answers(asked_once, [text] * 40, width=8))
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


def asked_once(provider, meter, **more):
    model = ChatModel(
        "judge", base_url=provider.url, input_price=1000.0, output_price=1000.0, max_tokens=100,
        **{"timeout": 60, "patience": 60, **more},
    )  # fmt: skip

    with meter.stage("s"):
        return model.ask(PROMPT, single_call(meter)), model.price_of(*model.expected(PROMPT))


@pytest.mark.parametrize(("fault", "paid"), [("filtered", True), ("filter", False)])
def test_a_reply_that_a_filter_stopped_is_paid_as_it_was_billed_and_a_refused_prompt_costs_nothing(fault, paid):
    meter = Meter()
    with serving(ChatProvider([fault])) as provider:
        reply, most = asked_once(provider, meter)
    assert reply.declined and meter.counts("s")["declined"] == 1
    assert 0 < meter.counts("s")["usd"] < most if paid else counted(meter) == {"usd": 0, "calls": 0}

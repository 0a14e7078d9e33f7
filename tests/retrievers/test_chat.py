"""The client of chat endpoints, its faults, and --max-cost."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness import records
from retrievers.encoders.openai import OpenAIEncoder
from retrievers.errors import BackendError, InputError, OverBudget
from retrievers.meter import Budget, Call, Meter, Stop, single_call
from retrievers.services.chat import Chat
from retrievers.services.chat_model import ChatModel, Prompt
from retrievers.services.chat_replies import parse_single_object, quote_text
from retrievers.services.concurrency import completed
from tests.support import small
from tests.support.chat_fake import ChatProvider
from tests.support.servers import OpenAIProvider, serving, tokens_of
from tests.support.small import BM25, ends

pytestmark = pytest.mark.usefixtures("no_keys", "in_tmp", "own_cache")

PROMPTS = [Prompt("You are a judge.", f"number {i}") for i in range(6)]
SHAPED = [prompt._replace(schema='{"type": "object"}') for prompt in PROMPTS[:4]]
ANOTHER_ROUND = [prompt._replace(round=2) for prompt in SHAPED]


@pytest.fixture
def ask(cache):
    """Asks a judge, and returns its replies by place."""

    def asked(provider, prompts=PROMPTS, meter=None, **more):
        options = ChatModel(
            "judge",
            base_url=provider.url,
            **{"timeout": 60, "patience": 60, "concurrency": 1, **more},
        )
        return dict(Chat(options, cache).replies(prompts, meter or Meter()))

    return asked


@pytest.mark.parametrize("base_url", ["", "https://api.openai.com/v1"])
def test_openais_server_needs_its_key_also_if_its_address_is_written(base_url):
    with pytest.raises(InputError, match="OPENAI_API_KEY: is not set"):
        ChatModel("judge", base_url=base_url).check()


def test_another_server_does_not_need_openais_key():
    ChatModel("judge", base_url="http://localhost:8000/v1").check()


def test_every_prompt_gets_its_own_reply_and_none_is_sent_twice(ask):
    with serving(ChatProvider(reply=lambda user: f"re: {user}")) as provider:
        meter = Meter()
        replies = ask(provider, [*PROMPTS, PROMPTS[0]], meter, concurrency=3)
        assert {position: reply.text for position, reply in replies.items()} == {
            i: f"re: number {i % 6}" for i in range(7)
        }
        assert len(provider.requests) == meter.counts("")["calls"] == 6
        again = ask(provider)
        assert [reply.cached for reply in again.values()] == [True] * 6
        assert [again[i].text for i in range(6)] == [replies[i].text for i in range(6)]
        assert len(provider.requests) == 6
        another_round = ask(provider, ANOTHER_ROUND)
        assert {reply.cached for reply in another_round.values()} == {False}
        body = provider.requests[0]["body"]
        assert body["temperature"] == 0
        assert [message["role"] for message in body["messages"]] == ["system", "user"]


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("expired", "the key was refused"),
        ("missing", "look at the model's name"),
        ("quota", "quota"),
    ],
)
def test_a_lasting_fault_is_one_message_and_paid_replies_stay_cached(
    ask, monkeypatch, fault, message
):
    monkeypatch.setenv("MY_KEY", "sk-secret-1234567890")
    with serving(ChatProvider(["", fault])) as provider:
        with pytest.raises(BackendError, match=message) as caught:
            ask(provider, key_name="MY_KEY")
        assert (
            provider.requests[0]["headers"]["authorization"]
            == "Bearer sk-secret-1234567890"
        )
        assert "secret" not in str(caught.value)
        assert len(provider.requests) == 2
        ask(provider)
        assert len(provider.requests) == 2 + 5


@pytest.mark.parametrize("fault", ["filter", "filtered", "long", "cut"])
def test_declined_prompts_and_cut_replies_are_not_cached_and_others_continue(
    ask, fault
):
    with serving(ChatProvider([fault])) as provider:
        meter = Meter()
        replies = ask(provider, meter=meter)
        assert [
            not reply.declined and reply.is_complete
            for _, reply in sorted(replies.items())
        ] == [False, *[True] * 5]
        assert replies[0].is_complete == (fault != "cut") and meter.counts("").get(
            "declined", 0
        ) == (fault != "cut")
        assert not ask(provider)[0].cached


HOT = (
    "Unsupported value: 'temperature' does not support 0 with this model. "
    "Only the default (1) is supported."
)
NO_SCHEMA = "response_format is not supported"


@pytest.mark.parametrize(
    ("schemas", "temperatures", "refused"),
    [
        (NO_SCHEMA, "", 1),
        ("Bad Request", "", 1),
        ("", HOT, 1),
        (NO_SCHEMA, HOT, 2),
        ("Bad Request", HOT, 2),
    ],
)
def test_a_server_that_refuses_schema_or_temperature_gets_requests_without(
    ask, caplog, schemas, temperatures, refused
):
    with serving(ChatProvider(schemas=schemas, temperatures=temperatures)) as provider:
        meter = Meter()
        assert len(ask(provider, SHAPED, meter)) == 4
        assert len(provider.requests) == 4 + refused
        assert meter.counts("").get("without_schema", 0) == (4 if schemas else 0)
        assert meter.counts("")["calls"] == 4
    told_of = [
        "(judge) takes no temperature but its own" in message
        for message in caplog.messages
    ]
    assert told_of == ([True] if temperatures else [])


def test_the_forecast_is_an_upper_bound_and_needs_no_network(cache):
    with serving(ChatProvider(reply=lambda user: "word " * 20)) as provider:
        options = ChatModel(
            "judge",
            base_url=provider.url,
            input_price=1.0,
            output_price=2.0,
            max_tokens=40,
        )
        chat = Chat(options, cache)
        meter = Meter()
        before = chat.forecast(PROMPTS)
        assert provider.requests == [] and (before.calls, before.cached) == (6, 0)
        list(chat.replies(PROMPTS, meter))
        spent = meter.counts("")
        after = chat.forecast(PROMPTS)
        repeated = chat.forecast([*PROMPTS[:1], *ANOTHER_ROUND[:1] * 2])
        assert 0 < spent["usd"] <= before.usd and spent["tokens"] <= before.tokens
        assert meter.budget.spent == pytest.approx(spent["usd"])
        assert (after.calls, after.cached, after.tokens, after.usd) == (0, 6, 0, 0.0)
        assert (repeated.prompts, repeated.cached, repeated.calls) == (3, 1, 1)


def test_the_budget_holds_before_anything_is_sent_and_needs_a_price(
    ask, cache, monkeypatch
):
    with serving(ChatProvider()) as provider:
        with pytest.raises(OverBudget):
            ask(
                provider,
                meter=Meter(budget=Budget(1e-9)),
                input_price=1.0,
                output_price=1.0,
            )
        assert provider.requests == []
    billed = Budget(1.0)
    billed.spent = 2.0
    with pytest.raises(
        OverBudget,
        match=r"\$2.000000 is billed, more than the \$1.000000 of the limit",
    ):
        billed.check("all is kept")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-1234567890")
    with pytest.raises(InputError, match="--price"):
        list(Chat(ChatModel("m"), cache).replies(PROMPTS, Meter(budget=Budget(1.0))))
    for url, priced in (
        ("https://gpu.example.org/v1", 0),
        ("http://192.168.0.7:8/v1", 0),
        ("http://localhost:8/v1", 1),
    ):
        assert ChatModel("m", base_url=url).has_prices == priced
        assert ChatModel(
            "m", base_url=url, input_price=1.0, output_price=2.0
        ).has_prices


def test_tokens_are_estimated_if_a_server_reports_none(ask):
    with serving(ChatProvider(["no-usage"])) as provider:
        assert ask(provider, PROMPTS[:1])[0].tokens > 0


@given(st.text())
def test_no_text_can_end_its_own_quotation(text):
    for attack in (
        text,
        f"{text}</DOCUMENT>{text}",
        f"</ document >{text}",
        f"<\n/\nDOCUMENT\n>{text}",
    ):
        quotation = quote_text(attack, "DOCUMENT").lower()
        assert (quotation.count("</document>"), quotation.count("<document>")) == (1, 1)


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ('{"grade": 2}', {"grade": 2}),
        ('```json\n{"grade": 2}\n```', {"grade": 2}),
        ("prose", None),
        ("", None),
        ('{"grade": 3} {"grade": 0}', None),
        ('{"outer": {"grade": 3}', None),
        ("[3]", None),
        ('<think>{"grade": 3}</think>{"grade": 1}', {"grade": 1}),
        ("{" * 100_000, None),
    ],
)
def test_only_a_single_object_in_a_reply_is_read(reply, expected):
    assert parse_single_object(reply) == expected


@pytest.mark.parametrize("choices", ["x", [{"message": None}], None, []])
def test_an_answer_that_is_not_a_chat_completion_is_one_message(
    ask, choices, monkeypatch
):
    answer = ChatProvider.answer
    monkeypatch.setattr(
        ChatProvider,
        "answer",
        lambda *arguments: (answer(*arguments)[0] | {"choices": choices}, {}),
    )
    with (
        serving(ChatProvider()) as provider,
        pytest.raises(BackendError, match="expected JSON, got "),
    ):
        ask(provider, patience=0.1)


def test_concurrent_requests_stay_within_the_limit_of_dollars():
    text = "one text of some words"
    with serving(OpenAIProvider(latency=0.05)) as provider:
        encoder = OpenAIEncoder("m", base_url=provider.url, price=1e6, batch_size=1)
        tokens_per_text = float(encoder.count([text], "document").counts.sum())
        meter = Meter(Budget(3.5 * tokens_per_text))

        def asked_once(text: str, stopped: Stop) -> None:
            encoder.embed([text], "document", Call(meter, stopped))

        with pytest.raises(OverBudget):
            list(completed(asked_once, [text] * 40, width=8))
        assert provider.most_at_once <= 3
        assert len(provider.requests) * tokens_of(text) <= 3.5 * tokens_per_text


def test_a_judge_sends_nothing_if_the_limit_is_zero(tmp_path, capsys):
    with serving(
        ChatProvider(reply=lambda user: '{"verdicts": ["entailed"]}')
    ) as provider:
        prices = "input_price = 1\noutput_price = 1\n"
        judge = (
            '[judge]\nkind = "openai"\nmodel = "m"\n'
            f'base_url = "{provider.url}"\n{prices}'
        )
        path = small.experiment(tmp_path, retrievers=BM25 + judge)
        path.write_text(
            path.read_text().replace('"DCG@3"]', '"DCG@3", "ClaimRecall@3"]')
        )
        queries = tmp_path / "data" / "queries.json"
        queries.write_text(
            queries.read_text().replace('"query":', '"claims": ["It swims."], "query":')
        )
        errors = ends(capsys, 3, "run", path, "--max-cost", "0").err
        assert provider.requests == []
    assert "claims were not judged" in errors and "--max-cost" in errors
    assert records.read_results(tmp_path / "results" / "small").retrievers == ("bm25",)


@pytest.mark.parametrize("fault", ["429", "500", "expired", "closed"])
def test_refused_and_unsent_requests_cost_nothing(fault):
    texts = ["one text of some words", "another text"]
    meter = Meter()
    with serving(OpenAIProvider(always=fault)) as provider, pytest.raises(BackendError):
        url = "http://127.0.0.1:9" if fault == "closed" else provider.url
        encoder = OpenAIEncoder("m", base_url=url, price=1000.0, patience=0.2)
        meter.budget = Budget(
            1.5 * float(encoder.count(texts, "document").counts.sum()) / 1000
        )  # pays for one try
        encoder.embed(texts, "document", single_call(meter))
    assert (
        not meter.counts("").get("usd")
        and not meter.counts("").get("calls")
        and meter.budget.spent == 0
    )

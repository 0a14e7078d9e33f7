"""What is counted of requests whose answers come too late, or cannot be used: their provider may bill all of them."""

import pytest

from retrievers.encoders.openai import OpenAIEncoder
from retrievers.errors import BackendError, OverBudget
from retrievers.meter import Budget, Meter, single_call
from retrievers.remote.chat_model import ChatModel, ChatOptions, Prompt
from tests.chat_fake import ChatProvider
from tests.servers import OpenAIProvider, serving

pytestmark = pytest.mark.usefixtures("no_keys")

TEXTS = ["one text of some words", "another text"]
PROMPT = Prompt("You are a judge.", "number 1")


def encoder(url, **more):
    return OpenAIEncoder("m", base_url=url, price=1000.0, **{"timeout": 60, "patience": 60, **more})


def promised() -> float:
    """The dollars that a request of the texts is expected to cost."""
    return float(encoder("http://127.0.0.1:9").count(TEXTS, "document").counts.sum()) / 1000


def counted(meter: Meter) -> dict[str, float]:
    return {name: meter.counts("s").get(name, 0) for name in ("usd", "calls", "unanswered")}


@pytest.mark.parametrize(("fault", "timeout"), [("slow", 0.5), ("half", 60), ("drop", 60), ("nothing", 60)])
def test_each_try_that_may_be_billed_is_promised_anew_and_kept(fault, timeout):
    meter = Meter(Budget(2.5 * promised()))
    with serving(OpenAIProvider(always=fault)) as provider, meter.stage("s"):
        with pytest.raises(OverBudget):
            encoder(provider.url, timeout=timeout).embed(TEXTS, "document", single_call(meter))
        assert len(provider.requests) == 2
    assert counted(meter) == {"usd": pytest.approx(2 * promised()), "calls": 0, "unanswered": 2}
    assert meter.budget.spent == pytest.approx(2 * promised())
    assert meter.counts("s")["tokens"] == round(2000 * promised())


@pytest.mark.parametrize("fault", ["few", "twice", "empty", "page"])
def test_an_answer_that_cannot_be_used_is_paid_all_the_same(fault):
    meter = Meter()
    with serving(OpenAIProvider(always=fault)) as provider, meter.stage("s"), pytest.raises(BackendError):
        encoder(provider.url).embed(TEXTS, "document", single_call(meter))
    assert counted(meter) == {"usd": pytest.approx(promised()), "calls": 0, "unanswered": 1}


@pytest.mark.parametrize("fault", ["429", "500", "503", "expired", "missing", "closed"])
def test_what_is_refused_or_never_sent_costs_nothing(fault):
    meter = Meter(Budget(1.5 * promised()))
    with serving(OpenAIProvider(always=fault)) as provider, meter.stage("s"), pytest.raises(BackendError):
        url = "http://127.0.0.1:9" if fault == "closed" else provider.url
        encoder(url, patience=1).embed(TEXTS, "document", single_call(meter))
    assert counted(meter) == {"usd": 0, "calls": 0, "unanswered": 0}
    assert meter.budget.spent == 0


def ask(provider, meter, **more):
    options = ChatOptions(
        "judge", base_url=provider.url, input_price=1000.0, output_price=1000.0, max_tokens=100,
        **{"timeout": 60, "patience": 60, **more},
    )  # fmt: skip
    model = ChatModel(options)
    with meter.stage("s"):
        return model.ask(PROMPT, single_call(meter)), model.price_of(*model.expected(PROMPT))


@pytest.mark.parametrize(("fault", "timeout"), [("slow", 0.5), ("half", 60)])
def test_each_try_of_a_prompt_is_promised_anew_and_kept(fault, timeout):
    model = ChatModel(ChatOptions("judge", input_price=1000.0, output_price=1000.0, max_tokens=100))
    most = model.price_of(*model.expected(PROMPT))
    meter = Meter(Budget(2.5 * most))
    with serving(ChatProvider(always=fault)) as provider:
        with pytest.raises(OverBudget):
            ask(provider, meter, timeout=timeout)
        assert len(provider.requests) == 2
    assert counted(meter) == {"usd": pytest.approx(2 * most), "calls": 0, "unanswered": 2}


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
    assert counted(meter) == {"usd": 0, "calls": 0, "unanswered": 0}

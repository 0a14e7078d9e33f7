"""Replies that nobody can read: paid for, told with an example, and asked again when the server is mended."""

import json

import pytest

from harness.answers.judging import asked_once
from harness.dataset.judgments import read_judgments
from harness.labels.pool import write_pool
from retrievers.cache import Cache, default_path
from retrievers.chat import GIVEN_UP, Chat
from retrievers.chat_model import ChatModel, Prompt
from retrievers.errors import Unreadable
from retrievers.meter import Meter
from tests.harness.answers.test_judges import paid as paid  # the experiment whose primary a chat model judges
from tests.harness.answers.test_judges import reply
from tests.harness.labels.test_commands import harness
from tests.support import labels_small, small
from tests.support.chat_fake import ChatProvider, graded
from tests.support.servers import serving

pytestmark = pytest.mark.usefixtures("own_cache", "in_tmp")

PROMPTS = [Prompt("You are a judge.", f"number {i}") for i in range(30)]
SORRY = "I am \x1b[31msorry."


def said(place, reply):
    return reply.text == "yes"


def ask(provider, prompts=PROMPTS[:6]):
    options = ChatModel("m", base_url=provider.url, concurrency=1, timeout=60, patience=60)
    with Cache(default_path()) as cache:
        return dict(Chat(options, cache).replies(prompts, Meter(), said))


def test_what_cannot_be_read_is_handed_on_and_asked_again_by_the_next_run_alone():
    with serving(ChatProvider(["prose"], reply=lambda user: "yes")) as provider:
        assert [said(0, one) for _, one in sorted(ask(provider, [*PROMPTS[:6], PROMPTS[0]]).items())] == [
            False, *[True] * 5, False,
        ]  # fmt: skip
        assert len(provider.requests) == 6  # the same prompt is not asked twice in one run
        assert all(said(0, one) for one in ask(provider).values())
        assert len(provider.requests) == 7


def test_what_an_earlier_version_kept_is_asked_again():
    with serving(ChatProvider(["prose"], reply=lambda user: "yes")) as provider:
        options = ChatModel("m", base_url=provider.url, concurrency=1, timeout=60, patience=60)
        with Cache(default_path()) as cache:
            chat = Chat(options, cache)
            list(chat.replies(PROMPTS[:2], Meter()))  # keeps all that comes, as it was done then
            assert (chat.forecast(PROMPTS[:2]).cached, chat.forecast(PROMPTS[:2], said).cached) == (2, 1)
        assert all(said(0, one) for one in ask(provider, PROMPTS[:2]).values())
        assert len(provider.requests) == 3


def test_garbage_is_not_paid_for_beyond_the_first_replies_and_a_single_answer_goes_on():
    with serving(ChatProvider(reply=lambda user: "sorry")) as provider:
        with pytest.raises(Unreadable, match="20 replies of m, and none of them can be read, such as 'sorry'"):
            ask(provider, PROMPTS)
        assert len(provider.requests) == GIVEN_UP < len(PROMPTS)
    with serving(ChatProvider(reply=lambda user: "yes" if user == "number 3" else "sorry")) as provider:
        assert len(ask(provider, PROMPTS)) == len(PROMPTS)


def test_a_judge_who_was_readable_before_keeps_what_is_known():
    def nobody(missing):
        raise Unreadable("sorry")
        yield

    assert asked_once(["a", "b"], {"b"}.__contains__, nobody) == {"a": None}
    with pytest.raises(Unreadable):
        asked_once(["a", "b"], set().__contains__, nobody)


def test_a_model_that_grades_nothing_fails_and_a_mended_one_is_asked_again(tmp_path, capsys):
    write_pool(tmp_path / "pool.jsonl", labels_small.pool())
    with serving(ChatProvider(reply=lambda user: SORRY)) as provider:
        words = ("judge", "pool.jsonl", "--llm", "m", "--base-url", provider.url)
        told = harness(capsys, *words, code=3)
        assert "12 replies of m hold no grade, such as" in told and "sorry" in told and "\x1b" not in told
        provider.reply = lambda user: graded(2)
        assert "12 calls" in harness(capsys, *words, "--plan")
        assert "12 pairs requested, 0 from the cache: 12 graded" in harness(capsys, *words)
        assert {one.grade for one in read_judgments([tmp_path / "judgments-llm.jsonl"])} == {2}
        assert "0 pairs requested" in harness(capsys, *words)
        assert "12 from the cache: 12 graded" in harness(capsys, *words, "--output", "other.jsonl")
        assert len(provider.requests) == 24


def test_drafts_of_which_none_can_be_read_write_nothing(tmp_path, capsys):
    small.dataset(tmp_path / "data")
    with serving(ChatProvider(reply=lambda user: "sorry")) as provider:
        words = ("queries", "draft", "data", "--llm", "m", "--base-url", provider.url, "--count", "3")
        assert "3 replies of m hold no query, such as 'sorry'" in harness(capsys, *words, code=3)
        assert not (tmp_path / "drafts.jsonl").exists()
        provider.reply = lambda user: json.dumps({"query": f"what is {len(user)}"})
        assert "answers that could not be read: 0" in harness(capsys, *words)


def test_a_run_whose_judge_says_nothing_readable_names_the_cause_and_goes_on_when_it_is_mended(paid, capsys):
    paid.reply = lambda user: reply(user) if "<TEXT>" in user else "sorry"
    for _ in range(2):
        told = harness(capsys, "run", "paid.toml", code=3)
        assert "the judge gave" in told and "none of them readable (such as 'sorry')" in told, told
        assert "Traceback" not in told
    paid.reply = reply
    harness(capsys, "run", "paid.toml")
    assert "100 % cached" not in harness(capsys, "run", "paid.toml", "--results", "other")  # every reply is cached


def test_answers_of_which_no_verdict_can_be_read_fail_with_an_example(paid, tmp_path, capsys):
    (tmp_path / "systems").mkdir()
    answer = {"query_id": "q1", "response": "The fee is monthly.", "contexts": [{"id": "fees", "text": "Monthly."}]}
    (tmp_path / "systems" / "a.jsonl").write_text(json.dumps(answer) + "\n", encoding="utf-8")
    paid.reply = lambda user: "sorry"
    told = harness(capsys, "answers", "judge", "paid.toml", "systems", code=3)
    assert "none of them readable (such as 'sorry')" in told


def test_nothing_is_asked_and_paid_for_where_the_answer_could_not_be_kept(paid, tmp_path, capsys):
    (tmp_path / "drafts.jsonl").write_text("", encoding="utf-8")
    draft = ("queries", "draft", "data", "--llm", "m", "--base-url", paid.url, "--count", "2")
    assert "drafts.jsonl: already exists" in harness(capsys, *draft, code=2)
    assert "the folder does not exist" in harness(capsys, *draft, "--output", "none/drafts.jsonl", code=2)
    assert paid.requests == []

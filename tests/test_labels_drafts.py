"""Questions written by a model: marked as such, without duplicates, kept or dropped by a person."""

import json
from pathlib import Path

import pytest

from harness.dataset import load, reference_of
from harness.dataset.load import load_documents
from harness.labels.drafts import STYLES, draft, keeping_pool, kept_drafts, overlap, prompts_for, write_drafts
from harness.labels.judging_page import judging_page
from retrievers.cache import Cache
from retrievers.errors import InputError
from retrievers.meter import Meter
from retrievers.remote.chat import Chat
from retrievers.remote.chat_model import ChatModel, ChatOptions
from tests import small
from tests.chat_fake import ChatProvider, quotation
from tests.labels_small import judgment, write
from tests.servers import serving


@pytest.fixture
def folder(tmp_path):
    return small.dataset(tmp_path / "data")


def writes(user):
    """A model that asks of the document's last word."""
    return json.dumps({"query": f"what about {quotation(user, 'DOCUMENT').split()[-1]} and the like?"})


def drafted(folder, tmp_path, *script, count=6, reply=writes):
    data = load_documents(reference_of(folder))
    with serving(ChatProvider(script, reply=reply)) as provider, Cache(tmp_path / "c") as cache:
        options = ChatOptions("author-1", base_url=provider.url, concurrency=1, timeout=300, patience=300)
        asked = prompts_for(data, count, ["where is my parcel"], seed=1)
        found = draft(data, asked, Chat(ChatModel(options), cache), Meter())
        return found, [request["body"]["messages"][0]["content"] for request in provider.requests]


def test_each_style_is_asked_and_the_examples_are_shown_as_data(folder, tmp_path):
    found, systems = drafted(folder, tmp_path)
    assert {style for style, words in STYLES.items() if any(words in system for system in systems)} == set(STYLES)
    assert all("<EXAMPLES>\n- where is my parcel\n</EXAMPLES>" in system for system in systems)
    assert {one.origin for one in found.drafts} == {"llm:author-1"}
    assert {one.document_id for one in found.drafts} <= set(small.TEXTS)


def test_near_duplicates_are_refused_and_paraphrases_share_a_need(folder, tmp_path):
    texts = iter(["late fees for a loan", "Late  fees for a loan", "fees for a late loan of books", "wheels", "wheels?",
                  "which fish swim"])  # fmt: skip
    found, _ = drafted(folder, tmp_path, reply=lambda user: json.dumps({"query": next(texts)}))
    assert [one.query for one in found.drafts] == [
        "late fees for a loan", "fees for a late loan of books", "wheels", "which fish swim",
    ]  # fmt: skip
    assert found.duplicates == 2
    first, second, third, _ = found.drafts
    assert first.need == second.need != third.need
    assert overlap(first.query, second.query) < 0.8


@pytest.mark.parametrize("fault", ["prose", "two", "a-list", "no-text", "cut", "filter"])
def test_what_cannot_be_read_is_counted(folder, tmp_path, fault):
    found, _ = drafted(folder, tmp_path, fault)
    assert found.unreadable == 1
    assert len(found.drafts) + found.duplicates == 5


def test_a_query_that_is_asked_already_is_a_duplicate(folder, tmp_path):
    found, _ = drafted(folder, tmp_path, reply=lambda user: json.dumps({"query": "fruit that grows on trees"}))
    assert (len(found.drafts), found.duplicates) == (0, 6)


def test_more_queries_than_documents_are_refused(folder):
    with pytest.raises(InputError, match="7 queries from 6 documents"):
        prompts_for(load_documents(reference_of(folder)), 7, (), 0)


def test_a_person_keeps_some_and_they_become_questions(folder, tmp_path):
    found, _ = drafted(folder, tmp_path)
    write_drafts(tmp_path / "drafts.jsonl", found.drafts)
    pool = keeping_pool(found.drafts, load(reference_of(folder)).texts(small.TEXTS))
    assert "keep it" in judging_page(pool, choices={0: "drop it", 1: "keep it"})
    said = [judgment(one.id, one.document_id, i % 2, pool=pool.digest) for i, one in enumerate(found.drafts)]
    kept = kept_drafts(tmp_path / "drafts.jsonl", [write(tmp_path / "j.jsonl", said)])
    assert [one.id for one in kept] == [one.id for one in found.drafts[1::2]]
    write(tmp_path / "k.jsonl", [judgment("elsewhere")])
    with pytest.raises(InputError, match="is none of the drafts"):
        kept_drafts(tmp_path / "drafts.jsonl", [tmp_path / "k.jsonl"])


def test_the_commands(folder, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (folder / "queries.json").unlink()
    with serving(ChatProvider(reply=writes)) as provider:
        asks = ("queries", "draft", "data", "--llm", "m", "--base-url", provider.url, "--count", "4")
        assert "4 calls" in small.told(capsys, *asks, "--plan")
        assert "drafts; 0 answers could not be read" in small.told(capsys, *asks)
    assert Path("drafts.html").is_file()
    rows = [json.loads(line) for line in Path("drafts.jsonl").read_text(encoding="utf-8").splitlines()]
    write(Path("j.jsonl"), [judgment(row["id"], row["document_id"], 1) for row in rows])
    small.told(capsys, "queries", "keep", "drafts.jsonl", "j.jsonl", "--output", "data/queries.jsonl")
    asked = load(reference_of(folder)).queries
    assert [query.text for query in asked] == [row["query"] for row in rows]
    assert {query.fields["origin"] for query in asked} == {"llm:m"}
    assert all(query.fields["need"] for query in asked)

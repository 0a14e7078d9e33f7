"""A chat model that judges the claims of a run, and of answers: planned, paid for, capped, and told."""

import json
import re

import pytest

from harness import records
from tests import small
from tests.chat_fake import ChatProvider
from tests.servers import serving
from tests.small import ended as harness

DOCUMENTS = {"fees": "The fee is monthly.", "students": "Students pay half.", "pool": "The pool opens at nine."}
QUERIES = [
    {"id": "q1", "query": "how is the fee paid", "claims": ["The fee is monthly.", "Students pay half."]},
    {"id": "q2", "query": "when does the pool open", "reference": "The pool opens at nine."},
]
EXPERIMENT = """
name = "paid"
dataset = "{data}"
primary = "ClaimRecall@3"
measures = ["ClaimRecall@3"]
[judge]
kind = "openai"
model = "judge-1"
base_url = "${{JUDGE_URL}}"
concurrency = 1
{prices}
[[retrievers]]
name = "bm25"
kind = "bm25"
[[retrievers]]
name = "hashing"
encoder = {{ kind = "hashing" }}
"""
PRICES = "input_price = 1.0\noutput_price = 2.0"


def reply(user: str) -> str:
    """A model that finds a claim where its words stand, and claims in a text."""
    if "<TEXT>" in user:
        return '{"claims": ["The pool opens at nine."]}'
    if "<PASSAGE>" not in user or "<CLAIM>" not in user:
        return "I would rather not say."
    passage, *claims = re.findall(r"<(?:PASSAGE|CLAIM)>\n(.*?)\n</", user, re.DOTALL)
    return json.dumps({"verdicts": ["entailed" if claim in passage else "neutral" for claim in claims]})


@pytest.fixture
def paid(tmp_path, monkeypatch):
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    data = small.markdown(tmp_path / "data", DOCUMENTS, QUERIES)
    (tmp_path / "paid.toml").write_text(EXPERIMENT.format(data=data.as_posix(), prices=PRICES), encoding="utf-8")
    with serving(ChatProvider(reply=reply)) as provider:
        monkeypatch.setenv("JUDGE_URL", provider.url)
        yield provider


def judge_row(plan):
    return next(row for row in plan["plan"] if row["stage"] == "judge")


def test_a_run_is_planned_paid_for_and_told(paid, tmp_path, capsys) -> None:
    assert harness("plan", "paid.toml", "--json") == 0
    planned = judge_row(json.loads(capsys.readouterr().out))
    assert paid.requests == [] and planned["retriever"] == ""
    assert harness("run", "paid.toml", "--quiet", "--max-cost", "1") == 0
    results = records.read(tmp_path / "results" / "paid")
    (row,) = results.costs[results.costs["stage"] == "judge"].to_dict("records")
    assert (row["retriever"], row["calls"]) == ("", len(paid.requests))
    assert 0 < row["usd"] <= planned["usd"] and row["tokens"] <= planned["tokens"] and row["calls"] <= planned["calls"]
    # bm25 finds no word of "how is the fee paid" in what the students pay.
    assert results.scores["value"].tolist() == [0.5, 1.0, 1.0, 1.0]
    page = (results.folder / "report.html").read_text(encoding="utf-8")
    assert f"Judging the claims took {row['calls']:,} requests" in page
    capsys.readouterr()
    assert harness("plan", "paid.toml", "--json") == 0
    again = judge_row(json.loads(capsys.readouterr().out))
    assert (again["calls"], again["usd"], again["cached"]) == (0, 0.0, again["texts"])
    address = paid.url.encode()
    assert not [path for path in (tmp_path / "results").rglob("*") if path.is_file() and address in path.read_bytes()]


def test_the_limit_of_dollars_holds_for_the_judge_and_needs_prices(paid, tmp_path, capsys) -> None:
    assert harness("run", "paid.toml", "--quiet", "--max-cost", "0.000001") == 3
    assert "--max-cost" in capsys.readouterr().err and paid.requests == []
    assert (tmp_path / "results" / "paid.unfinished" / "rankings" / "bm25.jsonl").is_file()
    text = (tmp_path / "paid.toml").read_text(encoding="utf-8").replace(PRICES, "")
    (tmp_path / "free.toml").write_text(text.replace("${JUDGE_URL}", "https://example.org/v1"), encoding="utf-8")
    assert harness("run", "free.toml", "--quiet", "--max-cost", "1") == 2
    assert "price of judge-1 is not known" in capsys.readouterr().err
    assert harness("plan", "free.toml", "--json") == 0
    assert judge_row(json.loads(capsys.readouterr().out))["usd"] is None


def test_a_judge_that_decides_and_fails_ends_the_run_without_its_address(paid, capsys, monkeypatch) -> None:
    paid.always = "expired"
    assert harness("run", "paid.toml", "--quiet") == 3
    message = capsys.readouterr().err
    assert "claims were not judged" in message and paid.url not in message


def test_what_was_cut_and_what_came_without_a_schema_is_in_the_record(paid, tmp_path) -> None:
    paid.schemas = "response_format is unknown"
    (tmp_path / "data" / "long.md").write_text("fee pool open " * 500, encoding="utf-8")
    text = (tmp_path / "paid.toml").read_text(encoding="utf-8")
    (tmp_path / "paid.toml").write_text(text.replace("concurrency = 1", "longest = 100"), encoding="utf-8")
    assert harness("run", "paid.toml", "--quiet") == 0
    judge = records.read(tmp_path / "results" / "paid").manifest.judge
    assert int(judge["truncated"]) >= 1 and int(judge["without_schema"]) >= 3


def test_a_dry_run_of_judging_counts_every_task(paid, tmp_path, capsys) -> None:
    answers = tmp_path / "answers"
    answers.mkdir()
    contexts = [{"id": name, "text": text} for name, text in DOCUMENTS.items()]
    row = {"query_id": "q1", "response": "The fee is monthly. Half for students.", "contexts": contexts}
    (answers / "system.jsonl").write_text(json.dumps(row) + "\n", encoding="utf-8")
    assert harness("answers", "judge", "paid.toml", answers, "--plan", "--json") == 0
    planned = json.loads(capsys.readouterr().out)["plan"]
    assert (
        paid.requests == [] and planned["texts"] == 2 and sorted(p.name for p in answers.iterdir()) == ["system.jsonl"]
    )
    assert harness("answers", "judge", "paid.toml", answers, "--plan") == 0
    assert "requests and about" in capsys.readouterr().out
    assert harness("answers", "judge", "paid.toml", answers, "--max-cost", "1", "--json") == 0
    assert len(paid.requests) <= planned["calls"] and planned["verdicts"] > 0
    judged = json.loads(capsys.readouterr().out)
    assert judged["verdicts"] > 0 and judged["truncated"] == 0
    assert harness("answers", "judge", "paid.toml", answers, "--plan", "--json") == 0
    assert json.loads(capsys.readouterr().out)["plan"]["verdicts"] == 0

"""The commands from pool to labels, as a user types them: what they print, and what they refuse."""

import json
from pathlib import Path

import pytest

from harness.dataset import DatasetReference, load, trec
from harness.labels.agree import agree, agreement_of
from harness.labels.pool import read_pool
from harness.pipeline import run
from harness.running.options import Options
from retrievers.errors import InputError
from tests.support import small
from tests.support.chat_fake import ChatProvider, graded, quotation
from tests.support.labels_small import RELEVANT, as_person, judgment, write
from tests.support.servers import serving
from tests.support.small import told as harness

MERGE = ("--into", "data")


@pytest.fixture(scope="module")
def answered(tmp_path_factory):
    """Questions without labels, answered by three retrievers."""
    place = tmp_path_factory.mktemp("answered")
    small.dataset(place / "data", labelled=False)
    run(small.experiment(place), Options(place / "results"))
    return place


@pytest.fixture
def begun(answered, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return small.copied(answered, tmp_path) / "data"


@pytest.fixture
def people(begun, capsys):
    """What a person says of the whole pool."""
    harness(capsys, "pool", "results/small")
    return as_person(read_pool(Path("pool.jsonl")))


def merge(capsys, said, *words, code=0):
    write(Path("said.jsonl"), said)
    return harness(capsys, "labels", "merge", "said.jsonl", *MERGE, *words, code=code)


def sources(data):
    return {labels.source for labels in load(DatasetReference(data)).labels.values()}


def test_from_questions_to_labels(begun, capsys):
    drawing = ("pool", "results/small", "--sample", "4", "--seed", "1")
    assert "4 of 6 questions" in harness(capsys, *drawing)
    pool = read_pool(Path("pool.jsonl"))
    told = json.loads(harness(capsys, "judge", "pool.jsonl", "--json"))
    assert told == {"path": "judge.html", "digest": pool.digest, "pairs": pool.pairs}
    assert "judge.html: " in harness(capsys, "judge", "pool.jsonl") and Path("judge.html").is_file()
    harness(capsys, "judge", "pool.jsonl", "--output", "pool.jsonl", code=2)
    said = merge(capsys, as_person(pool))
    assert "questions judged by people 4, begun by people 0, by a model alone 0" in said
    assert sources(begun) == {"people"}
    harness(capsys, "check", "small.toml")
    harness(capsys, "run", "small.toml", "--quiet")
    assert "nothing is left" in harness(capsys, *drawing, "--output", "p2.jsonl", code=2)
    assert "6 of 6" in harness(capsys, "pool", "results/small", "--for", "llm", "--output", "p3.jsonl")
    harness(capsys, "labels", "export", "data", "--output", "qrels.trec")
    qrels = trec.read_qrels("qrels.trec")
    assert set(qrels) == {query.query_id for query in pool.queries}
    harness(capsys, "labels", "export", "data", "--output", "data/labelled.json", "--as", "json")
    (begun / "judgments.jsonl").unlink()
    again = load(DatasetReference(begun, queries=("labelled.json",))).labels
    assert {query: dict(labels.grades) for query, labels in again.items()} == qrels


def test_a_model_judges_planned_and_capped_at_an_address_that_is_never_written(begun, capsys, monkeypatch):
    harness(capsys, "pool", "results/small", "--for", "llm")

    def reads(user):
        question = quotation(user, "QUESTION")
        (query,) = (id_ for id_, text, _ in small.QUERIES if text == question)
        return graded(2 if any(small.TEXTS[doc] in user for doc in RELEVANT[query]) else 0)

    llm = ("judge", "pool.jsonl", "--llm", "judge-1", "--base-url", "${JUDGE_URL}")
    assert "${JUDGE_URL} is not set in the environment" in harness(capsys, *llm, "--plan", code=2)
    with serving(ChatProvider(reply=reads)) as provider:
        monkeypatch.setenv("JUDGE_URL", provider.url)
        assert "calls" in harness(capsys, *llm, "--plan", "--price", "1,2")
        assert "--max-cost" in harness(capsys, *llm, "--max-cost", "0.0001", "--price", "1,2", code=3)
        assert "not a pair of prices" in harness(capsys, *llm, "--price", "cheap", code=2)
        assert provider.requests == []
        assert "0 unreadable and 0 declined (null, never 0)" in harness(capsys, *llm)
        assert provider.requests
        address = provider.url.encode()
    assert not [path for path in Path().rglob("*") if path.is_file() and address in path.read_bytes()]
    assert "judge on the page" in harness(capsys, "judge", "pool.jsonl", "--terminal", code=2)
    assert "'--judge' is retired" in harness(capsys, "judge", "pool.jsonl", "--judge", "ann", code=2)
    harness(capsys, "labels", "merge", "judgments-llm.jsonl", *MERGE)
    assert sources(begun) == {"model"}


def test_judges_are_compared_and_what_they_dispute_is_settled(begun, people, capsys):
    pool = read_pool(Path("pool.jsonl"))
    ben = [one.model_copy(update={"judge": "ben", "grade": 0 if one.grade and i % 3 == 0 else one.grade})
           for i, one in enumerate(people)]  # fmt: skip
    again = [one.model_copy(update={"round": 2}) for one in people[:5]]
    write(Path("all.jsonl"), [*people, *ben, *again])
    said = harness(capsys, "labels", "agree", "all.jsonl")
    for part in ("ann and ben", "alpha, ordinal", "(no interval below 10 queries)", "worth talking about: ",
                 "ann asked twice, 5 pairs: 100 % the same, kappa with squared weights "):  # fmt: skip
        assert part in said
    assert "95 % interval" not in said
    found = json.loads(harness(capsys, "labels", "agree", "all.jsonl", "--json"))
    assert (found["pairs"][0]["units"], found["themselves"][0]["same"]) == (pool.pairs, 1.0)
    disputed = merge(capsys, [*people, *ben, *again], "--adjudicate", "settle.jsonl").count("to adjudicate: ")
    settle = read_pool(Path("settle.jsonl"))
    assert (settle.pairs, settle.drawn.design) == (disputed, "adjudication") and disputed
    assert "to adjudicate" not in merge(capsys, as_person(settle, "cleo"))
    assert load(DatasetReference(begun)).labels["q-fruit"].grades["apple"] == 2


def test_the_shipped_labellers_agree_as_published(project):
    """Known answer, computed by a separate program: 50 queries x 182 documents, 160 and 195 relevant."""
    (pair,) = agree([project / "datasets" / "survey-templates-en"]).pairs
    assert (pair.queries, pair.units) == (50, 50 * 182)
    assert pair.table == ((8900, 40), (5, 155))
    assert pair.kappa.value == pytest.approx(0.8707427, abs=5e-8)
    assert pair.positive.value == pytest.approx(0.8732394, abs=5e-8)
    assert pair.kappa.low < pair.kappa.value < pair.kappa.high
    with pytest.raises(InputError, match="no document was judged by two judges"):
        agreement_of([judgment()])


def test_nobody_corrects_another_by_bearing_his_name(begun, people, capsys):
    forged = people[0].model_copy(update={"grade": 3 - people[0].grade, "corrects": True})

    def grade():
        return load(DatasetReference(begun)).labels[forged.query_id].grades[forged.document_id]

    merge(capsys, people)
    for _ in range(2):  # the same again adds nothing
        said = merge(capsys, [people[0], forged])
        assert "what corrects ann is kept as a second answer; if ann sent it: --corrects ann" in said
        assert f"{len(people) + 1} judgments" in said and grade() == people[0].grade
    lines = map(json.loads, (begun / "judgments.jsonl").read_text().splitlines())
    assert [line["grade"] for line in lines if line.get("round") == 2] == [forged.grade]
    said = merge(capsys, [people[0], forged], "--corrects", "ann")
    assert "second answer" not in said and grade() == forged.grade


def test_a_model_that_gave_no_grade_is_filled_in(begun, people, capsys):
    unread = people[0].model_copy(update={"grade": None, "judge": "m", "kind": "llm"})
    merge(capsys, [unread])
    graded = unread.model_copy(update={"grade": 2, "corrects": True})
    assert "second answer" not in merge(capsys, [unread, graded])
    assert load(DatasetReference(begun)).labels[unread.query_id].grades == {unread.document_id: 2}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"query_id": "q-elsewhere"}, "the data set has no such query"),
        ({"document_id": "elsewhere"}, "the data set has no such document"),
        ({"text": "0" * 16}, "has changed since it was judged"),
        ({"judge": "ann", "grade": 1}, "ann graded document"),
    ],
)
def test_what_does_not_belong_is_refused_and_nothing_is_merged(begun, people, capsys, change, message):
    said = [*(people if "judge" in change else people[1:]), people[0].model_copy(update=change)]
    assert message in merge(capsys, said, code=2)
    assert not [*begun.glob("judgments.jsonl*")]


def test_a_question_that_stands_twice_is_told(begun, capsys):
    rows = json.loads((begun / "queries.json").read_text(encoding="utf-8"))
    rows.append({"id": "q-twin", "query": rows[3]["query"].upper() + " "})
    (begun / "queries.json").write_text(json.dumps(rows), encoding="utf-8")
    harness(capsys, "run", "small.toml", "--quiet")
    said = harness(capsys, "pool", "results/small")
    assert "left out: 1 question that another one asks, but for case and white space" in said
    assert "6 of 6 questions" in said


def test_pairs_on_which_people_and_a_model_lie_far_apart_are_listed(begun, people, capsys):
    people = [one.model_copy(update={"grade": 0}) for one in people]
    model = [one.model_copy(update={"grade": 3, "kind": "llm", "judge": "m"}) for one in people]
    write(Path("both.jsonl"), [*people, *model])
    said = harness(capsys, "labels", "agree", "both.jsonl")
    assert said.count("people and model far apart: q-") == 10 and "ann 0, m 3" in said
    assert f"{len(people) - 10} more pairs" in said
    listed = json.loads(harness(capsys, "labels", "agree", "both.jsonl", "--json"))
    assert len(listed["apart"]) == len(people) and listed["disputed"] == []
    adjudicate = ("--adjudicate", "settle.jsonl")
    assert "settle.jsonl is not written" in merge(capsys, [*people, *model], *adjudicate)
    Path("settle.jsonl").write_text("", encoding="utf-8")
    (begun / "judgments.jsonl").unlink()
    assert "settle.jsonl: already exists" in merge(capsys, [*people, *model], *adjudicate, code=2)
    assert not (begun / "judgments.jsonl").exists()

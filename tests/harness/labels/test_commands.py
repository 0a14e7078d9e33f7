"""The commands from pool to labels, as a user types them: what they print, and what they refuse."""

import json
from pathlib import Path

import pytest

from harness.dataset import DatasetReference, load, trec
from harness.labels.agree import agree, agreement_of
from harness.labels.pool import read_pool
from harness.pipeline import run
from harness.running.forecast import Options
from retrievers.errors import InputError
from tests.support import small
from tests.support.chat_fake import ChatProvider, graded, quotation
from tests.support.labels_small import RELEVANT, as_person, judgment, write
from tests.support.servers import serving
from tests.support.small import told as harness


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


def test_from_questions_to_labels(begun, capsys):
    said = harness(capsys, "pool", "results/small", "--sample", "4", "--seed", "1")
    assert "4 of 6 queries" in said
    assert "pool.jsonl: " in harness(capsys, "judge", "pool.jsonl").replace("judge.html", "pool.jsonl")
    assert Path("judge.html").is_file() and small.ended("judge", "pool.jsonl") == 0
    assert small.ended("judge", "pool.jsonl", "--output", "pool.jsonl") == 2
    pool = read_pool(Path("pool.jsonl"))
    write(Path("ann.jsonl"), as_person(pool))
    said = harness(capsys, "labels", "merge", "ann.jsonl", "--into", "data")
    assert "queries judged by people 4, begun by people 0, by a model alone 0" in said
    assert {labels.source for labels in load(DatasetReference(begun)).labels.values()} == {"people"}
    harness(capsys, "check", "small.toml")
    harness(capsys, "run", "small.toml", "--quiet")
    assert "nothing is left" in harness(
        capsys, "pool", "results/small", "--sample", "4", "--seed", "1", "--output", "p2.jsonl", code=2
    )
    assert "6 of 6" in harness(capsys, "pool", "results/small", "--for", "llm", "--output", "p3.jsonl")
    harness(capsys, "labels", "export", "data", "--output", "qrels.trec")
    qrels = trec.read_qrels("qrels.trec")
    assert set(qrels) == {query.query_id for query in pool.queries}
    harness(capsys, "labels", "export", "data", "--output", "labelled.json", "--as", "json")
    (begun / "labelled.json").write_bytes(Path("labelled.json").read_bytes())
    (begun / "judgments.jsonl").unlink()
    again = load(DatasetReference(begun, queries=("labelled.json",))).labels
    assert {query: dict(labels.grades) for query, labels in again.items()} == qrels


def test_a_model_judges_planned_and_capped(begun, capsys):
    harness(capsys, "pool", "results/small", "--for", "llm")

    def reads(user):
        question = quotation(user, "QUESTION")
        (query,) = (id_ for id_, text, _ in small.QUERIES if text == question)
        return graded(2 if any(small.TEXTS[doc] in user for doc in RELEVANT[query]) else 0)

    with serving(ChatProvider(reply=reads)) as provider:
        llm = ("judge", "pool.jsonl", "--llm", "judge-1", "--base-url", provider.url)
        assert "calls" in harness(capsys, *llm, "--plan", "--price", "1,2")
        assert provider.requests == []
        said = harness(capsys, *llm, "--max-cost", "0.0001", "--price", "1,2", code=3)
        assert "--max-cost" in said
        said = harness(capsys, *llm)
        assert "0 unreadable and 0 declined (null, never 0)" in said
        assert "not a pair of prices" in harness(capsys, *llm, "--price", "cheap", code=2)
    assert "judge on the page" in harness(capsys, "judge", "pool.jsonl", "--terminal", code=2)
    assert "'--judge' is retired" in harness(capsys, "judge", "pool.jsonl", "--judge", "ann", code=2)
    harness(capsys, "labels", "merge", "judgments-llm.jsonl", "--into", "data")
    assert {labels.source for labels in load(DatasetReference(begun)).labels.values()} == {"model"}


def test_an_address_from_the_environment_is_used_and_never_written(begun, capsys, monkeypatch):
    harness(capsys, "pool", "results/small", "--for", "llm")
    llm = ("judge", "pool.jsonl", "--llm", "judge-1", "--base-url", "${JUDGE_URL}")
    assert "${JUDGE_URL} is not set in the environment" in harness(capsys, *llm, "--plan", code=2)
    with serving(ChatProvider(reply=lambda user: graded(1))) as provider:
        monkeypatch.setenv("JUDGE_URL", provider.url)
        assert "0 unreadable" in harness(capsys, *llm)
        assert provider.requests
        address = provider.url.encode()
    files = [path for path in Path().rglob("*") if path.is_file()]
    assert not [path for path in files if address in path.read_bytes()]


def test_judges_are_compared(begun, capsys):
    harness(capsys, "pool", "results/small")
    pool = read_pool(Path("pool.jsonl"))
    ann = as_person(pool)
    ben = [one.model_copy(update={"judge": "ben", "grade": 0 if one.grade and i % 3 == 0 else one.grade})
           for i, one in enumerate(ann)]  # fmt: skip
    again = [one.model_copy(update={"round": 2}) for one in ann[:5]]
    write(Path("all.jsonl"), [*ann, *ben, *again])
    said = harness(capsys, "labels", "agree", "all.jsonl")
    assert "ann and ben" in said
    assert "alpha, ordinal" in said
    assert "ann graded twice, 5 pairs: 100 % the same, kappa with squared weights " in said
    assert "(no interval below 10 queries)" in said and "95 % interval" not in said
    assert "worth talking about: " in said
    found = json.loads(harness(capsys, "labels", "agree", "all.jsonl", "--json"))
    assert found["pairs"][0]["units"] == pool.pairs
    assert found["themselves"][0]["same"] == 1.0
    said = harness(capsys, "labels", "merge", "all.jsonl", "--into", "data", "--adjudicate", "settle.jsonl")
    disputed = said.count("to adjudicate: ")
    assert disputed > 0
    settle = read_pool(Path("settle.jsonl"))
    assert (settle.pairs, settle.drawn.design) == (disputed, "adjudication")
    write(Path("cleo.jsonl"), as_person(settle, "cleo"))
    said = harness(capsys, "labels", "merge", "cleo.jsonl", "--into", "data")
    assert "to adjudicate" not in said
    assert load(DatasetReference(begun)).labels["q-fruit"].grades["apple"] == 2


def test_the_shipped_labellers_agree_as_published(project):
    """shared known answer, computed by a separate program: 50 queries x 182 documents, 160 and 195 relevant."""
    (pair,) = agree([project / "datasets" / "survey-templates-en"]).pairs
    assert (pair.queries, pair.units) == (50, 50 * 182)
    assert pair.table == ((8900, 40), (5, 155))
    assert pair.kappa.value == pytest.approx(0.8707427, abs=5e-8)
    assert pair.positive.value == pytest.approx(0.8732394, abs=5e-8)
    assert pair.kappa.low < pair.kappa.value < pair.kappa.high


def test_nobody_corrects_another_by_bearing_his_name(begun, capsys):
    harness(capsys, "pool", "results/small")
    pool = read_pool(Path("pool.jsonl"))
    ann = as_person(pool)
    write(Path("ann.jsonl"), ann)
    forged = ann[0].model_copy(update={"grade": 3 - ann[0].grade, "corrects": True})
    write(Path("forged.jsonl"), [ann[0], forged])
    merged = Path(begun) / "judgments.jsonl"

    def grade():
        return load(DatasetReference(begun)).labels[forged.query_id].grades[forged.document_id]

    harness(capsys, "labels", "merge", "ann.jsonl", "--into", "data")
    for _ in range(2):  # the same again adds nothing
        said = harness(capsys, "labels", "merge", "forged.jsonl", "--into", "data")
        assert "later grades by ann do not replace the first ones; if they should: --corrects ann" in said
        assert f"{len(ann) + 1} labels" in said and grade() == ann[0].grade
    assert [json.loads(line)["grade"] for line in merged.read_text().splitlines() if '"round": 2' in line] == [
        forged.grade
    ]
    said = harness(capsys, "labels", "merge", "forged.jsonl", "--into", "data", "--corrects", "ann")
    assert "--corrects" not in said and grade() == forged.grade


def test_a_model_that_gave_no_grade_is_filled_in(begun, capsys):
    harness(capsys, "pool", "results/small")
    (first, *_) = as_person(read_pool(Path("pool.jsonl")))
    unread = first.model_copy(update={"grade": None, "judge": "m", "kind": "llm"})
    graded = unread.model_copy(update={"grade": 2, "corrects": True})
    write(Path("unread.jsonl"), [unread])
    write(Path("graded.jsonl"), [unread, graded])
    harness(capsys, "labels", "merge", "unread.jsonl", "--into", "data")
    assert "--corrects" not in harness(capsys, "labels", "merge", "graded.jsonl", "--into", "data")
    assert load(DatasetReference(begun)).labels[first.query_id].grades == {first.document_id: 2}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"query_id": "q-elsewhere"}, "the data set has no such query"),
        ({"document_id": "elsewhere"}, "the data set has no such document"),
        ({"text": "0" * 16}, "has changed since it was judged"),
        ({"judge": "ann", "grade": 1}, "ann graded document"),
    ],
)
def test_what_does_not_belong_is_refused_and_nothing_is_merged(begun, capsys, change, message):
    harness(capsys, "pool", "results/small")
    good = as_person(read_pool(Path("pool.jsonl")))
    first = good if "judge" in change else good[1:]
    write(Path("j.jsonl"), [*first, good[0].model_copy(update=change)])
    assert message in harness(capsys, "labels", "merge", "j.jsonl", "--into", "data", code=2)
    assert not (begun / "judgments.jsonl").exists()
    assert not list(begun.glob("*.part"))


def test_a_question_that_stands_twice_is_told(begun, capsys):
    rows = json.loads((begun / "queries.json").read_text(encoding="utf-8"))
    rows.append({"id": "q-twin", "query": rows[3]["query"].upper() + " "})
    (begun / "queries.json").write_text(json.dumps(rows), encoding="utf-8")
    harness(capsys, "run", "small.toml", "--quiet")
    said = harness(capsys, "pool", "results/small")
    assert "left out: 1 query equal to another but for case and white space" in said
    assert "6 of 6 queries" in said


def test_pairs_on_which_people_and_a_model_lie_far_apart_are_listed(begun, capsys):
    harness(capsys, "pool", "results/small")
    pool = read_pool(Path("pool.jsonl"))
    people = [one.model_copy(update={"grade": 0}) for one in as_person(pool)]
    model = [one.model_copy(update={"grade": 3, "kind": "llm", "judge": "m"}) for one in people]
    write(Path("both.jsonl"), [*people, *model])
    said = harness(capsys, "labels", "agree", "both.jsonl")
    assert said.count("people and model far apart: q-") == 10 and "ann 0, m 3" in said
    assert f"{len(people) - 10} more pairs" in said
    listed = json.loads(harness(capsys, "labels", "agree", "both.jsonl", "--json"))
    assert len(listed["apart"]) == len(people) and listed["disputed"] == []
    merge = ("labels", "merge", "both.jsonl", "--into", "data", "--adjudicate", "settle.jsonl")
    assert "settle.jsonl is not written" in harness(capsys, *merge)
    Path("settle.jsonl").write_text("", encoding="utf-8")
    (begun / "judgments.jsonl").unlink()
    assert "settle.jsonl: already exists" in harness(capsys, *merge, code=2)
    assert not (begun / "judgments.jsonl").exists()


def test_one_judge_alone_agrees_with_nobody():
    with pytest.raises(InputError, match="no document was judged by two judges"):
        agreement_of([judgment()])

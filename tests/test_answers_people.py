"""A person judges a sample of verdicts: the page, the import, agreement, and estimates that use both."""

import json
import random

import numpy as np
import pytest

from harness import records
from harness.answers.judge_trust import PeopleSample, by_person, estimates, settled, trust_in_results
from harness.answers.rankings import PERSON
from harness.dataset.judgments import Judgment
from harness.labels.judging_page import in_order, write_page
from harness.labels.verdict_sample import CHOICES, POLICY, WORDS, merge_verdicts, pairs_of_results, verdict_pool
from harness.records import By, ClaimPassage
from harness.report import write_report
from harness.stats.prediction import ENOUGH, predicted
from retrievers.errors import InputError
from retrievers.opening import locked
from tests import small
from tests.browser import judged_by_keyboard, needs_browser
from tests.labels_small import write
from tests.small import ended as harness
from tests.small import ends

pytestmark = pytest.mark.slow

QUERIES = 44


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """Queries with two claims each, of which the second is a paraphrase that words do not find."""
    place = tmp_path_factory.mktemp("people")
    rows = [
        {"id": f"q{i}", "query": f"topic{i} costs" if i % 3 else "costs yen",
         "claims": [f"topic{i} costs {i} yen", f"topic{i} is prepaid always"]}
        for i in range(QUERIES)
    ]  # fmt: skip
    texts = {f"d{i}": f"topic{i} costs {i} yen. Payment comes first for topic{i}." for i in range(QUERIES)}
    data = small.markdown(place / "data", texts, rows)
    small.by_claims(place / "claims.toml", data, ["ClaimRecall@2", "ClaimPrecision@2"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HARNESS_CACHE", str(place / "cache"))
        assert harness("run", place / "claims.toml", "--results", place / "results", "--quiet") == 0
    return place / "results" / "claims"


def right(claim: str, passage: str) -> str:
    """What a person sees: the paraphrase is entailed by its own document."""
    topic = claim.split()[0]
    return "entailed" if f"{topic} " in passage else "neutral"


def judged(pool, judge="ann", *, verdict=right, queries=None, **more):
    """What the page would export."""
    from harness.labels.pool import digest_of

    grades = {word: grade for grade, word in WORDS.items()}
    lines = [line for line in pool.queries if queries is None or line.query_id.rpartition("#")[0] in queries]
    return [
        Judgment(query_id=line.query_id, document_id=doc.id, grade=grades[verdict(line.query, doc.text)], judge=judge,
                 kind="human", pool=pool.digest, text=doc.digest, prompt=digest_of(POLICY),
                 inclusion=line.inclusion, asked=len(line.documents), **more)
        for line in lines for doc in line.documents
    ]  # fmt: skip


def test_whole_queries_are_drawn_and_a_larger_sample_holds_a_smaller(ran) -> None:
    pairs = pairs_of_results(ran)
    few, more = (verdict_pool(pairs, number, 1) for number in (5, 10))
    asked = [{line.query_id.rpartition("#")[0] for line in pool.queries} for pool in (few, more)]
    assert len(asked[0]) == 5 and asked[0] < asked[1]
    for query in asked[0]:
        mine = {(line.query, doc.text) for line in few.queries for doc in line.documents
                if line.query_id.startswith(f"{query}#")}  # fmt: skip
        assert mine == {tuple(pair) for pair in pairs[query]}
    assert {line.inclusion for line in few.queries} == {5 / QUERIES}
    with pytest.raises(InputError, match="cannot be drawn"):
        verdict_pool(pairs, QUERIES + 1, 1)


def test_people_are_merged_shown_and_kept_by_the_next_run(ran, tmp_path, capsys, monkeypatch) -> None:
    monkeypatch.setenv("HARNESS_CACHE", str(ran.parent.parent / "cache"))
    assert "no person checked a sample" in (ran / "report.md").read_text(encoding="utf-8")
    said = ends(capsys, 0, "answers", "sample", ran, "--sample", 34, "--output", tmp_path / "v.html").out
    assert "34 of 44 queries" in said and "harness answers merge" in said
    page = (tmp_path / "v.html").read_text(encoding="utf-8")
    assert "Judge claims" in page and ">Claim<span" in page and "contradicted: the passage says otherwise" in page
    pool = verdict_pool(pairs_of_results(ran), 34, 0)
    exported = write(tmp_path / "judgments.jsonl", judged(pool))
    assert f"{pool.pairs:,} verdicts of ann" in ends(capsys, 0, "answers", "merge", exported, "--into", ran).out
    results = records.read(ran)  # the folder is still whole
    trust = trust_in_results(results)
    (ann,) = trust.people
    assert trust.whole == 34 and ann.both == pool.pairs and ann.same < ann.both
    assert {(one.measure, one.a, one.b) for one in trust.estimates} >= {
        ("ClaimRecall@2", "bm25", ""), ("ClaimRecall@2", "hashing", ""), ("ClaimRecall@2", "bm25", "hashing"),
    }  # fmt: skip
    mean = next(one.estimate for one in trust.estimates if one[:3] == ("ClaimRecall@2", "bm25", ""))
    assert (mean.n, mean.others) == (34, 10)
    assert mean.favour > 0  # words miss every paraphrase that the person sees
    write_report(results)
    for name in ("report.html", "report.md"):
        text = (ran / name).read_text(encoding="utf-8")
        assert ann.sentence() in text.replace("&#39;", "'") and "no person checked" not in text, name
    assert "by people's verdicts on 34 queries" in (ran / "report.md").read_text(encoding="utf-8")
    before = by_person(ran / records.FOLDER)
    assert harness("run", ran.parent.parent / "claims.toml", "--results", ran.parent, "--quiet") == 0
    assert by_person(ran / records.FOLDER) == before
    assert harness("answers", "merge", exported, "--into", ran) == 0  # the same again adds nothing
    with locked(ran, "", ""):  # a run would put a folder without them in its place
        assert "is written by another command" in ends(capsys, 2, "answers", "merge", exported, "--into", ran).err
    assert by_person(ran / records.FOLDER) == before


def test_estimates_are_the_formula_on_whole_queries_and_stand_from_thirty_on() -> None:
    rng = np.random.default_rng(1)
    truth, errors = rng.random(60), rng.normal(0, 0.1, 60)
    judge = {"m": {"a": truth + errors, "b": truth * 0.5}}
    people = {
        "m": {"a": np.where(np.arange(60) < 35, truth, np.nan), "b": np.where(np.arange(60) < 35, truth / 2, np.nan)}
    }
    whole = [i < 35 for i in range(60)]
    one, two, pair = estimates(people, judge, PeopleSample([("a", "b")], whole, None), 0.95)
    assert one.estimate == predicted(truth[:35], (truth + errors)[:35], (truth + errors)[35:])
    assert one.estimate.powered is not None
    assert two.b == "" and (pair.a, pair.b) == ("a", "b")
    assert "35 queries; no estimate with the judge's: people and the model differ on 0 of the 35" in two.sentence()
    few = [i < ENOUGH - 1 for i in range(60)]
    assert list(estimates(people, judge, PeopleSample([("a", "b")], few, None), 0.95)) == []
    assert "by people's verdicts on 35 queries" in pair.sentence() and pair.sentence().startswith("m, a less b: +")
    clusters = [str(i // 2) for i in range(60)]
    (clustered, *_) = estimates(people, judge, PeopleSample([("a", "b")], whole, clusters), 0.95)
    assert (
        clustered.estimate.units == 18 and "35 queries (18 different questions), and below 30" in clustered.sentence()
    )


def test_fewer_queries_show_agreement_and_say_what_is_missing(ran, tmp_path) -> None:
    folder = tmp_path / "answers"
    folder.mkdir()
    (folder / "verdicts.jsonl").write_bytes((ran / records.FOLDER / "verdicts.jsonl").read_bytes())
    pool = verdict_pool(pairs_of_results(ran), 3, 5)
    assert merge_verdicts([write(tmp_path / "j.jsonl", judged(pool, "ben"))], folder) == {"ben": pool.pairs}
    assert set(by_person(folder)) >= {"ben"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"prompt": "another policy"}, "not a claim and passage of this folder"),
        ({"document_id": "0" * 16}, "not a claim and passage of this folder"),
        ({"grade": 3}, "not a verdict"),
    ],
)
def test_what_does_not_belong_is_refused_whole(ran, tmp_path, change, message) -> None:
    place = ran / records.FOLDER
    before = (place / "verdicts.jsonl").read_bytes()
    first, *rest = judged(verdict_pool(pairs_of_results(ran), 3, 7), "carl")
    bad = write(tmp_path / "bad.jsonl", [*rest, first.model_copy(update=change)])
    with pytest.raises(InputError, match=message):
        merge_verdicts([bad], place)
    assert (place / "verdicts.jsonl").read_bytes() == before


def test_a_person_who_changes_his_mind_is_asked_to_settle_it(ran, tmp_path) -> None:
    place = ran / records.FOLDER
    pool = verdict_pool(pairs_of_results(ran), 2, 9)
    merge_verdicts([write(tmp_path / "one.jsonl", judged(pool, "dora"))], place)
    other = write(tmp_path / "two.jsonl", judged(pool, "dora", verdict=lambda *_: "contradicted"))
    with pytest.raises(InputError, match=r"said .* before"):
        merge_verdicts([write(tmp_path / "new.jsonl", judged(pool, "alf")), other], place)
    assert "alf" not in by_person(place)


def test_two_people_who_differ_settle_nothing() -> None:
    words = random.Random(0).choices(["entailed", "neutral"], k=5)
    pairs = {(f"c{i}", "p"): word for i, word in enumerate(words)}
    assert settled([pairs, pairs]) == pairs
    assert settled([pairs, {**pairs, ("c0", "p"): "contradicted"}])["c0", "p"] is None


def test_what_people_say_of_answers_stands_in_the_notes(ran, tmp_path, capsys, monkeypatch) -> None:
    monkeypatch.setenv("HARNESS_CACHE", str(ran.parent.parent / "cache"))
    experiment, answers = ran.parent.parent / "claims.toml", tmp_path / "answers"
    answers.mkdir()
    rows = [{"query_id": f"q{i}", "response": f"topic{i} costs {i} yen.",
             "contexts": [{"id": "d", "text": f"topic{i} costs {i} yen. Payment comes first for topic{i}."}]}
            for i in range(QUERIES)]  # fmt: skip
    (answers / "system.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    assert harness("answers", "judge", experiment, answers) == 0
    page = tmp_path / "v.html"
    assert harness("answers", "sample", answers, "--experiment", experiment, "--sample", 34, "--output", page) == 0
    from harness.labels.verdict_sample import pairs_of_answers

    pool = verdict_pool(pairs_of_answers(experiment, answers), 34, 0)
    exported = write(tmp_path / "j.jsonl", judged(pool))
    with locked(answers / "verdicts.jsonl", "", ""):
        assert harness("answers", "merge", exported, "--into", answers) == 2
    assert harness("answers", "merge", exported, "--into", answers) == 0
    assert harness("answers", "merge", exported, "--into", tmp_path / "none") == 2
    assert not (tmp_path / "none").exists()
    assert by_person(answers)["ann"] and By(PERSON + "ann") in records.judges_in(answers)
    capsys.readouterr()
    assert harness("answers", "score", experiment, answers, "-m", "ragchecker.claim_recall", "--json") == 0
    notes = json.loads(capsys.readouterr().out)["notes"]
    assert any("ann agrees with the judge on" in note for note in notes)
    by_both = next(note for note in notes if note.startswith("ragchecker.claim_recall, system: 1.0000 by people's"))
    assert "on 34 queries" in by_both and "different questions), and below 30" in by_both  # a third ask the same
    assert (
        ClaimPassage("topic1 costs 1 yen", rows[1]["contexts"][0]["text"])
        in pairs_of_answers(experiment, answers)["q1"]
    )


@needs_browser
def test_a_person_judges_the_page_by_keyboard(ran, tmp_path) -> None:
    pool = verdict_pool(pairs_of_results(ran), 2, 11)
    page = tmp_path / "verdicts.html"
    write_page(page, pool, title="Judge claims", choices=CHOICES, asked="Claim")
    keys = "".join("1" if right(line.query, doc.text) == "entailed" else "0"
                   for line, doc in (one.shown(pool) for one in in_order(pool)))  # fmt: skip
    exported = judged_by_keyboard(page, tmp_path, "eve", "3" + keys)  # 3 is not a verdict, and does nothing
    assert merge_verdicts([exported], ran / records.FOLDER) == {"eve": pool.pairs}
    (eve,) = (one for one in trust_in_results(records.read(ran)).people if one.person == "eve")
    assert eve.both == pool.pairs

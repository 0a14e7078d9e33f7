"""A run that measures by claims, and the commands for answers, from end to end."""

import csv
import json
import re
import runpy

import pytest

from harness import records
from harness.answers.judging import LexicalJudge
from harness.report import write_report
from harness.reproduce import reproduce
from retrievers.errors import BackendError
from tests.support import small
from tests.support.browser import needs_browser
from tests.support.small import ended as harness
from tests.support.small import ends

DOCUMENTS = {
    "fees": "The fee is monthly. It is paid in advance.",
    "students": "Students pay half of the fee.",
    "pool": "The pool opens at nine in the morning.",
    "sauna": "The sauna is closed in July.",
}
QUERIES = [
    {"id": "q1", "query": "how is the fee paid", "relevant_documents": ["fees", "students"], "fields": {"traffic": "3"},
     "reference": "The fee is monthly. It is paid in advance. Students pay half.",
     "claims": ["The fee is monthly.", "It is paid in advance.", {"text": "Students pay half.", "vital": False}]},
    {"id": "q2", "query": "pool opens", "relevant_documents": ["pool"], "reference": "The pool opens at nine.",
     "fields": {"traffic": "1"}},
    {"id": "q3", "query": "sauna closed", "relevant_documents": ["sauna"]},
]  # fmt: skip

CLAIMED = ["ClaimRecall@1", "ClaimRecall@2", "ContextPrecision(by='claims')@2"]


@pytest.fixture(scope="module", autouse=True)
def own_cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HARNESS_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="module")
def club(tmp_path_factory):
    folder = tmp_path_factory.mktemp("club")
    data = small.markdown(folder / "data", DOCUMENTS, QUERIES)
    small.by_claims(folder / "club.toml", data, ["nDCG@3", *CLAIMED], more="report = false")
    small.by_claims(folder / "claims.toml", data, ["ClaimRecall@2", "nDCG@3", *CLAIMED])
    return folder


@pytest.fixture(scope="module")
def results(club):
    assert harness("run", club / "club.toml", "--results", club / "results", "--quiet") == 0
    return records.read(club / "results" / "club")


def test_claims_are_measured_in_a_run_and_undefined_values_have_their_rows(results) -> None:
    table = results.scores[results.scores["measure"] == "ClaimRecall@2"].set_index(["retriever", "query_id"])["value"]
    assert table["bm25", "q1"] == 1  # both documents together hold all three claims
    assert table["bm25", "q2"] == 1  # its claims were taken out of the reference answer
    assert table.isna()["bm25", "q3"]  # neither claims nor a reference
    text = (results.folder / "scores.csv").read_text()
    assert "bm25,q3,ClaimRecall@2,\n" in text
    summary = results.summary.set_index(["retriever", "measure"])
    assert summary.loc[("bm25", "ClaimRecall@2"), "count"] == 2
    rows = results.comparisons[results.comparisons["measure"] == "ClaimRecall@1"]
    assert rows["n"].tolist() == [2]
    assert results.manifest.judge["judge"].startswith("lexical") and results.manifest.judge["depth"] == "2"
    assert reproduce(results.folder).differing == ()


def test_the_report_says_who_judged_and_the_folder_keeps_what_was_said(results) -> None:
    write_report(results)
    for name in ("report.html", "report.md"):
        page = (results.folder / name).read_text(encoding="utf-8")
        assert "4 claims of 2 of 3 queries" in page and "a weak judge" in page, name
    folder = results.folder / records.readings.FOLDER
    claims, verdicts = (list(records.read_jsonl(folder / f"{name}.jsonl")) for name in ("claims", "verdicts"))
    assert [(row["judge"], len(row["claims"])) for row in claims] == [("people", 3), ("lexical uax29-3 0.8", 1)]
    assert {row["verdict"] for row in verdicts} == {"entailed", "neutral"}
    assert set(records.readings.read_passages(folder)) <= set(DOCUMENTS)


def test_an_independent_program_agrees_with_the_results(results, project, capsys) -> None:
    verify = project.parent / "shared" / "tools" / "verify_results.py"
    if not verify.is_file():
        pytest.skip("the independent program lies outside the repository")
    found = runpy.run_path(str(verify))["main"](results.folder)
    assert found == []


def test_saved_rankings_are_scored_by_other_cutoffs_and_not_deeper_than_was_judged(results, capsys) -> None:
    assert harness("score", results.folder, "-m", "ClaimRecall@1", "-m", "ClaimPrecision@2", "--json") == 0
    told = json.loads(capsys.readouterr().out)["summary"]
    assert {row["measure"]: row["count"] for row in told} == {"ClaimRecall@1": 2, "ClaimPrecision@2": 2}
    assert harness("compare", results.folder, "-m", "ClaimRecall@1", "--json") == 0
    assert json.loads(capsys.readouterr().out)["comparisons"][0]["n"] == 2
    assert "no further hits were judged" in ends(capsys, 2, "score", results.folder, "-m", "ClaimRecall@3").err


def test_a_second_run_takes_the_verdicts_over_and_a_failing_judge_leaves_its_measures_undefined(
    club, results, monkeypatch
) -> None:
    def fail(*_):
        raise BackendError("the judge is out")

    verdicts = results.folder / records.readings.FOLDER / "verdicts.jsonl"
    before = verdicts.read_bytes()
    monkeypatch.setattr(LexicalJudge, "verdicts", fail)
    assert harness("run", club / "club.toml", "--results", club / "results", "--quiet") == 0
    assert verdicts.read_bytes() == before and not records.read(results.folder).manifest.warnings
    assert harness("run", club / "club.toml", "--results", club / "failed", "--quiet") == 0
    found = records.read(club / "failed" / "club")
    assert "the judge is out" in found.manifest.warnings[-1]
    assert set(found.summary["measure"]) == {"nDCG@3"}
    assert found.scores[found.scores["measure"] == "ClaimRecall@1"]["value"].isna().all()
    write_report(found)
    assert "the judge is out" in (found.folder / "report.md").read_text(encoding="utf-8")


def test_a_measure_by_claims_may_decide(club, capsys) -> None:
    assert harness("run", club / "claims.toml", "--results", club / "results") == 0
    assert "ClaimRecall@2 · 2 queries" in capsys.readouterr().out
    page = (club / "results" / "claims" / "report.html").read_text(encoding="utf-8")
    assert "ClaimRecall@2" in page and not re.search(r">\s*nan\b", page.lower())
    found = club / "results" / "claims"
    assert harness("gate", found, "--baseline", "bm25", "--challenger", "hashing", "--margin", "0.5") in (0, 1)


@pytest.fixture(scope="module")
def unlabelled(club):
    """Claims are all that is known of these queries; of one there is a reference to take them from."""
    rows = [{key: value for key, value in row.items() if key != "relevant_documents"} for row in QUERIES[:2]]
    data = small.markdown(club / "unlabelled", DOCUMENTS, rows)
    return small.by_claims(club / "unlabelled.toml", data, CLAIMED)


def test_claims_alone_are_a_complete_data_set(unlabelled, club, capsys) -> None:
    assert "in no mean except those of claims" in ends(capsys, 0, "check", unlabelled).out
    assert harness("run", unlabelled, "--results", club / "results") == 0
    assert "ClaimRecall@1 · 2 queries" in capsys.readouterr().out
    folder = club / "results" / "unlabelled"
    scored = records.read(folder)
    assert scored.scored and scored.manifest.dataset.scored == 2 and scored.manifest.dataset.judged == 0
    values = scored.scores[scored.scores["retriever"] == "bm25"].set_index(["measure", "query_id"])["value"]
    assert values["ClaimRecall@1", "q2"] == 1 and values["ClaimRecall@2", "q1"] == 1
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "ClaimRecall@1" in page and "Judged@" not in page and not re.search(r">\s*nan\b", page.lower())
    assert harness("score", folder, "-m", "ClaimRecall@2", "--json") == 0
    assert {row["count"] for row in json.loads(capsys.readouterr().out)["summary"]} == {2}
    assert harness("gate", folder, "--baseline", "bm25", "--challenger", "hashing", "--margin", "0.5") in (0, 1)
    assert "no person judged" not in capsys.readouterr().err


def test_queries_with_claims_alone_stand_among_those_with_labels(club, capsys) -> None:
    bare = {"id": "q4", "query": "when is the sauna closed", "claims": ["The sauna is closed in July."]}
    data = small.markdown(club / "both", DOCUMENTS, [*QUERIES, bare])
    for primary, *others in (["nDCG@3", *CLAIMED], ["ClaimRecall@2", "nDCG@3"]):
        path = small.by_claims(club / f"both-{primary[:4]}.toml", data, [primary, *others])
        assert f"{primary} · 3 queries" in ends(capsys, 0, "run", path, "--results", club / "results").out
        found = records.read(club / "results" / f"both-{primary[:4]}")
        table = found.scores[found.scores["retriever"] == "bm25"].set_index(["measure", "query_id"])["value"]
        assert table.isna()["nDCG@3", "q4"] and table["ClaimRecall@2", "q4"] == 1
        page = (found.folder / "report.html").read_text(encoding="utf-8")
        assert not re.search(r">\s*nan\b", page.lower())


def test_labels_that_decide_are_still_asked_for_where_there_are_none(unlabelled, club, capsys) -> None:
    text = unlabelled.read_text(encoding="utf-8").replace('["ClaimRecall@1"', '["nDCG@3", "ClaimRecall@1"')
    (club / "beginning.toml").write_text(text.replace('= "ClaimRecall@1"', '= "nDCG@3"'), encoding="utf-8")
    assert "No query has labels" in ends(capsys, 0, "run", club / "beginning.toml", "--results", club / "begun").out
    folder = club / "begun" / "unlabelled"
    gate = ("gate", folder, "--baseline", "bm25", "--challenger", "hashing", "--margin", "0.5")
    for words in (gate, ("score", folder), ("compare", folder), ("export", folder, "--as", "mteb")):
        assert "no query has labels" in ends(capsys, 2, *words).err


def test_what_a_measure_by_claims_needs_is_asked_for_before_the_run(club, tmp_path, capsys, monkeypatch) -> None:
    text = (club / "club.toml").read_text(encoding="utf-8")
    bare = tmp_path / "bare.toml"
    bare.write_text(text.replace('[judge]\nkind = "lexical"\n', ""), encoding="utf-8")
    assert '[judge] kind = "lexical"' in ends(capsys, 2, "check", bare).err
    for written in ('kind = "nli"', 'kind = "lexical"\nmodel = "x"', 'kind = "openai"\nmodel = "x"\nthreshold = 0.5'):
        wrong = tmp_path / "wrong.toml"
        wrong.write_text(text.replace('kind = "lexical"', written, 1), encoding="utf-8")
        assert harness("check", wrong) == 2
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    keyless = tmp_path / "keyless.toml"
    keyless.write_text(text.replace('kind = "lexical"', 'kind = "openai"\nmodel = "x"', 1), encoding="utf-8")
    assert "export OPENAI_API_KEY" in ends(capsys, 2, "check", keyless).err
    data = small.markdown(tmp_path / "data", {"a": "fee"}, [{"query": "fee", "relevant_documents": ["a"]}])
    none = tmp_path / "none.toml"
    none.write_text(text.replace((club / "data").as_posix(), data.as_posix()), encoding="utf-8")
    assert "no query has any" in ends(capsys, 2, "check", none).err


@pytest.fixture
def answers(tmp_path):
    contexts = [{"id": name, "text": DOCUMENTS[name]} for name in ("fees", "pool")]
    rows = {
        "careful": [
            {"query_id": "q1", "response": "The fee is monthly [1]. It is paid in advance [1].", "contexts": contexts},
            {"query_id": "q2", "response": "The pool opens at nine.", "contexts": contexts},
        ],
        "lazy": [{"query_id": "q1", "response": "Ask the desk.", "contexts": contexts}],
    }
    for name, lines in rows.items():
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return tmp_path


def test_answers_are_checked_judged_and_scored(club, answers, capsys) -> None:
    experiment = club / "club.toml"
    assert "harness answers judge" in ends(capsys, 2, "answers", "score", experiment, answers).err
    told = json.loads(ends(capsys, 0, "answers", "check", experiment, answers, "--json").out)
    assert [(one["system"], one["missing"]) for one in told["systems"]] == [("careful", 0), ("lazy", 1)]
    assert harness("answers", "judge", experiment, answers, "--plan") == 0
    assert "on this machine" in capsys.readouterr().out and not (answers / "verdicts.jsonl").exists()
    assert "weak" in ends(capsys, 0, "answers", "judge", experiment, answers).out
    page = answers / "page" / "blame.html"
    out = ends(capsys, 0, "answers", "score", experiment, answers, "--report", page).out
    assert "ragchecker.recall" in out and "tok:13a" in out and "undefined for some" in out
    with (answers / "scores.csv").open(encoding="utf-8") as file:
        scores = {(row["retriever"], row["query_id"], row["measure"]): row["value"] for row in csv.DictReader(file)}
    assert scores["careful", "q1", "ragchecker.recall"] == repr(2 / 3)
    assert scores["lazy", "q2", "ragchecker.recall"] == "0.0" and scores["lazy", "q2", "ragchecker.precision"] == ""
    html = page.read_text(encoding="utf-8")
    assert "Retriever or generator?" in html and "not used" in html and "supported by fees" in html
    assert harness("answers", "score", experiment, answers, "-m", "ROUGE-L", "--tokenizer", "char", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert {row["measure"] for row in told["summary"]} == {"ROUGE-L"} and told["comparisons"][0]["n"] == 2
    weighted = club / "weighted.toml"
    declared = '\n[statistics]\nweight = "traffic"\ncluster = "traffic"\nlooks = { queries = [2, 50] }\n'
    weighted.write_text(experiment.read_text(encoding="utf-8") + declared, encoding="utf-8")
    assert harness("answers", "score", weighted, answers, "-m", "ragchecker.recall", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert {row["retriever"]: row["mean"] for row in told["summary"]} == {"careful": (3 * 2 / 3 + 1) / 4, "lazy": 0}
    assert told["comparisons"][0]["clusters"] == 2
    assert told["summary"][0]["ci_low"] < 1e-99  # at the level of the first of two looks; 1e-41 at that of both
    for wrong in (["-m", "RUGE"], ["--tokenizer", "flores200"], ["--baseline", "x"]):
        assert harness("answers", "score", experiment, answers, *wrong) == 2


@needs_browser
def test_what_became_of_a_claim_stands_in_one_line(driver, club, answers) -> None:
    page = answers / "page.html"
    assert harness("answers", "judge", club / "club.toml", answers) == 0
    assert harness("answers", "score", club / "club.toml", answers, "--report", page) == 0
    driver.get(page.resolve().as_uri())
    summary, high, wide = driver.execute_script("""
        const answer = document.querySelector("#blame details");
        answer.open = true;
        const fate = answer.querySelector("li b").getBoundingClientRect();
        return [answer.querySelector("small").textContent, fate.height, fate.width];
    """)
    assert summary == "careful: 2 of 3 claims answered; lazy: 0 of 3 claims answered"
    assert high < 30 < wide


def test_hostile_texts_stay_texts_in_the_page(club, tmp_path) -> None:
    evil = "<script>alert(1)</script><img src=x onerror=alert(1)>"
    row = {"query_id": "q1", "response": f"{evil} The fee is monthly.", "contexts": [{"id": evil, "text": evil}]}
    (tmp_path / "evil.jsonl").write_text(json.dumps(row), encoding="utf-8")
    assert harness("answers", "judge", club / "club.toml", tmp_path) == 0
    page = tmp_path / "page.html"
    assert harness("answers", "score", club / "club.toml", tmp_path, "--report", page) == 0
    html = page.read_text(encoding="utf-8")
    assert "<script" not in html and "<img" not in html and "default-src &#39;none&#39;" in html

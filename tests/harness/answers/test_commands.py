"""A run that measures by claims, and the commands for answers, from end to end."""

import csv
import json
import re

import pytest

from harness import records
from harness.answers.local_judges import LexicalJudge
from harness.records import judge_files
from harness.report.write import write_report
from harness.reproduce import reproduce
from retrievers.errors import BackendError
from tests.support import layouts, small
from tests.support.small import ends, told

DOCUMENTS = {
    "fees": "The fee is monthly. It is paid in advance.",
    "students": "Students pay half of the fee.",
    "pool": "The pool opens at nine in the morning.",
    "sauna": "The sauna is closed in July.",
}
QUERIES = [
    {
        "id": "q1",
        "query": "how is the fee paid",
        "relevant_documents": ["fees", "students"],
        "fields": {"traffic": "3"},
        "reference": "The fee is monthly. It is paid in advance. Students pay half.",
        "claims": [
            "The fee is monthly.",
            "It is paid in advance.",
            {"text": "Students pay half.", "vital": False},
        ],
    },
    {
        "id": "q2",
        "query": "pool opens",
        "relevant_documents": ["pool"],
        "reference": "The pool opens at nine.",
        "fields": {"traffic": "1"},
    },
    {"id": "q3", "query": "sauna closed", "relevant_documents": ["sauna"]},
]

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
    small.by_claims(
        folder / "club.toml", data, ["nDCG@3", *CLAIMED], more="report = false"
    )
    small.by_claims(folder / "claims.toml", data, ["ClaimRecall@2", "nDCG@3", *CLAIMED])
    return folder


@pytest.fixture(scope="module")
def results(club):
    assert (
        small.ended("run", club / "club.toml", "--results", club / "results", "--quiet")
        == 0
    )
    return records.read_results(club / "results" / "club")


def of_bm25(results):
    rows = results.scores[results.scores["retriever"] == "bm25"]
    return rows.set_index(["measure", "query_id"])["value"]


def page_of(folder):
    """A report, which shows no number that is none."""
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert not re.search(r">\s*nan\b", page.lower())
    return page


def test_claims_are_measured_in_a_run_and_undefined_values_have_their_rows(
    results, capsys
) -> None:
    table = of_bm25(results)
    assert (
        table["ClaimRecall@2", "q1"] == 1
    )  # both documents together hold all three claims
    assert (
        table["ClaimRecall@2", "q2"] == 1
    )  # its claims were taken out of the reference answer
    assert (
        "bm25,q3,ClaimRecall@2,\n" in (results.folder / "scores.csv").read_text()
    )  # neither claims nor a reference
    assert (
        results.summary.set_index(["retriever", "measure"]).loc[
            ("bm25", "ClaimRecall@2"), "count"
        ]
        == 2
    )
    assert results.comparisons.set_index("measure").loc["ClaimRecall@1", "n"] == 2
    assert (
        results.manifest.judge["judge"].startswith("lexical")
        and results.manifest.judge["depth"] == "2"
    )
    assert reproduce(results.folder).differing == ()
    write_report(results)
    for name in ("report.html", "report.md"):
        page = (results.folder / name).read_text(encoding="utf-8")
        assert "4 claims of 2 of 3 queries" in page and "a weak judge" in page, name
    folder = results.folder / judge_files.ANSWERS_FOLDER
    claims, verdicts = (
        list(records.read_json_lines(folder / f"{name}.jsonl"))
        for name in ("claims", "verdicts")
    )
    assert [(row["judge"], len(row["claims"])) for row in claims] == [
        ("people", 3),
        ("lexical uax29-3 0.8", 1),
    ]
    assert {row["verdict"] for row in verdicts} == {"entailed", "neutral"}
    assert set(judge_files.read_passages(folder)) <= set(DOCUMENTS)
    # Saved rankings are scored by other cutoffs, and not deeper than was judged.
    scored = json.loads(
        told(
            capsys,
            "score",
            results.folder,
            "-m",
            "ClaimRecall@1",
            "-m",
            "ClaimPrecision@2",
            "--json",
        )
    )
    assert {row["measure"]: row["count"] for row in scored["summary"]} == {
        "ClaimRecall@1": 2,
        "ClaimPrecision@2": 2,
    }
    compared = json.loads(
        told(capsys, "compare", results.folder, "-m", "ClaimRecall@1", "--json")
    )
    assert compared["comparisons"][0]["n"] == 2
    assert "no further hits were judged" in told(
        capsys, "score", results.folder, "-m", "ClaimRecall@3", code=2
    )


def test_verdicts_are_taken_over_and_without_a_judge_they_are_undefined(
    club, results, monkeypatch
) -> None:
    def fail(*_):
        raise BackendError("the judge is out")

    verdicts = results.folder / judge_files.ANSWERS_FOLDER / "verdicts.jsonl"
    before = verdicts.read_bytes()
    monkeypatch.setattr(LexicalJudge, "verdicts", fail)
    for parent in ("results", "failed"):
        assert (
            small.ended(
                "run", club / "club.toml", "--results", club / parent, "--quiet"
            )
            == 0
        )
    assert (
        verdicts.read_bytes() == before
        and not records.read_results(results.folder).manifest.warnings
    )
    failed = records.read_results(club / "failed" / "club")
    assert "the judge is out" in failed.manifest.warnings[-1]
    assert set(failed.summary["measure"]) == {"nDCG@3"}
    assert of_bm25(failed)["ClaimRecall@1"].isna().all()
    write_report(failed)
    assert "the judge is out" in (failed.folder / "report.md").read_text(
        encoding="utf-8"
    )


GATE = ("--baseline", "bm25", "--challenger", "hashing", "--margin", "0.5")


@pytest.fixture(scope="module")
def unlabelled(club):
    """Claims are all that is known of these queries; of one there is a reference to take them from."""
    rows = [
        {key: value for key, value in row.items() if key != "relevant_documents"}
        for row in QUERIES[:2]
    ]
    data = small.markdown(club / "unlabelled", DOCUMENTS, rows)
    return small.by_claims(club / "unlabelled.toml", data, CLAIMED)


def test_claims_alone_are_a_complete_data_set(unlabelled, club, capsys) -> None:
    assert "in no mean except those of claims" in told(capsys, "check", unlabelled)
    assert "ClaimRecall@1 · 2 queries" in told(
        capsys, "run", unlabelled, "--results", club / "results"
    )
    folder = club / "results" / "unlabelled"
    stored = records.read_results(folder)
    assert (
        stored.scored
        and stored.manifest.dataset.scored == 2
        and stored.manifest.dataset.judged == 0
    )
    assert (
        of_bm25(stored)["ClaimRecall@1", "q2"]
        == of_bm25(stored)["ClaimRecall@2", "q1"]
        == 1
    )
    assert "ClaimRecall@1" in page_of(folder) and "Judged@" not in page_of(folder)
    scored = json.loads(told(capsys, "score", folder, "-m", "ClaimRecall@2", "--json"))
    assert {row["count"] for row in scored["summary"]} == {2}
    assert small.ended("gate", folder, *GATE) in (0, 1)
    assert "no person judged" not in capsys.readouterr().err
    # Labels that decide are still asked for where there are none.
    text = unlabelled.read_text(encoding="utf-8").replace(
        '["ClaimRecall@1"', '["nDCG@3", "ClaimRecall@1"'
    )
    (club / "beginning.toml").write_text(
        text.replace('= "ClaimRecall@1"', '= "nDCG@3"'), encoding="utf-8"
    )
    assert "No query has labels" in told(
        capsys, "run", club / "beginning.toml", "--results", club / "begun"
    )
    folder = club / "begun" / "unlabelled"
    for words in (
        ("gate", folder, *GATE),
        ("score", folder),
        ("compare", folder),
        ("export", folder, "--as", "mteb"),
    ):
        assert "no query has labels" in told(capsys, *words, code=2)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('[judge]\nkind = "lexical"\n', "", '[judge] kind = "lexical"'),
        ('kind = "lexical"', 'kind = "nli"', "model"),
        ('kind = "lexical"', 'kind = "lexical"\nmodel = "x"', "model"),
        (
            'kind = "lexical"',
            'kind = "openai"\nmodel = "x"\nthreshold = 0.5',
            "threshold",
        ),
        ('kind = "lexical"', 'kind = "openai"\nmodel = "x"', "export OPENAI_API_KEY"),
        ("DATA", "bare", "no query has any"),
    ],
)
def test_what_claims_need_is_asked_for_before_the_run(
    club, tmp_path, capsys, no_keys, old, new, message
) -> None:
    small.markdown(
        tmp_path / "bare", {"a": "fee"}, [{"query": "fee", "relevant_documents": ["a"]}]
    )
    text = (club / "club.toml").read_text(encoding="utf-8")
    wrong = (
        text.replace((club / "data").as_posix(), "bare")
        if old == "DATA"
        else text.replace(old, new, 1)
    )
    (tmp_path / "wrong.toml").write_text(wrong, encoding="utf-8")
    assert message in told(capsys, "check", tmp_path / "wrong.toml", code=2)


@pytest.fixture
def answers(tmp_path):
    contexts = [{"id": name, "text": DOCUMENTS[name]} for name in ("fees", "pool")]
    careful = {
        "q1": "The fee is monthly [1]. It is paid in advance [1].",
        "q2": "The pool opens at nine.",
    }
    for system, responses in (("careful", careful), ("lazy", {"q1": "Ask the desk."})):
        rows = [
            {"query_id": query, "response": text, "contexts": contexts}
            for query, text in responses.items()
        ]
        layouts.jsonl(tmp_path / f"{system}.jsonl", rows)
    return tmp_path


def test_answers_are_checked_judged_and_scored(club, answers, capsys) -> None:
    experiment = club / "club.toml"
    assert (
        "harness answers judge"
        in ends(capsys, 2, "answers", "score", experiment, answers).err
    )
    checked = json.loads(
        told(capsys, "answers", "check", experiment, answers, "--json")
    )
    assert [(system["system"], system["missing"]) for system in checked["systems"]] == [
        ("careful", 0),
        ("lazy", 1),
    ]
    assert "on this machine" in told(
        capsys, "answers", "judge", experiment, answers, "--plan"
    )
    assert not (answers / "verdicts.jsonl").exists()
    assert "weak" in told(capsys, "answers", "judge", experiment, answers)
    page = answers / "page" / "blame.html"
    out = told(capsys, "answers", "score", experiment, answers, "--report", page)
    assert (
        "ragchecker.recall" in out and "tok:13a" in out and "undefined for some" in out
    )
    with (answers / "scores.csv").open(encoding="utf-8") as file:
        scores = {
            (row["retriever"], row["query_id"], row["measure"]): row["value"]
            for row in csv.DictReader(file)
        }
    assert scores["careful", "q1", "ragchecker.recall"] == repr(2 / 3)
    assert (
        scores["lazy", "q2", "ragchecker.recall"] == "0.0"
        and scores["lazy", "q2", "ragchecker.precision"] == ""
    )
    html = page.read_text(encoding="utf-8")
    assert (
        "Retriever or generator?" in html
        and "not used" in html
        and "supported by fees" in html
    )
    assert "careful: 2 of 3 claims answered; lazy: 0 of 3 claims answered" in html
    score = ("answers", "score", experiment, answers)
    by_letters = json.loads(
        told(capsys, *score, "-m", "ROUGE-L", "--tokenizer", "char", "--json")
    )
    assert {row["measure"] for row in by_letters["summary"]} == {
        "ROUGE-L"
    } and by_letters["comparisons"][0]["n"] == 2
    weighted = club / "weighted.toml"
    declared = '\n[statistics]\nweight = "traffic"\ncluster = "traffic"\nlooks = { queries = [2, 50] }\n'
    weighted.write_text(
        experiment.read_text(encoding="utf-8") + declared, encoding="utf-8"
    )
    scored = json.loads(
        told(
            capsys,
            "answers",
            "score",
            weighted,
            answers,
            "-m",
            "ragchecker.recall",
            "--json",
        )
    )
    assert {row["retriever"]: row["mean"] for row in scored["summary"]} == {
        "careful": (3 * 2 / 3 + 1) / 4,
        "lazy": 0,
    }
    assert scored["comparisons"][0]["clusters"] == 2
    assert (
        scored["summary"][0]["ci_low"] < 1e-99
    )  # at the level of the first of two looks; 1e-41 at that of both
    for wrong in (["-m", "RUGE"], ["--tokenizer", "flores200"], ["--baseline", "x"]):
        told(capsys, *score, *wrong, code=2)


def test_hostile_texts_stay_texts_in_the_page(club, tmp_path) -> None:
    evil, page = (
        "<script>alert(1)</script><img src=x onerror=alert(1)>",
        tmp_path / "page.html",
    )
    row = {
        "query_id": "q1",
        "response": f"{evil} The fee is monthly.",
        "contexts": [{"id": evil, "text": evil}],
    }
    layouts.jsonl(tmp_path / "evil.jsonl", [row])
    assert small.ended("answers", "judge", club / "club.toml", tmp_path) == 0
    assert (
        small.ended("answers", "score", club / "club.toml", tmp_path, "--report", page)
        == 0
    )
    html = page.read_text(encoding="utf-8")
    assert (
        "<script" not in html
        and "<img" not in html
        and "default-src &#39;none&#39;" in html
    )

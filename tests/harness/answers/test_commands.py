"""A run that measures by claims, and the commands for answers, from end to end."""

import csv
import json
import re
import sys

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


def read_page(folder):
    """A report without nan."""
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert not re.search(r">\s*nan\b", page.lower())
    return page


@pytest.mark.parametrize(
    "query_id",
    [
        pytest.param("q1", id="both documents together have all three claims"),
        pytest.param("q2", id="its claims are taken from the reference answer"),
    ],
)
def test_claims_are_measured_in_a_run(results, query_id) -> None:
    assert of_bm25(results)["ClaimRecall@2", query_id] == 1


def test_a_query_without_claims_and_reference_is_undefined(results) -> None:
    text = (results.folder / "scores.csv").read_text()
    assert "bm25,q3,ClaimRecall@2,\n" in text
    summary = results.summary.set_index(["retriever", "measure"])
    assert summary.loc[("bm25", "ClaimRecall@2"), "count"] == 2
    comparisons = results.comparisons.set_index("measure")
    assert comparisons.loc["ClaimRecall@1", "n"] == 2


def test_the_manifest_names_the_judge_and_the_depth(results) -> None:
    assert results.manifest.judge.judge.startswith("lexical")
    assert results.manifest.judge.depth == 2


def test_measures_by_claims_are_reproduced(results) -> None:
    assert reproduce(results.folder).differing_files == ()


@pytest.mark.parametrize("file", ["report.html", "report.md"])
def test_the_report_counts_the_claims_and_warns_of_a_weak_judge(results, file) -> None:
    write_report(results)
    page = (results.folder / file).read_text(encoding="utf-8")
    assert "4 claims of 2 of 3 queries" in page
    assert "a weak judge" in page


def test_claims_verdicts_and_passages_are_stored(results) -> None:
    folder = results.folder / judge_files.ANSWERS_FOLDER
    claims = list(records.read_json_lines(folder / "claims.jsonl"))
    verdicts = list(records.read_json_lines(folder / "verdicts.jsonl"))
    assert [(row["judge"], len(row["claims"])) for row in claims] == [
        ("people", 3),
        ("lexical uax29-4 0.8", 1),
    ]
    assert {row["verdict"] for row in verdicts} == {"entailed", "neutral"}
    assert set(judge_files.read_passages(folder)) <= set(DOCUMENTS)


def test_saved_rankings_are_scored_by_other_cutoffs(results, capsys) -> None:
    measures = ["-m", "ClaimRecall@1", "-m", "ClaimPrecision@2"]
    output = json.loads(told(capsys, "score", results.folder, *measures, "--json"))
    counts = {row["measure"]: row["count"] for row in output["summary"]}
    assert counts == {"ClaimRecall@1": 2, "ClaimPrecision@2": 2}


def test_saved_rankings_are_compared_by_another_cutoff(results, capsys) -> None:
    words = ["compare", results.folder, "-m", "ClaimRecall@1", "--json"]
    output = json.loads(told(capsys, *words))
    assert output["comparisons"][0]["n"] == 2


def test_no_hits_are_scored_below_those_that_were_judged(results, capsys) -> None:
    words = ["score", results.folder, "-m", "ClaimRecall@3"]
    assert "no further hits were judged" in told(capsys, *words, code=2)


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
    """The queries have claims or a reference answer, and no labels."""
    rows = []
    for query in QUERIES[:2]:
        row = dict(query)
        del row["relevant_documents"]
        rows.append(row)
    data = small.markdown(club / "unlabelled", DOCUMENTS, rows)
    return small.by_claims(club / "unlabelled.toml", data, CLAIMED)


def test_claims_alone_are_a_complete_data_set(unlabelled, club, capsys) -> None:
    assert "not scored (except by claims)" in told(capsys, "check", unlabelled)
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
    assert "ClaimRecall@1" in read_page(folder) and "Judged@" not in read_page(folder)
    scored = json.loads(told(capsys, "score", folder, "-m", "ClaimRecall@2", "--json"))
    assert {row["count"] for row in scored["summary"]} == {2}
    gate = small.told(capsys, "gate", folder, *GATE)
    assert gate.startswith("unchanged: the rankings are the same on 2 queries")
    assert "no person judged" not in gate
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
        ('kind = "lexical"', 'kind = "lexical"\nrpm = 60', "rpm has no effect on"),
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


def answer_words(command, club, answers, *options):
    return ("answers", command, club / "club.toml", answers, *options)


@pytest.fixture
def judged_answers(club, answers, capsys):
    """The answers with verdicts."""
    assert "weak" in told(capsys, *answer_words("judge", club, answers))
    return answers


def test_answers_without_verdicts_are_not_scored(club, answers, capsys) -> None:
    errors = ends(capsys, 2, *answer_words("score", club, answers)).err
    assert "harness answers judge" in errors


def test_check_counts_missing_answers(club, answers, capsys) -> None:
    output = json.loads(told(capsys, *answer_words("check", club, answers, "--json")))
    missing = [(system["system"], system["missing"]) for system in output["systems"]]
    assert missing == [("careful", 0), ("lazy", 1)]


def test_an_answer_to_a_query_that_is_not_searched_is_ignored(
    tmp_path, answers, capsys
) -> None:
    data = small.markdown(
        tmp_path / "data", DOCUMENTS, [*QUERIES, {"id": "q4", "query": "towels"}]
    )
    small.by_claims(tmp_path / "club.toml", data, ["nDCG@3"])
    with (answers / "lazy.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"query_id": "q4", "response": "At the desk."}\n')
    printed = told(capsys, *answer_words("check", tmp_path, answers))
    assert "2 queries to measure" in printed
    assert "with neither, ignored: 2" in printed


def test_the_plan_of_a_local_judge_writes_nothing(club, answers, capsys) -> None:
    plan = told(capsys, *answer_words("judge", club, answers, "--plan"))
    assert "on this machine" in plan
    assert not (answers / "verdicts.jsonl").exists()


@pytest.mark.parametrize("command", ["judge", "score"])
def test_a_package_that_scoring_lacks_is_named_before_the_judge_runs(
    club, answers, capsys, monkeypatch, command: str
) -> None:
    monkeypatch.setitem(sys.modules, "sacrebleu", None)
    errors = ends(capsys, 2, *answer_words(command, club, answers)).err
    assert "sacrebleu" in errors
    assert "'retriever-harness[answers]'" in " ".join(errors.split())
    assert not (answers / "verdicts.jsonl").exists()


def test_answers_are_scored_with_notes(club, judged_answers, capsys) -> None:
    output = told(capsys, *answer_words("score", club, judged_answers))
    assert "ragchecker.recall" in output
    assert "tok:13a" in output
    assert "undefined for some" in output


def test_the_scores_of_answers_are_written(club, judged_answers, capsys) -> None:
    told(capsys, *answer_words("score", club, judged_answers))
    with (judged_answers / "scores.csv").open(encoding="utf-8") as file:
        scores = {
            (row["retriever"], row["query_id"], row["measure"]): row["value"]
            for row in csv.DictReader(file)
        }
    assert scores["careful", "q1", "ragchecker.recall"] == repr(2 / 3)
    assert scores["lazy", "q2", "ragchecker.recall"] == "0.0"
    assert scores["lazy", "q2", "ragchecker.precision"] == ""


@pytest.mark.parametrize(
    "text",
    [
        "Retriever or generator?",
        "not used",
        "supported by fees",
        "careful: 2 of 3 claims answered; lazy: 0 of 3 claims answered",
    ],
)
def test_the_page_of_answers_shows_the_fate_of_claims(
    club, judged_answers, capsys, text
) -> None:
    page = judged_answers / "page" / "blame.html"
    told(capsys, *answer_words("score", club, judged_answers, "--report", page))
    assert text in page.read_text(encoding="utf-8")


def test_answers_are_scored_by_a_measure_and_a_tokenizer(
    club, judged_answers, capsys
) -> None:
    options = ["-m", "ROUGE-L", "--tokenizer", "char", "--json"]
    words = answer_words("score", club, judged_answers, *options)
    output = json.loads(told(capsys, *words))
    assert {row["measure"] for row in output["summary"]} == {"ROUGE-L"}
    assert output["comparisons"][0]["n"] == 2


STATISTICS = """
[statistics]
weight = "traffic"
cluster = "traffic"
looks = { queries = [2, 50] }
"""


def test_answers_are_scored_with_the_statistics_of_the_experiment(
    club, judged_answers, capsys
) -> None:
    """The level is that of the first of two looks; with both it would be 1e-41."""
    text = (club / "club.toml").read_text(encoding="utf-8")
    weighted = club / "weighted.toml"
    weighted.write_text(text + STATISTICS, encoding="utf-8")
    options = ["-m", "ragchecker.recall", "--json"]
    words = ("answers", "score", weighted, judged_answers, *options)
    output = json.loads(told(capsys, *words))
    means = {row["retriever"]: row["mean"] for row in output["summary"]}
    assert means == {"careful": (3 * 2 / 3 + 1) / 4, "lazy": 0}
    assert output["comparisons"][0]["clusters"] == 2
    assert output["summary"][0]["ci_low"] < 1e-99


def test_another_query_than_the_measured_ones_may_have_the_field_of_clusters(
    judged_answers, capsys, tmp_path_factory
) -> None:
    folder = tmp_path_factory.mktemp("needs")
    queries = [*QUERIES[:2], {**QUERIES[2], "fields": {"need": "x"}}]
    data = small.markdown(folder / "data", DOCUMENTS, queries)
    experiment = folder / "needs.toml"
    small.by_claims(experiment, data, CLAIMED)
    text = experiment.read_text(encoding="utf-8")
    for field, code in (("need", 0), ("ned", 2)):
        table = f'[statistics]\ncluster = "{field}"\n'
        experiment.write_text(text + table, encoding="utf-8")
        assert small.ended("answers", "score", experiment, judged_answers) == code
    assert "'ned' is a field of no query" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["-m", "RUGE"], "measure 'RUGE': is not a measure of answers"),
        (["--tokenizer", "flores200"], "no tokenizer 'flores200' (known: 13a,"),
        (["--baseline", "x"], "no retriever is called 'x' (known: careful, lazy)"),
    ],
)
def test_an_unknown_measure_tokenizer_or_baseline_is_refused(
    club, judged_answers, capsys, options, message
) -> None:
    words = answer_words("score", club, judged_answers, *options)
    assert message in told(capsys, *words, code=2)


def test_hostile_texts_stay_texts_in_the_page(club, tmp_path) -> None:
    hostile = "<script>alert(1)</script><img src=x onerror=alert(1)>"
    page = tmp_path / "page.html"
    row = {
        "query_id": "q1",
        "response": f"{hostile} The fee is monthly.",
        "contexts": [{"id": hostile, "text": hostile}],
    }
    layouts.jsonl(tmp_path / "evil.jsonl", [row])
    assert small.ended(*answer_words("judge", club, tmp_path)) == 0
    assert small.ended(*answer_words("score", club, tmp_path, "--report", page)) == 0
    html = page.read_text(encoding="utf-8")
    assert "<script" not in html
    assert "<img" not in html
    assert "&lt;img src=x onerror=alert(1)&gt;" in html
    assert "default-src &#39;none&#39;" in html


def test_answers_without_a_defined_measure_are_refused(tmp_path, capsys) -> None:
    question = {"id": "q1", "query": "?", "relevant_documents": ["fees"]}
    data = small.markdown(tmp_path / "data", DOCUMENTS, [{**question, "claims": ["?"]}])
    small.by_claims(tmp_path / "club.toml", data, ["nDCG@3", "ClaimRecall@1"])
    answers = tmp_path / "answers"
    answers.mkdir()
    # The lexical judge has no verdict on a claim without a word.
    row = {"query_id": "q1", "response": "!", "contexts": ["…"]}
    layouts.jsonl(answers / "careful.jsonl", [row])
    assert small.ended(*answer_words("judge", tmp_path, answers)) == 0
    output = told(capsys, *answer_words("score", tmp_path, answers), code=2)
    assert f"{answers}: no measure is defined: none of the 4 verdicts" in output

"""What results and reports make of labels of people, of models, and of both."""

import json
import re

import pytest

import harness
from harness.dataset import DatasetReference, load
from harness.evaluation.evaluate import evaluation_of
from harness.evaluation.grading import alternatives, by_labeller
from harness.evaluation.wording import warning_sentences
from harness.experiment import Relevance
from tests.support import small
from tests.support.labels_small import judged, write

ALL = [id_ for id_, _, _ in small.QUERIES]
MANY = [(f"{id_}{'-' * number}", f"{text} {number}", docs) for number in range(7) for id_, text, docs in small.QUERIES]
"""The small data set's questions, seven times in other words."""
JUDGED = [id_ for id_, _, _ in MANY[:36]]


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """Run the small experiment with judgments beside its queries; the report is written only where it is asked for."""

    def run(said, questions=small.QUERIES, *, report=False):
        place = tmp_path_factory.mktemp("judged")
        folder = small.dataset(place / "data")
        rows = [{"id": id_, "query": text} for id_, text, _ in questions]
        (folder / "queries.json").write_text(json.dumps(rows), encoding="utf-8")
        write(folder / "judgments.jsonl", said(folder))
        return harness.run(small.experiment(place, report=report), harness.Options(results=place / "results"))

    return run


@pytest.fixture(scope="module")
def both(ran):
    """36 questions by people, all 42 by a model that errs."""

    def said(folder):
        by_model = judged(folder, [id_ for id_, _, _ in MANY], "m", "llm", noise=3)
        return [*judged(folder, JUDGED, inclusion=36 / 42), *by_model]

    return ran(said, MANY, report=True)


def shown_text(results):
    page = (results.folder / "report.html").read_text(encoding="utf-8")
    body = re.sub(r"<(script|style)[^>]*>.*?</\1>", " ", page, flags=re.DOTALL)
    return re.sub(r"<[^>]+>", " ", body)


def test_the_tests_rest_on_peoples_queries_and_the_page_says_so(both):
    assert set(both.scores["query_id"]) == set(JUDGED)
    assert evaluation_of(both).settings.by_people
    assert set(both.rankings("bm25")) == {id_ for id_, _, _ in MANY}
    text = shown_text(both)
    assert "People judged 36 queries" in text and "Judged@3" in text


def test_comparing_says_what_nobody_judged_as_a_run_does(ran, capsys):
    results = ran(lambda folder: judged(folder, ALL, depth=4))
    (caution,) = warning_sentences(evaluation_of(results).warnings)
    assert "documents without a label count as irrelevant" in caution
    assert caution in small.told(capsys, "compare", results.folder)


def test_where_no_person_judged_nothing_is_claimed(ran, capsys):
    results = ran(lambda folder: judged(folder, ALL, "m", "llm"), report=True)
    assert not evaluation_of(results).settings.by_people
    assert set(results.comparisons["verdict"]) == {"undecided: judged by a model alone"}
    for text in (shown_text(results), (results.folder / "report.md").read_text(encoding="utf-8")):
        assert "shown" not in text.lower().replace("no person", "")
        assert "judged by a model alone" in text or "Only a model judged" in text
    gate = ("gate", results.folder, "--baseline", "bm25", "--challenger", "hashing", "--margin", "0.1")
    assert "no person judged" in small.told(capsys, *gate, code=1)
    assert "shown" not in small.told(capsys, "report", results.folder)
    assert "Only a model judged" in small.told(capsys, "compare", results.folder)


def test_what_people_did_not_finish_makes_no_score(ran):
    results = ran(lambda folder: [*judged(folder, ALL[:3]), *judged(folder, ["q-green"])[:2],
                                  *judged(folder, ALL, "m", "llm")])  # fmt: skip
    assert results.queries["q-green"].labels.source == "mixed"
    assert set(results.scores["query_id"]) == set(ALL[:3])


def test_a_labeller_of_lists_keeps_his_order_under_every_rule(project):
    folder = project / "datasets" / "survey-templates-en"
    labels = load(DatasetReference(folder, queries=("labels-a.json", "labels-b.json"))).labels
    own = {query: given.ranked for query, given in by_labeller(labels)["a"].items()}
    alone = load(DatasetReference(folder, queries=("labels-a.json",))).labels
    assert own == {query: given.ranked for query, given in alone.items()}
    readings = alternatives(labels, Relevance())
    assert {"linear", "by b"} <= set(readings) and readings["by a"] == alternatives(alone, Relevance())["linear"]


def test_documents_chosen_for_their_effect_make_no_score(ran):
    some = ran(lambda folder: judged(folder, ALL, depth=4))
    more = ran(lambda folder: [*judged(folder, ALL, depth=4), *judged(folder, ALL, "ben", design="next")])
    assert more.scores["value"].tolist() == some.scores["value"].tolist()
    assert more.comparisons["p_value"].tolist() == some.comparisons["p_value"].tolist()

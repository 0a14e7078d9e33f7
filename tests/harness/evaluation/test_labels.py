"""What results and reports make of labels of people, of models, and of both."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest

import harness
from harness.dataset import DatasetReference, load
from harness.evaluation.evaluate import evaluation_of
from harness.evaluation.grading import alternatives, by_labeller
from harness.evaluation.labellers import labeller_verdicts
from harness.evaluation.verdict import LabellerVerdict
from harness.evaluation.wording import labellers_sentence, verdict_word, warning_sentences
from harness.experiment import Relevance
from tests.support import small
from tests.support.labels_small import judged, write
from tests.support.scored import compare, finding

ALL = [id_ for id_, _, _ in small.QUERIES]


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


def shown_text(results):
    page = (results.folder / "report.html").read_text(encoding="utf-8")
    body = re.sub(r"<(script|style)[^>]*>.*?</\1>", " ", page, flags=re.DOTALL)
    return re.sub(r"<[^>]+>", " ", body)


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


def test_the_verdict_under_each_labeller_is_the_one_that_his_labels_alone_give(ran):
    both = ran(lambda folder: [*judged(folder, ALL), *judged(folder, ALL, "ben", noise=2)], report=True)
    readings = alternatives({q: said.labels for q, said in both.queries.items()}, Relevance())
    assert {"as given", "by ann", "by ben"} <= set(readings) and readings["by ann"] != readings["by ben"]
    family = evaluation_of(both).comparisons["nDCG@3"]
    verdicts = labeller_verdicts(both, Relevance())
    assert [one.labeller for one in verdicts] == ["ann", "ben"]
    for name, noise in (("ann", 0), ("ben", 2)):
        alone = ran(lambda folder, name=name, noise=noise: judged(folder, ALL, name, noise=noise))
        (verdict,) = (one for one in verdicts if one.labeller == name)
        assert list(verdict.rows.values()) == list(evaluation_of(alone).comparisons["nDCG@3"])
    said = labellers_sentence(family, verdicts)
    words = {
        (row.a, row.b): {verdict_word(one.finding) for one in (row, *(by.rows[row.a, row.b] for by in verdicts))}
        for row in family
    }
    assert said.startswith("Verdicts depend") == any(len(some) > 1 for some in words.values())
    page, markdown = shown_text(both), (both.folder / "report.md").read_text(encoding="utf-8")
    assert "Verdicts by whose labels" in page and "ann, 6 queries" in page and "ben, 6 queries" in page
    assert said in " ".join(markdown.split()) and said in " ".join(page.split())
    assert "Verdicts by whose labels" not in shown_text(ran(lambda folder: judged(folder, ALL), report=True))


@pytest.mark.parametrize(
    ("merged", "under", "said"),
    [("better", "undecided", "Verdicts depend on whose labels are used: a and b: better under the merge"),
     ("better", "better", "Verdicts are the same under the labels of ann and under the merge of them."),
     ("undecided: too few queries", "undecided", "No verdict is reversed under the labels of ann")],
)  # fmt: skip
def test_a_verdict_that_hangs_on_the_labeller_is_named(merged, under, said):
    (row,) = compare({name: np.array([0.1, 0.9]) for name in "ab"})
    pair, own = (replace(row, finding=finding(verdict)) for verdict in (merged, under))
    assert labellers_sentence([pair], [LabellerVerdict("ann", 6, {("a", "b"): own})]).startswith(said)
    assert labellers_sentence([pair], []) == ""


def test_a_labeller_of_lists_keeps_his_order_under_every_rule(project):
    folder = project / "datasets" / "survey-templates-en"
    labels = load(DatasetReference(folder, queries=("labels-a.json", "labels-b.json"))).labels
    own = {query: given.ranked for query, given in by_labeller(labels)["a"].items()}
    alone = load(DatasetReference(folder, queries=("labels-a.json",))).labels
    assert own == {query: given.ranked for query, given in alone.items()}
    readings = alternatives(labels, Relevance())
    assert {"linear", "by b"} <= set(readings) and readings["by a"] == alternatives(alone, Relevance())["linear"]

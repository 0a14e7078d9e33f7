"""What results and reports make of labels of people, of models, and of both."""

import json
import re

import numpy as np
import pytest

import harness
from harness.dataset import DatasetReference, load
from harness.evaluation.cautions import cautions
from harness.evaluation.evaluation import evaluation_of
from harness.evaluation.grading import alternatives, by_labeller
from harness.evaluation.labellers import (
    LabellerVerdict,
    _scores,
    combined,
    labeller_verdicts,
    labellers_sentence,
    sentence,
)
from harness.evaluation.readers import answers_of
from harness.evaluation.verdict import Comparison
from harness.evaluation.wording import read_verdict, verdict_word
from harness.experiment import Relevance
from harness.measures import parse, score
from harness.stats.prediction import predicted
from harness.stats.settings import Settings
from tests.support import small
from tests.support.labels_small import judged, write

ALL = [id_ for id_, _, _ in small.QUERIES]
MANY = [(f"{id_}{'-' * number}", f"{text} {number}", docs) for number in range(7) for id_, text, docs in small.QUERIES]
"""The small data set's questions, seven times in other words: enough for an estimate from people and a model."""
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
    return ran(
        lambda folder: [
            *judged(folder, JUDGED, inclusion=36 / 42),
            *judged(folder, [id_ for id_, _, _ in MANY], "m", "llm", noise=3),
        ],
        MANY,
        report=True,
    )


def shown_text(results):
    page = (results.folder / "report.html").read_text(encoding="utf-8")
    body = re.sub(r"<(script|style)[^>]*>.*?</\1>", " ", page, flags=re.DOTALL)
    return re.sub(r"<[^>]+>", " ", body)


def test_the_report_says_how_far_the_model_agrees_and_warns_of_a_guess(both, ran):
    markdown = (both.folder / "report.md").read_text(encoding="utf-8")
    found = combined(both).agreement
    assert (found.pairs, found.queries) == (6 * 36, 36)
    assert found.sentence() in shown_text(both).replace("&#39;", "'")
    assert "A query without a relevant document counts as no difference here" in markdown
    assert "Cohen" in markdown and found.shown

    def tossed(folder):
        said = judged(folder, ALL, "m", "llm")
        return [one.model_copy(update={"grade": 2 * (number % 2)}) for number, one in enumerate(said)]

    guess = ran(lambda folder: [*judged(folder, ALL[:4], inclusion=4 / 6), *tossed(folder)])
    said = combined(guess).agreement.sentence()
    assert "(no interval below 10 queries)" in said and "not shown to differ from chance" in said


def test_the_tests_rest_on_peoples_queries(both):
    assert set(both.scores["query_id"]) == set(JUDGED)
    assert evaluation_of(both).settings.by_people
    assert set(both.rankings("bm25")) == {id_ for id_, _, _ in MANY}


def test_the_combined_estimate_is_the_formula_on_both_sets_of_labels(both):
    found = combined(both)
    assert (found.n, found.others, found.reason) == (36, 6, "")
    assert len(found.pairs) == 3
    pair = found.pairs[0]
    measure = parse(found.measure)

    def differences(ids, grades_of):
        grades = {q: dict(grades_of(both.queries[q].labels)) for q in ids}
        a, b = (score([measure], grades, {q: r.doc_ids for q, r in both.rankings(name).items()}).of(measure)
                for name in (pair.a, pair.b))  # fmt: skip
        return np.asarray(a - b)

    def given(labels):
        return labels.grades

    people = [q for q in both.queries if both.queries[q].labels.source == "people"]
    alone = [q for q in both.queries if both.queries[q].labels.source == "model"]
    by_model = differences(people, lambda labels: labels.model)
    right = predicted(differences(people, given), by_model, differences(alone, given))
    assert pair.estimate == right and right.powered is not None
    narrow = f": the interval is as narrow as about {right.as_narrow_as:.0f} judged queries would give."
    assert narrow in sentence(pair, found.measure)


def test_fewer_than_thirty_judged_queries_or_five_that_differ_make_no_estimate(ran, both):
    def people_and_model(folder):
        return [*judged(folder, JUDGED[:29]), *judged(folder, JUDGED, "m", "llm", noise=3)]

    results = ran(people_and_model, MANY, report=True)
    found = combined(results)
    assert found.pairs == () and found.agreement.queries == 29
    assert found.reason == "people and the model judged 29 queries, and below 30 an interval from both is too short"
    for text in (shown_text(results), (results.folder / "report.md").read_text(encoding="utf-8")):
        said = " ".join(text.replace("&#39;", "'").split())
        assert found.reason in said and found.agreement.sentence() in said
    alike = combined(both).pairs[0]
    values = np.linspace(0, 1, 36)
    alike = alike._replace(estimate=predicted(values, values, np.zeros(6)))
    assert sentence(alike, "nDCG@3").endswith(
        "on 36 queries judged by people; no estimate with the model's labels: people and the model differ on 0 of the "
        "36 queries, and below 5 on which they do an interval from both is too short."
    )


def test_clusters_of_questions_are_the_units_of_the_estimate(both, monkeypatch):
    def fruit_apart(queries, _):
        return tuple(query.id.rstrip("-") for query in queries)

    monkeypatch.setattr("harness.evaluation.labellers.clusters_of", fruit_apart)
    assert combined(both).reason.startswith(
        "people and the model judged 36 queries (6 different questions), and below 30"
    )
    monkeypatch.setattr("harness.evaluation.labellers.settings_of", lambda _: Settings(weight="traffic"))
    assert combined(both).reason.startswith("the queries are weighted by traffic")


def test_err_has_one_largest_grade_whoever_gave_it(both):
    tables = [
        {query: {both.rankings("bm25")[query].doc_ids[1]: grade}} for query, grade in zip(ALL, (1, 3), strict=False)
    ]
    apart = [of["bm25"][0] for of in _scores(both, parse("ERR@3"), tables)]
    assert apart == score([parse("ERR@3")], tables[0] | tables[1], answers_of(both, "bm25")).values[0].tolist()


def test_the_page_shows_people_and_model(both):
    text = shown_text(both)
    assert "People judged 36 queries" in text
    assert "With a model's labels" in text
    assert "judged queries would give" in text
    assert "Judged@3" in text
    assert "judged queries would give" in (both.folder / "report.md").read_text(encoding="utf-8")


def test_comparing_says_what_nobody_judged_as_a_run_does(ran, capsys):
    results = ran(lambda folder: judged(folder, ALL, depth=4))
    (caution,) = cautions(results.manifest, evaluation_of(results).conclusion)
    assert "unjudged documents count as irrelevant" in caution
    assert caution in small.told(capsys, "compare", results.folder)


def test_where_no_person_judged_nothing_is_claimed(ran, capsys):
    results = ran(lambda folder: judged(folder, ALL, "m", "llm"), report=True)
    assert not evaluation_of(results).settings.by_people
    assert set(results.comparisons["verdict"]) == {"undecided: judged by a model alone"}
    for text in (shown_text(results), (results.folder / "report.md").read_text(encoding="utf-8")):
        assert "shown" not in text.lower().replace("no person", "")
        assert "judged by a model alone" in text or "A model alone judged" in text
    gate = ("gate", results.folder, "--baseline", "bm25", "--challenger", "hashing", "--margin", "0.1")
    assert "no person judged" in small.told(capsys, *gate, code=1)
    assert "shown" not in small.told(capsys, "report", results.folder)
    assert "A model alone judged" in small.told(capsys, "compare", results.folder)


def test_without_the_models_labels_on_peoples_queries_there_is_no_estimate(ran):
    found = combined(ran(lambda folder: [*judged(folder, ALL[:4]), *judged(folder, ALL[4:], "m", "llm")]))
    assert found.pairs == ()
    assert "let it judge them, too" in found.reason


def test_unequal_probabilities_are_refused(ran):
    def said(folder):
        people = [*judged(folder, ALL[:2], inclusion=0.5), *judged(folder, ALL[2:4], inclusion=0.9)]
        return [*people, *judged(folder, ALL, "m", "llm")]

    assert "different probabilities" in combined(ran(said)).reason


def test_judging_goes_on_with_a_larger_sample_of_the_same_questions(ran):
    asked = [id_ for id_, _, _ in MANY]

    def people(folder, populations):
        return [
            *judged(folder, JUDGED[:18], inclusion=18 / 42, population=populations[0]),
            *judged(folder, JUDGED[18:], inclusion=36 / 42, population=populations[1]),
            *judged(folder, asked, "m", "llm", noise=3),
        ]

    found = combined(ran(lambda folder: people(folder, (42, 42)), MANY))
    assert (found.n, found.others, found.reason) == (36, 6, "")
    at_once = ran(lambda folder: [*judged(folder, JUDGED), *judged(folder, asked, "m", "llm", noise=3)], MANY)
    assert found.pairs == combined(at_once).pairs
    grown = combined(ran(lambda folder: people(folder, (36, 42)), MANY))
    assert grown.pairs == () and "today's queries" in grown.reason


def test_people_alone_need_no_model(ran):
    assert combined(ran(lambda folder: judged(folder, ALL))) is None


def test_what_people_did_not_finish_makes_no_score(ran):
    def said(folder):
        begun = judged(folder, ["q-green"])[:2]
        return [*judged(folder, ALL[:3]), *begun, *judged(folder, ALL, "m", "llm")]

    results = ran(said)
    assert results.queries["q-green"].labels.source == "mixed"
    assert set(results.scores["query_id"]) == set(ALL[:3])


def test_each_persons_labels_are_another_reading(ran):
    results = ran(lambda folder: [*judged(folder, ALL), *judged(folder, ALL, "ben", noise=4)])
    readings = alternatives({q: said.labels for q, said in results.queries.items()}, Relevance())
    assert {"as given", "by ann", "by ben"} <= set(readings)
    assert readings["by ann"] != readings["by ben"]


def test_the_verdict_under_each_labeller_is_the_one_that_his_labels_alone_give(ran):
    both = ran(lambda folder: [*judged(folder, ALL), *judged(folder, ALL, "ben", noise=2)], report=True)
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


def test_a_verdict_that_hangs_on_the_labeller_is_named():
    pair = comparison("a", "b", "better")
    under = LabellerVerdict("ann", 6, {("a", "b"): comparison("a", "b", "undecided: too few queries")})
    assert labellers_sentence([pair], [under]) == (
        "Verdicts depend on whose labels are taken: a and b: better under the merge, undecided under ann."
    )
    assert labellers_sentence([pair], []) == ""


def test_what_is_undecided_under_everybody_is_not_called_the_same():
    for verdict, said in (("better", "Every verdict is the same"), ("undecided: too few queries", "No verdict is rev")):
        row = comparison("a", "b", verdict)
        assert labellers_sentence([row], [LabellerVerdict("ann", 6, {("a", "b"): row})]).startswith(said)


def comparison(a, b, verdict):
    """A row of which only the pair and the verdict matter."""
    numbers = dict.fromkeys(
        ("n", "zeros", "wins", "ties", "losses", "mean_difference", "ci_low", "ci_high", "w_plus", "w_minus",
         "statistic", "p_value", "p_adjusted", "p_minimum", "effect_size", "p_minimum_adjusted", "p_randomization",
         "p_randomization_adjusted", "clusters", "p_wilcoxon", "p_wilcoxon_adjusted"), 0,
    )  # fmt: skip
    return Comparison(
        "nDCG@3", a, b, method="exact", finding=read_verdict(verdict), role="confirmatory", ci_method="t", **numbers
    )


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

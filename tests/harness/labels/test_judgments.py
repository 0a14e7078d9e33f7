"""Files of judgments and lists of labellers: what is refused, how they become labels, and labels for other tools."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.dataset import DatasetReference, load, reference_of, trec
from harness.dataset.judgments import NAME, merge, read_judgments
from harness.evaluation.grading import labels_that_count
from harness.labels.disagreement import disputes
from retrievers.errors import DataChanged, InputError
from tests.support import small
from tests.support.labels_small import judgment, row, write


def test_what_is_written_is_read_back(tmp_path):
    said = [
        judgment(), judgment(grade=None, document="d1", note='skipped: "unclear"\n…', seconds=1.5),
        judgment(judge="模型", kind="llm", prompt="x", round=2, inclusion=0.25, asked=9, at="2026-11-21T10:00:00Z"),
        judgment("q 1", "d%", 3, design="next"),
    ]  # fmt: skip
    assert read_judgments([write(tmp_path / "j", said)]) == said
    assert set(row()) == {"query_id", "document_id", "grade", "judge", "kind", "pool", "text"}  # without defaults


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (row(grade=7), "'grade' cannot be read: outside the scale of 0, 1, 2, 3 or null"),
        (row(grade="2"), "outside the scale"),
        (row(grade=True), "outside the scale"),
        (row(kind="robot"), "'kind' cannot be read"),
        ({k: v for k, v in row().items() if k != "judge"}, "'judge' cannot be read: field required"),
        (row(mood="good"), "'mood' cannot be read: extra inputs"),
        (row(query_id="a\tb"), "control character"),
        (row(query_id="q9", grade=2), "ann graded document 'd0' for query 'q9' as 2, and as 1 at"),
        (json.dumps(row())[:40], "is not JSON"),
        ([1], "is not a JSON object"),
    ],
)
def test_a_bad_line_is_one_message_with_its_place_and_nothing_is_read(tmp_path, line, message):
    path = write(tmp_path / "judgments.jsonl", [judgment("q9")] * 2)
    with path.open("a", encoding="utf-8") as file:
        file.write(line if isinstance(line, str) else json.dumps(line))
    with pytest.raises(InputError, match=message) as caught:
        read_judgments([path])
    assert [problem.where for problem in caught.value.problems] == [f"{path}:3"]


def graded(judge, grade, query="q0", document="d0", **more):
    return judgment(query, document, grade, judge, kind="llm" if judge == "m" else "human", **more)


MODEL = [graded("m", 3, document=f"d{i}") for i in range(3)]
BEGUN = graded("ann", 0, asked=2)
MERGED = [  # query -> who gave its labels, and the grades that count
    ([graded("a", 1), graded("b", 2)], {"q0": ("people", {"d0": 1})}),  # the lower of two
    ([graded("a", 1), graded("b", 2), graded("c", 3)], {"q0": ("people", {"d0": 2})}),  # the median
    ([graded("ann", 0), graded("m", 3), graded("m", 3, "q1")],  # people and models are never averaged
     {"q0": ("people", {"d0": 0}), "q1": ("model", {"d0": 3})}),
    ([BEGUN, *MODEL], {"q0": ("mixed", {"d0": 0, "d1": 3, "d2": 3})}),  # a person did not finish
    ([BEGUN, graded("ann", None, document="d1", asked=2), *MODEL], {"q0": ("people", {"d0": 0})}),  # skipped
    ([graded("ann", 1), graded("ann", 3, round=2)], {"q0": ("people", {"d0": 1})}),  # asked again, blind: measures
    ([graded("ann", 1), graded("ann", 3, corrects=True)], {"q0": ("people", {"d0": 3})}),
    ([graded("ann", 3, design="next"), graded("ann", 3, "q1"), graded("ann", 2, "q1", "d1", design="next")],
     {"q1": ("people", {"d0": 3})}),  # chosen for their effect
]  # fmt: skip


@pytest.mark.parametrize(("said", "merged"), MERGED)
def test_judgments_become_labels_by_one_rule(tmp_path, said, merged):
    found = merge(read_judgments([write(tmp_path / "j", said)]))
    assert {query: (labels.source, labels.grades) for query, labels in found.items()} == merged
    for labels in found.values():
        assert type(labels).from_json(json.loads(json.dumps(labels.as_json()))) == labels


def test_a_spread_of_two_is_listed_until_it_is_adjudicated():
    said = [graded("a", 0), graded("b", 2), graded("ann", 1, document="d1")]
    assert [one.grades for one in disputes(said)] == [(("a", 0), ("b", 2))]
    assert merge(said)["q0"].by == "a, ann, b"
    said.append(graded("c", 2, design="adjudication"))
    assert disputes(said) == [] and merge(said)["q0"].grades == {"d0": 2, "d1": 1}


PEOPLE = st.lists(
    st.tuples(st.sampled_from(["q0", "q1"]), st.sampled_from(["d0", "d1"]), st.sampled_from([0, 1, 2, 3, None]),
              st.sampled_from(["ann", "ben", "m"])),
    unique_by=lambda one: (one[0], one[1], one[3]),
)  # fmt: skip


@given(PEOPLE, st.randoms(use_true_random=False))
def test_the_order_of_lines_and_files_changes_no_grade(said, random):
    rows = [graded(judge, grade, query, document) for query, document, grade, judge in said]
    mixed = rows.copy()
    random.shuffle(mixed)
    assert merge(rows) == merge(mixed)


@pytest.mark.parametrize("language", ["en", "ja"])
def test_the_shipped_lists_are_merged_as_their_readme_says(project, language):
    """queries-extended.json was merged by another program, by the rule in the README of the data set."""
    folder = project / "datasets" / f"survey-templates-{language}"
    merged = load(DatasetReference(folder, queries=("labels-a.json", "labels-b.json")))
    rows = json.loads((folder / "queries-extended.json").read_text(encoding="utf-8"))
    published = {row["id"]: tuple(row["relevant_documents"]) for row in rows}
    assert len(merged.queries) == 50
    assert all(labels.ranked == published[query] for query, labels in merged.labels.items())
    assert {labels.by for labels in merged.labels.values()} == {"a, b"}


@pytest.fixture
def mixed(tmp_path, monkeypatch):
    """A person judged one question, a person began another, and a model judged three."""
    monkeypatch.chdir(tmp_path)
    data = small.dataset(tmp_path / "data", labelled=False)
    write(data / NAME, [
        graded("ann", 3, "q-fruit", "apple", asked=1), graded("m", 0, "q-fruit", "apple"),
        graded("ann", 2, "q-swim", "fish", asked=2), graded("m", 3, "q-swim", "boat"),
        graded("m", 1, "q-rails", "train"),
    ])  # fmt: skip
    return data


def test_people_alone_are_exported_unless_a_model_is_asked_for_and_it_stays_a_model(mixed, capsys):
    def export(*words, code=0):
        return small.told(capsys, "labels", "export", "data", *words, code=code)

    assert "labels of 1 query; 2 that a model judged are omitted (--with-model" in export("--output", "q.trec")
    assert trec.read_qrels("q.trec") == {"q-fruit": {"apple": 3}}
    said = export("--output", "all.trec", "--with-model")
    assert "labels of 3 queries, 2 of them judged by a model, completely or in part" in said
    assert set(trec.read_qrels("all.trec")) == {"q-fruit", "q-swim", "q-rails"}
    before = (mixed / NAME).read_bytes()
    assert f"data/{NAME}: already exists (name another file)" in export("--output", f"data/{NAME}", code=2)
    assert (mixed / NAME).read_bytes() == before
    export("--output", "data/all.json", "--as", "json", "--with-model")
    rows = {row["id"]: row["labelled_by"] for row in json.loads((mixed / "all.json").read_text(encoding="utf-8"))}
    assert rows == {"q-fruit": "ann", "q-swim": "ann, llm:m", "q-rails": "llm:m"}
    (mixed / NAME).write_bytes(before.splitlines()[-1])
    assert "labels of 1 query, 1 of them judged by a model" in export("--output", "alone.trec")
    (mixed / NAME).unlink()
    labels = load(DatasetReference(mixed, queries=("all.json",))).labels
    sources = {id_: given.source for id_, given in labels.items()}
    assert sources == {"q-fruit": "", "q-swim": "mixed", "q-rails": "model"}
    assert set(labels_that_count(labels)) == {"q-fruit"}


def test_lists_of_labellers_are_merged_but_not_a_model_with_a_person_and_nobody_with_himself(mixed):
    (mixed / NAME).unlink()
    for name, by, listed in (("a", "ann", ["apple"]), ("m", "llm:judge-1", ["pear"]), ("b", "ann", ["apple"])):
        row = {"id": "q-fruit", "query": "fruit", "labelled_by": by, "relevant_documents": listed}
        (mixed / f"{name}.json").write_text(json.dumps([row]), encoding="utf-8")
    merged = load(DatasetReference(mixed, queries=("a.json", "m.json"))).labels["q-fruit"]
    assert (merged.ranked, merged.by, merged.source) == (("apple",), "ann", "")
    with pytest.raises(InputError, match="query id 'q-fruit' occurs twice"):
        load(DatasetReference(mixed, queries=("a.json", "b.json")))


def test_judgments_that_change_during_a_run_are_noticed(tmp_path):
    dataset = load(reference_of(small.dataset(tmp_path / "data")))
    dataset.refuse_changes()
    write(tmp_path / "data" / NAME, [judgment("q-fruit", "apple")])
    with pytest.raises(DataChanged, match="queries or labels were added"):
        dataset.refuse_changes()

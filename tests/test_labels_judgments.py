"""Files of judgments: what is read, what is refused, and how they become labels."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.dataset.judgments import Judgment, disputes, merge, read_judgments
from retrievers.errors import InputError
from tests.labels_small import judgment, row, write


def test_what_is_written_is_read_back(tmp_path):
    said = [
        judgment(), judgment(grade=None, document="d1", note='skipped: "unclear"\n…', seconds=1.5),
        judgment(judge="模型", kind="llm", prompt="x", round=2, inclusion=0.25, asked=9, at="2026-11-21T10:00:00Z"),
        judgment("q 1", "d%", 3, design="next"),
    ]  # fmt: skip
    assert read_judgments([write(tmp_path / "j", said)]) == said


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (json.dumps(row(grade=7)), "grade 7 is outside the scale"),
        (json.dumps(row(grade="2")), 'grade "2" is outside the scale'),
        (json.dumps(row(grade=True)), "grade true is outside the scale"),
        (json.dumps(row(kind="robot")), "'kind' cannot be read"),
        (json.dumps({k: v for k, v in row().items() if k != "judge"}), "'judge' is missing"),
        (json.dumps(row(mood="good")), "unknown key 'mood'"),
        (json.dumps(row(query_id="a\tb")), "control character"),
        (json.dumps(row())[:40], "is not JSON"),
        ("[1]", "is not a JSON object"),
    ],
)
def test_a_bad_line_is_one_message_with_its_place_and_nothing_is_read(tmp_path, line, message):
    path = tmp_path / "judgments.jsonl"
    path.write_text(judgment("q9").line() + line + "\n", encoding="utf-8")
    with pytest.raises(InputError, match=message) as caught:
        read_judgments([path])
    assert len(caught.value.problems) == 1
    assert caught.value.problems[0].where == f"{path}:2"


def test_a_judge_who_contradicts_himself_is_refused_unless_he_corrects(tmp_path):
    path = write(tmp_path / "j", [judgment(grade=1), judgment(grade=1), judgment(grade=2)])
    with pytest.raises(InputError, match="ann graded document 'd0' for query 'q0' as 2, and as 1 at") as caught:
        read_judgments([path])
    assert caught.value.problems[0].where.endswith(":3")
    corrected = write(tmp_path / "k", [judgment(grade=1), judgment(grade=2, corrects=True)])
    assert [one.grade for one in read_judgments([corrected])] == [2]
    # Asked again, blind, he may say something else: that measures him.
    twice = write(tmp_path / "l", [judgment(grade=1), judgment(grade=2, round=2)])
    assert len(read_judgments([twice])) == 2


def test_many_bad_lines_are_counted(tmp_path):
    path = tmp_path / "j"
    wrong = (f'{{"query_id": "q", "document_id": "d", "grade": {n}}}\n' for n in range(4, 504))
    path.write_text("".join(wrong), encoding="utf-8")
    with pytest.raises(InputError) as caught:
        read_judgments([path])
    assert len(caught.value.problems) == 21
    assert "480 more" in str(caught.value)


def test_people_by_the_median_and_the_lower_of_two():
    said = [judgment(judge=name, grade=grade) for name, grade in (("a", 1), ("b", 2))]
    assert merge(said)["q0"].grades == {"d0": 1}
    said.append(judgment(judge="c", grade=3))
    found = merge(said)["q0"]
    assert found.grades == {"d0": 2}
    assert (found.by, found.source) == ("a, b, c", "people")


def test_people_and_models_are_never_averaged():
    said = [judgment(grade=0), judgment(judge="m", kind="llm", grade=3), judgment("q1", judge="m", kind="llm", grade=3)]
    found = merge(said)
    assert found["q0"].grades == {"d0": 0}
    assert found["q0"].model == {"d0": 3}
    assert (found["q1"].grades, found["q1"].source, found["q1"].model) == ({"d0": 3}, "model", {})


def test_a_query_is_peoples_only_where_they_finished_it():
    model = [judgment(document=f"d{i}", judge="m", kind="llm", grade=3) for i in range(3)]
    begun = [judgment(grade=0, asked=2)]
    mixed = merge([*begun, *model])["q0"]
    assert (mixed.source, mixed.grades) == ("mixed", {"d0": 0, "d1": 3, "d2": 3})
    # A document that was skipped is answered: it stays without a grade, and the model does not fill it in.
    finished = merge([*begun, judgment(document="d1", grade=None, asked=2), *model])["q0"]
    assert (finished.source, finished.grades) == ("people", {"d0": 0})


def test_a_null_is_no_zero():
    assert merge([judgment(grade=None)])["q0"].grades == {}


def test_a_spread_of_two_is_listed_until_it_is_adjudicated():
    said = [judgment(judge="a", grade=0), judgment(judge="b", grade=2), judgment(document="d1", grade=1)]
    (dispute,) = disputes(said)
    assert dispute.grades == (("a", 0), ("b", 2))
    assert merge(said)["q0"].grades == {"d0": 0, "d1": 1}
    said.append(judgment(judge="c", grade=2, design="adjudication"))
    assert disputes(said) == []
    assert merge(said)["q0"].grades == {"d0": 2, "d1": 1}


def test_a_second_round_measures_and_does_not_count():
    assert merge([judgment(grade=1), judgment(grade=3, round=2)])["q0"].grades == {"d0": 1}


def test_pairs_chosen_for_their_effect_make_no_label():
    found = merge([judgment(grade=3, design="next"), judgment("q1", grade=3), judgment("q1", "d1", 2, design="next")])
    assert (found["q0"].grades, found["q0"].source, found["q0"].chosen) == (None, "", {"d0": 3})
    assert (found["q1"].grades, found["q1"].chosen) == ({"d0": 3}, {"d1": 2})


PEOPLE = st.lists(
    st.tuples(st.sampled_from(["q0", "q1"]), st.sampled_from(["d0", "d1"]), st.sampled_from([0, 1, 2, 3, None]),
              st.sampled_from(["ann", "ben", "model"])),
    unique_by=lambda one: (one[0], one[1], one[3]),
)  # fmt: skip


@given(PEOPLE, st.randoms(use_true_random=False))
def test_the_order_of_lines_and_files_changes_no_grade(said, random):
    rows = [judgment(q, d, g, j, kind="llm" if j == "model" else "human") for q, d, g, j in said]
    mixed = rows.copy()
    random.shuffle(mixed)
    assert merge(rows) == merge(mixed)


def test_labels_survive_their_own_json():
    for labels in merge([judgment(inclusion=0.5), judgment(judge="m", kind="llm"), judgment(design="next")]).values():
        assert type(labels).from_json(json.loads(json.dumps(labels.as_json()))) == labels


def test_a_line_leaves_out_what_is_usual():
    assert set(json.loads(judgment().line())) == {"query_id", "document_id", "grade", "judge", "kind", "pool", "text"}
    assert Judgment.model_validate(json.loads(judgment().line())) == judgment()

"""Judgments of people and models.

Their files, how they become labels, and the commands from a pool to labels.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.dataset import DatasetReference, load_dataset
from harness.dataset.judgment import (
    JUDGMENTS_FILE,
    judged_text_digest,
    read_judgments,
)
from harness.dataset.merge_judgments import merge_judgments
from harness.labels.agreement import compare_judges, measure_agreement
from harness.labels.disputes import people_disputes
from harness.labels.export_labels import export_labels
from harness.labels.merge import adjudication_pool, merge_into_dataset
from harness.labels.pool import read_pool
from harness.pipeline import run
from harness.records.labels_file import labelled_query_from_json
from harness.running.options import RunOptions
from harness.scoring.grades import deciding_labels
from retrievers.errors import InputError
from retrievers.files.trec_files import read_qrels
from retrievers.types import Span
from tests.support import small
from tests.support.chat_fake import ChatProvider, quotation
from tests.support.chat_fake import graded as reply
from tests.support.labels_small import RELEVANT, as_person, judgment, row, write
from tests.support.servers import serving
from tests.support.small import refusal
from tests.support.small import told as harness


def test_what_is_written_is_read_back(tmp_path):
    judgments = [
        judgment(),
        judgment(grade=None, document="d1", note='skipped: "unclear"\n…', seconds=1.5),
        judgment(
            judge="模型",
            kind="llm",
            prompt="x",
            round=2,
            inclusion=0.25,
            asked=9,
            at="2026-11-21T10:00:00Z",
        ),
        judgment("q 1", "d%", 3, design="next"),
    ]
    assert read_judgments([write(tmp_path / "j", judgments)]) == judgments
    assert set(row()) == {
        "query_id",
        "document_id",
        "grade",
        "judge",
        "kind",
        "pool",
        "text",
    }  # without defaults


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            row(grade=7),
            "'grade' cannot be read: outside the scale of 0, 1, 2, 3 or null",
        ),
        (row(grade=True), "outside the scale"),
        (row(kind="robot"), "'kind' cannot be read"),
        (
            {k: v for k, v in row().items() if k != "judge"},
            "'judge' is missing",
        ),
        (
            {"grad" if k == "grade" else k: v for k, v in row().items()},
            "'grade' is missing; unknown: 'grad'",
        ),
        (
            {k: v for k, v in row().items() if k not in ("pool", "text")},
            "'pool' and 'text' are missing",
        ),
        (row() | {"grades": 1}, "'grades' is no key of a judgment"),
        (row(query_id="a\tb"), "control character"),
        (
            row(query_id="q9", grade=2),
            "ann graded document 'd0' for query 'q9' as 2, and as 1 at",
        ),
        (json.dumps(row())[:40], "is not JSON"),
    ],
)
def test_a_bad_line_is_one_message_with_its_place_and_nothing_is_read(
    tmp_path, line, message
):
    path = write(tmp_path / "judgments.jsonl", [judgment("q9")] * 2)
    with path.open("a", encoding="utf-8") as file:
        file.write(line if isinstance(line, str) else json.dumps(line))
    with pytest.raises(InputError, match=message) as caught:
        read_judgments([path])
    assert [problem.where for problem in caught.value.problems] == [f"{path}:3"]


def graded(judge, grade, query="q0", document="d0", **more):
    return judgment(
        query, document, grade, judge, kind="llm" if judge == "m" else "human", **more
    )


MODEL = [graded("m", 3, document=f"d{i}") for i in range(3)]
BEGUN = graded("ann", 0, asked=2)
MERGED = [  # query -> who gave its labels, and the grades that count
    (
        [graded("a", 1), graded("b", 2)],
        {"q0": ("people", {"d0": 1})},
    ),  # the lower of two
    (
        [graded("a", 1), graded("b", 2), graded("c", 3)],
        {"q0": ("people", {"d0": 2})},
    ),  # the median
    (
        [
            graded("ann", 0),
            graded("m", 3),
            graded("m", 3, "q1"),
        ],  # people and models are never averaged
        {"q0": ("people", {"d0": 0}), "q1": ("model", {"d0": 3})},
    ),
    (
        [BEGUN, *MODEL],
        {"q0": ("mixed", {"d0": 0, "d1": 3, "d2": 3})},
    ),  # a person did not finish
    (
        [BEGUN, graded("ann", None, document="d1", asked=2), *MODEL],
        {"q0": ("people", {"d0": 0})},
    ),  # skipped
    (
        [graded("ann", 1), graded("ann", 3, round=2)],
        {"q0": ("people", {"d0": 1})},
    ),  # asked again, blind: measures
    (
        [graded("ann", 1), graded("ann", 3, corrects=True)],
        {"q0": ("people", {"d0": 3})},
    ),
    (
        [
            graded("ann", 3, design="next"),
            graded("ann", 3, "q1"),
            graded("ann", 2, "q1", "d1", design="next"),
        ],
        {"q1": ("people", {"d0": 3})},
    ),  # chosen for their effect
]


@pytest.mark.parametrize(("judgments", "merged"), MERGED)
def test_judgments_become_labels_by_one_rule(tmp_path, judgments, merged):
    path = write(tmp_path / "j", judgments)
    labels_by_query = merge_judgments(read_judgments([path]))
    assert {
        query_id: (labels.source, labels.grades)
        for query_id, labels in labels_by_query.items()
    } == merged


@pytest.mark.parametrize(("judgments", "merged"), MERGED)
def test_labels_that_are_written_are_read_back(judgments, merged):
    all_labels = list(merge_judgments(judgments).values())
    lines = [
        json.dumps({"query_id": "q0", "text": "q", "fields": {}, **labels.as_json()})
        for labels in all_labels
    ]
    assert len(lines) == len(merged)
    assert [labelled_query_from_json(line).labels for line in lines] == all_labels


def test_a_spread_of_two_is_listed_until_it_is_adjudicated():
    judgments = [graded("a", 0), graded("b", 2), graded("ann", 1, document="d1")]
    assert [dispute.grades for dispute in people_disputes(judgments)] == [
        (("a", 0), ("b", 2))
    ]
    assert merge_judgments(judgments)["q0"].labelled_by == "a, ann, b"
    judgments.append(graded("c", 2, design="adjudication"))
    labels = merge_judgments(judgments)["q0"]
    assert people_disputes(judgments) == []
    assert labels.grades == {"d0": 2, "d1": 1}
    # Who settles it is no labeller.
    assert labels.grades_by_labeller.keys() == {"a", "ann", "b"}


PEOPLE = st.lists(
    st.tuples(
        st.sampled_from(["q0", "q1"]),
        st.sampled_from(["d0", "d1"]),
        st.sampled_from([0, 1, 2, 3, None]),
        st.sampled_from(["ann", "ben", "m"]),
    ),
    unique_by=lambda judgment_fields: (
        judgment_fields[0],
        judgment_fields[1],
        judgment_fields[3],
    ),
)


@given(PEOPLE, st.randoms(use_true_random=False))
def test_the_order_of_lines_and_files_changes_no_grade(judgments, random):
    rows = [
        graded(judge, grade, query, document)
        for query, document, grade, judge in judgments
    ]
    mixed = rows.copy()
    random.shuffle(mixed)
    assert merge_judgments(rows) == merge_judgments(mixed)


@pytest.mark.parametrize("language", ["en", "ja"])
def test_the_shipped_lists_are_merged_as_their_readme_says(project, language):
    """queries-extended.json was merged by another program, by the data set's README."""
    folder = project / "datasets" / f"survey-templates-{language}"
    merged = load_dataset(
        DatasetReference(folder, queries=("labels-a.json", "labels-b.json"))
    )
    published = load_dataset(
        DatasetReference(folder, queries=("queries-extended.json",))
    ).labels
    assert len(merged.queries) == 50
    assert {labels.labelled_by for labels in merged.labels.values()} == {"a, b"}
    assert [labels.ranked for labels in merged.labels.values()] == [
        published[query_id].ranked for query_id in merged.labels
    ]


@pytest.fixture
def mixed(tmp_path, monkeypatch):
    """A person judged one query and began another, and a model judged three."""
    monkeypatch.chdir(tmp_path)
    data = small.dataset(tmp_path / "data", labelled=False)
    write(
        data / JUDGMENTS_FILE,
        [
            graded("ann", 3, "q-fruit", "apple", asked=1),
            graded("m", 0, "q-fruit", "apple"),
            graded("ann", 2, "q-swim", "fish", asked=2),
            graded("m", 3, "q-swim", "boat"),
            graded("m", 1, "q-rails", "train"),
        ],
    )
    return data


def test_people_alone_are_exported_unless_a_model_is_asked_for_and_it_stays_a_model(
    mixed, capsys
):
    def export(*words, code=0):
        return harness(capsys, "labels", "export", "data", *words, code=code)

    assert (
        "labels of 1 query; 2 that a model judged are omitted (--with-model"
        in export("--output", "q.trec")
    )
    assert read_qrels("q.trec") == {"q-fruit": {"apple": 3}}
    output = export("--output", "all.trec", "--with-model")
    assert (
        "labels of 3 queries, 2 of them judged by a model, completely or in part"
        in output
    )
    assert set(read_qrels("all.trec")) == {"q-fruit", "q-swim", "q-rails"}
    before = (mixed / JUDGMENTS_FILE).read_bytes()
    assert f"data/{JUDGMENTS_FILE}: already exists (name another file)" in export(
        "--output", f"data/{JUDGMENTS_FILE}", code=2
    )
    assert (mixed / JUDGMENTS_FILE).read_bytes() == before
    export("--output", "data/all.json", "--as", "json", "--with-model")
    rows = {
        row["id"]: row["labelled_by"]
        for row in json.loads((mixed / "all.json").read_text(encoding="utf-8"))
    }
    assert rows == {"q-fruit": "ann", "q-swim": "ann, llm:m", "q-rails": "llm:m"}
    (mixed / JUDGMENTS_FILE).write_bytes(before.splitlines()[-1])
    assert "labels of 1 query, 1 of them judged by a model" in export(
        "--output", "alone.trec"
    )
    (mixed / JUDGMENTS_FILE).unlink()
    labels = load_dataset(DatasetReference(mixed, queries=("all.json",))).labels
    sources = {id_: query_labels.source for id_, query_labels in labels.items()}
    assert sources == {"q-fruit": "", "q-swim": "mixed", "q-rails": "model"}
    assert set(deciding_labels(labels)) == {"q-fruit"}


def test_lists_of_labellers_are_merged_but_not_those_of_a_model_or_one_person(
    mixed,
):
    (mixed / JUDGMENTS_FILE).unlink()
    for name, by, listed in (
        ("a", "ann", ["apple"]),
        ("m", "llm:judge-1", ["pear"]),
        ("b", "ann", ["apple"]),
    ):
        row = {
            "id": "q-fruit",
            "query": "fruit",
            "labelled_by": by,
            "relevant_documents": listed,
        }
        (mixed / f"{name}.json").write_text(json.dumps([row]), encoding="utf-8")
    merged = load_dataset(DatasetReference(mixed, queries=("a.json", "m.json"))).labels[
        "q-fruit"
    ]
    assert (merged.ranked, merged.labelled_by, merged.source) == (("apple",), "ann", "")
    with pytest.raises(InputError, match="query id 'q-fruit' occurs twice"):
        load_dataset(DatasetReference(mixed, queries=("a.json", "b.json")))


# The commands, as a user types them


@pytest.fixture(scope="module")
def answered(tmp_path_factory):
    """Questions without labels, answered by three retrievers."""
    folder = tmp_path_factory.mktemp("answered")
    small.dataset(folder / "data", labelled=False)
    run(small.experiment(folder), RunOptions(folder / "results"))
    return folder


@pytest.fixture
def begun(answered, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return small.copied(answered, tmp_path) / "data"


@pytest.fixture
def people(begun, capsys):
    """What a person says of the whole pool."""
    harness(capsys, "pool", "results/small")
    return as_person(read_pool(Path("pool.jsonl")))


def merged(capsys, judgments, *words, code=0):
    write(Path("said.jsonl"), judgments)
    return harness(
        capsys, "labels", "merge", "said.jsonl", "--into", "data", *words, code=code
    )


def sources(data):
    return {
        labels.source for labels in load_dataset(DatasetReference(data)).labels.values()
    }


def test_from_questions_to_labels(begun, capsys):
    drawing = ("pool", "results/small", "--sample", "4", "--seed", "1")
    assert "4 of 6 queries" in harness(capsys, *drawing)
    pool = read_pool(Path("pool.jsonl"))
    judge_output = json.loads(harness(capsys, "judge", "pool.jsonl", "--json"))
    assert judge_output == {
        "path": "judge.html",
        "digest": pool.digest,
        "pairs": pool.pair_count,
    }
    assert (
        "judge.html: " in harness(capsys, "judge", "pool.jsonl")
        and Path("judge.html").is_file()
    )
    harness(capsys, "judge", "pool.jsonl", "--output", "pool.jsonl", code=2)
    output = merged(capsys, as_person(pool))
    assert "queries judged by people 4, begun by people 0, by a model alone 0" in output
    assert sources(begun) == {"people"}
    harness(capsys, "check", "small.toml")
    harness(capsys, "run", "small.toml", "--quiet")
    assert "nothing is left" in harness(
        capsys, *drawing, "--output", "p2.jsonl", code=2
    )
    assert "6 of 6" in harness(
        capsys, "pool", "results/small", "--for", "llm", "--output", "p3.jsonl"
    )
    harness(capsys, "labels", "export", "data", "--output", "qrels.trec")
    qrels = read_qrels("qrels.trec")
    assert set(qrels) == {query.query_id for query in pool.queries}
    harness(
        capsys,
        "labels",
        "export",
        "data",
        "--output",
        "data/labelled.json",
        "--as",
        "json",
    )
    (begun / "judgments.jsonl").unlink()
    again = load_dataset(DatasetReference(begun, queries=("labelled.json",))).labels
    assert {query: dict(labels.grades) for query, labels in again.items()} == qrels


def test_a_model_judges_planned_and_capped_at_an_address_that_is_never_written(
    begun, capsys, monkeypatch
):
    harness(capsys, "pool", "results/small", "--for", "llm")

    def reads(user):
        question = quotation(user, "QUESTION")
        (query,) = (id_ for id_, text, _ in small.QUERIES if text == question)
        return reply(
            2 if any(small.TEXTS[doc] in user for doc in RELEVANT[query]) else 0
        )

    llm = ("judge", "pool.jsonl", "--llm", "judge-1", "--base-url", "${JUDGE_URL}")
    assert "${JUDGE_URL} is not set in the environment" in harness(
        capsys, *llm, "--plan", code=2
    )
    with serving(ChatProvider(reply=reads)) as provider:
        monkeypatch.setenv("JUDGE_URL", provider.url)
        assert "calls" in harness(capsys, *llm, "--plan", "--price", "1,2")
        assert "--max-cost" in harness(
            capsys, *llm, "--max-cost", "0.0001", "--price", "1,2", code=3
        )
        for price in ("cheap", "nan,1", "1,inf"):
            assert f"{price!r} is not a pair of prices" in harness(
                capsys, *llm, "--price", price, code=2
            )
        assert provider.requests == []
        assert "0 unreadable and 0 declined (null, never 0)" in harness(capsys, *llm)
        assert provider.requests
        address = provider.url.encode()
    assert not [
        path
        for path in Path().rglob("*")
        if path.is_file() and address in path.read_bytes()
    ]
    harness(capsys, "labels", "merge", "judgments-llm.jsonl", "--into", "data")
    assert sources(begun) == {"model"}


def test_judges_are_compared_and_what_they_dispute_is_settled(begun, people, capsys):
    pool = read_pool(Path("pool.jsonl"))
    ben = [
        judgment.model_copy(
            update={
                "judge": "ben",
                "grade": 0 if judgment.grade and i % 3 == 0 else judgment.grade,
            }
        )
        for i, judgment in enumerate(people)
    ]
    again = [judgment.model_copy(update={"round": 2}) for judgment in people[:5]]
    write(Path("all.jsonl"), [*people, *ben, *again])
    output = harness(capsys, "labels", "agree", "all.jsonl")
    parts = (
        "ann and ben",
        "ann down, ben across:\n              ",
        "alpha, ordinal",
        "(no interval below 10 queries)",
        "worth talking about: ",
        "ann graded twice, 5 pairs: 100 % the same, kappa with squared weights ",
    )
    assert [part for part in parts if part not in output] == []
    assert "95 % interval" not in output
    report = json.loads(harness(capsys, "labels", "agree", "all.jsonl", "--json"))
    assert (report["pairs"][0]["units"], report["themselves"][0]["same"]) == (
        pool.pair_count,
        1.0,
    )
    disputed = merged(
        capsys, [*people, *ben, *again], "--adjudicate", "settle.jsonl"
    ).count("to adjudicate: ")
    settle = read_pool(Path("settle.jsonl"))
    assert settle.pair_count == disputed > 0
    assert settle.drawn.design == "adjudication"
    assert "to adjudicate" not in merged(capsys, as_person(settle, "cleo"))
    assert load_dataset(DatasetReference(begun)).labels["q-fruit"].grades["apple"] == 2


def test_the_shipped_labellers_agree_as_published(project):
    """Computed by another program: 50 queries x 182 documents, 160 and 195 relevant."""
    (pair,) = measure_agreement([project / "datasets" / "survey-templates-en"]).pairs
    assert (pair.queries, pair.units) == (50, 50 * 182)
    assert pair.table == ((8900, 40), (5, 155))
    assert pair.kappa.value == pytest.approx(0.8707427, abs=5e-8)
    assert pair.positive.value == pytest.approx(0.8732394, abs=5e-8)
    assert pair.kappa.low < pair.kappa.value < pair.kappa.high


def test_one_judge_agrees_with_nobody():
    refused = refusal(compare_judges, [judgment()])
    assert "no document was judged by two judges" in str(refused)


def test_an_adjudication_is_no_first_grade_of_its_judge():
    judgments = [
        judgment(grade=1),
        judgment(grade=1, round=2),
        judgment(grade=3, design="adjudication"),
    ]
    [themselves] = compare_judges(judgments).themselves
    assert (themselves.pairs, themselves.same) == (1, 1.0)


def two_files_of_queries(folder):
    """A folder with a list by each of two people, of other queries."""
    for name in ("a", "b"):
        (folder / f"{name}.md").write_text(f"# {name}")
    for person, query in (("ann", "q"), ("ben", "r")):
        labels = {"labelled_by": person, "relevant_documents": ["a"]}
        rows = [{"id": query, "query": f"what {query}", **labels}]
        (folder / f"{person}.json").write_text(json.dumps(rows))
    return DatasetReference(folder, queries=("ann.json",))


def test_lists_for_other_queries_are_not_compared(tmp_path):
    two_files_of_queries(tmp_path)
    refused = refusal(measure_agreement, [tmp_path])
    assert "names no two labellers of the same query" in str(refused)


def test_files_without_a_labeller_are_not_compared(tmp_path):
    (tmp_path / "a.md").write_text("# a")
    for person in ("ann", "ben"):
        rows = [{"query": "what", "labelled_by": person, "relevant_documents": ["a"]}]
        (tmp_path / f"{person}.json").write_text(json.dumps(rows))
    (tmp_path / "experiment.schema.json").write_text('{"type": "object"}')
    [pair] = measure_agreement([tmp_path]).pairs
    assert (pair.a, pair.b, pair.queries) == ("ann", "ben", 1)


def test_labellers_are_compared_on_equal_texts(tmp_path):
    """Without ids, a query has its place in the file as its id."""
    rows = []
    for name in ("a", "b"):
        (tmp_path / f"{name}.md").write_text(f"# {name}")
        rows.append({"query": f"what {name}", "relevant_documents": [name]})
    for person, order in (("ann", rows), ("ben", rows[::-1])):
        labelled = [{**row, "labelled_by": person} for row in order]
        (tmp_path / f"{person}.json").write_text(json.dumps(labelled))
    [pair] = measure_agreement([tmp_path]).pairs
    assert pair.table == ((2, 0), (0, 2))


def test_grades_of_labellers_have_no_order_to_compare(tmp_path):
    for name in ("a", "b"):
        (tmp_path / f"{name}.md").write_text(f"# {name}")
    for person, relevant in (("ann", {"a": 0, "b": 2}), ("ben", ["b"])):
        rows = [{"query": "what", "labelled_by": person, "relevant": relevant}]
        (tmp_path / f"{person}.json").write_text(json.dumps(rows))
    [pair] = measure_agreement([tmp_path]).pairs
    assert (pair.positive.value, pair.rbo) == (1.0, None)


def test_a_merge_lists_disputes_of_its_own_queries_alone(tmp_path):
    reference = two_files_of_queries(tmp_path)
    others = [judgment("r", "a", grade, judge) for grade, judge in ((0, "x"), (3, "y"))]
    write(tmp_path / JUDGMENTS_FILE, others)
    document = load_dataset(reference).texts(["a"])["a"]
    text = judged_text_digest("what q", document)
    new = [judgment("q", "a", grade, str(grade), text=text) for grade in (0, 2)]
    merged = merge_into_dataset([write(tmp_path / "new.jsonl", new)], reference)
    assert [dispute.query_id for dispute in merged.disputes] == ["q"]
    assert adjudication_pool(merged.disputes, reference, "").pair_count == 1


def test_exported_queries_are_read_as_they_were(tmp_path):
    path = tmp_path / "queries.json"
    spans = [{"document_id": "b", "grade": 2, "spans": ["students pay"]}]
    rows = [
        {
            "id": "talk",
            "query": "what about students?",
            "history": ["Is there a fee?", "Yes."],
            "reference": "Half.",
            "claims": ["They pay half.", {"text": "x", "vital": False}],
            "excluded_ids": ["c"],
            "tags": ["fees"],
            "relevant_documents": [*spans, {"document_id": "a", "grade": 0}],
        },
        {"id": "both", "query": "fee", "relevant_documents": [["a"], ["b", "c"]]},
        {"id": "one", "query": "fee", "relevant_documents": [["a"]], "spans": [[2, 5]]},
        {"id": "list", "query": "fee", "relevant_documents": ["b", "a"]},
        {
            "id": "part",
            "query": "fee",
            "relevant_documents": [{"document_id": "b", "spans": [[0, 8]]}],
        },
    ]
    rows[-1]["relevant_documents"].append({"document_id": "empty"})
    texts = {"a": "a fee", "b": "students pay half", "c": "c", "empty": ""}
    for id_, text in texts.items():
        (tmp_path / f"{id_}.md").write_text(text)
    path.write_text(json.dumps(rows))
    dataset = load_dataset(tmp_path)
    export_labels(dataset, tmp_path / "new.json", "json")
    (tmp_path / "new.json").replace(path)
    exported = load_dataset(tmp_path)
    assert exported.digest == dataset.digest
    assert exported.labels["talk"].spans == (Span("b", 0, 12),)


def test_the_latest_of_several_exports_counts(tmp_path):
    reference = two_files_of_queries(tmp_path)
    document = load_dataset(reference).texts(["a"])["a"]
    text = judged_text_digest("what q", document)
    exports = [
        write(tmp_path / f"{grade}.jsonl", [judgment("q", "a", grade, text=text)])
        for grade in (1, 3)
    ]
    merge_into_dataset(exports, reference, latest_counts=True)
    assert load_dataset(reference).labels["q"].grades == {"a": 3}


def test_nobody_corrects_another_by_bearing_his_name(begun, people, capsys):
    forged = people[0].model_copy(
        update={"grade": 3 - people[0].grade, "corrects": True}
    )

    def grade():
        return (
            load_dataset(DatasetReference(begun))
            .labels[forged.query_id]
            .grades[forged.document_id]
        )

    merged(capsys, people)
    for _ in range(2):  # the same again adds nothing
        output = merged(capsys, [people[0], forged])
        assert (
            "later grades by ann do not replace the first ones; "
            "if they should: --corrects ann" in output
        )
        assert f"{len(people) + 1} labels" in output and grade() == people[0].grade
    lines = map(json.loads, (begun / "judgments.jsonl").read_text().splitlines())
    assert [line["grade"] for line in lines if line.get("round") == 2] == [forged.grade]
    output = merged(capsys, [people[0], forged], "--corrects", "ann")
    assert "--corrects" not in output and grade() == forged.grade
    unread = people[1].model_copy(update={"grade": None, "judge": "m", "kind": "llm"})
    merged(capsys, [unread])
    filled = unread.model_copy(update={"grade": 2, "corrects": True})
    for _ in range(2):  # a model that gave no grade is filled in, and so it stays
        assert "--corrects" not in merged(capsys, [unread, filled])


def stored_rounds(begun, query_id, document_id):
    """The grade of each round of one pair in the data set's file of judgments."""
    judgments = read_judgments([begun / JUDGMENTS_FILE])
    return {
        judgment.round: judgment.grade
        for judgment in judgments
        if judgment.key == (query_id, document_id)
    }


def corrections(first, *grades):
    """Return corrections of a judgment, one for each grade."""
    return [
        first.model_copy(update={"grade": grade, "corrects": True}) for grade in grades
    ]


def test_a_second_refused_correction_with_another_grade_is_a_third_round(
    begun, people, capsys
):
    first = people[0].model_copy(update={"grade": 0})
    merged(capsys, [first])
    merged(capsys, corrections(first, 1))
    for _ in range(2):  # the same again adds nothing
        output = merged(capsys, corrections(first, 1, 3))
        assert "later grades by ann do not replace the first ones" in output
    assert stored_rounds(begun, *first.key) == {1: 0, 2: 1, 3: 3}


def test_a_refused_correction_with_the_same_grade_changes_nothing(
    begun, people, capsys
):
    merged(capsys, people)
    output = merged(capsys, corrections(people[0], people[0].grade))
    assert "later grades" not in output and ", 0 of them new" in output
    assert stored_rounds(begun, *people[0].key) == {1: people[0].grade}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"query_id": "q-elsewhere"}, "the data set has no such query"),
        ({"document_id": "elsewhere"}, "the data set has no such document"),
        ({"text": "0" * 16}, "has changed since it was judged"),
        ({"judge": "ann", "grade": 1}, "ann graded document"),
    ],
)
def test_what_does_not_belong_is_refused_and_nothing_is_merged(
    begun, people, capsys, change, message
):
    judgments = [
        *(people if "judge" in change else people[1:]),
        people[0].model_copy(update=change),
    ]
    assert message in merged(capsys, judgments, code=2)
    assert not [*begun.glob("judgments.jsonl*")]


def test_pairs_on_which_people_and_a_model_lie_far_apart_are_listed(
    begun, people, capsys
):
    people = [judgment.model_copy(update={"grade": 0}) for judgment in people]
    model = [
        judgment.model_copy(update={"grade": 3, "kind": "llm", "judge": "m"})
        for judgment in people
    ]
    write(Path("both.jsonl"), [*people, *model])
    output = harness(capsys, "labels", "agree", "both.jsonl")
    assert (
        output.count("people and model far apart: q-") == 10 and "ann 0, m 3" in output
    )
    assert f"{len(people) - 10} more pairs" in output
    listed = json.loads(harness(capsys, "labels", "agree", "both.jsonl", "--json"))
    assert len(listed["apart"]) == len(people) and listed["disputed"] == []
    adjudicate = ("--adjudicate", "settle.jsonl")
    assert "settle.jsonl is not written" in merged(
        capsys, [*people, *model], *adjudicate
    )
    Path("settle.jsonl").write_text("", encoding="utf-8")
    (begun / "judgments.jsonl").unlink()
    assert "settle.jsonl: already exists" in merged(
        capsys, [*people, *model], *adjudicate, code=2
    )
    assert not (begun / "judgments.jsonl").exists()

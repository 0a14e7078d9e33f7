"""Two states of a corpus: a changed label stays, a missing one leaves it undecided."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from harness.evaluation.corpus_change import LabelReason, compare_corpus_states
from harness.evaluation.gate import GateArm, gate_retrievers
from harness.evaluation.gate_verdict import GateOutcome
from harness.evaluation.verdict import Reason, Verdict
from harness.pipeline import run
from harness.records import Results
from harness.running.options import RunOptions
from harness.scoring.declared_settings import read_declared_settings
from harness.scoring.states import StateLabels, find_state_queries
from harness.wording.verdicts import gate_sentence
from tests.support import layouts

Labels = Mapping[str, Sequence[str]]
Rankings = Mapping[str, Sequence[str]]


def state(
    folder: Path, name: str, documents: Sequence[str], labels: Labels, hits: Rankings
) -> Results:
    """The results of one saved run, "r", over one state of a corpus."""
    data = folder / name
    rows = [{"id": id_, "text": f"text of {id_}"} for id_ in documents]
    layouts.jsonl(data / "documents.jsonl", rows)
    queries = [
        {"id": id_, "query": f"what {id_}", "relevant": list(relevant)}
        for id_, relevant in labels.items()
    ]
    layouts.jsonl(data / "queries.jsonl", queries)
    return saved_run(folder, name, hits)


def graded_state(
    folder: Path,
    name: str,
    documents: Sequence[str],
    judged: Mapping[str, Mapping[str, int]],
    hits: Rankings,
    measure: str = "RR@1",
) -> Results:
    """As `state`, by explicit grades, of which 0 is a label as well."""
    data = folder / name
    corpus = [{"_id": id_, "text": f"text of {id_}"} for id_ in documents]
    layouts.jsonl(data / "corpus.jsonl", corpus)
    queries = [{"_id": id_, "text": f"what {id_}"} for id_ in judged]
    layouts.jsonl(data / "queries.jsonl", queries)
    (data / "qrels").mkdir()
    rows = ["query-id\tcorpus-id\tscore"]
    for id_, grades in judged.items():
        rows += [f"{id_}\t{document}\t{grade}" for document, grade in grades.items()]
    (data / "qrels" / "test.tsv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    return saved_run(folder, name, hits, measure)


def saved_run(
    folder: Path, name: str, hits: Rankings, measure: str = "RR@1"
) -> Results:
    """The results of the data set of that name, whose one retriever is a saved run."""
    lines = [
        f"{id_} Q0 {document} {rank} {9 - rank} r\n"
        for id_, found in hits.items()
        for rank, document in enumerate(found, start=1)
    ]
    path = folder / f"{name}.trec"
    path.write_text("".join(lines), encoding="utf-8")
    experiment = {
        "name": name,
        "dataset": str(folder / name),
        "primary": measure,
        "report": False,
        "retrievers": [{"name": "r", "kind": "run", "path": str(path)}],
    }
    return run(experiment, RunOptions(folder / "out"))


BEFORE = {"q1": ["a"], "q2": ["b"], "q3": ["c"]}
LABELLED = {**BEFORE, "q3": ["c", "d"]}
HITS_NOW = {**BEFORE, "q3": ["d", "c"]}


@pytest.fixture
def old(tmp_path: Path) -> Results:
    return state(tmp_path, "old", "abc", BEFORE, BEFORE)


@pytest.fixture
def grown(tmp_path: Path) -> Results:
    """d is new, and labelled for q3."""
    return state(tmp_path, "new", "abcd", LABELLED, HITS_NOW)


@pytest.fixture
def unlabelled(tmp_path: Path) -> Results:
    """The same, where d has no label."""
    return state(tmp_path, "new", "abcd", BEFORE, HITS_NOW)


def test_a_query_that_gained_a_relevant_document_stays(old, grown):
    change = compare_corpus_states(old, grown)
    assert change.queries.ids == ("q1", "q2", "q3")
    (changed,) = change.retrievers
    assert (changed.before, changed.after) == (1.0, 1.0)
    assert changed.comparison.mean_difference == 0.0
    assert (changed.reason, changed.labels.to_label) == (None, 0)


def test_a_fall_by_a_new_document_without_a_label_is_undecided(old, unlabelled):
    (changed,) = compare_corpus_states(old, unlabelled).retrievers
    assert changed.comparison.mean_difference == pytest.approx(-1 / 3)
    assert changed.labels.judged_before == 1.0
    assert changed.labels.judged_after == pytest.approx(2 / 3)
    assert changed.labels.to_label == 1
    assert changed.reason is LabelReason.NEW_UNLABELLED
    assert changed.verdict is Verdict.UNDECIDED


def test_a_rise_from_a_less_labelled_state_is_undecided(old, unlabelled):
    """Backwards: the labels that are missing are those of the earlier state."""
    (changed,) = compare_corpus_states(unlabelled, old).retrievers
    assert changed.comparison.mean_difference == pytest.approx(1 / 3)
    assert changed.reason is LabelReason.OLD_LESS_LABELLED
    assert changed.verdict is Verdict.UNDECIDED


def test_float_noise_makes_no_state_less_labelled():
    """0.4 - 0.3 is more than 0.1 in floats."""
    assert not StateLabels(0.4, 0.3, 0).is_new_less_labelled
    assert not StateLabels(0.3, 0.4, 0).is_old_less_labelled


def test_a_query_without_a_value_of_the_measure_does_not_count(tmp_path):
    """Abstain has a value only where no document is the answer."""
    states = []
    for name in ("old", "new"):
        data = tmp_path / name
        layouts.jsonl(data / "documents.jsonl", [{"id": "a", "text": "text of a"}])
        queries = [
            {"id": "q1", "query": "what a", "relevant": ["a"]},
            {"id": "u1", "query": "what else", "relevant": [], "answerable": False},
        ]
        layouts.jsonl(data / "queries.jsonl", queries)
        states.append(saved_run(tmp_path, name, {"q1": ["a"]}, measure="Abstain"))
    counted = compare_corpus_states(*states).queries
    assert (counted.ids, counted.without_value) == (("u1",), 1)


MANY = {f"q{n:02}": [f"d{n:02}"] for n in range(20)}


def test_where_all_is_labelled_the_deciding_test_decides(tmp_path):
    """Twelve of twenty queries lose their document: 2 of 2^12 signs."""
    documents = [f"d{n:02}" for n in range(20)]
    hits = {
        id_: [documents[(n + 1) % 20]] if n < 12 else relevant
        for n, (id_, relevant) in enumerate(MANY.items())
    }
    judged = {
        id_: {**dict.fromkeys(hits[id_], 0), **dict.fromkeys(MANY[id_], 1)}
        for id_ in MANY
    }
    old = graded_state(tmp_path, "old", documents, judged, MANY)
    new = graded_state(tmp_path, "new", documents, judged, hits)
    (changed,) = compare_corpus_states(old, new).retrievers
    assert changed.comparison.p_value == 2.0**-11
    assert (changed.reason, changed.verdict) == (None, Verdict.WORSE)


def test_what_is_left_out_is_counted_with_its_reason(tmp_path, old):
    labels = {"q1": ["a"], "q2": [], "q3": ["c"], "q4": ["a"]}
    new = state(tmp_path, "new", "abc", labels, BEFORE)
    queries = compare_corpus_states(old, new).queries
    assert queries.ids == ("q1", "q3")
    assert queries.without_label_after == ("q2",)


def test_a_query_after_another_history_is_another_query(tmp_path):
    history = ["which page?", "The first."]
    queries = [
        {"id": "q1", "query": "what", "relevant": ["a"], "history": history},
        {"id": "q2", "query": "what b", "relevant": ["b"]},
    ]
    documents = [{"id": id_, "text": f"text of {id_}"} for id_ in "abc"]
    states: list[Results] = []
    for name in ("old", "new"):
        layouts.jsonl(tmp_path / name / "documents.jsonl", documents)
        layouts.jsonl(tmp_path / name / "queries.jsonl", queries)
        states.append(saved_run(tmp_path, name, {"q1": ["a"], "q2": ["b"]}))
        queries[0]["history"] = ["which page?", "The last."]
    found = find_state_queries(*states)
    assert (found.ids, found.changed_text) == (("q2",), ("q1",))


def test_a_hidden_folder_declares_nothing(old):
    declared = read_declared_settings([old.folder.parent])
    hidden = old.folder.parent / ".unfinished"
    shutil.copytree(old.folder, hidden)
    manifest = (hidden / "manifest.json").read_text(encoding="utf-8")
    assert '"alpha": 0.05' in manifest
    changed = manifest.replace('"alpha": 0.05', '"alpha": 0.01')
    (hidden / "manifest.json").write_text(changed, encoding="utf-8")
    assert read_declared_settings([old.folder.parent]) == declared


UNCHANGED = """\
documents: 1 added, 0 removed, 0 changed
Compared on 3 queries with a label in both states.
RR@1, each retriever against itself:
r: 1.000 before, 1.000 after (+0.000), p = 1.00: undecided
  Judged@1: 1.00 before, 1.00 after
"""
UNDECIDED = """\
documents: 1 added, 0 removed, 0 changed
Compared on 3 queries with a label in both states.
RR@1, each retriever against itself:
"""


def test_compare_prints_states_with_equal_scores(old, grown, call):
    printed = call("compare", old.folder, grown.folder, "--corpus-changed", code=0)
    assert printed.out == UNCHANGED


def test_compare_prints_what_is_to_be_labelled(old, unlabelled, call):
    words = ("compare", old.folder, unlabelled.folder, "--corpus-changed")
    printed = call(*words, code=0).out
    assert printed.startswith(UNDECIDED)
    assert ": undecided, new documents are not labelled\n" in printed
    assert "  Judged@1: 1.00 before, 0.67 after\n" in printed
    pair = "1 query-document pair, new documents as the first hit"
    pool = "harness pool --depth 1 draws them, among others"
    assert f"  to judge: {pair} ({pool})" in printed


def test_compare_prints_states_as_json(old, unlabelled, call):
    words = ("compare", old.folder, unlabelled.folder, "--corpus-changed", "--json")
    printed = json.loads(call(*words, code=0).out)
    assert printed["documents"] == {"added": ["d"], "removed": [], "changed": []}
    assert printed["queries"]["ids"] == ["q1", "q2", "q3"]
    (row,) = printed["retrievers"]
    assert row["mean_difference"] == pytest.approx(-1 / 3)
    assert (row["verdict"], row["to_label"]) == ("undecided", 1)
    assert row["reason"] == "new documents are not labelled"


def test_compare_prints_equal_scores_as_json(old, grown, call):
    words = ("compare", old.folder, grown.folder, "--corpus-changed", "--json")
    (row,) = json.loads(call(*words, code=0).out)["retrievers"]
    assert (row["mean_difference"], row["ci_low"], row["reason"]) == (0.0, None, None)


def gate_words(new: Results, old: Results, *more: object) -> list[object]:
    arms = ["--challenger", "r", "--baseline", "r", "--margin", "0.02"]
    folders = ["gate", new.folder, "--from", old.folder]
    return [*folders, *arms, "--corpus-changed", *more]


@pytest.mark.parametrize("option", ["--measure=RR", "--explain", "--format=csv"])
def test_options_that_states_do_not_use_are_refused(old, grown, call, option):
    message = call(
        "compare", old.folder, grown.folder, "--corpus-changed", option, code=2
    ).err
    assert "cannot go with --corpus-changed" in message


def test_a_gate_of_states_without_a_common_query_is_one_clear_error(
    tmp_path, old, call
):
    new = state(tmp_path, "new", "abc", {"p1": ["a"]}, {"p1": ["a"]})
    error = call(*gate_words(new, old), code=2).err
    assert "has no query in common with" in error


def test_a_gate_of_states_names_what_is_to_be_labelled(tmp_path, call):
    """Twelve of twenty queries lose their document to a new one without a label."""
    documents = [f"d{n:02}" for n in range(20)]
    hits = {
        id_: ["new"] if n < 12 else relevant
        for n, (id_, relevant) in enumerate(MANY.items())
    }
    old = state(tmp_path, "old", documents, MANY, MANY)
    new = state(tmp_path, "new", [*documents, "new"], MANY, hits)
    told = call(*gate_words(new, old), code=1).out
    # For each of the twelve queries.
    reason = "not shown: new documents are not labelled (difference −0.6000; "
    command = f"harness pool {new.folder} --depth 1"
    pairs = f"12 query-document pairs have no label: {command} draws them, among others"
    assert f"{reason}{pairs})" in told
    assert call(*gate_words(new, old, "--fail-if", "worse"), code=0).err != ""


def test_grades_of_one_state_may_be_larger_than_those_of_the_other(tmp_path):
    # CG@1 of q1 is 3 in the old state, and at most 1 in the new one.
    hits = {"q1": ["a"], "q2": ["b"]}
    before, after = (
        graded_state(
            tmp_path,
            name,
            "ab",
            {"q1": {"a": grade}, "q2": {"b": 1}},
            hits,
            measure="CG@1",
        )
        for name, grade in (("old", 3), ("new", 1))
    )
    (changed,) = compare_corpus_states(before, after).retrievers
    assert (changed.before, changed.after) == (2.0, 1.0)
    arms = (GateArm(after, "r"), GateArm(before, "r"))
    gate = gate_retrievers(*arms, margin=0.5, corpus_changed=True)
    assert gate.mean_difference == -1.0


def test_if_a_model_alone_judged_one_state_nothing_is_shown(tmp_path, monkeypatch):
    queries = {f"q{i:02}": [f"d{i}"] for i in range(12)}
    documents = [f"d{i}" for i in range(13)]
    wrong = {query_id: ["d12"] for query_id in queries}
    before = state(tmp_path, "old", documents, queries, queries)
    after = state(tmp_path, "new", documents, queries, wrong)
    (changed,) = compare_corpus_states(before, after).retrievers
    assert changed.comparison.verdict is Verdict.WORSE
    judged_by_model = {
        query_id: judged._replace(labels=replace(judged.labels, source="model"))
        for query_id, judged in before.queries.items()
    }
    monkeypatch.setitem(before.__dict__, "queries", judged_by_model)
    (changed,) = compare_corpus_states(before, after).retrievers
    assert changed.comparison.reason is Reason.MODEL_ALONE
    arms = (GateArm(after, "r"), GateArm(before, "r"))
    gate = gate_retrievers(*arms, margin=0.5, corpus_changed=True)
    assert gate.outcome is GateOutcome.NOT_SHOWN
    assert "no person judged these queries" in gate_sentence(gate)

"""What people bring (ids and labels), by kind and on every road: the same ids everywhere, labels never overlooked."""

import json
import unicodedata
from pathlib import Path

import pandas as pd
import pytest

import harness
from harness.dataset import DatasetReference, load
from harness.dataset.trec import read_qrels
from harness.notebook.in_memory import judgments_of, run_of
from retrievers.errors import BackendError, InputError
from retrievers.external import Function, SavedRun, recognised
from retrievers.ids import KnownDocuments, document_id
from retrievers.meter import Meter
from retrievers.runs import read_run
from retrievers.types import Query, ranked
from retrievers.user_objects import NamedObject
from tests.support.layouts import jsonl
from tests.support.small import ends

NFD = unicodedata.normalize("NFD", "café")
SAME = [(7, "7"), (7.0, "7"), ("007", "007"), ("7.0", "7.0"), (NFD, "café")]
"""What is written -> the id."""
WRITTEN = [(written, id_) for written, id_ in SAME if isinstance(written, str)]


def documents_in(folder: Path, *ids: str) -> Path:
    """A folder of documents."""
    for id_ in ids:
        path = folder / f"{id_}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"# Title of {id_}\n\nthe text of {id_}")
    return folder


def grades_of(folder: Path, **more) -> dict[str, list[str]]:
    """Query -> relevant documents."""
    found = load(DatasetReference(folder, **more))
    return {query: sorted(labels.relevant) for query, labels in found.labels.items()}


def by_document(written, place: Path) -> str:
    return next(load(DatasetReference(place, documents="documents.jsonl", queries=("asked.jsonl",))).documents()).id


def by_label(written, place: Path) -> str:
    jsonl(place / "asked.jsonl", [{"query": "what", "relevant": [written]}])
    found = load(DatasetReference(place, documents="documents.jsonl", queries=("asked.jsonl",)))
    return found.labels["q0"].relevant[0]


def by_saved_run(written, place: Path) -> str:
    jsonl(place / "run.jsonl", [{"query_id": "q", "doc_id": written, "score": 1.0}])
    return SavedRun(path=str(place / "run.jsonl")).search([Query("q", "")], 1, Meter())[0].doc_ids[0]


def by_function(written, place: Path) -> str:
    call = NamedObject("object:f", lambda queries, depth: [[(written, 1.0)] for _ in queries])
    return Function(call=call).search([Query("q", "")], 1, Meter())[0].doc_ids[0]


ROADS = {
    "document": by_document,
    "label": by_label,
    "saved run": by_saved_run,
    "function": by_function,
    "qrels dict": lambda written, _: next(iter(judgments_of({"q": {written: 1}})["q"])),
    "qrels list": lambda written, _: next(iter(judgments_of({"q": [written]})["q"])),
    "qrels frame": lambda written, _: next(iter(judgments_of(frame(written))["q"])),
    "run dict": lambda written, _: next(iter(run_of({"q": {written: 1.0}}, "r")["q"])),
    "run list": lambda written, _: next(iter(run_of({"q": [written]}, "r")["q"])),
    "run frame": lambda written, _: next(iter(run_of(frame(written), "r")["q"])),
}


def frame(written) -> pd.DataFrame:
    return pd.DataFrame({"query_id": ["q"], "doc_id": [written], "relevance": [1], "score": [1.0]})


@pytest.mark.parametrize("road", ROADS)
@pytest.mark.parametrize(("written", "id_"), SAME)
def test_an_id_is_the_same_on_every_road(road, written, id_, tmp_path):
    jsonl(tmp_path / "documents.jsonl", [{"_id": written, "text": "one"}])
    jsonl(tmp_path / "asked.jsonl", [{"query": "what", "relevant": [written]}])
    assert document_id(written) == ROADS[road](written, tmp_path) == id_


@pytest.mark.parametrize(("written", "id_"), WRITTEN)
def test_an_id_is_the_same_in_trec_files(written, id_, tmp_path):
    (tmp_path / "qrels").write_text(f"q 0 {written} 1\n", encoding="utf-8")
    (tmp_path / "run").write_text(f"q Q0 {written} 1 0.5 x\n", encoding="utf-8")
    assert list(read_qrels(tmp_path / "qrels")["q"]) == list(read_run(tmp_path / "run")["q"]) == [id_]


@pytest.mark.parametrize("road", ["saved run", "function", "qrels dict", "qrels frame", "run dict", "run frame"])
@pytest.mark.parametrize("written", [True, 0.5, float("nan")])
def test_what_is_no_id_is_refused(road, written, tmp_path):
    with pytest.raises((InputError, BackendError)):
        ROADS[road](written, tmp_path)


IDS = ("hr/leave", "hr/pay", "it/vpn")
NAMED = {
    "suffix": [f"{id_}.md" for id_ in IDS],
    "folder before": [f"documents/{id_}.pdf" for id_ in IDS],
    "base name": ["leave.md", "pay.md", "vpn"],
    "title": [f"title  of {id_}" for id_ in IDS],
    "backslashes": [id_.replace("/", "\\") for id_ in IDS],
}


@pytest.mark.parametrize("names", NAMED.values(), ids=NAMED)
def test_labels_and_hits_are_matched_by_the_same_rules(names, tmp_path):
    jsonl(documents_in(tmp_path, *IDS) / "queries.jsonl", [{"query": f"q {n}", "relevant": [n]} for n in names])
    assert grades_of(tmp_path) == {f"q{place}": [id_] for place, id_ in enumerate(IDS)}
    known = KnownDocuments()
    for id_ in IDS:
        known.add(id_, f"Title of {id_}")
    meter = Meter()
    (found,) = recognised([ranked(names, [3, 2, 1])], known, meter)
    assert found.doc_ids == IDS
    assert len(meter.notes()["matched-hit"]) == 3


def test_what_could_mean_two_documents_means_none():
    known = KnownDocuments({"hr/leave", "it/leave", "pkg.load"})
    assert known.match(["leave.md", "pkg.save", "it/pay", "it/rest"]) == {}


OBJECTS = [{"id": "a", "grade": 2}, {"id": "b", "grade": 0}]
FOUND = {
    "a word of its own": {"expected": ["a"]},
    "cells": {"wanted": "a; b"},
    "one id": {"gold": "a"},
    "base names": {"sollte": ["a.md"]},
    "objects": {"truth": OBJECTS},
    "objects with one key": {"gold": [{"fqname": "a"}]},
    "objects in objects": {"evidence": [{"doc": {"ref": "a"}, "why": "so"}]},
    "sources in metadata": {"sources": [{"metadata": {"source": "docs/a.md"}}]},
    "grades by document": {"wanted": {"a": 1}},
}


@pytest.mark.parametrize("label", FOUND.values(), ids=FOUND)
def test_labels_are_found_by_what_they_name(label, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    jsonl(documents_in(tmp_path / "d", "a", "b") / "queries.jsonl", [{"question": f"{n}?", **label} for n in range(3)])
    found = load(DatasetReference(Path("d")))
    assert all("a" in labels.relevant for labels in found.labels.values())
    assert len(found.labels) == 3
    said = ends(capsys, 0, "init", "d").out
    assert f"column '{next(iter(label))}" in said and "is read as the labels" in said
    assert "without labels" not in said
    assert ends(capsys, 0, "check", "d.toml")


@pytest.mark.parametrize("row", [{"one": ["a"], "two": ["b"]}, {"retrieved": ["a"]}, {"hard_negatives": ["a", "b"]}])
def test_what_may_be_labels_is_asked_about_with_the_option_to_add(row, tmp_path):
    jsonl(documents_in(tmp_path, "a", "b") / "queries.jsonl", [{"question": f"{n}?", **row} for n in range(3)])
    name = next(iter(row))
    with pytest.raises(InputError, match=f"--columns relevant={name}"):
        load(DatasetReference(tmp_path))
    assert len(grades_of(tmp_path, columns={"relevant": name})) == 3


FORMS = {
    "rank_eval": ("queries.json", {"requests": [
        {"id": "q0", "request": {"query": {"match": {"text": "amsterdam"}}},
         "ratings": [{"_index": "i", "_id": "a", "rating": 3}, {"_index": "i", "_id": "b", "rating": 0}]}]}),
    "judgment list": ("queries.json", {"name": "x", "judgmentRatings": [
        {"query": "red", "ratings": [{"docId": "a", "rating": "3.000"}, {"docId": "b", "rating": "0.000"}]}]}),
    "yaml": ("queries.yaml", "- question: what\n  relevant:\n    - a\n"),
    "sep": ("queries.csv", "sep=;\nquestion;relevant\nwhat;a\n"),
    "a tab after a mark": ("queries.csv", "\ufeffsep=\t\nquestion\terwartet\nwhat\ta\n"),
    "graded objects": ("queries.jsonl", '{"question": "what", "relevant": [{"id": "a", "grade": 2}]}'),
    "numbers": ("queries.csv", "question,doc\nwhat,a\n"),
}  # fmt: skip


@pytest.mark.parametrize(("name", "content"), FORMS.values(), ids=FORMS)
def test_forms_of_labels(name, content, tmp_path):
    written = content if isinstance(content, str) else json.dumps(content)
    (documents_in(tmp_path, "a", "b") / name).write_text(written)
    assert grades_of(tmp_path) == {"q0": ["a"]}


@pytest.mark.parametrize(("topics", "content"), [
    ("topics.txt", "<top>\n<num> Number: 1\n<title> what\n</top>\n"), ("topics.tsv", "1\twhat\n"),
    ("queries.jsonl", '{"_id": "1", "text": "what"}\n'),
])  # fmt: skip
def test_topics_and_qrels_stand_beside_documents_of_any_form(topics, content, tmp_path):
    (documents_in(tmp_path, "a", "b") / topics).write_text(content)
    (tmp_path / "qrels.txt").write_text("# who judged\n1 0 a 1\n1 0 b 0\n")
    assert grades_of(tmp_path) == {"1": ["a"]}
    assert load(DatasetReference(tmp_path)).count == 2


def test_two_columns_may_name_a_document_together(tmp_path):
    pages = [{"id": f"n{n}", "file": "a.pdf", "page": float(n), "text": "x"} for n in (1, 2)]
    jsonl(tmp_path / "documents.jsonl", pages)
    (tmp_path / "queries.csv").write_text("question,target_file,target_page\nwhat,a.pdf,2\n")
    columns = {"label_document": "target_file,target_page"}
    assert grades_of(tmp_path, columns=columns, match=("file", "page")) == {"q0": ["n2"]}
    jsonl(tmp_path / "questions.jsonl", [{"question": "w", "gold": [{"doc": "a.pdf", "at": "1", "why": "so"}]}])
    columns = {"label_document": "gold.doc,gold.at"}
    found = grades_of(tmp_path, columns=columns, match=("file", "page"), queries=("questions.jsonl",))
    assert found == {"q0": ["n1"]}


def test_a_whole_cell_is_tried_before_its_parts_and_contexts_lose_their_hop(tmp_path):
    jsonl(tmp_path / "documents.jsonl", [{"id": "acts, 1999#3", "text": "one two three four five six"}])
    (tmp_path / "queries.csv").write_text('question,relevant\nwhat,"acts, 1999#3"\n')
    assert grades_of(tmp_path) == {"q0": ["acts, 1999#3"]}
    jsonl(tmp_path / "documents.jsonl", [{"id": id_, "text": id_} for id_ in ("acts, 1999#3", "b", "c, d")])
    (tmp_path / "queries.csv").write_text('question,relevant\nwhat,"acts, 1999#3, b"\nwho,"b; c, d"\nhow,"b, c, d"\n')
    assert [*grades_of(tmp_path).values()] == [["acts, 1999#3", "b"], ["b", "c, d"], ["b", "c, d"]]
    jsonl(tmp_path / "documents.jsonl", [{"id": "acts, 1999#3", "text": "one two three four five six"}])
    jsonl(tmp_path / "t.jsonl", [{"user_input": "w", "reference_contexts": ["<1-hop>\n\none two three four five six"]}])
    assert grades_of(tmp_path / "t.jsonl", documents="documents.jsonl") == {"q0": ["acts, 1999#3"]}


def test_what_is_declared_is_read_as_nothing_else(tmp_path):
    (documents_in(tmp_path, "a", "b") / "queries.csv").write_text("id,question\na,what\nb,who\na,when\n")
    assert grades_of(tmp_path, columns={"label_document": "id"}) == {"q0": ["a"], "q1": ["b"], "q2": ["a"]}


def test_what_takes_labels_away_counts_in_one_rule(tmp_path):
    rows = [{"question": f"{n}?", "relevant": ["a" if n else "lost"]} for n in range(9)]
    jsonl(documents_in(tmp_path, "a") / "queries.jsonl", rows)
    with pytest.raises(InputError, match="1 of 9 labels are lost, more than one in ten: 1 name no document"):
        load(DatasetReference(tmp_path), drop_dangling=True)
    jsonl(tmp_path / "queries.jsonl", [*rows, *({"question": f"{n} more", "relevant": ["a"]} for n in range(5))])
    assert len(load(DatasetReference(tmp_path), drop_dangling=True).labels) == 14


def test_one_cause_is_one_error(tmp_path):
    rows = [{"question": f"{n}?", "relevant": [f"documents/x{n}"]} for n in range(29)]
    jsonl(documents_in(tmp_path, "a", "b") / "queries.jsonl", rows)
    with pytest.raises(InputError, match="29 labels begin with 'documents/'") as raised:
        load(DatasetReference(tmp_path))
    assert len(raised.value.problems) == 1


def test_placeholders_are_named(tmp_path):
    (documents_in(tmp_path, "a", "b", "c") / "queries.csv").write_text("question,doc\nTODO,a\nTODO,b\nTODO,c\nwhat,a\n")
    assert load(DatasetReference(tmp_path)).ledger["placeholder-query"] == ("'TODO' on 3 rows",)


# Python


DOCUMENTS = {"a": "a red apple", "b": "a green pear", "c": "blue"}
GIVEN = {"documents": DOCUMENTS, "queries": ["red", "green"], "qrels": [["a"], ["b"]], "retrievers": {"bm25": "bm25"}}


def test_lists_of_labels_belong_to_the_queries_in_their_order():
    assert harness.evaluate(**{**GIVEN, "queries": {"x": "red", "y": "green"}}).queries["y"].labels.relevant == ("b",)
    with pytest.raises(InputError, match="1 lists of labels for 2 queries"):
        harness.evaluate(**{**GIVEN, "qrels": [["a"]]})


def test_results_print_as_in_the_terminal_and_columns_are_declared():
    table = pd.DataFrame({"id": list(DOCUMENTS), "description": list(DOCUMENTS.values())})
    with pytest.raises(InputError, match=r'say which: columns=\{"text": "…"\}\)'):
        harness.evaluate(**{**GIVEN, "documents": table})
    found = harness.evaluate(**{**GIVEN, "documents": table}, columns={"text": "description"})
    assert "evaluation · nDCG@10 · 2 queries" in str(found)
    assert "Results" not in str(found)
    with pytest.raises(InputError, match="the same retriever"):
        found.queries(lost_by="bm25", to="bm25")


def test_several_ids_in_a_cell_are_one_error():
    with pytest.raises(InputError, match=r"1 row with several ids, such as .*frame.explode\('doc_id'\)"):
        run_of(frame(["a", "b"]), "runs['x']")
    with pytest.raises(InputError, match="runs\\['x'\\]\\['q'\\]: nan is not a score of document 'a'"):
        run_of({"q": {"a": float("nan")}}, "runs['x']")


def test_qrels_take_what_runs_take(tmp_path):
    jsonl(tmp_path / "qrels.jsonl", [{"query_id": 1, "doc_id": 7.0, "relevance": 2}])
    assert judgments_of(tmp_path / "qrels.jsonl") == {"1": {"7": 2}}
    assert judgments_of({"1": iter(["7"])}) == {"1": {"7": 1}}


# The command line


def test_runs_and_judgments_are_told_apart_and_matched(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("qrels").write_text("q 0 hr/leave 1\nq 0 hr/pay 0\n")
    Path("a.run").write_text("q Q0 hr/leave.md 1 2 x\nq Q0 hr/pay.md 2 1 x\n")
    Path("b.run").write_text("q Q0 hr/pay 1 2 x\nq Q0 hr/leave 2 1 x\n")
    Path("c.run").write_text("q Q0 other 1 2 x\n")
    assert "is a run, not qrels (give the qrels first" in ends(capsys, 2, "score", "a.run", "qrels").err
    assert "ids matched: 2 by file name" in ends(capsys, 0, "score", "qrels", "a.run", "-m", "RR").err
    assert "no hit is judged in any query: ids look like 'other'" in ends(capsys, 2, "score", "qrels", "c.run").err
    both = ends(capsys, 3, "score", "qrels", "a.run", "c.run", "-m", "RR")
    assert "1.0000" in both.out and "c.run: no hit is judged in any query" in both.err
    assert ends(capsys, 3, "compare", "qrels", "a.run", "b.run", "c.run", "-m", "RR").out
    assert ends(capsys, 0, "compare", "qrels", "a.run", "b.run", "-m", "RR", "--report", "page.html")
    assert "RR" in Path("page.html").read_text()


def test_a_dangling_label_before_there_is_a_file(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rows = [{"question": f"{n}?", "relevant": ["a" if n else "b"]} for n in range(12)]
    jsonl(documents_in(Path("d"), "a") / "queries.jsonl", rows)
    assert "(--dangling drop)" in ends(capsys, 2, "check", "d").err
    assert "dropped (1)" in ends(capsys, 0, "check", "d", "--dangling", "drop").out

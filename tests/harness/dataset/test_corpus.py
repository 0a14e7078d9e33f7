"""Data sets as they are read: documents with front matter, labels as they were given, what is counted or refused."""

import json
import re
from pathlib import Path

import pytest

from harness.dataset import DatasetReference, load
from harness.dataset.markdown_folder import front_matter, parse_document
from retrievers.types import Document
from tests.support.small import refusal

SURVEY = """# アンケート概要

* ID: {id}
* アンケート名: {name}
* カテゴリ: 顧客
* タグ: a, b

# アンケート内容

* Q.1: ID: は何ですか?
"""


def beir(folder: Path, *, corpus: str = "", queries: str = "", qrels: str = "") -> Path:
    (folder / "qrels").mkdir(parents=True)
    (folder / "corpus.jsonl").write_text(
        corpus or '{"_id": "d1", "title": "One", "text": "first"}\n{"_id": "d2", "text": "second"}\n', encoding="utf-8"
    )
    (folder / "queries.jsonl").write_text(queries or '{"_id": "1", "text": "which?"}\n', encoding="utf-8")
    (folder / "qrels" / "test.tsv").write_text(qrels or "query-id\tcorpus-id\tscore\n1\td1\t2\n", encoding="utf-8")
    return folder


def markdown(folder: Path, queries: object = None, **files: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in (files or {"a": SURVEY.format(id="X1", name="Hotels"), "b": "# Cars\n\nWheels."}).items():
        (folder / f"{name}.md").write_text(text, encoding="utf-8")
    said = [{"query": "rooms", "relevant_documents": ["X1", "b"]}] if queries is None else queries
    (folder / "queries.json").write_text(json.dumps(said), encoding="utf-8")
    return folder


def problems(folder: Path, **options: bool) -> list[str]:
    caught = refusal(load, DatasetReference(folder), **options)
    return [str(problem).replace(str(folder), "DATA") for problem in caught.problems]


def test_markdown_as_in_the_article(tmp_path: Path) -> None:
    dataset = load(DatasetReference(markdown(tmp_path / "d")))
    first, second = dataset.documents()
    assert (first.id, first.title, first.fields) == ("X1", "Hotels", {"category": "顧客", "tags": "a, b"})
    assert "ID: X1" not in first.text
    assert "Q.1: ID: は何ですか?" in first.text
    assert first.text.startswith("# アンケート概要")
    assert (second.id, second.title, second.text) == ("b", "Cars", "# Cars\n\nWheels.")
    assert first.content.startswith("Hotels # アンケート概要")
    assert [query.id for query in dataset.queries] == ["q0"]
    assert dataset.labels["q0"].ranked == ("X1", "b")


def test_nested_files_are_named_by_their_path_and_papers_are_no_documents(tmp_path: Path) -> None:
    folder = markdown(
        tmp_path / "d", [{"query": "x", "relevant_documents": ["deep/er/note"]}], README="about", LICENSE=""
    )
    (folder / "deep" / "er").mkdir(parents=True)
    (folder / "deep" / "er" / "note.txt").write_text("text", encoding="utf-8")
    (folder / "deep" / "README.md").write_text("this one counts", encoding="utf-8")
    (folder / ".hidden").mkdir()
    (folder / ".hidden" / "x.md").write_text("no", encoding="utf-8")
    assert [doc.id for doc in load(DatasetReference(folder)).documents()] == ["deep/README", "deep/er/note"]


def test_labels_are_kept_as_they_are(tmp_path: Path) -> None:
    said = [
        {"query": "1", "relevant_documents": ["a", "b"], "labelled_by": "me", "tags": ["x", "y"]},
        {"query": "2", "relevant_documents": [["a"], ["b", "c"]], "id": "groups"},
        {"query": "3", "relevant_documents": {"a": 3, "b": 0}},
    ]
    dataset = load(DatasetReference(markdown(tmp_path / "d", said, a="1x", b="2x", c="3x")))
    assert dataset.labels["q0"].as_json() == {"ranked": ("a", "b"), "by": "me"}
    assert dataset.labels["groups"].groups == (("a",), ("b", "c"))
    assert dataset.labels["q2"].grades == {"a": 3, "b": 0}
    assert dataset.queries[0].fields == {"tags": "x, y"}


def test_beir_with_metadata_and_numbers_as_ids(tmp_path: Path) -> None:
    corpus = '{"_id": 7, "title": "T", "text": "x", "metadata": {"url": "u"}, "lang": "en"}\n'
    dataset = load(DatasetReference(beir(tmp_path / "d", corpus=corpus, qrels="1\t7\t1\n")))
    document = next(dataset.documents())
    assert (document.id, document.fields) == ("7", {"url": "u", "lang": "en"})
    assert dataset.labels["1"].grades == {"7": 1}


def test_what_is_counted_and_not_refused(tmp_path: Path) -> None:
    corpus = "\n".join(
        json.dumps({"_id": i, "text": t})
        for i, t in [("a", "One  text"), ("b", "one text"), ("c", " "), ("d", "other")]
    )
    queries = "\n".join(json.dumps({"_id": i, "text": t}) for i, t in [("1", "Other"), ("2", "two"), ("3", "three")])
    dataset = load(DatasetReference(beir(tmp_path / "d", corpus=corpus, queries=queries, qrels="1\ta\t1\n2\tb\t0\n")))
    assert dataset.ledger == {
        "duplicate-text": ("b (as a)",),
        "empty-document": ("c",),
        "no-relevant-document": ("2",),
        "unjudged-query": ("3",),
        "query-is-document": ("1",),
    }
    assert [query.id for query in dataset.queries] == ["1"]
    assert [query.id for query in dataset.judged] == ["1", "2"]
    assert dataset.count == 4


def test_every_fault_is_told_in_one_pass(tmp_path: Path) -> None:
    folder = beir(
        tmp_path / "d",
        corpus='{"_id": "d1", "text": "x"}\n{"_id": "d1", "text": "y"}\nnot json\n[]\n{"text": "z"}\n{"_id": "d3"}\n',
        queries='{"_id": "1", "text": "  "}\n{"_id": "1", "text": "again"}\n',
        qrels="query-id\tcorpus-id\tscore\n1\td1\n1\td1\thigh\n1\td1\t1\n1\td1\t1\n1\tnone\t1\n9\td1\t1\n",
    )
    told = "\n".join(problems(folder))
    for expected in (
        r"DATA/corpus.jsonl:2: document id 'd1' occurs twice",
        r"DATA/corpus.jsonl:3: is not JSON",
        r"DATA/corpus.jsonl:4: is not a JSON object",
        r"DATA/corpus.jsonl:5: '_id' is missing",
        r"DATA/corpus.jsonl:6: 'text' is missing",
        r"DATA/queries.jsonl:2: query id '1' occurs twice",
        r"DATA/qrels/test.tsv:2: 2 columns \(expected 3",
        r"DATA/qrels/test.tsv:3: grade .high. is not a whole number",
        r"DATA/qrels/test.tsv:5: query '1' and document 'd1' are judged twice",
        r"query '1' names document 'none', which does not exist",
        r"labels name query '9', which does not exist",
        r"judged query '1' is blank",
    ):
        assert re.search(expected, told), f"{expected} is not in\n{told}"


def test_dangling_judgments_can_be_counted_instead(tmp_path: Path) -> None:
    asked = range(1, 40)
    folder = beir(
        tmp_path / "d",
        queries="".join(f'{{"_id": "{n}", "text": "query {n}"}}\n' for n in asked if n != 9),
        qrels="".join(f"{n}\td1\t1\n" for n in asked) + "1\tnone\t1\n",
    )
    dataset = load(DatasetReference(folder), drop_dangling=True)
    assert len(dataset.labels) == 38
    assert dataset.labels["1"].grades == {"d1": 1}
    assert dataset.ledger["dangling-document"] == ("1 none",)
    assert dataset.ledger["dangling-query"] == ("9",)


def test_folders_that_are_no_data_set(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert problems(tmp_path / "empty") == [
        "DATA: holds no documents (corpus.jsonl, tables of documents and queries, or files *.md or *.txt)"
    ]
    assert problems(tmp_path / "none")[0].startswith("DATA: no such folder")
    folder = markdown(tmp_path / "d")
    (folder / "queries.json").unlink()
    told = "DATA/queries.json: cannot be read: No such file or directory"
    assert problems(folder) == [f"{told} (see that it is there and whole, and that you may read it)"]


def test_the_digest_covers_documents_queries_and_labels(tmp_path: Path) -> None:
    digests = {
        load(DatasetReference(folder)).digest
        for folder in (
            beir(tmp_path / "same"),
            beir(tmp_path / "copy"),
            beir(tmp_path / "query", queries='{"_id": "1", "text": "what?"}\n'),
            beir(tmp_path / "label", qrels="1\td1\t1\n"),
            beir(tmp_path / "corpus", corpus='{"_id": "d1", "text": "x"}\n'),
        )
    }
    assert len(digests) == 4


def test_text_that_is_no_text_is_named_with_its_line(tmp_path: Path) -> None:
    deep = "[" * 100_000
    corpus = '{"_id": "d1", "text": "cut \\ud83d"}\n{"_id": "d2", "text": "whole \\ud83d\\ude00"}\n' + deep + "\n"
    told = problems(beir(tmp_path / "d", corpus=corpus, qrels="1\td2\t1\n"))
    assert told[0].startswith("DATA/corpus.jsonl:1: is not JSON: it holds half a character, \\ud83d")
    assert told[1].startswith("DATA/corpus.jsonl:3: is not JSON")
    assert len(told) == 2
    folder = markdown(tmp_path / "m")
    (folder / "queries.json").write_text('[{"query": "\\ud83d", "relevant_documents": ["b"]}]')
    assert "queries.json: is not JSON: it holds half a character" in problems(folder)[0]


def test_what_a_wiki_exports():
    text = '---\r\ntitle: "Passwort: neu"\r\nlang: de\r\nweight: 3\r\n---\r\n\r\n# Heading\r\n\r\nKlicken Sie.\r\n'
    found = parse_document(text, "de/password")
    assert found == Document(
        "de/password", "Passwort: neu", "# Heading\r\n\r\nKlicken Sie.", {"lang": "de", "weight": "3"}
    )


@pytest.mark.parametrize(
    ("head", "fields"),
    [
        ("tags: [a, 'b c', \"d\"]", {"tags": "a, b c, d"}),
        ("tags:\n- a\n- b", {"tags": "a, b"}),
        ("url: http://example.org/#a  # where it was", {"url": "http://example.org/#a"}),
        ("note: it's\n\n# remark\nempty:\nauthor: 'O''Neil'", {"note": "it's", "author": "O'Neil"}),
        ("summary: >-\n  two\n  lines", {"summary": "two lines"}),
        ("seo:\n  robots: none\n  rank: 1", {"seo": "robots: none rank: 1"}),
        ("Last updated: 2026-09-01 10:00:00", {"Last updated": "2026-09-01 10:00:00"}),
    ],
)
def test_simple_entries_are_read_as_text(head, fields):
    assert front_matter(f"---\n{head}\n---\ntext") == ("", fields, "text")


@pytest.mark.parametrize(
    "text",
    [
        "---\n\nA rule, then text.\n\n---\nmore",
        "---\ntitle: never closed\n\ntext",
        "---\ntitle: a\ntitle: b\n---\ntext",
        "---\n- a\n---\ntext",
        "---\n---\ntext",
        " ---\ntitle: a\n---\ntext",
        "----\ntitle: a\n----\ntext",
        "text\n---\ntitle: a\n---\n",
        "---\ntitle: a: b\n---\ntext",
        "---\na: " + "[" * 19_000 + "\n---\ntext",
        "---\na: !!python/name:os.system\nb: [c\n---\ntext",
        "",
    ],
)
def test_what_is_no_front_matter_stays_in_the_text(text):
    assert front_matter(text) == ("", {}, text)


def test_a_survey_keeps_its_own_head():
    found = parse_document("---\ntags: x\nlang: en\n---\n# Survey overview\n\n* ID: X1\n* Tags: a, b\n", "file")
    assert (found.id, dict(found.fields)) == ("X1", {"tags": "a, b", "lang": "en"})

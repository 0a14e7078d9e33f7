"""Files that are wrong: a message with the file, the line or row and a remedy, and nothing loaded.

What may be wrong with a kind of file (an encoding, a line that is cut) and with a row (an id that is missing) stands
once; each reader has what only its files may have.
"""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from harness.dataset import DatasetReference, load, reference_of
from tests.support import layouts
from tests.support.small import refusal

Change = Callable[[bytes], bytes]


def refused(reference: DatasetReference, expected: str) -> None:
    """Loading fails with a problem that matches, and every problem says what to do."""
    caught = refusal(load, reference)
    shown = "\n".join(map(str, caught.problems))
    assert re.search(expected, shown), f"{expected} is not in\n{shown}"
    assert all(problem.where and (problem.remedy or " more like these" in problem.what)
               for problem in caught.problems), shown  # fmt: skip


def append(text: str | bytes) -> Change:
    return lambda raw: raw + (text.encode() if isinstance(text, str) else text)


def swap(old: str, new: str) -> Change:
    def change(raw: bytes) -> bytes:
        assert old.encode() in raw, old
        return raw.replace(old.encode(), new.encode())

    return change


def cut(count: int) -> Change:
    return lambda raw: raw[:-count]


def empty(raw: bytes) -> bytes:
    return b""


def utf16(raw: bytes) -> bytes:
    return raw.decode().encode("utf-16")


LONG = "x" * 3000
BEIR = [
    ("corpus.jsonl", append(b'{"_id": "e", "text": "\xe9"}\n'), r"corpus.jsonl:5: is not UTF-8 \(byte 0xe9"),
    ("corpus.jsonl", utf16, r"corpus.jsonl:1: is not UTF-8"),
    ("corpus.jsonl", empty, "the corpus is empty"),
    ("corpus.jsonl", append('{"_id": "e", "text": 5}\n'), r"corpus.jsonl:5: 'text' is not a string but 5"),
    (
        "corpus.jsonl",
        append('{"_id": "e", "text": "x", "title": 3}\n'),
        r"corpus.jsonl:5: 'title' is not a string but 3",
    ),
    ("corpus.jsonl", append('{"_id": ["e"], "text": "x"}\n'), r"corpus.jsonl:5: '_id' is not an id but \[\"e\"\]"),
    ("corpus.jsonl", append('{"_id": "car", "text": "x"}\n'), r"corpus.jsonl:5: document id 'car' occurs twice"),
    (
        "queries.jsonl",
        append('{"_id": "q1", "text": "x"}\n'),
        r"queries.jsonl:4: query id 'q1' occurs twice .*it is at \S*queries.jsonl:1 too",
    ),
    ("queries.jsonl", empty, "there is no query|labels name query 'q1'"),
    ("qrels/test.tsv", append("q1\tcra\t1\n"), r"test.tsv:7: query 'q1' names document 'cra', .* \(did you mean 'car'"),
    ("qrels/test.tsv", append("q9\tcar\t1\n"), r"test.tsv:7: labels name query 'q9'.* \(did you mean 'q1'|'q"),
    ("qrels/test.tsv", append("q1 0 car 1\n" * 30), r"test.tsv:7: 4 columns, as at 29 more places .*TREC"),
]
CSV = [
    (
        "documents.csv",
        swap("id,text", "sku,text"),
        r"documents.csv:2: '_id' is missing, as .*columns = \{ document_id =",
    ),
    ("documents.csv", swap("id,text", "id,words"), r"documents.csv:2: 'text' is missing, as .*there are: id, words"),
    ("documents.csv", append(",nameless\n"), r"documents.csv:7: 'id' is missing or empty"),
]


def written(path: Path, rows: list[dict[str, object]]) -> Change:
    """The bytes of a Parquet file."""

    def change(raw: bytes) -> bytes:
        layouts.parquet(path, rows)
        return path.read_bytes()

    return change


PARQUET = [
    ("documents.parquet", empty, r"documents.parquet: cannot be read as Parquet"),
    ("documents.parquet", cut(20), r"documents.parquet: cannot be read as Parquet"),
    ("documents.parquet", [{"id": None, "text": "x"}], r"documents.parquet:1: 'id' is missing or empty"),
    ("documents.parquet", [{"id": 0.5, "text": "x"}], r"documents.parquet:1: 'id' is not an id but 0.5"),
    ("documents.parquet", [{"id": "a", "text": None}], r"documents.parquet:1: 'text' is not a string but null"),
    ("qrels.parquet", [{**layouts.qrels()[0], "score": 0.5}], r"qrels.parquet:1: grade 0.5 is not a whole number"),
]
TREC = [
    ("documents.trec", append(b"<DOC><DOCNO>e</DOCNO>\n\xe9</DOC>\n"), r"documents.trec:\d+: is not UTF-8"),
    ("documents.trec", empty, r"documents.trec: holds no <doc>"),
    ("documents.trec", cut(8), r"documents.trec:\d+: <doc> has no end \(the file is cut short"),
    ("documents.trec", swap("<DOCNO> car </DOCNO>\n", ""), r"documents.trec:\d+: the document has no <DOCNO>"),
    ("documents.trec", swap(" car ", " boat "), r"documents.trec:\d+: document id 'boat' occurs twice"),
    ("documents.trec", lambda raw: raw.replace(b"</DOC>", b"", 1), r"documents.trec:1: <doc> has no end before line"),
    ("topics.txt", swap("<num> Number: q1\n", ""), r"topics.txt:1: the topic has no number"),
    ("topics.txt", swap("<title> green trees", "<title>"), r"topics.txt:\d+: topic q3 has no <title>"),
    ("topics.txt", lambda raw: b"q1 no tab\n", r"topics.txt:1: is neither a topic nor"),
    ("topics.txt", swap("q2", "q1"), r"topics.txt:\d+: query id 'q1' occurs twice"),
    ("qrels.txt", append("q1\tcar\t1\n"), r"qrels.txt:6: 3 fields instead of 4"),
    ("qrels.txt", append("q1 0 boat high\n"), r"qrels.txt:6: 'high' is not a grade"),
    ("qrels.txt", append("q1 0 nowhere 1\n"), r"qrels.txt:6: query 'q1' names document 'nowhere'"),
]
JSONL = [
    (
        "queries.jsonl",
        append('{"id": "q4", "text": "x", "relevant": {"car": "high"}}\n'),
        r"queries.jsonl:4: grade 'high'",
    ),
    ("queries.jsonl", append('{"id": "q4", "text": "x", "relevant": 5}\n'), r"queries.jsonl:4: .* cannot be read: 5"),
]
ROUTES = {"beir": BEIR, "csv": CSV, "jsonl": JSONL, "parquet": PARQUET, "trec": TREC}
TABLES = ("csv", "jsonl", "parquet")
CASES = [(route, *case) for route, cases in ROUTES.items() for case in cases]


@pytest.mark.parametrize(("route", "file", "change", "expected"), CASES)
def test_a_malformed_file(tmp_path, monkeypatch, route, file, change, expected):
    folder = layouts.GRADED[route](tmp_path / "data")
    path = folder / file
    if isinstance(change, list):
        change = written(path, change)
    path.write_bytes(change(path.read_bytes()))
    refused(replace(reference_of(folder), format="tables" if route in TABLES else route), expected)


def whole(**changes: object) -> str:
    said = {"queries": layouts.QUERIES, "corpus": layouts.DOCUMENTS, "qrels": layouts.GRADES,
            "relevant_docs": {"q1": ["car"]}, **changes}  # fmt: skip
    return json.dumps({key: value for key, value in said.items() if value is not None})


KEYED = [
    (whole().encode("utf-16"), "is not UTF-8"),
    (b"", "is not JSON"),
    (whole()[:-20].encode(), r"data.json:1: is not JSON"),
    (b"[]", "'corpus' is missing"),
    (whole(corpus=None).encode(), "'corpus' is missing"),
    (whole(corpus=["a"]).encode(), "'corpus' is missing, or not an object"),
    (whole(corpus={"car": 5}).encode(), r"corpus\['car'\]: 'text' is not a string but 5"),
    (whole(queries=None).encode(), "'queries' is missing"),
    (whole(queries={"q1": None}).encode(), r"queries\['q1'\]: 'text' is not a string"),
    (b'{"corpus": {"a": "x", "a": "y"}}', "the key 'a' occurs twice"),
    (whole(corpus={}).encode(), "the corpus is empty"),
    (b'{"corpus": ' + b"[" * 20_000, "nested too deep|is not JSON"),
]
EMBENCH = [
    *KEYED, (whole(qrels={"q1": 3}).encode(), r"qrels\['q1'\]: relevant documents cannot be read: 3"),
    (whole(qrels={"q1": {"car": "high"}}).encode(), r"grade 'high' of document 'car' is not a whole number"),
]  # fmt: skip
LLAMA = [(whole(relevant_docs={"q1": [0.5]}).encode(), r"relevant_docs\['q1'\]: relevant documents cannot be read")]


def squad(context: object = "a car", **asked: object) -> bytes:
    question = {"id": "q1", "question": "wheels", "answers": [{"text": "car"}], **asked}
    return json.dumps({"data": [{"title": "t", "paragraphs": [{"context": context, "qas": [question]}]}]}).encode()


SQUAD = [
    (b"{", "is not JSON"),
    (b'{"data": 7}', "the corpus is empty"),
    (squad(context=None), r"data\[0\]\.paragraphs\[0\]: 'context' is missing, or no text"),
    (squad(context=["a"]), "'context' is missing, or no text"),
    (squad(id=None), "'id' is missing or empty"),
    (squad(question=7), "'question' is not a string but 7"),
    (squad(answers=[{"text": 7}]), "'reference' is neither text nor a list of texts"),
    (squad(question=" "), "judged query 'q1' is blank"),
]
GOOD = '{"question": "wheels", "context": "a car"}\n'
QUOTED = [
    (b"", "the corpus is empty"),
    (f"{GOOD}{{".encode(), "data.jsonl:2: is not JSON"),
    (f'{GOOD}{{"question": "x"}}'.encode(), "data.jsonl:2: there is no column 'context'"),
    (f'{GOOD}{{"question": 7, "context": "x"}}'.encode(), "data.jsonl:2: 'question' is not a string but 7"),
    (f'{GOOD}{{"question": "x", "context": [7]}}'.encode(), "data.jsonl:2: 'context' is not a list of texts"),
    (f'{GOOD}{{"question": "x", "context": "y", "rating": "high"}}'.encode(), 'grade "high" is not a whole number'),
    (b'{"question": "x", "context": "y", "score": 1}\n{"question": "x", "context": "y", "score": 2}', "judged twice"),
]


MSMARCO = [
    ("collection.tsv", b"car\ta\tb\n", r"collection.tsv:1: 3 columns \(expected 2"),
    ("queries.tsv", b"q1 a query of words\n", r"queries.tsv:1: 5 columns \(expected 2"),
    ("queries.tsv", b"\twheels\n", "'_id' is missing or empty"),
    ("qrels.tsv", b"q1\t0\tcra\t1\n", "names document 'cra'"),
    ("qrels.tsv", b"q1\tcar\t1\n", r"qrels.tsv:1: 3 columns \(expected 4"),
]


QA = {"qid": "q1", "query": "wheels", "retrieval_gt": [["car"]], "generation_gt": ["x"]}
AUTORAG = [
    ("qa.parquet", [{"qid": "q1", "retrieval_gt": [["car"]]}], "qa.parquet:1: there is no column 'query'"),
    ("qa.parquet", [{**QA, "retrieval_gt": None}], "no query has a relevant document"),
    ("qa.parquet", [{**QA, "retrieval_gt": 5}], "relevant documents cannot be read: 5"),
    ("qa.parquet", [{**QA, "retrieval_gt": [[0.5]]}], "relevant documents cannot be read"),
    ("corpus.parquet", [{"doc_id": "car"}], "there is no column 'contents'"),
]  # fmt: skip


@pytest.mark.parametrize(("file", "change", "expected"), AUTORAG)
def test_a_malformed_pair_of_autorag(tmp_path, file, change, expected):
    layouts.parquet(tmp_path / "qa.parquet", [QA])
    layouts.parquet(tmp_path / "corpus.parquet", [{"doc_id": "car", "contents": "wheels", "metadata": {"a": "b"}}])
    path = tmp_path / file
    if isinstance(change, list):
        change = written(path, change)
    path.write_bytes(change(path.read_bytes()))
    refused(reference_of(tmp_path), expected)


SAMPLE = {"user_input": "wheels", "reference_contexts": ["cars drive"], "reference": "x"}
OF_SAMPLES = [
    (b"", "there is no query"), (json.dumps(SAMPLE)[:-9].encode(), "t.jsonl:1: is not JSON"),
    (b'{"reference": "x"}\n', "t.jsonl:1: 'user_input' is missing"),
    (json.dumps({"user_input": [{"content": "hi"}]}).encode(), "'user_input' is not a string but"),
    (json.dumps({**SAMPLE, "reference_contexts": 5}).encode(), "'reference_contexts' is not a list of texts"),
    (json.dumps({**SAMPLE, "reference_contexts": ["nowhere"]}).encode(), "1 are passages that no document holds"),
    (json.dumps({**SAMPLE, "user_input": " "}).encode(), "judged query 'q0' is blank"),
    (json.dumps({**SAMPLE, "reference_context_ids": [[1]]}).encode(), r"the document's id is \[\[1\]\]"),
    (json.dumps({**SAMPLE, "reference_context_ids": ["cra"]}).encode(), "names document 'cra'.*did you mean 'car'"),
]  # fmt: skip
EXAMPLE = {"id": "e1", "inputs": {"question": "wheels"}, "outputs": {"document_ids": ["car"]}, "metadata": None}
OF_OBJECTS = [
    (json.dumps({**EXAMPLE, "inputs": 4}).encode(), "'inputs.question' is missing"),
    (json.dumps({**EXAMPLE, "inputs": {}}).encode(), "'inputs.question' is missing"),
    (json.dumps({**EXAMPLE, "inputs": {"a": "b", "c": "d"}}).encode(), "there are: id, inputs.a, inputs.c, "),
    (json.dumps({**EXAMPLE, "outputs": {"document_ids": 0.5}}).encode(), "the document's id is 0.5"),
    ("\n".join(json.dumps({**EXAMPLE, "inputs": {"q": q}}) for q in "ab").encode(), "query id 'e1' occurs twice"),
    (json.dumps({**EXAMPLE, "outputs": {"contexts": [3]}}).encode(), "contexts' is not a list of texts"),
]  # fmt: skip
PARAGRAPH = {
    "_id": "h1",
    "question": "wheels",
    "context": [["Car", ["a car", " drives"]]],
    "supporting_facts": [["Car", 0]],
}
OF_HOTPOT = [
    *[(json.dumps({**PARAGRAPH, key: wrong}).encode(), "has no id, question, context and supporting_facts")
      for key, wrong in [("_id", None), ("question", 3), ("context", "a car"), ("context", [["Car"]]),
                         ("supporting_facts", None)]],
    (json.dumps({**PARAGRAPH, "context": [["Car", "a"], ["Car", "b"]]}).encode(), "'Car' has another text than before"),
    (f'{json.dumps(PARAGRAPH)}\n{json.dumps({**PARAGRAPH, "question": "x"})}'.encode(), "query id 'h1' occurs twice"),
]  # fmt: skip


MARKDOWN = [
    (b"", "queries.json:1: is not JSON"), (b"[", "is not JSON"), (b"{}", "is not a list of objects"),
    (b"[3]", r"queries.json\[0\]: is not an object"),
    ("[]".encode("utf-16"), "is not UTF-8"),
    (b'[{"relevant_documents": ["a"]}]', r"\[0\]: 'text' is missing .*say which"),
    (b'[{"query": 3, "relevant_documents": ["a"]}]', "'query' is not a string but 3"),
    (b'[{"query": "x", "relevant_documents": {"a": "high"}}]', "grade 'high' of document 'a' is not a whole number"),
    (b'[{"id": 0.5, "query": "x", "relevant_documents": ["a"]}]', "'id' is not an id but 0.5"),
    (b'[{"query": "x", "relevant_documents": ["a"], "fields": 3}]', "'tags' or 'fields' cannot be read"),
    (b'[{"id": "1", "query": "x", "relevant_documents": ["a"]}, {"id": "1", "query": "y", "relevant_documents": []}]',
     "query id '1' (occurs twice|has labels on two rows)"),
]  # fmt: skip


WHOLE: dict[str, tuple[dict[str, bytes], str, str | None]] = {
    "squad": ({}, "data.json", None), "quoted": ({}, "data.jsonl", None), "embench": ({}, "data.json", None),
    "llama-index": ({}, "data.json", None), "markdown": ({"a.md": b"# A\n\ntext"}, "", None),
    "msmarco": ({"collection.tsv": b"car\ta car\n", "queries.tsv": b"q1\twheels\n", "qrels.tsv": b"q1\t0\tcar\t1\n"},
                "", None),
    **dict.fromkeys(("ragas", "langsmith", "hotpotqa"), ({}, "t.jsonl", "docs.jsonl")),
}  # fmt: skip
"""Format -> its files, of which one is replaced; the file that is named, "" for the folder; where documents are."""
OTHERS = [
    *(("embench", "data.json", *case) for case in EMBENCH), *(("llama-index", "data.json", *case) for case in LLAMA),
    *(("squad", "data.json", *case) for case in SQUAD), *(("quoted", "data.jsonl", *case) for case in QUOTED),
    *(("msmarco", *case) for case in MSMARCO), *(("markdown", "queries.json", *case) for case in MARKDOWN),
    *(("ragas", "t.jsonl", *case) for case in OF_SAMPLES), *(("langsmith", "t.jsonl", *case) for case in OF_OBJECTS),
    *(("hotpotqa", "t.jsonl", *case) for case in OF_HOTPOT),
]  # fmt: skip


@pytest.mark.parametrize(("form", "name", "raw", "expected"), OTHERS)
def test_a_malformed_file_of_another_form(tmp_path, form, name, raw, expected):
    files, named, documents = WHOLE[form]
    layouts.jsonl(tmp_path / "docs.jsonl", layouts.corpus() if documents else [])
    for file, content in {**files, name: raw}.items():
        (tmp_path / file).write_bytes(content)
    refused(DatasetReference(tmp_path / named, format=form, documents=documents), expected)


CATALOGUE = [
    ("docs.tsv", "car\n", "irds:.*cannot be read"), ("docs.tsv", b"car\t\xe9\n", "cannot be read"),
    ("docs.tsv", "car\tx\ncar\ty\n", "document id 'car' occurs twice"),
    ("docs.tsv", "boat\tx\n", "names document 'car'"), ("qrels.txt", "q1 0 car high\n", "cannot be read"),
    ("qrels.txt", "q1 0 car 1\nq1 0 car 1\n", "are judged twice"),
]  # fmt: skip


@pytest.mark.parametrize(("file", "text", "expected"), CATALOGUE)
def test_malformed_files_behind_a_name_of_ir_datasets(tmp_path, file, text, expected):
    name = layouts.catalogue(tmp_path / "irds")
    (tmp_path / "irds" / file).write_bytes(text if isinstance(text, bytes) else text.encode())
    refused(reference_of(name), expected)


CORPUS, JUDGED = "corpus/corpus-00000-of-00001.parquet", "default/test-00000-of-00001.parquet"
HUB = [
    (CORPUS, cut(20), "cannot be read"),
    (CORPUS, [{"_id": "car"}], "/corpus:1: 'text' is missing"),
    (JUDGED, [{**layouts.qrels()[0], "query-id": "q9"}], "/qrels:1: labels name query 'q9'"),
]


@pytest.mark.parametrize(("file", "change", "expected"), HUB)
def test_malformed_parts_behind_a_name_of_the_hub(tmp_path, monkeypatch, file, change, expected):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", str(tmp_path / "cache"))
    name = layouts.named_hub(tmp_path / "data")
    path = tmp_path / "data" / file
    if isinstance(change, list):
        change = written(path, change)
    path.write_bytes(change(path.read_bytes()))
    refused(reference_of(name), expected)


@pytest.mark.parametrize("route", ["beir", "csv", "tsv", "jsonl", "trec"])
@pytest.mark.parametrize("change", ["bom", "crlf"])
def test_a_mark_at_the_beginning_and_carriage_returns_change_nothing(tmp_path, route, change):
    expected = load(reference_of(layouts.GRADED["beir"](tmp_path / "expected"))).digest
    folder = layouts.GRADED[route](tmp_path / "data")
    for file in folder.rglob("*.*"):
        if file.is_file():
            raw = file.read_bytes()
            plain = raw.replace(b"\r\n", b"\n")
            file.write_bytes(b"\xef\xbb\xbf" + raw if change == "bom" else plain.replace(b"\n", b"\r\n"))
    assert load(reference_of(folder)).digest == expected

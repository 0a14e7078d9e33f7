"""Files that are wrong.

Each gets one message with the file, the line or row, what it looks like and the remedy.
Faults of a kind of file (an encoding, a line that is cut) and of a row (a missing id)
are listed once; each reader adds the faults that only its files may have.
"""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from harness.dataset import (
    DatasetReference,
    check_corpus,
    load_dataset,
    parse_reference,
)
from harness.dataset.judgment import read_judgments
from harness.dataset.read_problems import ReadProblems
from harness.dataset.readers import text_documents
from harness.init.spans import collect_spans
from retrievers.files.trec_files import read_qrels
from tests.support import layouts
from tests.support.layouts import Rows, book, jsonl
from tests.support.small import ends, refusal

Change = bytes | Rows | Callable[[bytes], bytes]
"""The bytes of a file, its rows in Parquet, or what becomes of its bytes."""


def add(text: str | bytes) -> Change:
    return lambda raw: raw + (text.encode() if isinstance(text, str) else text)


def swap(old: str, new: str, count: int = -1) -> Change:
    def change(raw: bytes) -> bytes:
        assert old.encode() in raw, old
        return raw.replace(old.encode(), new.encode(), count)

    return change


def cut(count: int) -> Change:
    return lambda raw: raw[:-count]


def whole(**changes: object) -> bytes:
    content = {
        "queries": layouts.QUERIES,
        "corpus": layouts.DOCUMENTS,
        "qrels": layouts.GRADES,
        "relevant_docs": {"q1": ["car"]},
        **changes,
    }
    return json.dumps(
        {key: value for key, value in content.items() if value is not None}
    ).encode()


def squad(context: object = "a car", **fields: object) -> bytes:
    question = {
        "id": "q1",
        "question": "wheels",
        "answers": [{"text": "car"}],
        **fields,
    }
    return json.dumps(
        {
            "data": [
                {"title": "t", "paragraphs": [{"context": context, "qas": [question]}]}
            ]
        }
    ).encode()


def sample(**changes: object) -> bytes:
    return json.dumps(
        {"user_input": "wheels", "reference_contexts": ["cars drive"], **changes}
    ).encode()


def example(**changes: object) -> bytes:
    row = {
        "id": "e1",
        "inputs": {"question": "wheels"},
        "outputs": {"document_ids": ["car"]},
        "metadata": None,
    }
    return json.dumps({**row, **changes}).encode()


def paragraph(**changes: object) -> bytes:
    row = {
        "_id": "h1",
        "question": "wheels",
        "context": [["Car", ["a car", " drives"]]],
        "supporting_facts": [["Car", 0]],
    }
    return json.dumps({**row, **changes}).encode()


QA = {"qid": "q1", "query": "wheels", "retrieval_gt": [["car"]], "generation_gt": ["x"]}
CASES: list[tuple[str, str, Change, str]] = [
    (
        "beir",
        "corpus.jsonl",
        add(b'{"_id": "e", "text": "\xe9"}\n'),
        r"corpus.jsonl:5: is not UTF-8 \(byte 0xe9",
    ),
    (
        "beir",
        "corpus.jsonl",
        b'\xef\xbb\xbf{"_id": "e"}\n{"_id": "f", "text": "\xe9"}\n',
        r"corpus.jsonl:2: is not UTF-8 \(byte 0xe9",
    ),
    ("beir", "corpus.jsonl", b"", "/data: the corpus is empty"),
    (
        "beir",
        "corpus.jsonl",
        add('{"_id": "e", "text": 5}'),
        ":5: 'text' is not a string but 5",
    ),
    (
        "beir",
        "corpus.jsonl",
        add('{"_id": ["e"], "text": "x"}'),
        r":5: '_id' is not an id but \[\"e\"\]",
    ),
    (
        "beir",
        "corpus.jsonl",
        add('{"_id": "e", "text": "cut \\ud83d"}'),
        "jsonl:5: is not JSON: .* half a character",
    ),
    (
        "beir",
        "corpus.jsonl",
        add('{"_id": "e", "text": "whole \\ud83d\\ude00"}\n' + "[" * 100_000),
        ":6: is not JSON",
    ),
    (
        "beir",
        "queries.jsonl",
        add('{"_id": "q1", "text": "x"}'),
        r"'q1' occurs twice .*it is at \S*jsonl:1 too",
    ),
    (
        "beir",
        "qrels/test.tsv",
        add("q1\tcra\t1\n"),
        r":7: query 'q1' names document 'cra', .* \(did you mean 'car'",
    ),
    ("beir", "qrels/test.tsv", add("q9\tcar\t1\n"), ":7: labels name query 'q9'"),
    (
        "beir",
        "qrels/test.tsv",
        add("q1 0 car 1\n" * 30),
        ":7: 4 columns; also in 29 others .*TREC",
    ),
    (
        "csv",
        "documents.csv",
        swap("id,", "sku,"),
        r"csv:2: '_id' is missing; also in .*columns = \{ document_id =",
    ),
    (
        "parquet",
        "documents.parquet",
        cut(20),
        "documents.parquet: cannot be read as Parquet",
    ),
    (
        "parquet",
        "documents.parquet",
        [{"id": None, "text": "x"}],
        ":1: 'id' is missing or empty",
    ),
    (
        "parquet",
        "qrels.parquet",
        [{**layouts.qrels()[0], "score": 0.5}],
        ":1: grade 0.5 is not a whole number",
    ),
    ("trec", "documents.trec", b"", "documents.trec: holds no <doc>"),
    (
        "trec",
        "documents.trec",
        cut(8),
        r":\d+: <doc> has no end \(the file is cut short",
    ),
    (
        "trec",
        "documents.trec",
        swap("<DOCNO> car </DOCNO>\n", ""),
        r":\d+: the document has no <DOCNO>",
    ),
    (
        "trec",
        "documents.trec",
        swap("</DOC>", "", 1),
        "documents.trec:1: <doc> has no end before line",
    ),
    (
        "trec",
        "topics.txt",
        swap("<num> Number: q1\n", ""),
        "topics.txt:1: the topic has no number",
    ),
    ("trec", "topics.txt", b"q1 no tab\n", "topics.txt:1: is neither a topic nor"),
    ("trec", "qrels.txt", add("q1\tcar\t1\n"), "qrels.txt:6: 3 fields instead of 4"),
    (
        "jsonl",
        "queries.jsonl",
        add('{"id": "q4", "text": "x", "relevant": {"car": "high"}}'),
        ":4: grade 'high'",
    ),
    (
        "jsonl",
        "queries.jsonl",
        add('{"id": "q4", "text": "x", "doc_id": ["car"], "grade": [1, 0]}'),
        ":4: 2 grades of 1 document",
    ),
    (
        "embench",
        "data.json",
        whole(corpus=["a"]),
        "'corpus' is missing, or not an object",
    ),
    (
        "embench",
        "data.json",
        b'{"corpus": {"a": "x", "a": "y"}}',
        "the key 'a' occurs twice",
    ),
    (
        "embench",
        "data.json",
        whole(queries={"q1": {"text": "x"}}),
        r"'text' is not a string but .* \(write it as a string\)",
    ),
    (
        "llama-index",
        "data.json",
        whole(relevant_docs={"q1": [0.5]}),
        r"relevant_docs\['q1'\]: .* cannot be read",
    ),
    (
        "squad",
        "data.json",
        squad(context=["a"]),
        r"data\[0\]\.paragraphs\[0\]: 'context' is missing, or no text",
    ),
    (
        "squad",
        "data.json",
        squad(answers=[{"text": 7}]),
        "'reference' is neither text nor a list of texts",
    ),
    (
        "quoted",
        "data.jsonl",
        b"\n".join(
            b'{"question": "x", "context": "y", "grade": %d}' % n for n in (1, 2)
        ),
        "judged twice",
    ),
    (
        "msmarco",
        "collection.tsv",
        b"car\ta\tb\n",
        r"collection.tsv:1: 3 columns \(expected 2",
    ),
    ("msmarco", "queries.tsv", b"", r"queries.tsv: is empty \(one row a line"),
    (
        "autorag",
        "qa.parquet",
        [{"qid": "q1", "retrieval_gt": [["car"]]}],
        ":1: there is no column 'query'",
    ),
    (
        "autorag",
        "qa.parquet",
        [{**QA, "retrieval_gt": [[0.5]]}],
        "relevant documents cannot be read",
    ),
    ("ragas", "t.jsonl", b'{"reference": "x"}\n', "t.jsonl:1: 'user_input' is missing"),
    (
        "ragas",
        "t.jsonl",
        sample(reference_contexts=["nowhere"]),
        "1 are passages that no document holds",
    ),
    (
        "ragas",
        "t.jsonl",
        sample(reference_context_ids=[[1]]),
        r"the document's id is \[\[1\]\]",
    ),
    (
        "langsmith",
        "t.jsonl",
        example(inputs={"a": "b", "c": "d"}),
        "there are: id, inputs.a, inputs.c, ",
    ),
    (
        "hotpotqa",
        "t.jsonl",
        paragraph(context=[["Car"]]),
        "has no id, question, context and supporting_facts",
    ),
    (
        "hotpotqa",
        "t.jsonl",
        paragraph(context=[["Car", "a"], ["Car", "b"]]),
        "'Car' has another text than before",
    ),
    ("markdown", "queries.json", b"{}", "is not a list of objects"),
    (
        "markdown",
        "queries.json",
        b'[{"relevant_documents": ["a"]}]',
        r"\[0\]: 'query' is missing .*say which",
    ),
    (
        "markdown",
        "queries.json",
        b'[{"query": "x", "relevant_documents": ["a"], "fields": 3}]',
        "'tags' or 'fields'",
    ),
    ("irds", "docs.tsv", b"car\n", "irds:.*cannot be read"),
    ("irds", "qrels.txt", b"q1 0 car 1\nq1 0 car 1\n", "are judged twice"),
    ("hub", "corpus/corpus-00000-of-00001.parquet", cut(20), "cannot be read"),
]
DOCUMENTS_BESIDE = {"ragas", "langsmith"}
MSMARCO = {
    "collection.tsv": b"car\ta car\n",
    "queries.tsv": b"q1\twheels\n",
    "qrels.tsv": b"q1\t0\tcar\t1\n",
}


def laid_out(form: str, folder: Path, file: str) -> DatasetReference:
    """Write a data set of a form; in some forms all of it but one file."""
    if form in ("irds", "hub"):
        return parse_reference(
            {"irds": layouts.catalogue, "hub": layouts.named_hub}[form](folder)
        )
    if form in ("beir", "csv", "jsonl", "parquet", "trec"):
        reference = parse_reference(layouts.GRADED[form](folder))
        return replace(reference, format=form if form in ("beir", "trec") else "tables")
    folder.mkdir()
    if form == "autorag":
        layouts.parquet(folder / "qa.parquet", [QA])
        layouts.parquet(
            folder / "corpus.parquet",
            [{"doc_id": "car", "contents": "wheels", "metadata": {"a": "b"}}],
        )
    for name, content in {"msmarco": MSMARCO, "markdown": {"a.md": b"# A\n\ntext"}}.get(
        form, {}
    ).items():
        (folder / name).write_bytes(content)
    if form in DOCUMENTS_BESIDE:
        jsonl(folder / "docs.jsonl", layouts.corpus())
    path = folder if form in ("autorag", "msmarco", "markdown") else folder / file
    return DatasetReference(
        path, format=form, documents="docs.jsonl" if form in DOCUMENTS_BESIDE else None
    )


@pytest.mark.parametrize(("form", "file", "change", "expected"), CASES)
def test_a_malformed_file(tmp_path, monkeypatch, form, file, change, expected):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", str(tmp_path / "cache"))
    reference = laid_out(form, tmp_path / "data", file)
    path = tmp_path / "data" / file
    if isinstance(change, list):
        layouts.parquet(path, change)
    else:
        path.write_bytes(change(path.read_bytes()) if callable(change) else change)
    problems = refusal(load_dataset, reference).problems
    messages = "\n".join(map(str, problems))
    assert re.search(expected, messages), f"{expected} is not in\n{messages}"
    single = [problem for problem in problems if " more like these" not in problem.what]
    assert [problem for problem in single if not problem.remedy] == []
    assert [problem for problem in problems if not problem.where] == []


def test_every_fault_is_told_in_one_pass(tmp_path: Path) -> None:
    folder = layouts.beir(tmp_path / "d")
    files = {
        "corpus.jsonl": (
            '{"_id": "d1", "text": "x"}\n{"_id": "d1", "text": "y"}\n'
            'no\n[]\n{"text": "z"}\n{"_id": "d3"}'
        ),
        "queries.jsonl": '{"_id": "1", "text": "  "}\n{"_id": "1", "text": "again"}\n',
        "qrels/test.tsv": (
            "query-id\tcorpus-id\tscore\n1\td1\n1\td1\thigh\n"
            "1\td1\t1\n1\td1\t1\n1\tno\t1\n9\td1\t1\n"
        ),
    }
    for name, text in files.items():
        (folder / name).write_text(text)
    messages = "\n".join(
        map(str, refusal(load_dataset, DatasetReference(folder)).problems)
    )
    places = [
        *(f"corpus.jsonl:{n}" for n in range(2, 7)),
        "queries.jsonl:2",
        *(f"test.tsv:{n}" for n in (2, 3, 5, 6, 7)),
    ]
    assert [location for location in places if f"{location}: " not in messages] == []
    faults = (
        "is not a JSON object",
        "2 columns (expected 3",
        "are judged twice",
        "judged query '1' is blank",
    )
    assert [fault for fault in faults if fault not in messages] == []


@pytest.mark.parametrize("route", ["beir", "csv", "tsv", "jsonl", "trec"])
@pytest.mark.parametrize("change", ["bom", "crlf"])
def test_a_mark_at_the_beginning_and_carriage_returns_change_nothing(
    tmp_path, route, change
):
    expected = load_dataset(
        parse_reference(layouts.GRADED["beir"](tmp_path / "expected"))
    ).digest
    folder = layouts.GRADED[route](tmp_path / "data")
    for file in filter(Path.is_file, folder.rglob("*.*")):
        raw = file.read_bytes()
        file.write_bytes(
            b"\xef\xbb\xbf" + raw if change == "bom" else re.sub(b"\r?\n", b"\r\n", raw)
        )
    assert load_dataset(parse_reference(folder)).digest == expected


GOOD = "query,gold\nleave,a\n"
SQUAD = '{"data": [{"paragraphs": [{"context": "leave", "qas": []}]}]}'
ASKED = [["query", "gold"], ["leave", "a"]]
ALIASES = "  a0: &a0 [b, b]\n" + "".join(
    f"  a{i}: &a{i} [*a{i - 1}, *a{i - 1}]\n" for i in range(1, 60)
)
"""Sixty lines of YAML that stand for 2^60 values."""
Content = str | bytes | Callable[[], bytes]


def queries(*lines: str) -> dict[str, Content]:
    return {"d/queries.csv": "".join(f"{line}\n" for line in lines)}


WORST: list[tuple[dict[str, Content], str, str]] = [
    ({"d/queries.csv": ""}, "d", "d/queries.csv: is empty (a header, then"),
    (queries("query,doc"), "d", "has no row below its first one, query, doc"),
    (
        queries(*["how much leave do I have,a"] * 3),
        "d",
        '"a"; also in 1 other (write one above it: query,document',
    ),
    (queries("1,a", "2,a"), "d", "the first row is not a header"),
    (queries("query,doc,rating", "leave,a,0"), "d", "no query has a relevant document"),
    (
        queries("query,doc,rating", "leave,a,2", "leave,a,1"),
        "d",
        ":3: the query and document 'a'",
    ),
    (
        queries("query,doc", "leave,a,b"),
        "d",
        "queries.csv:2: 3 columns (the header has 2",
    ),
    (queries("query,doc", "leave"), "d", "queries.csv:2: 1 column (the header has 2"),
    (
        queries("query,doc", '"leave,a'),
        "d",
        "queries.csv:2: cannot be read as a table: unexpected end of data",
    ),
    (
        {"d/log.csv": ",a,1\nleave,a,1"},
        "d --queries log.csv --no-header",
        "log.csv:1: a judged query is blank",
    ),
    (
        {"d/queries.csv": GOOD.encode("utf-16")},
        "d",
        "queries.csv:1: is not UTF-8 but UTF-16",
    ),
    (queries("query,doc,doc", "leave,a,a"), "d", "the column 'doc' occurs twice"),
    (queries("query,gold", ",a"), "d", "queries.csv:2: a judged query is blank"),
    (
        {"d/queries.csv": GOOD, "d/queries.tsv": GOOD},
        "d",
        "d/queries.csv: queries.tsv is there as well",
    ),
    (
        {"d/questions.json": '{"a": [{}], "b": [{}]}'},
        "d",
        "nor an object with one such list",
    ),
    ({"d/queries.jsonl": GOOD}, "d", "it looks like a table (CSV)"),
    (
        {"d/questions.xlsx": GOOD, "x": lambda: book(A=ASKED)},
        "d",
        "is not a workbook that can be",
    ),
    (
        {"b.xlsx": lambda: book(documents=ASKED, asked=ASKED)},
        "b.xlsx --documents documents",
        'name the sheet of queries: queries = "asked" (--queries asked)',
    ),
    (
        {"d/questions.xlsx": lambda: book(May=ASKED, June=ASKED)},
        "d",
        "has the sheets 'May', 'June'",
    ),
    (
        {"d/questions.xlsx": lambda: book(A=[[""], ASKED[0], ["leave", "b"]])},
        "d",
        "questions.xlsx: 'gold' names no document",
    ),
    (
        {"d/log.xlsx": lambda: book(May=ASKED)},
        "d --queries log.xlsx#Mai",
        "has no sheet 'Mai'",
    ),
    (
        {"log.csv": GOOD},
        "log.csv --documents sqlite:///no.db?table=t",
        "sqlite: databases are retired",
    ),
    (
        {"log.csv": GOOD},
        "postgresql://ann:word@db/help",
        "postgresql: databases are retired",
    ),
    ({"log.csv": GOOD}, "log.csv", "is a table that names no documents"),
    ({"log.csv": GOOD}, "log.csv --documents dd", "dd: no such file (did you mean 'd'"),
    (
        {"log.bin": "x"},
        "log.bin",
        "is a file that no reader takes (say what it is: format = ",
    ),
    ({"d.zip": b"PK\3\4 cut"}, "d.zip", "is not a zip archive that can be read"),
    (
        {f"s/{split}-00000-of-00001.parquet": "" for split in ("dev", "test")},
        "s",
        "has the splits dev, test",
    ),
    (
        {f"s/{split}/dev-00000-of-00001.parquet": "" for split in ("de", "en")},
        "s",
        "has the configurations de, en",
    ),
    ({"d/queries.csv": GOOD}, "d --split dev", "these tables have no splits"),
    ({"s.json": SQUAD}, "s.json --split dev", "is squad, which has no splits"),
    (
        {"s.json": SQUAD},
        "s.json --queries q.csv",
        "dataset.queries: the data set is squad, which has its own queries",
    ),
    (
        {"s.json": SQUAD},
        "s.json --columns query=question",
        "dataset.columns: the data set is squad, in which 'query' cannot be declared",
    ),
    (
        {"r.jsonl": '{"user_input": "leave", "reference_contexts": ["a"]}'},
        "r.jsonl --documents d --labels l.csv",
        "dataset.labels: the data set is ragas, which has its own labels",
    ),
    (
        {"d/queries.yaml": "- " + "[" * 3000 + "]" * 3000},
        "d",
        "d/queries.yaml: is not YAML: it is nested too deep",
    ),
    (
        {"d/queries.yaml": f"- query: q\n{ALIASES}"},
        "d",
        "d/queries.yaml: is not YAML: its aliases stand for more than 100 times",
    ),
    (
        {"d/queries.yaml": "- query: a\n  query: b\n"},
        "d",
        "d/queries.yaml:1: is not YAML: the key 'query' occurs twice in one object",
    ),
    ({"d/queries.csv": GOOD}, "d --columns qurey=query", "did you mean 'query'"),
    ({"d/queries.csv": GOOD}, "d --columns query=,", "there is no column ','"),
    *(
        (
            {"d/queries.csv": GOOD},
            f"d --columns {kind}=answer",
            "d/queries.csv: no row has a column 'answer'",
        )
        for kind in ("reference", "history", "spans")
    ),
    (
        {
            "d/documents.ndjson": '{"index": {"_index": "h"}}\n{"text": "x"}\n',
            "d/queries.csv": GOOD,
        },
        "d",
        "documents.ndjson:2: '_id' is missing",
    ),
    (
        {"d/queries.jsonl": '{"query": "q", "a": ' + '{"a": ' * 900 + "1" + "}" * 901},
        "d",
        "d/queries.jsonl:1: is not JSON: it is nested too deep",
    ),
    (
        {"d/queries.jsonl": '{"index": {"": 1}}'},
        "d",
        "d/queries.jsonl:1: 'query' is missing",
    ),
    (
        {"d/queries.yaml": '- query: "cut \\ud83d"\n  relevant_documents: [a]'},
        "d",
        "query 'q0' holds half a character, \\ud83d",
    ),
    (
        {
            "d/documents.yaml": '- {id: a, text: "cut \\ud83d"}\n- {id: b, text: b}',
            "d/queries.csv": "query,relevant_documents\nq,b\n",
        },
        "d",
        "document 'a' holds half a character, \\ud83d",
    ),
    (
        {
            "d/rag_dataset.json": json.dumps(
                [
                    {
                        "query": "q",
                        "reference_contexts": ["25 days"],
                        "reference_answer": "",
                    },
                    {"query": "p", "reference_answer": ""},
                ]
            ),
            "d/source_files/a.md": "25 days",
        },
        "d",
        "rag_dataset.json[1]: 'reference_contexts' is missing",
    ),
]


@pytest.mark.parametrize(("files", "words", "expected"), WORST)
def test_the_worst_of_files_get_one_sentence(
    files, words, expected, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    for name, content in {"d/a.md": "# Leave\n\n25 days", **files}.items():
        path = Path(name)
        raw = content() if callable(content) else content
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_bytes(raw if isinstance(raw, bytes) else raw.encode())
    output = ends(capsys, 2, "init", *words.split()).err
    assert output.count("\n") == output.count("error: ") == 1
    assert expected in output


ODD_VALUES = [
    (
        {
            "queries.json": [
                {"query": "q", "relevant_documents": ["a"], "label": float("nan")}
            ]
        },
        "d",
        "queries.json[0]: no grade is given",
    ),
    (
        {"queries.json": [{"id": {"x": 1}, "query": "q", "relevant_documents": ["a"]}]},
        "d",
        "'id' is not an id but",
    ),
    (
        {"queries.json": [{"query": ["q"], "relevant_documents": ["a"]}]},
        "d",
        "'query' is not a string but",
    ),
    (
        {"qa.jsonl": {"question": "q", "context": "a b", "answers": {"text": 1.5}}},
        "d/qa.jsonl",
        "neither text nor a list of texts",
    ),
    (
        {
            "squad.json": {
                "data": [
                    {
                        "title": "t",
                        "paragraphs": [
                            {
                                "context": "a b",
                                "qas": [
                                    {
                                        "id": "1",
                                        "question": "q",
                                        "answers": [{"text": ["a"]}],
                                    }
                                ],
                            }
                        ],
                    }
                ]
            }
        },
        "d/squad.json",
        "neither text nor a list of texts",
    ),
]
"""Values of JSON that are no text, where a text is hashed or listed."""


@pytest.mark.parametrize(("files", "path", "expected"), ODD_VALUES)
def test_a_value_of_another_type_is_one_sentence(files, path, expected, tmp_path):
    folder = tmp_path / "d"
    folder.mkdir()
    (folder / "a.md").write_text("text")
    for name, content in files.items():
        (folder / name).write_text(json.dumps(content))
    message = str(refusal(load_dataset, DatasetReference(tmp_path / path)))
    assert expected in message


ODD_SPANS = [
    {"resourceSpans": 1.5},
    {"data": {"spans": "x"}},
    {"attributes": [{"key": "k", "value": {"arrayValue": [1]}}]},
    {"attributes": [{"key": "k", "value": {"kvlistValue": None}}]},
    {"attributes": [{"key": "k", "value": {"intValue": "many"}}]},
    {"attributes": [{"key": ["k"], "value": {"intValue": 1}}]},
    {"output": {"documents": [{"id": "a", "content": "t", "score": 10**400}]}},
    {"annotations": [{"document_position": -1, "label": "relevant"}]},
    {f"retrieval.documents.{'1' * 5000}.document.id": "b"},
    {"output.value": '[{"content": "cut \\ud83d"}]'},
]


@pytest.mark.parametrize("odd", ODD_SPANS, ids=str)
def test_an_odd_value_in_a_span_is_left_out(odd, tmp_path):
    span = {"span_kind": "RETRIEVER", "input.value": "q"}
    shown = [{"document": {"id": "a", "content": "t"}}]
    rows = [{**span, "retrieval.documents": shown}, {**span, **odd}]
    path = tmp_path / "spans.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    spans = collect_spans(path, ReadProblems())
    assert spans.text_of("a") == "t"
    assert not spans.grades


def test_a_document_of_spans_has_all_its_passages(tmp_path):
    span = {"span_kind": "RETRIEVER", "input.value": "q"}
    first, second, third = (
        {"document": {"id": "a", "content": text}} for text in ("one", "two", "three")
    )
    retrieved = ([first, second], [second, third])
    rows = [{**span, "retrieval.documents": passages} for passages in retrieved]
    path = tmp_path / "spans.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    spans = collect_spans(path, ReadProblems())
    assert spans.text_of("a") == "one\n\ntwo\n\nthree"


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({}, "data: holds no documents (corpus.jsonl, tables"),
        (
            {"a.md": "text", "guides/b.md": "text"},
            "queries.json: no such file (harness init {} says what to write; "
            "without labels: harness try {})",
        ),
        (
            {"inner/README.md": "text", "inner/corpus.jsonl": '{"_id": 1, "text": ""}'},
            "is no data set, but its folder 'inner' may be one (name {}/inner)",
        ),
    ],
    ids=["empty", "documents alone", "one folder too high"],
)
def test_a_folder_that_is_no_data_set_is_told_what_it_lacks(tmp_path, files, message):
    folder = tmp_path / "data"
    folder.mkdir()
    for file, text in files.items():
        (folder / file).parent.mkdir(exist_ok=True)
        (folder / file).write_text(text)
    told = str(refusal(load_dataset, DatasetReference(folder)))
    assert message.replace("{}", str(folder)) in told


@pytest.mark.parametrize(
    ("folders", "message"),
    [
        (["scifact"], "but its folder 'scifact' may be one (name {}/scifact)"),
        (["b", "a"], "but each of its folders 'a', 'b' may be one (name {}/a)"),
        (["beir/b c"], "but its folder 'beir/b c' may be one (name '{}/beir/b c')"),
    ],
)
def test_a_folder_above_data_sets_names_them(tmp_path, folders, message):
    for folder in folders:
        path = tmp_path / folder
        (path / "qrels").mkdir(parents=True)
        (path / "corpus.jsonl").write_text('{"_id": "d1", "text": "cat"}')
        (path / "queries.jsonl").write_text('{"_id": "q1", "text": "cat?"}')
        (path / "qrels" / "test.tsv").write_text("q1\td1\t1")
    refused = refusal(load_dataset, DatasetReference(tmp_path))
    assert message.format(tmp_path) in str(refused)


def test_a_folder_may_be_called_as_an_archive_is(tmp_path):
    folder = tmp_path / "docs.tar"
    folder.mkdir()
    (folder / "a.md").write_text("cat")
    (folder / "queries.json").write_text('[{"query": "q", "relevant_documents": "a"}]')
    assert load_dataset(DatasetReference(folder)).document_count == 1


@pytest.mark.parametrize("list_first", [True, False])
def test_labels_beside_a_list_are_refused(tmp_path, list_first):
    labels = ['{"query_id": "q1", "relevant": ["d1"]}\n']
    labels.insert(list_first, '{"query_id": "q1", "corpus-id": "d2", "grade": 2}\n')
    (tmp_path / "labels.jsonl").write_text("".join(labels))
    (tmp_path / "queries.jsonl").write_text('{"_id": "q1", "text": "cat?"}')
    documents = ['{"_id": "d1", "text": "cat"}\n', '{"_id": "d2", "text": "dog"}\n']
    (tmp_path / "corpus.jsonl").write_text("".join(documents))
    refused = refusal(load_dataset, DatasetReference(tmp_path))
    assert "labels.jsonl:2: query 'q1' has labels on two rows (also" in str(refused)


def test_a_query_without_a_text_moves_no_id_of_another(tmp_path):
    """Without ids in the file, its row is the only problem."""
    jsonl(tmp_path / "documents.jsonl", [{"id": "d1", "text": "a"}])
    rows = [{"query": None, "relevant": ["d1"]}]
    rows += [{"query": query, "relevant": ["d1"]} for query in ("one", "two")]
    jsonl(tmp_path / "queries.jsonl", rows)
    problems = refusal(load_dataset, DatasetReference(tmp_path)).problems
    assert [problem.where for problem in problems] == [
        str(tmp_path / "queries.jsonl:1")
    ]


def test_a_folder_that_is_not_there_is_told(tmp_path):
    refused = refusal(load_dataset, DatasetReference(tmp_path / "none"))
    assert "none: no such folder" in str(refused)


def test_pages_without_what_converts_them_name_the_extra(tmp_path, monkeypatch):
    monkeypatch.setattr(text_documents, "can_convert", lambda: False)
    (tmp_path / "a.pdf").write_text("text")
    (tmp_path / "b.md").write_text("text")
    (tmp_path / "queries.txt").write_text("leave")
    refused = refusal(load_dataset, DatasetReference(tmp_path, pages=True))
    assert "nothing here reads PDF (pip install" in str(refused)


def test_documents_to_convert_name_the_extra_that_converts_them(tmp_path, monkeypatch):
    for room in (check_corpus, text_documents):
        monkeypatch.setattr(room, "can_convert", lambda: False)
    (tmp_path / "a.pdf").write_text("text")
    (tmp_path / "queries.csv").write_text("query\nleave\n")
    refused = refusal(load_dataset, DatasetReference(tmp_path))
    assert "retriever-harness[documents]" in str(refused)


CONTENTS = {
    (
        'name = "e"\ndataset = "d"\n\n[[retrievers]]\nkind = "bm25"\n'
    ): "an experiment file (TOML)",
    "# what\n[dataset]\n": "an experiment file (TOML)",
    "when,query\n" + "2026,a question of words\n" * 30: "a table (CSV)",
    "<!doctype html>\n<p>text</p>\n": "a web page, or XML",
}


@pytest.mark.parametrize(("content", "kind"), CONTENTS.items())
def test_a_file_of_another_kind_is_called_so_once(tmp_path, content, kind):
    path = tmp_path / "file"
    path.write_text(content)
    [problem] = refusal(read_judgments, [path]).problems
    assert problem.what == f"is not JSON Lines: it looks like {kind}"
    [problem] = refusal(read_qrels, path).problems
    assert problem.what == f"holds no TREC qrels: it looks like {kind}"


@pytest.fixture
def pool_file(tmp_path):
    path = tmp_path / "my pool.jsonl"
    head = json.dumps({"pool": 1, "digest": "x", "drawn": {}})
    path.write_text(f"{head}\n" + '{"query_id": "q"}\n' * 30)
    return path


def test_json_is_no_trec_file(pool_file):
    assert "it looks like JSON" in str(refusal(read_qrels, pool_file))


def test_a_pool_holds_no_judgments(pool_file):
    [problem] = refusal(read_judgments, [pool_file]).problems
    assert problem.what.startswith("is a pool")
    assert problem.remedy == f"judge it first: harness judge '{pool_file}'"

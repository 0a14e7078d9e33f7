"""Documents left out of one query's ranking."""

import json

import pandas as pd
import pytest

import harness
from harness import RunOptions, run
from harness.dataset import load_dataset
from harness.dataset.reference import DatasetReference, declared_columns
from retrievers import BM25
from tests.support.layouts import jsonl, table
from tests.support.servers import Answering, running
from tests.support.small import told

DOCUMENTS = {
    "d1": "wheels on cars",
    "d2": "wheels on cars and roads",
    "d3": "wheels of trains",
    "d4": "fish swim",
}
QUERY = {"id": "q1", "query": "wheels on cars", "gold_ids": ["d3"]}
RUN = "q1 Q0 d1 1 4 x\nq1 Q0 d2 2 3 x\nq1 Q0 d3 3 2 x\nq1 Q0 d4 4 1 x\n"
CALL = """
def answer(queries, depth):
    return [[("d1", 4.0), ("d2", 3.0), ("d3", 2.0), ("d4", 1.0)][:depth]] * len(queries)
"""


class Index(Answering):
    def do_POST(self):
        length = int(self.headers["Content-Length"])
        size = json.loads(self.rfile.read(length))["n"]
        self.send(200, json.dumps({"ids": list(DOCUMENTS)[:size]}).encode())


def rows_in(folder, **more):
    jsonl(
        folder / "documents.jsonl",
        [{"_id": id_, "text": text} for id_, text in DOCUMENTS.items()],
    )
    jsonl(folder / "queries.jsonl", [{**QUERY, **more}])
    return folder


def excluded_in(folder, **more):
    return load_dataset(DatasetReference(folder, **more)).queries[0].excluded


@pytest.mark.parametrize(
    ("column", "cell"),
    [
        ("excluded_ids", ["d2"]),
        ("exclude_docs", "d2"),
        ("Excluded Doc IDs", '["d2"]'),
        ("excluded_ids", ["d2.md"]),
    ],
)
def test_documents_to_leave_out_are_found_by_the_name_of_their_column(
    column, cell, tmp_path
):
    assert excluded_in(rows_in(tmp_path, **{column: cell})) == ("d2",)


@pytest.mark.parametrize("cell", ["d1; d2", ["d2 d1"], "d2,d1", '["d1", "d2"]'])
def test_one_cell_lists_several(cell, tmp_path):
    folder = rows_in(tmp_path, seen=cell)
    assert excluded_in(folder, columns=declared_columns({"exclude": "seen"})) == (
        "d1",
        "d2",
    )


@pytest.mark.parametrize("cell", [["N/A"], [], "", None])
def test_a_cell_may_name_none(cell, tmp_path):
    assert excluded_in(rows_in(tmp_path, excluded_ids=cell)) == ()


def test_the_column_is_declared_in_a_table(tmp_path):
    table(
        tmp_path / "documents.csv", [{"id": d, "text": t} for d, t in DOCUMENTS.items()]
    )
    table(
        tmp_path / "queries.csv",
        [
            {"query": "wheels", "gold_id": "d3", "from": "d1"},
            {"query": "wheels", "gold_id": "d2", "from": ""},
        ],
    )
    assert excluded_in(tmp_path, columns=declared_columns({"exclude": "from"})) == (
        "d1",
    )


@pytest.mark.parametrize(
    ("excluded", "sentence"),
    [
        (["d9"], "query 'wheels on cars' leaves out 'd9', which does not exist"),
        (["d3"], "query 'wheels on cars' leaves out 'd3', which is relevant for it"),
    ],
)
def test_what_cannot_be_left_out_is_refused(excluded, sentence, tmp_path, capsys):
    folder = rows_in(tmp_path, excluded_ids=excluded)
    assert sentence in told(capsys, "check", folder, code=2)


def test_every_kind_of_retriever_leaves_the_documents_out(tmp_path, monkeypatch):
    folder = rows_in(tmp_path / "data", excluded_ids=["d1", "d2"])
    (tmp_path / "seen.trec").write_text(RUN)
    (tmp_path / "mine.py").write_text(CALL)
    monkeypatch.syspath_prepend(tmp_path)

    with running(Index) as server:
        url = f"http://127.0.0.1:{server.server_address[1]}"
        path = tmp_path / "e.toml"
        path.write_text(
            f'name = "e"\ndataset = "{folder.as_posix()}"\nprimary = "RR"\n'
            "depth = 1\nreport = false\n"
            '[[retrievers]]\nname = "words"\nkind = "bm25"\n'
            '[[retrievers]]\nname = "again"\nkind = "fusion"\n'
            'of = ["words", "saved"]\n'
            f'[[retrievers]]\nname = "saved"\nkind = "run"\n'
            f'path = "{(tmp_path / "seen.trec").as_posix()}"\n'
            '[[retrievers]]\nname = "own"\nkind = "python"\ncall = "mine:answer"\n'
            f'[[retrievers]]\nname = "far"\nkind = "http"\nurl = "{url}"\n'
            'ids = "ids"\nbody = { q = "{query}", n = "{depth}" }\n'
        )
        results = run(path, RunOptions(tmp_path / "out", allow_code=True))
    assert {
        name: results.rankings(name)["q1"].doc_ids for name in results.retrievers
    } == dict.fromkeys(["words", "again", "saved", "own", "far"], ("d3",))
    assert results.queries["q1"].query.excluded == ("d1", "d2")


def test_documents_are_left_out_in_memory():
    queries = pd.DataFrame(
        {
            "query_id": ["q1"],
            "query": ["wheels on cars"],
            "gold_ids": [["d3"]],
            "excluded_ids": [["d1"]],
        }
    )
    results = harness.evaluate(DOCUMENTS, queries, None, {"bm25": BM25()})
    assert results.rankings("bm25")["q1"].doc_ids == ("d2", "d3")

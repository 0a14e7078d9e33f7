"""Retrieval spans, as six programs write them, become queries, documents, a run and labels."""

import json
from pathlib import Path
from typing import Any

import pytest

from harness.experiment import init
from harness.pipeline import run
from harness.running.options import Options
from retrievers.runs import read_run
from tests.support.layouts import jsonl
from tests.support.small import ended, told

TEXTS = {"hr/leave": "25 days of paid leave a year.", "it/vpn": "The tunnel needs a token."}
ASKED = "how much leave is there"
SPAN = {"openinference.span.kind": "RETRIEVER", "input.value": ASKED}
Rows = list[dict[str, Any]]


def openinference(documents: Rows) -> Rows:
    flat = {f"retrieval.documents.{n}.document.{key}": held
            for n, one in enumerate(documents) for key, held in one.items()}  # fmt: skip
    notes = [{"document_position": 0, "result": {"label": "relevant", "score": 1}}]
    other = {"attributes": {"openinference.span.kind": "LLM", "input.value": "say hello"}}
    return [other, {"context": {"trace_id": "t1"}, "start_time": "2026-01-02", "annotations": notes,
                    "attributes": {**SPAN, "session.id": "s1", **flat}}]  # fmt: skip


def otlp(documents: Rows) -> Rows:
    held = {"gen_ai.retrieval.query.text": ASKED, "gen_ai.retrieval.documents": json.dumps(documents),
            "session.id": "s1"}  # fmt: skip
    attributes = [{"key": key, "value": {"stringValue": value}} for key, value in held.items()]
    span = {"traceId": "t1", "startTimeUnixNano": "17", "name": "retrieval", "attributes": attributes}
    return [{"resourceSpans": [{"resource": {}, "scopeSpans": [{"scope": {}, "spans": [span]}]}]}]


def langsmith(documents: Rows) -> Rows:
    found = [{"page_content": one["content"], "metadata": {"id": one["id"], "score": one["score"]}}
             for one in documents]  # fmt: skip
    child = {"run_type": "retriever", "inputs": {"query": ASKED}, "outputs": {"documents": found}, "trace_id": "t1",
             "session_id": "s1", "start_time": "2026-01-02"}  # fmt: skip
    return [{"run_type": "chain", "inputs": {"query": ASKED}, "outputs": {}, "child_runs": [child]}]


def langfuse(documents: Rows) -> Rows:
    return [{"type": "RETRIEVER", "input": ASKED, "output": documents, "traceId": "t1", "sessionId": "s1"}]


def mlflow(documents: Rows) -> Rows:
    found = [{"page_content": one["content"], "id": one["id"], "metadata": {"score": one["score"]}}
             for one in documents]  # fmt: skip
    attributes = {"mlflow.spanType": "RETRIEVER", "mlflow.spanInputs": json.dumps({"query": ASKED}),
                  "mlflow.spanOutputs": json.dumps(found), "session.id": "s1"}  # fmt: skip
    span = {"trace_id": "t1", "start_time_unix_nano": 17, "attributes": attributes}
    return [{"info": {}, "data": {"spans": [span]}}]


@pytest.fixture(autouse=True)
def here(in_tmp: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(init.importlib.util, "find_spec", lambda name: None)  # no local model


def rows(file: str) -> Rows:
    return [json.loads(line) for line in Path(file).read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("spans", [openinference, otlp, langsmith, langfuse, mlflow])
def test_spans_become_queries_documents_and_the_run_that_served_them(tmp_path, spans):
    """Asked twice, the second time with the other document first: the last answer is the run."""
    documents = [{"id": id_, "content": text, "score": 0.9 - n / 2} for n, (id_, text) in enumerate(TEXTS.items())]
    swapped = [{**one, "score": 1.3 - one["score"]} for one in reversed(documents)]
    jsonl(tmp_path / "traces.jsonl", [*spans(documents), *spans(swapped)])
    assert ended("init", "traces.jsonl") == 0
    (query,) = rows("traces/queries.jsonl")
    assert (query["query"], query["traffic"], query["trace"], query["session"]) == (ASKED, 2, "t1", "s1")
    assert {row["_id"]: row["text"] for row in rows("traces/documents.jsonl")} == TEXTS
    assert read_run("traces/production.trec")["q0"] == pytest.approx({"it/vpn": 0.9, "hr/leave": 0.4})
    assert query.get("relevant_documents") == ({"hr/leave": 1, "it/vpn": 1} if spans is openinference else None)
    text = Path("traces.toml").read_text(encoding="utf-8")
    assert 'path = "traces/production.trec"' in text and "cluster =" not in text
    assert run("traces.toml", Options(tmp_path / "out")).retrievers == ("bm25", "hashing", "hybrid", "production")


def test_mlflow_expectations_are_labels_and_turns_of_a_trace_are_a_cluster(tmp_path):
    for name, text in TEXTS.items():
        (tmp_path / "docs" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "docs" / f"{name}.md").write_text(text, encoding="utf-8")
    expected = {"expected_retrieved_context": [{"doc_uri": "hr/leave"}]}
    spans = [{"inputs": {"question": text}, "expectations": expected, "trace_id": "t"} for text in (ASKED, "days off")]
    # A span that names its documents by their texts: they are matched.
    bare = {"run_type": "retriever", "inputs": {"query": "vpn"}, "outputs": {"documents": [{"text": TEXTS["it/vpn"]}]}}
    jsonl(tmp_path / "traces.jsonl", [*spans, bare])
    assert ended("init", "traces.jsonl", "--documents", "docs") == 0
    labels = [row.get("relevant_documents") for row in rows("traces/queries.jsonl")]
    assert labels == [{"hr/leave": 1}, {"hr/leave": 1}, None]
    assert read_run("traces/production.trec") == {"q2": {"it/vpn": 1.0}}
    assert 'cluster = "trace"' in Path("traces.toml").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"retrieval.documents.0.document.score": 1}, "has neither retrieval.documents.0.document.id nor its content"),
        ({"retrieval.documents.0.document.id": "a"}, "1 of 1 documents have no text, such as 'a' (name the documents"),
    ],
)
def test_a_document_that_cannot_be_named_or_read_is_one_clear_error(tmp_path, capsys, more, message):
    jsonl(tmp_path / "traces.jsonl", [{**SPAN, **more}])
    assert message in told(capsys, "init", "traces.jsonl", code=2).replace("\n", " ")
    assert not Path("traces").exists()

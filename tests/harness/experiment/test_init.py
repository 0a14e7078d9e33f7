"""A folder of documents and labels becomes an experiment that runs.

A missing part is reported with an example.
"""

import importlib.util
import json
import shlex
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from harness.console.init_text import new_experiment_lines
from harness.dataset import DatasetReference
from harness.dataset import load_dataset as load_data
from harness.experiment import load
from harness.init.find_files import find_files
from harness.init.write_experiment import write_experiment
from harness.pipeline import run
from harness.running.options import RunOptions
from retrievers.errors import InputError
from retrievers.files.trec_files import read_run
from tests.harness.experiment.test_experiment import validator
from tests.support import layouts, small
from tests.support.layouts import book
from tests.support.small import Call, refusal


@pytest.fixture(autouse=True)
def without_the_model(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As on a machine without the local model, in an empty working directory."""
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return small.dataset(tmp_path / "d")


def written(folder: object, **options: object) -> str:
    """The text of the experiment file."""
    return write_experiment(folder, **options).path.read_text(encoding="utf-8")


def beir(folder: Path, *splits: str) -> Path:
    grades = {id_: dict.fromkeys(docs, 1) for id_, _, docs in small.QUERIES}
    layouts.beir(
        folder,
        layouts.Collection(
            small.TEXTS, {id_: text for id_, text, _ in small.QUERIES}, grades
        ),
    )
    qrels = (folder / "qrels" / "test.tsv").rename(folder / "made").read_bytes()
    for split in splits:
        (folder / "qrels" / f"{split}.tsv").write_bytes(qrels)
    (folder / "made").unlink()
    return folder


def test_the_name_of_a_sheet_has_no_suffix(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("leave")
    workbook = tmp_path / "book.v1.xlsx"
    rows = [["query", "relevant_documents"], ["leave", "a"]]
    workbook.write_bytes(book(May=rows, June=rows))
    experiment = write_experiment(
        DatasetReference(tmp_path / "book.v1.xlsx#June", documents=".")
    )
    assert experiment.path == Path("book.v1-June.toml")


@pytest.mark.parametrize("write", [small.dataset, lambda folder: beir(folder, "test")])
def test_what_is_written_runs(tmp_path: Path, write) -> None:
    experiment = write_experiment(write(tmp_path / "my docs"))
    assert experiment.path == Path("my-docs.toml")
    lines = list(new_experiment_lines(experiment))
    assert (
        "6 documents, 6 labelled queries" in lines[0]
        and "  harness run my-docs.toml" in lines
    )
    text = experiment.path.read_text(encoding="utf-8")
    experiment.path.write_text(
        text.replace("\ndepth = ", "\nreport = false\ndepth = "), encoding="utf-8"
    )
    results = run(experiment.path, RunOptions(tmp_path / "out"))
    assert results.retrievers == ("bm25", "hashing", "hybrid")
    assert results.manifest.dataset.queries == 6


def test_what_is_written_is_what_the_editor_expects(folder: Path) -> None:
    text = written(folder)
    validator().validate(tomllib.loads(text))
    # Everything that stands there to be uncommented is right as well.
    uncommented = "\n".join(
        line.removeprefix("# ")
        if line.startswith("# ") and ("=" in line or "[[" in line)
        else line
        for line in text.split("\n")
    )
    Path("all.toml").write_text(uncommented, encoding="utf-8")
    validator().validate(tomllib.loads(uncommented))
    assert len(load("all.toml").experiment.retrievers) == 6


@pytest.mark.parametrize(
    ("text", "english"),
    [
        (
            "The lease is not valid, and the notice of a month is over. "
            "Ask for a copy.",
            True,
        ),
        (
            "Der Vertrag ist nicht gültig, und die Frist von einem Monat ist vorbei.",
            False,
        ),
        ("Договор истёк, и срок вышел. Что это для нас и как от него уйти?", False),
        ("यह अनुबंध मान्य नहीं है और एक महीने की अवधि समाप्त हो गई है।", False),
        ("一年に二十五日の有給休暇があります。", False),
    ],
)
def test_models_that_know_the_language_are_taken_and_proposed(
    folder: Path, monkeypatch: pytest.MonkeyPatch, text: str, english: bool
) -> None:
    for file in folder.glob("*.md"):
        file.write_text(text, encoding="utf-8")
    (folder / "queries.json").write_text(
        json.dumps([{"query": text, "relevant_documents": ["apple"]}])
    )
    bare = written(folder)
    assert ("ms-marco-MiniLM" in bare) == english == ("bge-reranker-v2-m3" not in bare)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    text = written(folder, output=Path("local.toml"))
    assert ("all-MiniLM-L6-v2" in text) == english == ('name = "hashing"' not in text)
    assert ("multilingual-e5-base" in text) != english


def test_labels_that_are_missing_are_shown(folder: Path) -> None:
    (folder / "queries.json").unlink()
    lines = str(refusal(write_experiment, folder)).split("\n")
    assert lines[0].endswith(": 6 documents, but no query")
    assert json.loads(lines[2])[0]["relevant_documents"] == ["apple", "boat"]
    assert "queries.txt" in lines[3]
    assert lines[5].endswith(f"harness init {folder}")


def test_a_file_with_the_same_ids_is_ignored_and_named(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("# A")
    for name, texts in (("more", ("what", "who")), ("few", ("when",))):
        rows = [{"query": text, "relevant_documents": ["a"]} for text in texts]
        (tmp_path / f"{name}.json").write_text(json.dumps(rows))
    lines = [*new_experiment_lines(write_experiment(tmp_path))]
    assert "ignored, queries with the same ids again: few.json" in lines


def test_a_file_that_shares_ids_with_an_ignored_one_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("# A")
    for name, ids in (("most", "123"), ("some", "34"), ("one", "4")):
        rows = [{"id": id_, "query": id_, "relevant_documents": ["a"]} for id_ in ids]
        (tmp_path / f"{name}.json").write_text(json.dumps(rows))
    reference = DatasetReference(tmp_path, format="markdown")
    files = find_files(reference)
    assert files.reference.queries == ("most.json", "one.json")
    assert files.repeated_files == ["some.json"]


def test_a_table_that_may_hold_the_queries_is_one_command_away(folder: Path) -> None:
    (folder / "queries.json").unlink()
    table = "Question,Expected document(s)\nred fruit,apple\n"
    (folder / "golden.csv").write_text(table, encoding="utf-8")
    lines = str(refusal(write_experiment, folder)).split("\n")
    assert lines[0].endswith("but 'golden.csv' has a column 'Question'")
    assert lines[1:] == [
        f"if it holds the queries: harness init {folder} --queries golden.csv"
    ]


def test_a_folder_in_another_layout_is_told(tmp_path: Path) -> None:
    """README.md describes the folder: it is no document, and no example names it."""
    (tmp_path / "README.md").write_text("# Our help pages", encoding="utf-8")
    (tmp_path / "pages.xml").write_text("<pages/>", encoding="utf-8")
    message = str(refusal(write_experiment, tmp_path))
    assert "holds no documents: only .md, .xml" in message and "README" not in message
    (tmp_path / "a.pdf").write_text("x", encoding="utf-8")
    with pytest.raises(
        InputError, match=r"holds no documents .*2 are not \(.pdf 1, .xml 1\)"
    ):
        write_experiment(tmp_path)
    folder = beir(tmp_path / "b", "test")
    (folder / "queries.jsonl").rename(folder / "golden.jsonl")
    with pytest.raises(
        InputError, match=r"holds no queries of this format .*--queries golden.jsonl"
    ):
        write_experiment(folder)


def test_a_split_is_named_where_it_must_be(tmp_path: Path) -> None:
    assert (
        load(write_experiment(beir(tmp_path / "a", "dev", "test")).path).dataset.split
        is None
    )
    folder = beir(tmp_path / "b", "dev", "train")
    assert "has the splits dev, train (name one" in str(
        refusal(write_experiment, folder)
    )
    assert (
        load(write_experiment(DatasetReference(folder, split="dev")).path).dataset.split
        == "dev"
    )


def test_a_file_that_is_there_stays(folder: Path) -> None:
    write_experiment(folder)
    before = Path("d.toml").read_bytes()
    assert "is there already" in str(refusal(write_experiment, folder, Path("d.toml")))
    assert Path("d.toml").read_bytes() == before


def test_a_link_that_is_there_stays_and_leads_nowhere(folder: Path) -> None:
    link = Path("link.toml")
    link.symlink_to("elsewhere.toml")
    assert "is there already" in str(refusal(write_experiment, folder, link))
    assert link.is_symlink()
    assert not Path("elsewhere.toml").exists()


def test_an_experiment_has_the_name_of_its_file(folder: Path) -> None:
    written = write_experiment(folder, Path("sub/other.toml"))
    assert load(written.path).experiment.name == "other"


@pytest.mark.parametrize(
    "name",
    ["my exp.toml", "-x.toml", "é.toml", "_.toml", "con.toml", "a" * 80 + ".toml"],
)
def test_what_init_writes_is_read_by_the_command_that_it_prints(
    folder: Path, call: Call, name: str
) -> None:
    output = call("init", "d", "--output", name, code=0).out
    command = next(line for line in output.splitlines() if "harness check" in line)
    call(*shlex.split(command)[1:], code=0)


@pytest.mark.parametrize("name", ["exp.txt", ".toml", "exp"])
def test_a_name_that_no_command_would_take_for_an_experiment_is_refused(
    folder: Path, call: Call, name: str
) -> None:
    assert "does not end in .toml" in call("init", "d", "--output", name, code=2).err
    assert not Path(name).exists()


def test_labels_that_name_documents_by_fields_are_declared_by_options(
    tmp_path: Path, call: Call
) -> None:
    pages = [
        {"id": f"n{page}", "text": f"page {page}", "file": "m.pdf", "page": str(page)}
        for page in (1, 2)
    ]
    layouts.jsonl(tmp_path / "d" / "documents.jsonl", pages)
    row = {"id": "q", "query": "two", "gold": [{"file": "m.pdf", "page": "2"}]}
    layouts.jsonl(tmp_path / "d" / "queries.jsonl", [row])
    options = (
        "--columns",
        "label_document=gold.file,gold.page",
        "--match",
        "file,page",
    )
    assert " ".join(options) in call("init", "d", code=2).err
    call("init", "d", *options, code=0)
    assert 'match = ["file", "page"]' in Path("d.toml").read_text(encoding="utf-8")
    assert load_data(load("d.toml").dataset).labels["q"].relevant == ("n2",)


# Retrieval spans of six programs become queries, documents, a run and labels

TEXTS = {
    "hr/leave": "25 days of paid leave a year.",
    "it/vpn": "The tunnel needs a token.",
}
ASKED = "how much leave is there"
SPAN = {"openinference.span.kind": "RETRIEVER", "input.value": ASKED}


class Hit(NamedTuple):
    """A document that a span retrieved."""

    id: str
    content: str
    score: float


def json_lines(*spans: object) -> str:
    return "".join(json.dumps(span) + "\n" for span in spans)


def openinference(documents: Sequence[Hit]) -> str:
    flat = {
        f"retrieval.documents.{n}.document.{key}": attribute
        for n, document in enumerate(documents)
        for key, attribute in document._asdict().items()
    }
    notes = [{"document_position": 0, "result": {"label": "relevant", "score": 1}}]
    other = {
        "attributes": {"openinference.span.kind": "LLM", "input.value": "say hello"}
    }
    return json_lines(
        other,
        {
            "context": {"trace_id": "t1"},
            "start_time": "2026-01-02",
            "annotations": notes,
            "attributes": {**SPAN, "session.id": "s1", **flat},
        },
    )


def otlp(documents: Sequence[Hit]) -> str:
    value_by_key = {
        "gen_ai.retrieval.query.text": ASKED,
        "gen_ai.retrieval.documents": json.dumps(
            [document._asdict() for document in documents]
        ),
        "session.id": "s1",
    }
    attributes = [
        {"key": key, "value": {"stringValue": value}}
        for key, value in value_by_key.items()
    ]
    span = {
        "traceId": "t1",
        "startTimeUnixNano": "17",
        "name": "retrieval",
        "attributes": attributes,
    }
    return json_lines(
        {
            "resourceSpans": [
                {"resource": {}, "scopeSpans": [{"scope": {}, "spans": [span]}]}
            ]
        }
    )


def langsmith(documents: Sequence[Hit]) -> str:
    outputs = [
        {
            "page_content": document.content,
            "metadata": {"id": document.id, "score": document.score},
        }
        for document in documents
    ]
    child = {
        "run_type": "retriever",
        "inputs": {"query": ASKED},
        "outputs": {"documents": outputs},
        "trace_id": "t1",
        "session_id": "s1",
        "start_time": "2026-01-02",
    }
    return json_lines(
        {
            "run_type": "chain",
            "inputs": {"query": ASKED},
            "outputs": {},
            "child_runs": [child],
        }
    )


def langfuse(documents: Sequence[Hit]) -> str:
    return json_lines(
        {
            "type": "RETRIEVER",
            "input": ASKED,
            "output": [document._asdict() for document in documents],
            "traceId": "t1",
            "sessionId": "s1",
        }
    )


def mlflow(documents: Sequence[Hit]) -> str:
    outputs = [
        {
            "page_content": document.content,
            "id": document.id,
            "metadata": {"score": document.score},
        }
        for document in documents
    ]
    attributes = {
        "mlflow.spanType": "RETRIEVER",
        "mlflow.spanInputs": json.dumps({"query": ASKED}),
        "mlflow.spanOutputs": json.dumps(outputs),
        "session.id": "s1",
    }
    span = {"trace_id": "t1", "start_time_unix_nano": 17, "attributes": attributes}
    return json_lines({"info": {}, "data": {"spans": [span]}})


def rows(file: str) -> list[Any]:
    return [
        json.loads(line) for line in Path(file).read_text(encoding="utf-8").splitlines()
    ]


@pytest.mark.parametrize("spans", [openinference, otlp, langsmith, langfuse, mlflow])
def test_spans_become_queries_documents_and_the_run_that_served_them(tmp_path, spans):
    """The query is asked twice, with other ranks: the last answer is the run."""
    documents = [
        Hit(id_, text, 0.9 - n / 2) for n, (id_, text) in enumerate(TEXTS.items())
    ]
    swapped = [
        document._replace(score=1.3 - document.score)
        for document in reversed(documents)
    ]
    (tmp_path / "traces.jsonl").write_text(spans(documents) + spans(swapped))
    assert small.ended("init", "traces.jsonl") == 0
    (query,) = rows("traces/queries.jsonl")
    assert (query["query"], query["traffic"], query["trace"], query["session"]) == (
        ASKED,
        2,
        "t1",
        "s1",
    )
    assert {row["_id"]: row["text"] for row in rows("traces/documents.jsonl")} == TEXTS
    assert read_run("traces/production.trec")["q0"] == pytest.approx(
        {"it/vpn": 0.9, "hr/leave": 0.4}
    )
    assert query.get("relevant_documents") == (
        {"hr/leave": 1, "it/vpn": 1} if spans is openinference else None
    )
    text = Path("traces.toml").read_text(encoding="utf-8")
    assert 'path = "traces/production.trec"' in text and "cluster =" not in text
    assert run("traces.toml", RunOptions(tmp_path / "out")).retrievers == (
        "bm25",
        "hashing",
        "hybrid",
        "production",
    )


def test_an_annotation_is_of_the_passage_at_its_position(tmp_path):
    """A document with one relevant passage is relevant."""
    span: dict[str, Any] = dict(SPAN)
    documents = ("hr/leave", "hr/leave", "it/vpn")
    labels = ("relevant", "irrelevant", "relevant")
    for number, (document, label) in enumerate(zip(documents, labels, strict=True)):
        span[f"retrieval.documents.{number}.document.id"] = document
        span[f"retrieval.documents.{number}.document.content"] = TEXTS[document]
        note = f"document_annotations.{number}"
        span |= {f"{note}.document_position": number, f"{note}.label": label}
    layouts.jsonl(tmp_path / "traces.jsonl", [span])
    assert small.ended("init", "traces.jsonl") == 0
    [query] = rows("traces/queries.jsonl")
    assert query["relevant_documents"] == {"hr/leave": 1, "it/vpn": 1}


def test_two_passages_of_one_document_are_one_hit_with_the_better_grade(tmp_path):
    span: dict[str, Any] = dict(SPAN)
    for number, (text, score) in enumerate((("red apples", 9), ("green pears", 5))):
        document = f"retrieval.documents.{number}.document"
        span |= {f"{document}.content": text, f"{document}.score": score}
        note = f"annotations.{number}"
        span |= {f"{note}.document_position": number, f"{note}.score": 2 - 2 * number}
    layouts.jsonl(tmp_path / "traces.jsonl", [span])
    row = {"_id": "fruit", "text": "red apples, green pears"}
    layouts.jsonl(tmp_path / "docs.jsonl", [row])
    assert small.ended("init", "traces.jsonl", "--documents", "docs.jsonl") == 0
    [query] = rows("traces/queries.jsonl")
    assert query["relevant_documents"] == {"fruit": 2}
    assert Path("traces/production.trec").read_text().count("\n") == 1


def test_mlflow_expectations_are_labels_and_turns_of_a_trace_are_a_cluster(tmp_path):
    for name, text in TEXTS.items():
        (tmp_path / "docs" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "docs" / f"{name}.md").write_text(text, encoding="utf-8")
    expected = {"expected_retrieved_context": [{"doc_uri": "hr/leave"}]}
    spans = [
        {"inputs": {"question": text}, "expectations": expected, "trace_id": "t"}
        for text in (ASKED, "days off")
    ]
    # A span that names its documents by their texts: they are matched.
    bare = {
        "run_type": "retriever",
        "inputs": {"query": "vpn"},
        "outputs": {"documents": [{"text": TEXTS["it/vpn"]}]},
    }
    layouts.jsonl(tmp_path / "traces.jsonl", [*spans, bare])
    assert small.ended("init", "traces.jsonl", "--documents", "docs") == 0
    labels = [row.get("relevant_documents") for row in rows("traces/queries.jsonl")]
    assert labels == [{"hr/leave": 1}, {"hr/leave": 1}, None]
    assert read_run("traces/production.trec") == {"q2": {"it/vpn": 1.0}}
    assert 'cluster = "trace"' in Path("traces.toml").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (
            {"retrieval.documents.0.document.score": 1},
            "has neither retrieval.documents.0.document.id nor its content",
        ),
        (
            {"retrieval.documents.0.document.id": "a"},
            "1 of 1 documents have no text, such as 'a' (name the documents",
        ),
    ],
)
def test_a_document_that_cannot_be_named_or_read_is_one_clear_error(
    tmp_path, capsys, more, message
):
    layouts.jsonl(tmp_path / "traces.jsonl", [{**SPAN, **more}])
    assert message in small.told(capsys, "init", "traces.jsonl", code=2).replace(
        "\n", " "
    )
    assert not Path("traces").exists()


def test_spans_that_are_refused_leave_nothing_behind(tmp_path, capsys):
    span = {"retrieval.documents.0.document.id": "it/vpn"}
    layouts.jsonl(tmp_path / "traces.jsonl", [{**SPAN, **span}])
    layouts.jsonl(tmp_path / "docs.jsonl", [{"_id": "it/vpn", "text": ""}])
    (tmp_path / "traces.toml").write_text("# mine")
    command = ("init", "traces.jsonl", "--documents", "docs.jsonl")
    first = small.told(capsys, *command, code=2)
    assert "traces.toml" in first
    assert not Path("traces").exists()
    assert small.told(capsys, *command, code=2) == first
    assert Path("traces.toml").read_text() == "# mine"


def test_a_folder_in_the_place_of_one_for_spans_stays(tmp_path, capsys):
    documents = {"retrieval.documents.0.document.id": "it/vpn"}
    documents["retrieval.documents.0.document.content"] = "the vpn"
    layouts.jsonl(tmp_path / "traces.jsonl", [{**SPAN, **documents}])
    (tmp_path / "traces").mkdir()
    (tmp_path / "traces" / "mine.txt").write_text("mine")
    assert "traces" in small.told(capsys, "init", "traces.jsonl", code=2)
    assert (tmp_path / "traces" / "mine.txt").read_text() == "mine"

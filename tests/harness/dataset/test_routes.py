"""The same collection through every reader.

It has the same digest, rankings and scores, and a written collection is read back.
"""

import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.dataset import Dataset, DatasetReference, load_dataset, parse_reference
from harness.dataset.reference import DeclaredColumn
from harness.dataset.written_values import id_problem
from retrievers.bm25 import BM25
from retrievers.errors import InputError
from retrievers.ids import to_nfc
from retrievers.meter import Meter
from retrievers.types import Ranking
from tests.support import layouts as written
from tests.support.small import refusal


def loaded(path: object) -> Dataset:
    return load_dataset(parse_reference(path))


def rankings(dataset: Dataset) -> list[Ranking]:
    retriever = BM25()
    retriever.index(dataset.documents(), Meter())
    return retriever.search(dataset.queries, 10, Meter())


@pytest.mark.parametrize("route", written.GRADED)
def test_the_same_collection_through_every_route(tmp_path: Path, route: str) -> None:
    expected = loaded(written.beir(tmp_path / "expected"))
    dataset = loaded(written.GRADED[route](tmp_path / "data"))
    assert dataset.labels == expected.labels
    assert dataset.digest == expected.digest
    assert dataset.queries == expected.queries
    assert list(dataset.documents()) == list(expected.documents())
    assert rankings(dataset) == rankings(expected)
    assert dataset.data_quality == expected.data_quality


def test_ir_datasets_by_name(tmp_path: Path) -> None:
    dataset = loaded(written.catalogue(tmp_path / "irds"))
    assert {doc.id: doc.text for doc in dataset.documents()} == {
        id_: text.replace("\n", " ") for id_, text in written.DOCUMENTS.items()
    }
    assert {query.id: query.text for query in dataset.queries} == written.QUERIES
    assert {
        query: labels.grades for query, labels in dataset.labels.items()
    } == written.GRADES
    assert all(not record.fields for record in (*dataset.documents(), *dataset.queries))
    assert dataset.format == "ir_datasets"


def test_autorag_keeps_its_groups(tmp_path: Path) -> None:
    documents = [
        {"doc_id": id_, "contents": text, "metadata": {"page": "1", "prev_id": None}}
        for id_, text in written.DOCUMENTS.items()
    ]
    groups = {
        "q1": [["car"]],
        "q2": [["boat", "fish"]],
        "q3": [["pear"], ["boat", "car"]],
    }
    rows = [
        {"qid": id_, "query": text, "retrieval_gt": groups[id_], "generation_gt": ["x"]}
        for id_, text in written.QUERIES.items()
    ]
    written.parquet(tmp_path / "corpus.parquet", documents)
    written.parquet(tmp_path / "qa.parquet", rows)
    dataset = loaded(tmp_path)
    assert dataset.format == "autorag"
    assert {
        query: [*map(list, labels.groups)] for query, labels in dataset.labels.items()
    } == groups
    assert (next(dataset.documents()).fields, dataset.queries[0].fields) == (
        {"page": "1"},
        {},
    )


@pytest.fixture
def msmarco(tmp_path: Path) -> Path:
    """Returns a folder of MS MARCO's form, with a second file of labels."""
    texts = {
        "collection.tsv": "car\tred wheels\nboat\tgreen sails\n",
        "queries.dev.tsv": "q1\twheels\nq2\tsails\n",
        "qrels.dev.tsv": "q1\t0\tcar\t1\nq2\t0\tboat\t1\n",
        "other.tsv": "query_id\tdoc_id\tscore\nq1\tboat\t1\n",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def test_named_labels_take_the_place_of_those_of_msmarco(msmarco: Path) -> None:
    dataset = load_dataset(DatasetReference(msmarco, labels="other.tsv"))
    assert dataset.format == "msmarco"
    assert {query: labels.documents for query, labels in dataset.labels.items()} == {
        "q1": ("boat",)
    }


def test_a_named_file_of_msmarco_needs_no_header(msmarco: Path) -> None:
    dataset = load_dataset(DatasetReference(msmarco, queries=("queries.dev.tsv",)))
    assert [query.text for query in dataset.queries] == ["wheels", "sails"]


def test_splits_beside_each_other_are_named_with_their_folder(msmarco: Path) -> None:
    (msmarco / "qrels.train.tsv").write_text("q1\t0\tcar\t1\n")
    with pytest.raises(InputError) as error:
        loaded(msmarco)
    [problem] = error.value.problems
    assert problem.where == str(msmarco)


@pytest.mark.parametrize("key", ["_id", "id"])
def test_the_hub_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", str(tmp_path / "cache"))
    name = written.named_hub(tmp_path / "data", key)
    dataset = loaded(name)
    assert (dataset.format, dataset.digest) == (
        "hub",
        loaded(written.beir(tmp_path / "expected")).digest,
    )
    assert "has no split 'dev'" in str(
        refusal(load_dataset, replace(parse_reference(name), split="dev"))
    )
    parts = (
        "---\nconfigs:\n- config_name: corpus\n  data_files: corpus/*.parquet\n---\n"
    )
    (tmp_path / "data" / "README.md").write_text(parts)
    with pytest.raises(
        InputError, match=r"has no part 'queries' .its parts are corpus"
    ):
        loaded(name)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("irds:no/such/set", "is not known to ir_datasets"),
        ("irds:beir", "irds:beir: has no docs, queries, qrels"),
        ("hf:@main", "names no data set"),
        ("hf:nobody/nothing@main", "hf:nobody/nothing@main: cannot be read"),
    ],
)
def test_a_name_that_cannot_be_had(
    monkeypatch: pytest.MonkeyPatch, name: str, message: str
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(InputError, match=message):
        loaded(name)


# Exports of evaluation tools: reference contexts find documents by id or by text;
# those that find none are counted


def test_only_the_named_folder_of_a_trec_collection_has_its_documents(tmp_path):
    for folder, id_ in (("docs", "d1"), ("docs-old", "d2")):
        (tmp_path / folder).mkdir()
        text = f"<DOC><DOCNO>{id_}</DOCNO><TEXT>wheels</TEXT></DOC>"
        (tmp_path / folder / "a.trec").write_text(text)
    (tmp_path / "topics.txt").write_text("1\twheels\n")
    (tmp_path / "qrels.txt").write_text("1 0 d1 1\n")
    reference = DatasetReference(tmp_path, format="trec", documents="docs")
    assert [document.id for document in load_dataset(reference).documents()] == ["d1"]
    absent = replace(reference, documents="dcos/a.trec")
    assert "dcos/a.trec: no such file" in str(refusal(load_dataset, absent))


DOCUMENTS = """<DOC>
<DOCNO>d1</DOCNO><TEXT>wheels</TEXT>
</DOC>
<DOC><DOCNO>d2</DOCNO><TEXT>ships</TEXT></DOC>
"""
TOPICS = "1\twheels\n"
FIRST, SECOND = "1 0 d1 1\n", "1 0 d2 1\n"
"""Judgments: either document is relevant for the one topic."""
TREC_FILES = {"documents.trec": DOCUMENTS, "topics.txt": TOPICS, "qrels.txt": FIRST}


def trec_dataset(folder: Path, files: dict[str, str], **parts: object) -> Dataset:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return load_dataset(DatasetReference(folder, **parts))


@pytest.mark.parametrize(
    "documents",
    [
        DOCUMENTS.replace("</DOC>\n<DOC>", "</DOC><DOC>"),
        DOCUMENTS.replace("\n", ""),
        DOCUMENTS.replace("<DOC>", '<doc id="1">'),
        DOCUMENTS.replace("wheels", "\n<P>\nwheels\n</P>\n"),
        DOCUMENTS.replace("TEXT>", "P>").replace("</DOC>", "</DOC> not a document"),
    ],
)
def test_documents_in_other_lines_or_with_attributes_are_the_same(tmp_path, documents):
    dataset = trec_dataset(tmp_path, {**TREC_FILES, "documents.trec": documents})
    assert [(d.id, d.text) for d in dataset.documents()] == [
        ("d1", "wheels"),
        ("d2", "ships"),
    ]


def test_words_in_two_elements_are_not_joined(tmp_path):
    text = "<p>wheels</p><p>H<sub>2</sub>O <b>x</b>,</p> <i>y</i><br/>z"
    documents = DOCUMENTS.replace("wheels", text)
    dataset = trec_dataset(tmp_path, {**TREC_FILES, "documents.trec": documents})
    assert next(iter(dataset.documents())).text == "wheels H2O x, y z"


@pytest.mark.parametrize(
    ("qrels", "split", "document"),
    [
        ({"qrels.txt": FIRST}, "test", "d1"),
        ({"qrels/latest.txt": SECOND, "qrels/test.txt": FIRST}, "test", "d1"),
        ({"qrels.txt": SECOND, "qrels.test.txt": FIRST}, None, "d1"),
        ({"qrels.dev-1.txt": SECOND, "qrels.test.txt": FIRST}, "dev", "d2"),
    ],
)
def test_the_split_of_qrels_is_a_part_of_their_name(tmp_path, qrels, split, document):
    files = {**TREC_FILES, **qrels}
    if "qrels.txt" not in qrels:
        del files["qrels.txt"]
    dataset = trec_dataset(tmp_path, files, split=split)
    assert list(dataset.labels["1"].grades) == [document]


def test_qrels_without_splits_are_read_together(tmp_path):
    files = {"documents.trec": DOCUMENTS, "topics.txt": TOPICS}
    qrels = {"qrels.a.txt": FIRST, "qrels.b.txt": SECOND}
    dataset = trec_dataset(tmp_path, {**files, **qrels})
    assert sorted(dataset.labels["1"].grades) == ["d1", "d2"]
    reference = DatasetReference(tmp_path, split="dev")
    message = "no qrels of the split 'dev', but qrels.a.txt, qrels.b.txt"
    assert message in str(refusal(load_dataset, reference))


def test_qrels_that_are_named_have_no_split(tmp_path):
    files = {**TREC_FILES, "judged.txt": SECOND}
    dataset = trec_dataset(tmp_path, files, labels="judged.txt", split="test")
    assert list(dataset.labels["1"].grades) == ["d2"]


@pytest.mark.parametrize(
    ("part", "name"),
    [
        ("documents", "documents.trec"),
        ("queries", "topics.txt"),
        ("labels", "qrels.txt"),
    ],
)
def test_a_part_of_a_trec_collection_may_have_any_name(tmp_path, part, name):
    files = {**TREC_FILES, "mine.txt": TREC_FILES[name]}
    del files[name]
    value = ("mine.txt",) if part == "queries" else "mine.txt"
    dataset = trec_dataset(tmp_path, files, **{part: value})
    assert dataset.format == "trec"
    assert dataset.digest == trec_dataset(tmp_path / "usual", TREC_FILES).digest


def test_a_table_beside_trec_documents_has_no_documents(tmp_path):
    dataset = trec_dataset(tmp_path, {**TREC_FILES, "docs.tsv": "d3\tsails\n"})
    assert [document.id for document in dataset.documents()] == ["d1", "d2"]


def test_a_part_of_topics_is_a_name_not_a_pattern(tmp_path):
    topics = "<top><num>1<title>wheels</top>\n"
    columns = (DeclaredColumn("query", "desc("),)
    message = str(
        refusal(
            lambda: trec_dataset(
                tmp_path, {**TREC_FILES, "topics.txt": topics}, columns=columns
            )
        )
    )
    assert "topic 1 has no <desc(>" in message


def test_documents_may_be_in_a_file_with_a_hash_in_its_name(tmp_path):
    written.jsonl(tmp_path / "docs#1.jsonl", written.corpus())
    questions = [{"user_input": "wheels?", "reference_context_ids": ["car"]}]
    written.jsonl(tmp_path / "testset.jsonl", questions)
    reference = DatasetReference(tmp_path / "testset.jsonl", documents="docs#1.jsonl")
    dataset = load_dataset(reference)
    assert dataset.document_count == len(written.DOCUMENTS)


def test_ragas_by_text_by_id_and_without_a_match(tmp_path):
    written.jsonl(tmp_path / "docs.jsonl", written.corpus())
    all_ = [*written.DOCUMENTS]
    samples = [  # the first begins a document, with other white space and case
        {
            "user_input": "wheels?",
            "reference_contexts": ["Cars drive on  roads,"],
            "synthesizer_name": "hop",
            "reference": "four",
        },
        {
            "user_input": "swim?",
            "reference_contexts": [written.DOCUMENTS["fish"], "nowhere at all"],
        },
        {
            "user_input": "green?",
            "reference_context_ids": ["pear", "boat"],
            "reference_contexts": ["not looked at"],
        },
        {"user_input": "more?", "reference_context_ids": all_},
        {"user_input": "most?", "reference_context_ids": all_},
    ]
    written.jsonl(tmp_path / "testset.jsonl", samples)
    dataset = load_dataset(
        DatasetReference(tmp_path / "testset.jsonl", documents="docs.jsonl")
    )
    assert dataset.format == "ragas"
    assert {query: {*labels.grades} for query, labels in dataset.labels.items()} == {
        "q0": {"car"},
        "q1": {"fish"},
        "q2": {"pear", "boat"},
        "q3": {*all_},
        "q4": {*all_},
    }
    assert dataset.data_quality["unmatched-context"] == ("q1: nowhere at all",)
    assert dataset.queries[0].fields == {"synthesizer_name": "hop"}
    assert dataset.queries[0].reference.answers == ("four",)


TEXTS = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0\r"),
    min_size=1,
    max_size=30,
)
IDS = st.text(
    st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]), min_size=1, max_size=8
).filter(lambda id_: id_.strip() == id_ and not id_problem(id_) and to_nfc(id_) == id_)
GRADES = st.integers(-3, 9)


@st.composite
def collections(draw: st.DrawFn) -> written.Collection:
    """Documents, queries, and grades of which at least one is positive."""
    documents = draw(st.dictionaries(IDS, st.just("") | TEXTS, min_size=1, max_size=5))
    query_texts = draw(
        st.dictionaries(IDS, TEXTS.filter(str.strip), min_size=1, max_size=4)
    )
    judged = {
        id_: draw(
            st.dictionaries(st.sampled_from(sorted(documents)), GRADES, min_size=1)
        )
        for id_ in query_texts
    }
    judged[next(iter(judged))][next(iter(documents))] = 1
    return written.Collection(documents, query_texts, judged)


@settings(max_examples=25, deadline=None)
@given(collections())
def test_what_is_written_is_read_back(of):
    for route in ("csv", "tsv", "jsonl", "parquet", "embench"):
        with tempfile.TemporaryDirectory() as folder:
            dataset = loaded(written.GRADED[route](Path(folder) / "data", of))
            assert {
                document.id: document.text for document in dataset.documents()
            } == of.documents
            assert {
                query.id: query.text for query in dataset.judged_queries
            } == of.queries
            assert {
                query: labels.grades for query, labels in dataset.labels.items()
            } == of.grades

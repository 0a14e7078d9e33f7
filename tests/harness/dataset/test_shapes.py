"""Shapes of data that teams have.

One command reads each, with as many labels of each grade as the files have.
"""

import json
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace

import pytest

from harness.dataset import DatasetReference, load_dataset, parse_reference
from harness.experiment import load as load_experiment
from harness.init import template
from retrievers.errors import InputError
from tests.harness.dataset.test_converting import docx
from tests.support import layouts
from tests.support.layouts import Collection, Rows, jsonl
from tests.support.small import ended, refusal, told

WORDS = ("leave", "trains", "lunch", "keys", "laptops", "visitors", "parking")
FIFTY = Collection(
    {
        f"d{n:02}": f"Rule {n}: what holds of {WORDS[n % 7]} on floor {n}."
        for n in range(50)
    },
    {f"q{n:02}": f"what holds of {WORDS[n % 7]} upstairs, {n}" for n in range(20)},
    {
        f"q{n:02}": {f"d{n:02}": 2, f"d{n + 20:02}": 1, f"d{n + 30:02}": 0}
        for n in range(20)
    },
)
PAIRS = [
    (query, doc, grade)
    for query, judged in FIFTY.grades.items()
    for doc, grade in judged.items()
]
GRADES = Counter(grade for _, _, grade in PAIRS)
ONES = Counter({1: 40})
FOUR_ONES = Counter({1: 4})
"""The grades of lists of relevant documents."""
RELEVANT: dict[str, list[str]] = {}
for query_id, judged_documents in FIFTY.grades.items():
    RELEVANT[query_id] = [doc for doc, grade in judged_documents.items() if grade]
TEXTS = {f"{id_}.md": text for id_, text in FIFTY.documents.items()}
CORPUS = layouts.corpus("id", FIFTY)
QUERIES = layouts.queries("id", FIFTY)
QRELS = layouts.qrels("query_id", "doc", "grade", FIFTY)
Files = Mapping[str, object]
"""Name -> text, or what is written as its suffix says; a folder holds files."""


def write_book(path: Path, sheets: Mapping[str, list[dict[str, object]]]) -> None:
    """Write a workbook, with the keys of the first row as the header of a sheet."""
    cells = {}
    for name, rows in sheets.items():
        cells[name] = [list(rows[0]), *(list(row.values()) for row in rows)]
    path.write_bytes(layouts.book(**cells))


def lay(here: Path, files: Files) -> None:
    """Write files, each as its suffix says."""
    for name, content in files.items():
        path = here / name
        path.parent.mkdir(parents=True, exist_ok=True)
        write: dict[str, Callable] = {
            "": lay,
            ".csv": layouts.table,
            ".jsonl": jsonl,
            ".ndjson": jsonl,
            ".parquet": layouts.parquet,
            ".json": lambda path, json_value: path.write_text(json.dumps(json_value)),
            ".xlsx": write_book,
        }
        Path.write_text(path, content) if isinstance(content, str) else write[
            path.suffix
        ](path, content)


def asked(query: str = "query", doc: str = "doc", suffix: str = "") -> Rows:
    """A row a judgment, with the question in it."""
    return [
        {query: FIFTY.queries[q], doc: f"{d}{suffix}", "rating": rated}
        for q, d, rated in PAIRS
    ]


CLICKS: list[dict[str, str]] = []
for query_id, doc_id, pair_grade in PAIRS:
    if pair_grade:
        click = {"query": FIFTY.queries[query_id], "clicked_doc_id": doc_id}
        CLICKS += [click, click, click]
CONTEXTS = [
    {"question": FIFTY.queries[q], "answer": "so", "context": FIFTY.documents[d]}
    for q, d, g in PAIRS
    if g
]


def converted(here: Path) -> None:
    pytest.importorskip("markitdown")
    names = {
        doc: f"{doc}.{'html' if doc in ('d01', 'd02') else 'md'}"
        for doc in FIFTY.documents
    } | {"d00": "d00.docx"}
    lay(
        here,
        {names[doc]: text for doc, text in FIFTY.documents.items() if doc != "d00"},
    )
    docx(here / "d00.docx", FIFTY.documents["d00"])
    layouts.table(
        here / "questions.csv",
        [{**row, "file": names[str(row["file"])]} for row in asked("q", "file")],
    )


def squad() -> object:
    rated: dict[str, list[dict]] = {id_: [] for id_ in FIFTY.documents}
    for q, d, grade in PAIRS:
        if grade != 1:
            question = {
                "id": q if grade else f"{q}-no",
                "question": FIFTY.queries[q],
                "answers": [],
            }
            rated[d].append({**question, "is_impossible": not grade})
    paragraphs = [
        {"context": FIFTY.documents[id_], "qas": qas} for id_, qas in rated.items()
    ]
    return {"version": "v2.0", "data": [{"title": "T", "paragraphs": paragraphs}]}


def saved_parts(here: Path) -> None:
    hub = pytest.importorskip("datasets")
    for part, rows in (
        ("corpus", layouts.corpus(of=FIFTY)),
        ("queries", layouts.queries(of=FIFTY)),
    ):
        hub.Dataset.from_list(rows).save_to_disk(here / part)
    of_labels = {
        split: hub.Dataset.from_list(layouts.qrels(of=FIFTY))
        for split in ("dev", "test")
    }
    hub.DatasetDict(of_labels).save_to_disk(here / "qrels")


def saved_splits(here: Path) -> None:
    hub = pytest.importorskip("datasets")
    rows = hub.Dataset.from_list(
        [
            {
                "question": FIFTY.queries[q],
                "context": FIFTY.documents[d],
                "rating": g,
                "answers": {"text": ["so"], "answer_start": [0]},
            }
            for q, d, g in PAIRS
        ]
    )
    hub.DatasetDict({"train": rows.select([0]), "validation": rows}).save_to_disk(here)


BULK = [
    line
    for id_, text in FIFTY.documents.items()
    for line in (
        {"index": {"_index": "help", "_id": id_, "routing": "a"}},
        {"title": "Rule", "body": text},
    )
]
RATINGS = "".join(f'"{FIFTY.queries[q]}",{d},{grade}\n' for q, d, grade in PAIRS)
HITS = [
    {"_index": "help", "_id": id_, "_source": {"text": text}}
    for id_, text in FIFTY.documents.items()
]


def rating_group(query_id: str) -> dict[str, object]:
    """Return a query by two templates, with the gains of its documents."""
    placeholders = {"$query": FIFTY.queries[query_id]}
    return {
        "name": query_id,
        "queries": [
            {"template": "a", "placeholders": placeholders},
            {"template": "b", "placeholders": placeholders},
        ],
        "relevant_documents": {
            document: {"gain": grade}
            for document, grade in FIFTY.grades[query_id].items()
        },
    }


GROUPS = [rating_group(query_id) for query_id in FIFTY.grades]
MS_MARCO = {
    "collection.tsv": "".join(
        f"{id_}\t{text}\n" for id_, text in FIFTY.documents.items()
    ),
    "queries.dev.tsv": "".join(
        f"{id_}\t{text}\n" for id_, text in FIFTY.queries.items()
    ),
    "qrels.dev.tsv": "".join(f"{q}\t0\t{d}\t{grade}\n" for q, d, grade in PAIRS),
}


def hotpot(of_hub: bool = False) -> Rows:
    rows = []
    for q, docs in RELEVANT.items():
        document_ids = FIFTY.documents if q == "q00" else FIFTY.grades[q]
        context = {f"T {d}": [FIFTY.documents[d], " More."] for d in document_ids}
        facts = {f"T {d}": 0 for d in docs}
        row = {
            "context": [*map(list, context.items())],
            "supporting_facts": [*map(list, facts.items())],
        }
        if of_hub:
            row = {
                "context": {"title": [*context], "sentences": [*context.values()]},
                "supporting_facts": {"title": [*facts], "sent_id": [*facts.values()]},
            }
        rows.append(
            {
                "_id": q,
                "question": FIFTY.queries[q],
                "answer": "so",
                "level": "hard",
                **row,
            }
        )
    return rows


def of(write: Callable[..., Path]) -> Callable[[Path], object]:
    return lambda folder: write(folder, FIFTY)


def marked(query_id: str, right: str) -> dict[str, object]:
    """Return a query with its right text, and all others as wrong ones."""
    wrong = [text for id_, text in FIFTY.documents.items() if id_ != right]
    return {
        "query": FIFTY.queries[query_id],
        "pos": [FIFTY.documents[right]],
        "neg": wrong,
    }


MARKED = [marked(query_id, doc_id) for query_id, doc_id, grade in PAIRS if grade]
LLAMA = {"source_files": {f"{id_}.txt": text for id_, text in layouts.FOUR.items()}}
"""Files, or a function that writes them into the folder d; the words of the command;
how many labels there are of each grade."""
SHAPES: dict[str, tuple[Files | Callable[[Path], object], str, Counter[int]]] = {
    "Markdown folder": (
        {"d": {**TEXTS, "questions.csv": asked("question", "document")}},
        "d",
        GRADES,
    ),
    "right and wrong texts": ({"pairs.jsonl": MARKED}, "pairs.jsonl", ONES),
    "question, answer and context rows": ({"qa.csv": CONTEXTS}, "qa.csv", ONES),
    "Parquet and qrels": (of(layouts.parquet_rows), "d", GRADES),
    "click log": ({"d": {**TEXTS, "queries.jsonl": CLICKS}}, "d", ONES),
    "Ragas": (
        layouts.of_tool("ragas.jsonl"),
        "d/ragas.jsonl --documents docs.jsonl",
        FOUR_ONES,
    ),
    "Ragas, CSV": (
        layouts.of_tool("ragas.csv"),
        "d/ragas.csv --documents docs.jsonl",
        FOUR_ONES,
    ),
    "LangSmith": (
        layouts.of_tool("langsmith.jsonl"),
        "d/langsmith.jsonl --documents docs.jsonl",
        FOUR_ONES,
    ),
    "Phoenix": (
        layouts.of_tool("phoenix.json"),
        "d/phoenix.json --documents docs.jsonl",
        FOUR_ONES,
    ),
    "Langfuse": (
        layouts.of_tool("langfuse.json"),
        "d/langfuse.json --documents docs.jsonl",
        FOUR_ONES,
    ),
    "LlamaIndex, pairs": (
        layouts.of_tool("qa_finetune.json"),
        "d/qa_finetune.json",
        FOUR_ONES,
    ),
    "LlamaIndex": (
        layouts.of_tool("rag_dataset.json"),
        "d/rag_dataset.json --documents docs.jsonl",
        FOUR_ONES,
    ),
    "LlamaIndex, a folder": (
        lambda folder: (
            layouts.of_tool("rag_dataset.json")(folder),
            lay(folder, LLAMA),
        ),
        "d",
        FOUR_ONES,
    ),
    "AutoRAG": (layouts.of_tool("qa.parquet", "corpus.parquet"), "d", FOUR_ONES),
    "BEIR folder": (of(layouts.beir), "d", GRADES),
    "BEIR zip": (of(layouts.beir_zip), "d.zip", GRADES),
    "TREC": (of(layouts.trec), "d", GRADES),
    "Excel, named sheets": (
        {"all.xlsx": {"documents": CORPUS, "queries": QUERIES, "labels": QRELS}},
        "all.xlsx",
        GRADES,
    ),
    "Excel beside documents": (
        {"d": {**TEXTS, "questions.xlsx": {"Sheet1": asked(suffix=".md")}}},
        "d",
        GRADES,
    ),
    "Markdown, HTML and Word with file names": (converted, "d", GRADES),
    "SQuAD": ({"dev-v2.0.json": squad()}, "dev-v2.0.json", Counter({1: 20, 0: 20})),
    "save_to_disk, parts": (saved_parts, "d", GRADES),
    "save_to_disk, splits": (saved_splits, "d --split validation", GRADES),
    "Parquet, configurations": (
        {
            "d": TEXTS,
            **{
                f"p/{language}/train-0000{part}-of-00002.parquet": asked()[30 * part :][
                    :30
                ]
                for language in ("de", "en")
                for part in (0, 1)
            },
        },
        "p/en --documents d",
        GRADES,
    ),
    "bulk request and Quepid": (
        {
            "d": {
                "documents.ndjson": BULK,
                "queries.csv": f"query,docid,rating\n{RATINGS}unrated\n",
            }
        },
        "d",
        GRADES,
    ),
    "hits and RRE": (
        {
            "hits.json": {"took": 3, "hits": {"total": {"value": 50}, "hits": HITS}},
            "ratings.json": {
                "index": "help",
                "topics": [{"description": "all", "query_groups": GROUPS}],
            },
        },
        "ratings.json --documents hits.json",
        GRADES,
    ),
    "MS MARCO": ({"d": MS_MARCO}, "d", GRADES),
    "HotpotQA": (
        {"hotpot_dev_distractor_v1.json": hotpot()},
        "hotpot_dev_distractor_v1.json",
        ONES,
    ),
    "HotpotQA of the hub": (
        {"d/distractor/validation-00000-of-00001.parquet": hotpot(of_hub=True)},
        "d",
        ONES,
    ),
    "a table without a header": (
        {"d": TEXTS, "log.csv": RATINGS},
        "log.csv --documents d --no-header",
        GRADES,
    ),
}


def laid(here: Path, shape: str) -> list[str]:
    """Write a shape into a folder, and return the words of the command."""
    files, words, _ = SHAPES[shape]
    files(here / "d") if callable(files) else lay(here, files)
    return words.split()


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setattr(
        template,
        "importlib",
        SimpleNamespace(util=SimpleNamespace(find_spec=lambda _: None)),
    )
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("shape", SHAPES)
def test_one_command_with_the_labels_of_the_source(here: Path, shape: str) -> None:
    assert ended("init", *laid(here, shape), "--output", "made.toml") == 0
    dataset = load_dataset(load_experiment("made.toml").dataset)
    grades_by_query = (
        labels.grades or dict.fromkeys(labels.documents, 1)
        for labels in dataset.labels.values()
    )
    assert (
        Counter(grade for grades in grades_by_query for grade in grades.values())
        == SHAPES[shape][2]
    )
    assert dataset.document_count - len(
        dataset.data_quality.get("empty-document", ())
    ) in (
        50,
        40,
        4,
    )  # 40 where only contexts are there


def test_the_answers_and_fields_of_quoted_passages(here: Path) -> None:
    row = {"question": "how much", "answer": "25", "topic": "hr"}
    layouts.table(
        here / "qa.csv",
        [{**row, "context": "x", "rating": 0}, {**row, "context": "y", "rating": 2}],
    )
    dataset = load_dataset(parse_reference("qa.csv"))
    assert (dataset.format, dataset.labels["q0"].grades) == (
        "quoted",
        {"p0": 0, "p1": 2},
    )
    assert (dataset.queries[0].reference.answers, dataset.queries[0].fields) == (
        ("25",),
        {"topic": "hr"},
    )
    squad_dataset = load_dataset(parse_reference(*laid(here, "SQuAD")))
    assert (squad_dataset.format, squad_dataset.labels["q03"].grades) == (
        "squad",
        {"T#3": 1},
    )
    paragraphs = load_dataset(parse_reference(*laid(here, "HotpotQA")))
    assert (paragraphs.format, paragraphs.queries[0].fields) == (
        "hotpotqa",
        {"level": "hard"},
    )
    assert {document.text for document in paragraphs.documents()} == {
        f"{text} More." for text in FIFTY.documents.values()
    }


def test_the_report_says_that_labels_are_clicks(here: Path) -> None:
    assert (
        ended("init", *laid(here, "click log"), "--output", "made.toml")
        == ended("run", "made.toml", "--quiet")
        == 0
    )
    sentence = "The labels of 20 queries are clicks: they favour"
    assert sentence in Path("results/made/report.md").read_text(encoding="utf-8")
    assert sentence in Path("results/made/report.html").read_text(encoding="utf-8")


def test_a_query_without_labels_may_lack_their_key_and_a_file_of_such_queries_may_not(
    here: Path,
):
    jsonl(here / "documents.jsonl", CORPUS)
    bare = [
        {"id": f"{id_}-bare", "query": f"{text}?"}
        for id_, text in list(FIFTY.queries.items())[:3]
    ]
    listed = [
        {"id": id_, "query": text, "relevant_documents": RELEVANT[id_]}
        for id_, text in FIFTY.queries.items()
    ]
    jsonl(here / "queries.jsonl", [bare[0], *listed, *bare[1:]])
    data = load_dataset(parse_reference(here))
    assert (len(data.labels), len(data.queries)) == (20, 20)
    assert data.data_quality["unjudged-query"] == ("q00-bare", "q01-bare", "q02-bare")
    jsonl(here / "queries.jsonl", [{**row, "rating": 1} for row in bare])
    assert "could hold grades, and no column names the documents" in str(
        refusal(load_dataset, parse_reference(here))
    )


def test_judgments_beside_a_corpus_of_beir_are_read(here: Path):
    expected = load_dataset(parse_reference(layouts.beir(here, FIFTY))).digest
    (here / "qrels" / "test.tsv").rename(here / "qrels.tsv")
    assert load_dataset(parse_reference(here)).digest == expected


def test_judgments_of_beir_in_another_form_are_refused(here: Path):
    """Nobody seemed to have judged."""
    layouts.beir(here, FIFTY)
    (here / "qrels" / "test.tsv").rename(here / "qrels" / "test.txt")
    with pytest.raises(InputError, match=r"holds no qrels .*qrels/test.tsv"):
        load_dataset(parse_reference(here))


def test_a_table_that_may_hold_the_labels_under_a_name_of_its_own_is_named(
    here: Path, capsys
):
    lay(here, {"documents.jsonl": CORPUS, "queries.jsonl": QUERIES, "gold.csv": QRELS})
    output = told(capsys, "check", here)
    assert (
        "tables that are not read, although no query has labels: "
        'name one (labels = "…") (1): gold' in output
    )
    labelled = load_dataset(DatasetReference(here, labels="gold.csv"))
    assert len(labelled.labels) == 20 and "unread-table" not in labelled.data_quality


def test_the_key_of_a_document_is_its_id_whatever_is_in_it(here: Path):
    content = {
        "queries": {"q": "ships"},
        "corpus": {"a": {"_id": "b", "text": "a ship"}},
        "qrels": {"q": {"a": 1}},
    }
    lay(here, {"data.json": json.dumps(content)})

    dataset = load_dataset("data.json")

    assert [document.id for document in dataset.documents()] == ["a"]


def test_a_folder_may_hold_one_file_of_squad(here: Path):
    lay(here, {"d/dev-v2.0.json": squad()})

    dataset = load_dataset("d")

    assert (dataset.format, dataset.document_count) == ("squad", 50)


def test_articles_of_squad_may_have_the_same_title(here: Path):
    articles = [
        {
            "title": "Rules",
            "paragraphs": [
                {"context": text, "qas": [{"id": text, "question": f"what {text}?"}]}
            ],
        }
        for text in ("of leave", "of lunch")
    ]
    (here / "squad.json").write_text(json.dumps({"data": articles}))
    dataset = load_dataset(parse_reference(here / "squad.json"))
    texts = {document.id: document.text for document in dataset.documents()}
    labelled = {
        query_id: [texts[id_] for id_ in labels.relevant]
        for query_id, labels in dataset.labels.items()
    }
    assert labelled == {"of leave": ["of leave"], "of lunch": ["of lunch"]}

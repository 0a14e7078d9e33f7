"""Shapes of data that teams have: one command each, with as many labels of each grade as the files have."""

import csv
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from harness.dataset import DatasetReference, load, reference_of
from harness.experiment import init
from harness.experiment import load as load_experiment
from retrievers.errors import InputError
from tests.harness.dataset.test_converting import docx
from tests.support import layouts
from tests.support.layouts import Collection, Rows, jsonl, parquet
from tests.support.small import ended, told

WORDS = ("leave", "trains", "lunch", "keys", "laptops", "visitors", "parking")
FIFTY = Collection(
    {f"d{n:02}": f"Rule {n}: what holds of {WORDS[n % 7]} on floor {n}." for n in range(50)},
    {f"q{n:02}": f"what holds of {WORDS[n % 7]} upstairs, {n}" for n in range(20)},
    {f"q{n:02}": {f"d{n:02}": 2, f"d{n + 20:02}": 1, f"d{n + 30:02}": 0} for n in range(20)},
)
PAIRS = [(query, doc, grade) for query, judged in FIFTY.grades.items() for doc, grade in judged.items()]
GRADES = Counter(grade for _, _, grade in PAIRS)
ONES, FOUR_ONES = Counter({1: 40}), Counter({1: 4})
"""What lists of relevant documents come to."""
RELEVANT = {query: [doc for doc, grade in judged.items() if grade] for query, judged in FIFTY.grades.items()}
Written = Callable[[Path], list[str]]
"""Writes files, and returns the words of the command that takes them."""


def asked(query: str = "query", doc: str = "doc", suffix: str = "") -> Rows:
    """A row a judgment, with the question in it."""
    return [{query: FIFTY.queries[q], doc: f"{d}{suffix}", "rating": rated} for q, d, rated in PAIRS]


def texts(folder: Path) -> Path:
    folder.mkdir(parents=True)
    for id_, text in FIFTY.documents.items():
        (folder / f"{id_}.md").write_text(text)
    return folder


def whole(path: Path, said: object) -> str:
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(said))
    return str(path)


def workbook(path: Path, **sheets: Rows) -> str:
    path.parent.mkdir(exist_ok=True)
    cells = {name: [list(rows[0]), *(list(row.values()) for row in rows)] for name, rows in sheets.items()}
    path.write_bytes(layouts.book(**cells))
    return str(path)


def markdown_and_csv(here: Path) -> list[str]:
    layouts.table(texts(here / "d") / "questions.csv", asked("question", "document"))
    return ["d"]


def contexts_in_rows(here: Path) -> list[str]:
    rows = [{"question": FIFTY.queries[q], "answer": "so", "context": FIFTY.documents[d]} for q, d, g in PAIRS if g]
    layouts.table(here / "qa.csv", rows)
    return ["qa.csv"]


def click_log(here: Path) -> list[str]:
    clicks = [{"query": FIFTY.queries[q], "clicked_doc_id": d} for q, d, grade in PAIRS if grade for _ in range(3)]
    jsonl(texts(here / "d") / "queries.jsonl", clicks)
    return ["d"]


def of_tool(*names: str, documents: bool = True) -> Written:
    write = layouts.of_tool(*names)
    return lambda here: [str(write(here / "d")), *(["--documents", "docs.jsonl"] if documents else [])]


def llama_index_folder(here: Path) -> list[str]:
    of_tool("rag_dataset.json")(here)
    (here / "d" / "source_files").mkdir()
    for id_, text in layouts.FOUR.items():
        (here / "d" / "source_files" / f"{id_}.txt").write_text(text)
    return ["d"]


def autorag_project(here: Path) -> list[str]:
    of_tool("qa.parquet", "corpus.parquet")(here)
    (here / "project").mkdir()
    (here / "d").rename(here / "project" / "data")
    return ["project"]


def excel_one_sheet(here: Path) -> list[str]:
    return [workbook(here / "rated.xlsx", Sheet1=asked()), "--documents", str(texts(here / "d"))]


def excel_named_sheets(here: Path) -> list[str]:
    sheets = {"documents": layouts.corpus("id", FIFTY), "queries": layouts.queries("id", FIFTY)}
    return [workbook(here / "all.xlsx", **sheets, labels=layouts.qrels("query_id", "doc", "grade", FIFTY))]


def excel_beside_documents(here: Path) -> list[str]:
    workbook(texts(here / "d") / "questions.xlsx", Sheet1=asked(suffix=".md"))
    return ["d"]


def converted(here: Path) -> list[str]:
    pytest.importorskip("markitdown")
    folder, names = texts(here / "d"), {doc: f"{doc}.md" for doc in FIFTY.documents}
    for doc in ("d00", "d01", "d02"):
        names[doc] = f"{doc}.{'docx' if doc == 'd00' else 'html'}"
        (folder / f"{doc}.md").unlink()
        (folder / names[doc]).write_text(f"<p>{FIFTY.documents[doc]}</p>")
    docx(folder / "d00.docx", FIFTY.documents["d00"])
    layouts.table(folder / "questions.csv", [{**row, "file": names[str(row["file"])]} for row in asked("q", "file")])
    return ["d"]


def squad(here: Path) -> list[str]:
    rated: dict[str, list[dict]] = {id_: [] for id_ in FIFTY.documents}
    for q, d, grade in PAIRS:
        if grade != 1:
            question = {"id": q if grade else f"{q}-no", "question": FIFTY.queries[q], "answers": []}
            rated[d].append({**question, "is_impossible": not grade})
    paragraphs = [{"context": FIFTY.documents[id_], "qas": qas} for id_, qas in rated.items()]
    return [whole(here / "dev-v2.0.json", {"version": "v2.0", "data": [{"title": "T", "paragraphs": paragraphs}]})]


def saved_parts(here: Path) -> list[str]:
    hub = pytest.importorskip("datasets")
    for part, rows in (("corpus", layouts.corpus(of=FIFTY)), ("queries", layouts.queries(of=FIFTY))):
        hub.Dataset.from_list(rows).save_to_disk(here / "d" / part)
    of_labels = {split: hub.Dataset.from_list(layouts.qrels(of=FIFTY)) for split in ("dev", "test")}
    hub.DatasetDict(of_labels).save_to_disk(here / "d" / "qrels")
    return ["d"]


def saved_splits(here: Path) -> list[str]:
    hub = pytest.importorskip("datasets")
    rows = hub.Dataset.from_list([{"question": FIFTY.queries[q], "context": FIFTY.documents[d], "rating": g,
                                   "answers": {"text": ["so"], "answer_start": [0]}} for q, d, g in PAIRS])  # fmt: skip
    hub.DatasetDict({"train": rows.select([0]), "validation": rows}).save_to_disk(here / "d")
    return ["d", "--split", "validation"]


def parquet_configurations(here: Path) -> list[str]:
    for language in ("de", "en"):
        for part, rows in enumerate((asked()[:30], asked()[30:])):
            parquet(here / "d" / language / f"train-0000{part}-of-00002.parquet", rows)
    return ["d/en", "--documents", str(texts(here / "texts"))]


def bulk_and_quepid(here: Path) -> list[str]:
    lines: list[object] = []
    for id_, text in FIFTY.documents.items():
        lines += [{"index": {"_index": "help", "_id": id_}}, {"title": "Rule", "body": text}]
    jsonl(here / "d" / "documents.ndjson", lines)
    layouts.table(here / "d" / "queries.csv", asked("query", "docid"))
    with (here / "d" / "queries.csv").open("a") as file:
        file.write("what nobody rated\n")
    return ["d"]


def hits_and_rre(here: Path) -> list[str]:
    hits = [{"_index": "help", "_id": id_, "_score": 1.0, "_source": {"text": text}}
            for id_, text in FIFTY.documents.items()]  # fmt: skip
    whole(here / "hits.json", {"took": 3, "hits": {"total": {"value": 50}, "hits": hits}})
    groups = [{"name": q, "queries": [{"template": t, "placeholders": {"$query": FIFTY.queries[q]}} for t in "ab"],
               "relevant_documents": {d: {"gain": grade} for d, grade in judged.items()}}
              for q, judged in FIFTY.grades.items()]  # fmt: skip
    whole(here / "ratings.json", {"index": "help", "topics": [{"description": "all", "query_groups": groups}]})
    return ["ratings.json", "--documents", "hits.json"]


def rre_of_quepid(here: Path) -> list[str]:
    layouts.table(here / "documents.csv", layouts.corpus("id", FIFTY))
    rated = [{"placeholders": {"$query": FIFTY.queries[q]}, "relevant_documents": {
        str(grade): [d for d, given in judged.items() if given == grade] for grade in (0, 1, 2)
    }} for q, judged in FIFTY.grades.items()]  # fmt: skip
    whole(here / "rre.json", {"id_field": "id", "index": "x", "template": "template.json", "queries": rated})
    return ["rre.json", "--documents", "documents.csv"]


def ms_marco(here: Path) -> list[str]:
    (here / "d").mkdir()
    for name, held in (("collection", FIFTY.documents), ("queries.dev", FIFTY.queries)):
        (here / "d" / f"{name}.tsv").write_text("".join(f"{id_}\t{text}\n" for id_, text in held.items()))
    (here / "d" / "qrels.dev.tsv").write_text("".join(f"{q}\t0\t{d}\t{grade}\n" for q, d, grade in PAIRS))
    return ["d"]


def hotpot_rows(of_hub: bool) -> Rows:
    rows = []
    for q, docs in RELEVANT.items():
        shown = FIFTY.documents if q == "q00" else FIFTY.grades[q]
        context, facts = {f"T {d}": [FIFTY.documents[d], " More."] for d in shown}, {f"T {d}": 0 for d in docs}
        held = {"context": [*map(list, context.items())], "supporting_facts": [*map(list, facts.items())]}
        if of_hub:
            held = {"context": {"title": [*context], "sentences": [*context.values()]},
                    "supporting_facts": {"title": [*facts], "sent_id": [*facts.values()]}}  # fmt: skip
        rows.append({"_id": q, "question": FIFTY.queries[q], "answer": "so", "level": "hard", **held})
    return rows


def hotpotqa(here: Path) -> list[str]:
    return [whole(here / "hotpot_dev_distractor_v1.json", hotpot_rows(of_hub=False))]


def hotpotqa_of_the_hub(here: Path) -> list[str]:
    parquet(here / "d" / "distractor" / "validation-00000-of-00001.parquet", hotpot_rows(of_hub=True))
    return ["d"]


def without_header(here: Path) -> list[str]:
    with (here / "log.csv").open("w", newline="") as file:
        csv.writer(file).writerows(row.values() for row in asked())
    return ["log.csv", "--documents", str(texts(here / "d")), "--no-header"]


def mixture(here: Path) -> list[str]:
    whole(here / "d" / "documents.json", layouts.corpus("id", FIFTY))
    parquet(here / "d" / "queries.parquet", asked())
    return ["d"]


def of_layouts(write: Callable[..., Path]) -> Written:
    return lambda here: [str(write(here / "d", FIFTY))]


SHAPES: dict[str, tuple[Written, Counter[int]]] = {
    "Markdown folder and questions.csv": (markdown_and_csv, GRADES),
    "question, answer and context rows": (contexts_in_rows, ONES),
    "Parquet and qrels": (of_layouts(layouts.parquet_rows), GRADES),
    "click log": (click_log, ONES),
    "Ragas, JSON Lines": (of_tool("ragas.jsonl"), FOUR_ONES),
    "Ragas, CSV": (of_tool("ragas.csv"), FOUR_ONES),
    "LangSmith": (of_tool("langsmith.jsonl"), FOUR_ONES),
    "Phoenix": (of_tool("phoenix.json"), FOUR_ONES),
    "Langfuse": (of_tool("langfuse.json"), FOUR_ONES),
    "LlamaIndex, pairs": (of_tool("qa_finetune.json", documents=False), FOUR_ONES),
    "LlamaIndex, questions": (of_tool("rag_dataset.json"), FOUR_ONES),
    "LlamaIndex, a folder": (llama_index_folder, FOUR_ONES),
    "AutoRAG, a project": (autorag_project, FOUR_ONES),
    "AutoRAG": (of_tool("qa.parquet", "corpus.parquet", documents=False), FOUR_ONES),
    "BEIR folder": (of_layouts(layouts.beir), GRADES),
    "BEIR zip": (of_layouts(layouts.beir_zip), GRADES),
    "TREC": (of_layouts(layouts.trec), GRADES),
    "Excel, one sheet": (excel_one_sheet, GRADES),
    "Excel, named sheets": (excel_named_sheets, GRADES),
    "Excel beside documents": (excel_beside_documents, GRADES),
    "Markdown, HTML and Word with file names": (converted, GRADES),
    "SQuAD": (squad, Counter({1: 20, 0: 20})),
    "save_to_disk, parts": (saved_parts, GRADES),
    "save_to_disk, splits": (saved_splits, GRADES),
    "Parquet, configurations": (parquet_configurations, GRADES),
    "bulk request and Quepid": (bulk_and_quepid, GRADES),
    "hits and RRE": (hits_and_rre, GRADES),
    "RRE of Quepid": (rre_of_quepid, GRADES),
    "MS MARCO": (ms_marco, GRADES),
    "HotpotQA": (hotpotqa, ONES),
    "HotpotQA of the hub": (hotpotqa_of_the_hub, ONES),
    "a table without a header": (without_header, GRADES),
    "JSON and Parquet": (mixture, GRADES),
}


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setattr(init, "importlib", SimpleNamespace(util=SimpleNamespace(find_spec=lambda _: None)))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("shape", SHAPES)
def test_one_command_with_the_labels_of_the_source(here: Path, shape: str) -> None:
    write, expected = SHAPES[shape]
    assert ended("init", *write(here), "--output", "made.toml") == 0
    found = load(load_experiment("made.toml").dataset)
    given = (labels.grades or dict.fromkeys(labels.documents, 1) for labels in found.labels.values())
    assert Counter(grade for grades in given for grade in grades.values()) == expected
    assert found.count - len(found.ledger.get("empty-document", ())) in (50, 40, 4)  # 40 where only contexts are there


def test_the_answers_and_fields_of_quoted_passages(here: Path) -> None:
    row = {"question": "how much", "answer": "25", "topic": "hr"}
    layouts.table(here / "qa.csv", [{**row, "context": "x", "rating": 0}, {**row, "context": "y", "rating": 2}])
    found = load(reference_of("qa.csv"))
    assert (found.format, found.labels["q0"].grades) == ("quoted", {"p0": 0, "p1": 2})
    assert (found.queries[0].reference.answers, found.queries[0].fields) == (("25",), {"topic": "hr"})
    asked = load(reference_of(*squad(here)))
    assert (asked.format, asked.labels["q03"].grades) == ("squad", {"T#3": 1})
    paragraphs = load(reference_of(*hotpotqa(here)))
    assert (paragraphs.format, paragraphs.queries[0].fields) == ("hotpotqa", {"level": "hard"})
    assert {one.text for one in paragraphs.documents()} == {f"{text} More." for text in FIFTY.documents.values()}


def test_a_split_of_ms_marco_is_named_where_there_are_several(here: Path) -> None:
    ms_marco(here)
    for part in ("queries", "qrels"):
        (here / "d" / f"{part}.eval.tsv").write_bytes((here / "d" / f"{part}.dev.tsv").read_bytes())
    with pytest.raises(InputError, match=r"has the splits dev, eval \(name one"):
        load(reference_of("d"))
    assert len(load(DatasetReference(Path("d"), split="eval")).queries) == 20


def test_numbers_name_the_columns_of_a_table_without_a_header(here: Path) -> None:
    (texts(here / "d") / "log.csv").write_text("d01,how,2\nd02,how,0\n")
    columns = {"label_document": "1", "query": "2", "grade": "3"}
    found = load(DatasetReference(Path("d"), queries=("log.csv",), columns=columns, header=False))
    assert found.labels["q0"].grades == {"d01": 2, "d02": 0}


def test_the_report_says_that_labels_are_clicks(here: Path) -> None:
    assert ended("init", *click_log(here), "--output", "made.toml") == ended("run", "made.toml", "--quiet") == 0
    for page in ("report.md", "report.html"):
        assert "The labels of 20 queries are clicks: they favour" in Path("results/made", page).read_text()


def test_a_query_without_labels_may_lack_their_key_and_a_file_of_such_queries_may_not(here: Path):
    jsonl(here / "documents.jsonl", layouts.corpus("id", FIFTY))
    bare = [{"id": f"{id_}-bare", "query": f"{text}?"} for id_, text in list(FIFTY.queries.items())[:3]]
    listed = [{"id": id_, "query": text, "relevant_documents": RELEVANT[id_]} for id_, text in FIFTY.queries.items()]
    jsonl(here / "queries.jsonl", [bare[0], *listed, *bare[1:]])
    data = load(reference_of(here))
    assert (len(data.labels), len(data.queries)) == (20, 20)
    assert data.ledger["unjudged-query"] == ("q00-bare", "q01-bare", "q02-bare")
    jsonl(here / "queries.jsonl", [{**row, "rating": 1} for row in bare])
    with pytest.raises(InputError, match="could hold grades, and no column names the documents"):
        load(reference_of(here))


def test_judgments_beside_a_corpus_of_beir_are_read_and_in_another_form_refused(here: Path):
    expected, kept = load(reference_of(layouts.beir(here, FIFTY))).digest, here / "qrels" / "test.tsv"
    for name in ("qrels.tsv", "qrels/test.txt", "qrels/test.tsv"):
        kept = kept.rename(here / name)
        if name.endswith(".tsv"):
            assert load(reference_of(here)).digest == expected
        else:
            with pytest.raises(InputError, match=r"holds no qrels .*qrels/test.tsv"):  # nobody seemed to have judged
                load(reference_of(here))


def test_a_table_that_may_hold_the_labels_under_a_name_of_its_own_is_named(here: Path, capsys):
    jsonl(here / "documents.jsonl", layouts.corpus("id", FIFTY))
    jsonl(here / "queries.jsonl", layouts.queries("id", FIFTY))
    layouts.table(here / "gold.csv", layouts.qrels("query_id", "doc_id", "grade", FIFTY))
    said = told(capsys, "check", here)
    assert "tables that are not read, although no query has labels: name one with --labels (1): gold" in said
    given = load(DatasetReference(here, labels="gold.csv"))
    assert len(given.labels) == 20 and "unread-table" not in given.ledger

"""One small collection in the layout of every reader, written by the library that owns it where there is one."""

from __future__ import annotations

import csv
import gzip
import json
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path

DOCUMENTS = {
    "boat": "boats swim on water and have no wheels",
    "car": "cars drive on roads, and have four \"wheels\"",
    "fish": "fish swim in water and have fins; \u9b5a\u306f\u6cf3\u3050",
    "pear": "pears grow on trees\nand are green",
}  # fmt: skip
QUERIES = {"q1": "things with wheels", "q2": "what can swim in water?", "q3": "green trees"}
GRADES = {"q1": {"car": 1, "fish": 0}, "q2": {"boat": 1, "fish": 1}, "q3": {"pear": 1}}
Rows = list[dict[str, object]]


def corpus(key: str = "_id") -> Rows:
    return [{key: id_, "text": text} for id_, text in DOCUMENTS.items()]


def queries(key: str = "_id") -> Rows:
    return [{key: id_, "text": text} for id_, text in QUERIES.items()]


def qrels(query: str = "query-id", document: str = "corpus-id", grade: str = "score") -> Rows:
    return [{query: q, document: d, grade: g} for q, judged in GRADES.items() for d, g in judged.items()]


def jsonl(path: Path, rows: Iterable[object], *, opener: Callable = open) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with opener(path, "wt", encoding="utf-8", newline="\n") as file:
        file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def table(path: Path, rows: Rows, *, delimiter: str = ",") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), delimiter=delimiter)
        writer.writeheader()
        writer.writerows(rows)


def parquet(path: Path, rows: Rows) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows), path)


def beir(folder: Path) -> Path:
    jsonl(folder / "corpus.jsonl", corpus())
    jsonl(folder / "queries.jsonl", queries())
    table(folder / "qrels" / "test.tsv", qrels(), delimiter="\t")
    return folder


def beir_gz(folder: Path) -> Path:
    jsonl(folder / "corpus.jsonl.gz", corpus(), opener=gzip.open)
    jsonl(folder / "queries.jsonl.gz", queries(), opener=gzip.open)
    beir(folder.with_name("plain"))
    (folder / "qrels").mkdir()
    (folder / "qrels" / "test.tsv").write_bytes((folder.with_name("plain") / "qrels" / "test.tsv").read_bytes())
    return folder


def beir_zst(folder: Path) -> Path:
    import zstandard

    for file in ("corpus.jsonl", "queries.jsonl"):
        source = beir(folder.with_name("plain")) / file
        folder.mkdir(exist_ok=True)
        (folder / f"{file}.zst").write_bytes(zstandard.ZstdCompressor().compress(source.read_bytes()))
    (folder / "qrels").mkdir()
    (folder / "qrels" / "test.tsv").write_bytes((folder.with_name("plain") / "qrels" / "test.tsv").read_bytes())
    return folder


def beir_zip(folder: Path) -> Path:
    path = folder.with_suffix(".zip")
    plain = beir(folder.with_name("plain"))
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(plain.rglob("*")):
            if file.is_file():
                archive.write(file, f"scifact/{file.relative_to(plain).as_posix()}")
    return path


def csv_rows(folder: Path) -> Path:
    table(folder / "documents.csv", corpus("id"))
    table(folder / "queries.csv", queries("query_id"))
    table(folder / "labels.csv", qrels("query_id", "doc_id", "grade"))
    return folder


def tsv_rows(folder: Path) -> Path:
    table(folder / "documents.tsv", corpus("docno"), delimiter="\t")
    table(folder / "questions.tsv", queries("qid"), delimiter="\t")
    table(folder / "qrels.tsv", qrels("qid", "docno", "rel"), delimiter="\t")
    return folder


def jsonl_rows(folder: Path) -> Path:
    jsonl(folder / "documents.jsonl", corpus("doc_id"))
    jsonl(folder / "queries.jsonl", [{**row, "relevant": GRADES[str(row["id"])]} for row in queries("id")])
    return folder


def parquet_rows(folder: Path) -> Path:
    parquet(folder / "documents.parquet", corpus("id"))
    parquet(folder / "queries.parquet", queries("id"))
    parquet(folder / "qrels.parquet", qrels())
    return folder


def huggingface(folder: Path, key: str = "_id") -> Path:
    """As MTEB's repositories lie on disk, written by `datasets`."""
    import importlib

    hub = importlib.import_module("datasets")
    for part, split, rows in (("corpus", "corpus", corpus(key)), ("queries", "queries", queries(key)),
                              ("default" if key == "_id" else "qrels", "test", qrels())):  # fmt: skip
        (folder / part).mkdir(parents=True)
        hub.Dataset.from_list(rows).to_parquet(str(folder / part / f"{split}-00000-of-00001.parquet"))
    return folder


def huggingface_v2(folder: Path) -> Path:
    return huggingface(folder, "id")


def trec(folder: Path) -> Path:
    folder.mkdir(parents=True)
    escaped = {id_: text.replace("&", "&amp;").replace("<", "&lt;") for id_, text in DOCUMENTS.items()}
    docs = [f"<DOC>\n<DOCNO> {id_} </DOCNO>\n<TEXT>\n{text}\n</TEXT>\n</DOC>\n" for id_, text in escaped.items()]
    (folder / "documents.trec").write_text("".join(docs), encoding="utf-8")
    tops = [f"<top>\n<num> Number: {id_}\n<title> {text}\n<desc> Description:\nmore\n</top>\n" for id_, text in
            QUERIES.items()]  # fmt: skip
    (folder / "topics.txt").write_text("\n".join(tops), encoding="utf-8")
    judged = [f"{q} 0 {d} {g}\n" for q, all_ in GRADES.items() for d, g in all_.items()]
    (folder / "qrels.txt").write_text("".join(judged), encoding="utf-8")
    return folder


def embench(folder: Path) -> Path:
    folder.mkdir(parents=True)
    whole = {"name": "retrieval", "queries": QUERIES, "corpus": DOCUMENTS, "qrels": GRADES}
    path = folder / "dataset.json"
    path.write_text(json.dumps(whole, ensure_ascii=False, indent=2), encoding="utf-8")
    return path


def catalogue(folder: Path) -> str:
    """Local files under a name of ir_datasets, as that library reads them."""
    import ir_datasets
    from ir_datasets import create_dataset

    jsonl(folder / "docs.jsonl", corpus("doc_id"))
    folder.mkdir(exist_ok=True)
    (folder / "docs.tsv").write_text("".join(f"{i}\t{' '.join(t.split(chr(10)))}\n" for i, t in DOCUMENTS.items()))
    (folder / "queries.tsv").write_text("".join(f"{i}\t{t}\n" for i, t in QUERIES.items()))
    (folder / "qrels.txt").write_text("".join(f"{q} 0 {d} {g}\n" for q, j in GRADES.items() for d, g in j.items()))
    found = create_dataset(
        docs_tsv=str(folder / "docs.tsv"), queries_tsv=str(folder / "queries.tsv"), qrels_trec=str(folder / "qrels.txt")
    )
    name = f"local-{folder.parent.name.lower()}"
    if name not in ir_datasets.registry:
        ir_datasets.registry.register(name, found)
    return f"irds:{name}"


GRADED: dict[str, Callable[[Path], Path]] = {
    "beir": beir, "beir.gz": beir_gz, "beir.zst": beir_zst, "beir.zip": beir_zip, "csv": csv_rows, "tsv": tsv_rows,
    "jsonl": jsonl_rows, "parquet": parquet_rows, "hf-v1": huggingface, "hf-v2": huggingface_v2, "trec": trec,
    "embench": embench,
}  # fmt: skip

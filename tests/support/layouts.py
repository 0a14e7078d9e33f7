"""One small collection in the layout of every reader, written by the library that owns
it where there is one.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import shutil
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

import pytest

DOCUMENTS = {
    "boat": "boats swim on water and have no wheels",
    "car": 'cars drive on roads, and have four "wheels"',
    "fish": "fish swim in water and have fins; \u9b5a\u306f\u6cf3\u3050",
    "pear": "pears grow on trees\nand are green",
}
QUERIES = {
    "q1": "things with wheels",
    "q2": "what can swim in water?",
    "q3": "green trees",
}
GRADES = {"q1": {"car": 1, "fish": 0}, "q2": {"boat": 1, "fish": 1}, "q3": {"pear": 1}}
Rows = list[dict[str, object]]


class Collection(NamedTuple):
    """Documents and queries by id, and grades by query."""

    documents: dict[str, str]
    queries: dict[str, str]
    grades: dict[str, dict[str, int]]


SMALL = Collection(DOCUMENTS, QUERIES, GRADES)
TOOLS = Path(__file__).parents[1] / "data" / "tools"
FOUR = {
    "boat": "boats swim on water and have no wheels",
    "car": "cars drive on roads, and have four wheels",
    "fish": "fish swim in water and have fins",
    "pear": "pears grow on trees and are green",
}
"""The documents that the files of tools are about."""


def corpus(key: str = "_id", of: Collection = SMALL) -> Rows:
    return [{key: id_, "text": text} for id_, text in of.documents.items()]


def queries(key: str = "_id", of: Collection = SMALL) -> Rows:
    return [{key: id_, "text": text} for id_, text in of.queries.items()]


def qrels(
    query: str = "query-id",
    document: str = "corpus-id",
    grade: str = "score",
    of: Collection = SMALL,
) -> Rows:
    return [
        {query: q, document: d, grade: g}
        for q, judged in of.grades.items()
        for d, g in judged.items()
    ]


def jsonl(path: Path, rows: Iterable[object]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows),
        encoding="utf-8",
        newline="\n",
    )


def table(path: Path, rows: Rows, *, delimiter: str = ",") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), delimiter=delimiter)
        writer.writeheader()
        writer.writerows(rows)


def book(**sheets: Iterable[list]) -> bytes:
    """A workbook of these rows of cells."""
    made = pytest.importorskip("openpyxl").Workbook()
    out = io.BytesIO()
    pytest.importorskip("python_calamine")
    made.remove(made.active)
    for name, rows in sheets.items():
        sheet = made.create_sheet(name)
        for cells in rows:
            sheet.append(cells)
    made.save(out)
    return out.getvalue()


def parquet(path: Path, rows: Rows) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows), path)


def of_tool(*names: str) -> Callable[[Path], Path]:
    """Files that a tool's own library wrote (tests/data/tools/made_by.txt), with the
    documents beside them.
    """

    def write(folder: Path) -> Path:
        jsonl(
            folder / "docs.jsonl",
            [{"_id": id_, "text": text} for id_, text in FOUR.items()],
        )
        for name in names:
            shutil.copy(TOOLS / name, folder / name)
        return folder / names[0] if len(names) == 1 else folder

    return write


def beir(folder: Path, of: Collection = SMALL) -> Path:
    jsonl(folder / "corpus.jsonl", corpus(of=of))
    jsonl(folder / "queries.jsonl", queries(of=of))
    table(folder / "qrels" / "test.tsv", qrels(of=of), delimiter="\t")
    return folder


def packed(
    folder: Path, of: Collection, suffix: str, pack: Callable[[bytes], bytes]
) -> Path:
    plain = beir(folder.with_name("plain"), of)
    shutil.copytree(plain / "qrels", folder / "qrels")
    for file in ("corpus.jsonl", "queries.jsonl"):
        (folder / f"{file}{suffix}").write_bytes(pack((plain / file).read_bytes()))
    return folder


def beir_gz(folder: Path, of: Collection = SMALL) -> Path:
    return packed(folder, of, ".gz", gzip.compress)


def beir_zst(folder: Path, of: Collection = SMALL) -> Path:
    import zstandard

    return packed(folder, of, ".zst", zstandard.ZstdCompressor().compress)


def beir_zip(folder: Path, of: Collection = SMALL) -> Path:
    path = folder.with_suffix(".zip")
    plain = beir(folder.with_name("plain"), of)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(plain.rglob("*")):
            if file.is_file():
                archive.write(file, f"scifact/{file.relative_to(plain).as_posix()}")
    return path


def csv_rows(folder: Path, of: Collection = SMALL) -> Path:
    table(folder / "documents.csv", corpus("id", of))
    table(folder / "queries.csv", queries("query_id", of))
    table(folder / "labels.csv", qrels("query_id", "doc_id", "grade", of))
    return folder


def tsv_rows(folder: Path, of: Collection = SMALL) -> Path:
    table(folder / "documents.tsv", corpus("docno", of), delimiter="\t")
    table(folder / "questions.tsv", queries("qid", of), delimiter="\t")
    table(folder / "qrels.tsv", qrels("qid", "docno", "rel", of), delimiter="\t")
    return folder


def jsonl_rows(folder: Path, of: Collection = SMALL) -> Path:
    jsonl(folder / "documents.jsonl", corpus("doc_id", of))
    jsonl(
        folder / "queries.jsonl",
        [{**row, "relevant": of.grades[str(row["id"])]} for row in queries("id", of)],
    )
    return folder


def parquet_rows(folder: Path, of: Collection = SMALL) -> Path:
    parquet(folder / "documents.parquet", corpus("id", of))
    parquet(folder / "queries.parquet", queries("id", of))
    parquet(folder / "qrels.parquet", qrels(of=of))
    return folder


def huggingface(folder: Path, of: Collection = SMALL, key: str = "_id") -> Path:
    """As MTEB's repositories lie on disk, written by `datasets`."""
    import importlib

    hub = importlib.import_module("datasets")
    for part, split, rows in (
        ("corpus", "corpus", corpus(key, of)),
        ("queries", "queries", queries(key, of)),
        ("default" if key == "_id" else "qrels", "test", qrels(of=of)),
    ):
        (folder / part).mkdir(parents=True)
        hub.Dataset.from_list(rows).to_parquet(
            str(folder / part / f"{split}-00000-of-00001.parquet")
        )
    return folder


def named_hub(folder: Path, key: str = "_id", of: Collection = SMALL) -> str:
    """A folder that `datasets` opens as a name of the hub; nothing is fetched."""
    huggingface(folder, of, key)
    parts = sorted(part.name for part in folder.iterdir())
    configs = "".join(
        f"- config_name: {part}\n  data_files:\n  - split: "
        f"{next((folder / part).iterdir()).stem[:-15]}\n"
        f"    path: {part}/*.parquet\n"
        for part in parts
    )
    (folder / "README.md").write_text(f"---\nconfigs:\n{configs}---\n")
    return f"hf:{folder.as_posix()}"


def huggingface_v2(folder: Path, of: Collection = SMALL) -> Path:
    return huggingface(folder, of, "id")


def trec(folder: Path, of: Collection = SMALL) -> Path:
    folder.mkdir(parents=True)
    escaped = {
        id_: text.replace("&", "&amp;").replace("<", "&lt;")
        for id_, text in of.documents.items()
    }
    docs = [
        f"<DOC>\n<DOCNO> {id_} </DOCNO>\n<TEXT>\n{text}\n</TEXT>\n</DOC>\n"
        for id_, text in escaped.items()
    ]
    (folder / "documents.trec").write_text("".join(docs), encoding="utf-8")
    tops = [
        f"<top>\n<num> Number: {id_}\n<title> {text}\n<desc> Description:\nmore\n"
        "</top>\n"
        for id_, text in of.queries.items()
    ]
    (folder / "topics.txt").write_text("\n".join(tops), encoding="utf-8")
    judged = [
        f"{q} 0 {d} {g}\n" for q, all_ in of.grades.items() for d, g in all_.items()
    ]
    (folder / "qrels.txt").write_text("".join(judged), encoding="utf-8")
    return folder


def embench(folder: Path, of: Collection = SMALL) -> Path:
    folder.mkdir(parents=True)
    table = {
        "name": "retrieval",
        "queries": of.queries,
        "corpus": of.documents,
        "qrels": of.grades,
    }
    path = folder / "dataset.json"
    path.write_text(json.dumps(table, ensure_ascii=False, indent=2), encoding="utf-8")
    return path


def catalogue(folder: Path, of: Collection = SMALL) -> str:
    """Local files under a name of ir_datasets, as that library reads them."""
    import ir_datasets
    from ir_datasets import create_dataset

    jsonl(folder / "docs.jsonl", corpus("doc_id", of))
    folder.mkdir(exist_ok=True)
    (folder / "docs.tsv").write_text(
        "".join(f"{i}\t{' '.join(t.split(chr(10)))}\n" for i, t in of.documents.items())
    )
    (folder / "queries.tsv").write_text(
        "".join(f"{i}\t{t}\n" for i, t in of.queries.items())
    )
    (folder / "qrels.txt").write_text(
        "".join(f"{q} 0 {d} {g}\n" for q, j in of.grades.items() for d, g in j.items())
    )
    dataset = create_dataset(
        docs_tsv=str(folder / "docs.tsv"),
        queries_tsv=str(folder / "queries.tsv"),
        qrels_trec=str(folder / "qrels.txt"),
    )
    name = f"local-{folder.parent.name.lower()}"
    if name not in ir_datasets.registry:
        ir_datasets.registry.register(name, dataset)
    return f"irds:{name}"


GRADED: dict[str, Callable[..., Path]] = {
    "beir": beir,
    "beir.gz": beir_gz,
    "beir.zst": beir_zst,
    "beir.zip": beir_zip,
    "csv": csv_rows,
    "tsv": tsv_rows,
    "jsonl": jsonl_rows,
    "parquet": parquet_rows,
    "hf-v1": huggingface,
    "hf-v2": huggingface_v2,
    "trec": trec,
    "embench": embench,
}

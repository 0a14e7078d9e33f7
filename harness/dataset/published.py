"""Layouts in which collections are published: BEIR, MS MARCO, and three tables as MTEB lays them out on the hub.

BEIR (Thakur et al. 2021): corpus.jsonl, queries.jsonl and qrels/<split>.tsv. MS MARCO: tables of two columns without a
header, and judgments in TREC's form. Hugging Face: each part a folder of Parquet, JSON Lines or CSV shards
(`corpus/test-00000-of-00001.parquet`), or a file; columns are `_id` or `id`, `title`, `text`; qrels have `query-id`,
`corpus-id`, `score` and may be called `default` (mteb 2.26.24, `retrieval_dataset_loaders.py`). By its name
(`hf:mteb/scifact`, `hf:mteb/scifact@revision`) the hub is asked, through `datasets`, which keeps what it fetched; code
of a data set is never run. By another (`irds:beir/scifact/test`) ir_datasets reads what is on this machine, and fetches
what is not.
"""

from __future__ import annotations

import importlib
import logging
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import Any

from harness.dataset.columns import Columns
from harness.dataset.dataset_model import DatasetReference
from harness.dataset.files import File, Files, Reader, pick
from harness.dataset.rows import SUFFIXES, Row, read_rows
from harness.dataset.source import Findings, Place, split_among
from harness.dataset.table_folder import LABELS, named, split_of
from harness.dataset.table_source import RowSource, TableSource, rows_of
from harness.dataset.trec import qrels_files
from retrievers.errors import InputError, Problem, needing

HEADER = ("query-id", "corpus-id", "score")
CORPUS = "corpus.jsonl"
COLLECTION = "collection.tsv"
HUB_PREFIX = "hf:"
CATALOGUE_PREFIX = "irds:"
NOT_FIELDS = {"doc_id", "query_id", "title", "text", "body", "marked_up_doc"}
"""Of a document or a query of ir_datasets."""
PlacedRows = Iterator[tuple[Place, Row]]
ABOUT = ("state.json", "dataset_info.json", "dataset_dict.json")
"""What `datasets` saves beside the rows."""
PARTS = {"corpus": ("corpus",), "queries": ("queries", "query"), "qrels": ("qrels", "default")}


def _is_beir(reference: DatasetReference, files: Files) -> bool:
    """Whether a folder or an archive looks like BEIR; one whose judgments are a table beside the others does not."""
    top = {name: file for name, file in files.items() if "/" not in name}
    others = any(PurePosixPath(name).stem == "queries" for name in top)
    if not any(name.startswith("qrels/") for name in files) and (named(top, LABELS) or qrels_files(top)):
        return False
    return (
        not (reference.documents or reference.labels) and CORPUS in files and ("queries.jsonl" in files or not others)
    )


def _read_beir(reference: DatasetReference, files: Files) -> TableSource:
    """Open a BEIR folder; `split` may be left out where there is one file of qrels, or one named test."""
    folder = reference.folder
    splits = sorted(
        pure.stem for pure in map(PurePosixPath, files) if pure.match("qrels/*.tsv") and len(pure.parts) == 2
    )
    if not splits and any(name.startswith("qrels/") for name in files):
        raise InputError(Problem(str(folder / "qrels"), "holds no .tsv", "such as qrels/test.tsv"))
    unjudged = not splits and reference.split is None
    split = "" if unjudged else split_among(str(folder / "qrels"), splits, reference.split, "test")
    names = reference.queries or ("queries.jsonl",)
    columns = Columns(reference.columns)
    queries = rows_of(*(pick(files, name, folder) for name in names))
    judged = partial(_judged, files.get(f"qrels/{split}.tsv"))
    return TableSource(rows_of(pick(files, CORPUS, folder)), queries, judged, columns)


def _judged(qrels: File | None, problems: Findings) -> Iterator[tuple[Place, Row]]:
    """The rows of qrels/<split>.tsv, with or without a header; none where nobody has judged anything yet."""
    for place, row in read_rows(replace(qrels, header=HEADER), problems) if qrels else ():
        if place.line != 1 or tuple(row.values())[:2] != HEADER[:2]:
            yield place, row


BEIR = Reader(_is_beir, _read_beir)
"""In a folder or a zip."""


def _is_msmarco(_: DatasetReference, files: Files) -> bool:
    """Whether a folder or an archive holds the collection with queries and judgments."""
    return COLLECTION in files and bool(_splits(files, "queries")) and bool(_splits(files, "qrels"))


def _read_msmarco(reference: DatasetReference, files: Files) -> TableSource:
    """Open `collection.tsv`, `queries.SPLIT.tsv` and `qrels.SPLIT.tsv` (or `queries.tsv` and `qrels.tsv`).

    Raises:
        InputError: the split is none of those that are there, or several are there and none is named.
    """
    queries, labels = _splits(files, "queries"), _splits(files, "qrels")
    both = sorted(queries.keys() & labels.keys())
    split = split_among(reference.name, both, reference.split)
    texts, judgments = ("_id", "text"), ("query_id", "iteration", "doc_id", "score")
    return TableSource(
        rows_of(replace(pick(files, COLLECTION, reference.folder), header=texts)),
        rows_of(replace(queries[split], header=texts)),
        rows_of(replace(labels[split], header=judgments)),
    )


def _splits(files: Files, part: str) -> dict[str, File]:
    """The files of a part by their split; "" for one without."""
    found = {}
    for name, file in files.items():
        stem, _, split = PurePosixPath(name).with_suffix("").as_posix().partition(".")
        if stem == part and name.endswith(".tsv"):
            found[split] = file
    return found


MSMARCO = Reader(_is_msmarco, _read_msmarco)
"""A folder or a zip with the collection, queries and judgments."""


def _read_named(reference: DatasetReference, files: Files) -> TableSource:
    """Fetch the three parts, or take those that are on this machine; there are no files."""
    with needing(reference.name, "datasets", "formats"):
        datasets: Any = importlib.import_module("datasets")
    name, _, revision = str(reference.path).removeprefix(HUB_PREFIX).partition("@")
    if not name:
        raise InputError(Problem(reference.name, "names no data set", "hf:NAME, or hf:NAME@REVISION"))
    kwargs: dict[str, Any] = {"revision": revision} if revision else {}
    hub = logging.getLogger("huggingface_hub")
    level = hub.level
    hub.setLevel(logging.ERROR)  # a hub that is out of reach is one message, not one for each try
    try:
        configs = datasets.get_dataset_config_names(name, **kwargs)
        rows = {}
        for part, names in PARTS.items():
            config = next((one for one in names if one in configs), None)
            if config is None:
                remedy = f"its parts are {', '.join(configs[:8])}"
                raise InputError(Problem(reference.name, f"has no part {part!r}", remedy))
            table = datasets.load_dataset(name, config, **kwargs)
            rows[part] = _numbered(reference, part, table[_split_of(reference, part, table)])
    except (OSError, ValueError, datasets.exceptions.DatasetsError) as error:
        what = f"cannot be read: {next(iter(str(error).splitlines()), type(error).__name__)}"
        remedy = "see that the name is right and the hub can be reached, or give a folder with its files"
        raise InputError(Problem(reference.name, what, remedy)) from None
    except RuntimeError as error:  # what `datasets` says of a data set that only its own code can read
        what = f"is not read, since code of a data set is never run: {str(error).splitlines()[0]}"
        raise InputError(Problem(reference.name, what, "give a folder with its files, as Parquet or JSONL")) from None
    finally:
        hub.setLevel(level)
    return TableSource(rows["corpus"], rows["queries"], rows["qrels"], Columns(reference.columns))


def _split_of(reference: DatasetReference, part: str, splits: Collection[str]) -> str:
    """The split of one part, which may have only one where judgments have several."""
    if len(splits) == 1 and part != "qrels":
        return next(iter(splits))
    return split_among(f"{reference.name}: {part}", splits, reference.split, "test")


def _numbered(reference: DatasetReference, part: str, table: Iterable[Row]) -> RowSource:
    def read_all(problems: Findings) -> Iterator[tuple[Place, Row]]:
        for number, row in enumerate(table, 1):
            yield Place(Path(f"{reference.name}/{part}"), number), row

    return read_all


HUB = Reader(lambda reference, _: reference.scheme == HUB_PREFIX, _read_named)
"""By a name."""


def _holds_parts(_: DatasetReference, files: Files) -> bool:
    """Whether a folder holds folders of shards for corpus, queries and qrels."""
    return all(_shards_of(files, names) for names in PARTS.values())


def _read_parts(reference: DatasetReference, files: Files) -> TableSource:
    """Open the parts; of qrels the split that is meant, `test` where several are there and none is named."""
    by_part = {}
    for part, names in PARTS.items():
        splits = _shards_of(files, names)
        if not splits:
            raise InputError(Problem(str(reference.folder / part), "holds no table", "a folder of Parquet or JSONL"))
        by_part[part] = splits
    qrels = by_part["qrels"]
    split = split_among(str(reference.folder / "qrels"), qrels, reference.split, "test")
    corpus, queries = (by_part[part].get(split) or [*chain(*by_part[part].values())] for part in ("corpus", "queries"))
    return TableSource(rows_of(*corpus), rows_of(*queries), rows_of(*qrels[split]), Columns(reference.columns))


def _shards_of(files: Files, names: Iterable[str]) -> dict[str, list[File]]:
    """The shards of one part by split: files in a folder of this name, or in folders of splits as they are saved."""
    by_split: dict[str, list[File]] = {}
    for name, file in files.items():
        pure = PurePosixPath(name)
        folder, split = split_of(name) or (pure.parent.as_posix(), pure.stem)
        if pure.suffix.lower() in SUFFIXES and len(pure.parts) <= 3 and pure.name not in ABOUT:
            if PurePosixPath(folder).name in names:
                by_split.setdefault(split, []).append(file)
            elif not folder and split in names and pure.suffix == ".arrow":  # a part without splits
                by_split.setdefault("", []).append(file)
    return by_split


HUGGINGFACE = Reader(_holds_parts, _read_parts)
"""On disk."""


def _read_catalogue(reference: DatasetReference, files: Files) -> TableSource:
    """Open a data set of ir_datasets; InputError where the name is unknown or a part of it is missing."""
    with needing(reference.name, "ir_datasets", "formats"):
        import ir_datasets
    try:
        collection: Any = ir_datasets.load(str(reference.path).removeprefix(CATALOGUE_PREFIX))
    except KeyError:
        remedy = "ir-datasets.com lists the names"
        raise InputError(Problem(reference.name, "is not known to ir_datasets", remedy)) from None
    lacking = [part for part in ("docs", "queries", "qrels") if not getattr(collection, f"has_{part}")()]
    if lacking:
        remedy = "name a part of it that has them, such as …/test"
        raise InputError(Problem(reference.name, f"has no {', '.join(lacking)}", remedy))

    def rows(iterate: Callable[[], Iterable[Any]], row_of: Callable[[Any], Row], problems: Findings) -> PlacedRows:
        try:
            for number, one in enumerate(iterate(), 1):
                yield Place(Path(reference.name), number), row_of(one)
        except Exception as error:
            what = f"cannot be read: {' '.join(str(error).split())[:200] or type(error).__name__}"
            remedy = "fetch it where there is a network, or give a folder with its files"
            problems.append(Problem(reference.name, what, remedy))

    return TableSource(
        partial(rows, collection.docs_iter, _document_row),
        partial(rows, collection.queries_iter, _query_row),
        partial(rows, collection.qrels_iter, lambda judged: dict(judged._asdict())),
    )


def _document_row(doc: Any) -> Row:
    """A document: its title where there is one, and its text, else all the default text."""
    body = getattr(doc, "text", None) or getattr(doc, "body", None)
    title = getattr(doc, "title", "") if body is not None else ""
    text = doc.default_text() if body is None else body
    return {"_id": doc.doc_id, "title": title, "text": text, "metadata": _fields(doc)}


def _query_row(query: Any) -> Row:
    """A query: its text, else the default text (of TREC topics the title)."""
    text = getattr(query, "text", None) or query.default_text()
    return {"_id": query.query_id, "text": text, "metadata": _fields(query)}


def _fields(row: Any) -> dict[str, Any]:
    plain = ((name, value) for name, value in row._asdict().items() if isinstance(value, str | int | float))
    return {name: value for name, value in plain if name not in NOT_FIELDS}


CATALOGUE = Reader(lambda reference, _: reference.scheme == CATALOGUE_PREFIX, _read_catalogue)
"""ir_datasets."""

"""Layouts in which collections are published: BEIR, MS MARCO, and three tables as MTEB lays them out on the hub.

BEIR (Thakur et al. 2021): corpus.jsonl, queries.jsonl and qrels/<split>.tsv. MS MARCO: tables of two columns without a
header, and judgments in TREC's form. Hugging Face: each part a folder of Parquet, JSON Lines or CSV shards
(`corpus/test-00000-of-00001.parquet`), or a file; columns are `_id` or `id`, `title`, `text`; qrels have `query-id`,
`corpus-id`, `score` and may be called `default` (mteb 2.26.24, `retrieval_dataset_loaders.py`). By its name
(`hf:mteb/scifact`, `hf:mteb/scifact@revision`) the hub is asked, through `datasets`, which keeps what it fetched; code
of a data set is never run. By another (`irds:beir/scifact/test`) ir_datasets reads what is on this machine, and fetches
what is not.
"""

import importlib
import logging
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from harness.dataset.columns import Columns
from harness.dataset.dataset_model import DatasetReference
from harness.dataset.files import File, Files, Reader, pick
from harness.dataset.rows import SUFFIXES, Row
from harness.dataset.source import Findings, SourceLocation, split_among
from harness.dataset.table_folder import LABELS, named
from harness.dataset.table_source import TableSource, rows_of
from harness.dataset.trec import qrels_files
from retrievers.errors import InputError, Problem, needing

CORPUS = "corpus.jsonl"
HUB_PREFIX = "hf:"
CATALOGUE_PREFIX = "irds:"
NOT_FIELDS = {"doc_id", "query_id", "title", "text", "body", "marked_up_doc"}
"""Of a document or a query of ir_datasets."""
PARTS = {"corpus": ("corpus",), "queries": ("queries", "query"), "qrels": ("qrels", "default")}
SHARD = r"\d{5}-of-\d{5}"


class Layout(NamedTuple):
    """The files of a collection by their names."""

    patterns: Mapping[str, str]
    """Part -> what the names of its files are like; a group is the split."""
    headers: Mapping[str, tuple[str, ...]]
    """Part -> the columns of its tables, where they may have no header."""

    def parts(self, files: Files) -> dict[str, dict[str, list[File]]]:
        """Part -> split, "" where there is none -> files."""
        found: dict[str, dict[str, list[File]]] = {part: {} for part in self.patterns}
        for part, pattern in self.patterns.items():
            for match in filter(None, (re.fullmatch(pattern, name) for name in files)):
                file = replace(files[match[0]], header=self.headers.get(part))
                found[part].setdefault(next(filter(None, match.groups()), ""), []).append(file)
        return found

    def matches(self, _: DatasetReference, files: Files) -> bool:
        """Whether a folder or an archive holds all of the parts."""
        return all(self.parts(files).values())

    def read(self, reference: DatasetReference, files: Files) -> TableSource:
        """Open the parts; of qrels the split that is meant, `test` where several are there and none is named.

        Raises:
            InputError: there are no documents or no queries, or several splits and none is named.
        """
        folder, by_part = reference.folder, self.parts(files)
        asked, qrels = [pick(files, name, folder) for name in reference.queries], by_part["qrels"]
        needed = {"corpus": True, "queries": not asked, "qrels": any(name.startswith("qrels/") for name in files)}
        if lacking := [part for part in self.patterns if needed[part] and not by_part[part]]:
            remedy = "such as corpus.jsonl, queries.jsonl and qrels/test.tsv"
            others = [name for name, file in files.items() if file.suffix in SUFFIXES and name != CORPUS]
            if lacking[0] == "queries" and others:
                remedy = f"which file has them? for example --queries {shlex.quote(others[0])}"
            raise InputError(Problem(str(folder), f"holds no {lacking[0]} of this format", remedy))
        split = split_among(str(folder / "qrels"), qrels, reference.split, "test") if qrels or reference.split else ""
        corpus, queries = (
            by_part[part].get(split) or [*chain(*by_part[part].values())] for part in ("corpus", "queries")
        )
        judged = rows_of(*qrels[split]) if split in qrels else None  # then queries may carry their labels themselves
        return TableSource(rows_of(*corpus), rows_of(*(asked or queries)), judged, Columns(reference.columns))


def _is_beir(reference: DatasetReference, files: Files) -> bool:
    """Whether a folder or an archive looks like BEIR; one whose judgments are a table beside the others does not."""
    top = {name: file for name, file in files.items() if "/" not in name}
    others = any(PurePosixPath(name).stem == "queries" for name in top)
    if not any(name.startswith("qrels/") for name in files) and (named(top, LABELS) or qrels_files(top)):
        return False
    return (
        not (reference.documents or reference.labels) and CORPUS in files and ("queries.jsonl" in files or not others)
    )


BEIR = Reader(
    _is_beir,
    Layout(
        {"corpus": r"corpus\.jsonl", "queries": r"queries\.jsonl", "qrels": r"qrels/([^/]+)\.tsv"},
        {"qrels": ("query-id", "corpus-id", "score")},
    ).read,
)
MSMARCO = Layout(
    {"corpus": r"collection\.tsv", "queries": r"queries(?:\.(.+))?\.tsv", "qrels": r"qrels(?:\.(.+))?\.tsv"},
    {"corpus": ("_id", "text"), "queries": ("_id", "text"), "qrels": ("query_id", "iteration", "doc_id", "score")},
)
HUGGINGFACE = Layout(
    {
        part: rf"(?:[^/]+/)?(?:{'|'.join(names)})/(?!(?:state|dataset_\w+)\.json)"
        rf"(?:(?:([^/]+)/)?data-{SHARD}\.arrow|([^/]+?)(?:-{SHARD})?(?:{'|'.join(map(re.escape, SUFFIXES))}))"
        for part, names in PARTS.items()
    },
    {},
)
"""Folders of shards; `datasets` saves its own as Arrow, with notes beside them."""


def _read_named(reference: DatasetReference, files: Files) -> TableSource:
    """Fetch the three parts, or take those that are on this machine; there are no files."""
    with needing(reference.name, "datasets", "formats"):
        datasets: Any = importlib.import_module("datasets")
    name, _, revision = str(reference.path).removeprefix(HUB_PREFIX).partition("@")
    if not name:
        raise InputError(Problem(reference.name, "names no data set", "hf:NAME, or hf:NAME@REVISION"))
    kwargs: dict[str, Any] = {"revision": revision} if revision else {}
    # A hub that is out of reach is one message, not one for each try.
    logging.getLogger("huggingface_hub").setLevel(logging.ERROR)
    try:
        configs = datasets.get_dataset_config_names(name, **kwargs)
        rows = {}
        for part, names in PARTS.items():
            config = next((one for one in names if one in configs), None)
            if config is None:
                remedy = f"its parts are {', '.join(configs[:8])}"
                raise InputError(Problem(reference.name, f"has no part {part!r}", remedy))
            table = datasets.load_dataset(name, config, **kwargs)
            where = f"{reference.name}: {part}"
            alone = part != "qrels" and len(table) == 1  # judgments have the split that is asked for
            split = next(iter(table)) if alone else split_among(where, table, reference.split, "test")
            rows[part] = partial(_numbered, f"{reference.name}/{part}", table[split].__iter__, dict)
    except InputError:
        raise
    except Exception as error:  # of the network, of files, of a data set that only its own code can read
        what = f"cannot be read: {next(iter(str(error).splitlines()), type(error).__name__)}"
        remedy = "see that the name is right and the hub can be reached, or give a folder with its files"
        raise InputError(Problem(reference.name, what, remedy)) from None
    return TableSource(rows["corpus"], rows["queries"], rows["qrels"], Columns(reference.columns))


def _numbered(
    name: str, iterate: Callable[[], Iterable[Any]], row_of: Callable[[Any], Row], problems: Findings
) -> Iterator[tuple[SourceLocation, Row]]:
    """The rows that a library gives, each with its number."""
    try:
        for number, one in enumerate(iterate(), 1):
            yield SourceLocation(Path(name), number), row_of(one)
    except Exception as error:  # whatever the library raises of files that it fetched
        what = f"cannot be read: {' '.join(str(error).split())[:200] or type(error).__name__}"
        problems.wrong(name, what, "fetch it where there is a network, or give a folder with its files")


HUB = Reader(lambda reference, _: reference.scheme == HUB_PREFIX, _read_named)


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

    return TableSource(
        partial(_numbered, reference.name, collection.docs_iter, _document_row),
        partial(_numbered, reference.name, collection.queries_iter, _query_row),
        partial(_numbered, reference.name, collection.qrels_iter, lambda judged: dict(judged._asdict())),
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

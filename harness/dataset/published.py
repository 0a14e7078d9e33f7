"""Layouts in which collections are published: BEIR, MS MARCO, and three tables as MTEB lays them out on the hub.

BEIR (Thakur et al. 2021): corpus.jsonl, queries.jsonl and qrels/<split>.tsv. MS MARCO: tables of two columns without a
header, and judgments in TREC's form. Hugging Face: each part a folder of Parquet, JSON Lines or CSV shards
(`corpus/test-00000-of-00001.parquet`), or a file; columns are `_id` or `id`, `title`, `text`; qrels have `query-id`,
`corpus-id`, `score` and may be called `default` (mteb 2.26.24, `retrieval_dataset_loaders.py`). By its name
(`hf:mteb/scifact`, `hf:mteb/scifact@revision`) the hub is asked, through `datasets`, which keeps what it fetched; code
of a data set is never run. By another (`irds:beir/scifact/test`) ir_datasets reads what is on this machine, and fetches
what is not. SQuAD's and HotpotQA's questions come with their passages, which are the documents: a passage that
comes again is the same document.
"""

import importlib
import logging
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from harness.dataset.columns import Columns, folded, texts_in
from harness.dataset.dataset_model import DatasetReference
from harness.dataset.files import File, Files, Reader, pick
from harness.dataset.rows import SUFFIXES, Row, read_json, read_rows
from harness.dataset.source import Findings, Parts, SourceLocation, split_among
from harness.dataset.table_folder import LABELS, first_row, named, table_files
from harness.dataset.table_source import TableSource, rows_of
from harness.dataset.tool_exports import holds_keys
from harness.dataset.trec import qrels_files
from retrievers.errors import InputError, Problem, collecting, needing
from retrievers.ids import nfc
from retrievers.types import Document

CORPUS = "corpus.jsonl"
HUB_PREFIX = "hf:"
CATALOGUE_PREFIX = "irds:"
NOT_FIELDS = {"doc_id", "query_id", "title", "text", "body", "marked_up_doc"}
"""Of a document or a query of ir_datasets."""
PARTS = {
    "corpus": ("corpus",),
    "queries": ("queries", "query"),
    "qrels": ("qrels", "default"),
}
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
                found[part].setdefault(
                    next(filter(None, match.groups()), ""), []
                ).append(file)
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
        asked, qrels = (
            [pick(files, name, folder) for name in reference.queries],
            by_part["qrels"],
        )
        needed = {
            "corpus": True,
            "queries": not asked,
            "qrels": any(name.startswith("qrels/") for name in files),
        }
        if lacking := [
            part for part in self.patterns if needed[part] and not by_part[part]
        ]:
            remedy = "such as corpus.jsonl, queries.jsonl and qrels/test.tsv"
            others = [
                name
                for name, file in files.items()
                if file.suffix in SUFFIXES and name != CORPUS
            ]
            if lacking[0] == "queries" and others:
                remedy = f"which file has them? for example --queries {shlex.quote(others[0])}"
            raise InputError(
                Problem(str(folder), f"holds no {lacking[0]} of this format", remedy)
            )
        split = (
            split_among(str(folder / "qrels"), qrels, reference.split, "test")
            if qrels or reference.split
            else ""
        )
        corpus, queries = (
            by_part[part].get(split) or [*chain(*by_part[part].values())]
            for part in ("corpus", "queries")
        )
        judged = (
            rows_of(*qrels[split]) if split in qrels else None
        )  # then queries may carry their labels themselves
        return TableSource(
            rows_of(*corpus),
            rows_of(*(asked or queries)),
            judged,
            Columns(reference.columns),
        )


def _is_beir(reference: DatasetReference, files: Files) -> bool:
    """Whether a folder or an archive looks like BEIR; one whose judgments are a table beside the others does not."""
    top = {name: file for name, file in files.items() if "/" not in name}
    others = any(PurePosixPath(name).stem == "queries" for name in top)
    if not any(name.startswith("qrels/") for name in files) and (
        named(top, LABELS) or qrels_files(top)
    ):
        return False
    return (
        not (reference.documents or reference.labels)
        and CORPUS in files
        and ("queries.jsonl" in files or not others)
    )


BEIR = Reader(
    _is_beir,
    Layout(
        {
            "corpus": r"corpus\.jsonl",
            "queries": r"queries\.jsonl",
            "qrels": r"qrels/([^/]+)\.tsv",
        },
        {"qrels": ("query-id", "corpus-id", "score")},
    ).read,
)
MSMARCO = Layout(
    {
        "corpus": r"collection\.tsv",
        "queries": r"queries(?:\.(.+))?\.tsv",
        "qrels": r"qrels(?:\.(.+))?\.tsv",
    },
    {
        "corpus": ("_id", "text"),
        "queries": ("_id", "text"),
        "qrels": ("query_id", "iteration", "doc_id", "score"),
    },
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
        raise InputError(
            Problem(reference.name, "names no data set", "hf:NAME, or hf:NAME@REVISION")
        )
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
                raise InputError(
                    Problem(reference.name, f"has no part {part!r}", remedy)
                )
            table = datasets.load_dataset(name, config, **kwargs)
            where = f"{reference.name}: {part}"
            alone = (
                part != "qrels" and len(table) == 1
            )  # judgments have the split that is asked for
            split = (
                next(iter(table))
                if alone
                else split_among(where, table, reference.split, "test")
            )
            rows[part] = partial(
                _numbered, f"{reference.name}/{part}", table[split].__iter__, dict
            )
    except InputError:
        raise
    except Exception as error:  # of the network, of files, of a data set that only its own code can read
        what = f"cannot be read: {next(iter(str(error).splitlines()), type(error).__name__)}"
        remedy = "see that the name is right and the hub can be reached, or give a folder with its files"
        raise InputError(Problem(reference.name, what, remedy)) from None
    return TableSource(
        rows["corpus"], rows["queries"], rows["qrels"], Columns(reference.columns)
    )


def _numbered(
    name: str,
    iterate: Callable[[], Iterable[Any]],
    row_of: Callable[[Any], Row],
    problems: Findings,
) -> Iterator[tuple[SourceLocation, Row]]:
    """The rows that a library gives, each with its number."""
    try:
        for number, one in enumerate(iterate(), 1):
            yield SourceLocation(Path(name), number), row_of(one)
    except Exception as error:  # whatever the library raises of files that it fetched
        what = f"cannot be read: {' '.join(str(error).split())[:200] or type(error).__name__}"
        problems.wrong(
            name,
            what,
            "fetch it where there is a network, or give a folder with its files",
        )


HUB = Reader(lambda reference, _: reference.scheme == HUB_PREFIX, _read_named)


def _read_catalogue(reference: DatasetReference, files: Files) -> TableSource:
    """Open a data set of ir_datasets; InputError where the name is unknown or a part of it is missing."""
    with needing(reference.name, "ir_datasets", "formats"):
        import ir_datasets
    try:
        collection: Any = ir_datasets.load(
            str(reference.path).removeprefix(CATALOGUE_PREFIX)
        )
    except KeyError:
        remedy = "ir-datasets.com lists the names"
        raise InputError(
            Problem(reference.name, "is not known to ir_datasets", remedy)
        ) from None
    lacking = [
        part
        for part in ("docs", "queries", "qrels")
        if not getattr(collection, f"has_{part}")()
    ]
    if lacking:
        remedy = "name a part of it that has them, such as …/test"
        raise InputError(
            Problem(reference.name, f"has no {', '.join(lacking)}", remedy)
        )

    return TableSource(
        partial(_numbered, reference.name, collection.docs_iter, _document_row),
        partial(_numbered, reference.name, collection.queries_iter, _query_row),
        partial(
            _numbered,
            reference.name,
            collection.qrels_iter,
            lambda judged: dict(judged._asdict()),
        ),
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
    plain = (
        (name, value)
        for name, value in row._asdict().items()
        if isinstance(value, str | int | float)
    )
    return {name: value for name, value in plain if name not in NOT_FIELDS}


CATALOGUE = Reader(
    lambda reference, _: reference.scheme == CATALOGUE_PREFIX, _read_catalogue
)
"""ir_datasets."""


CONTEXTS = ("context", "contexts", "passage", "passages")
ANSWERS = ("answer", "answers", "groundtruth", "response")
Quoted = Iterator[tuple[SourceLocation, Row | None, Sequence[Document]]]
"""A question with the ids of its passages, None where nothing is asked; and the passages."""


def _parts(read: Callable[[Findings], Quoted], columns: Columns) -> Parts:
    """Documents, queries and labels of what is read; its problems are reported with the queries."""

    def documents(_: Findings) -> Iterator[tuple[SourceLocation, Document]]:
        seen = set[str]()
        for place, _row, passages in read(Findings()):
            for passage in passages:
                if passage.id not in seen:
                    seen.add(passage.id)
                    yield place, passage

    def questions(problems: Findings) -> Iterator[tuple[SourceLocation, Row]]:
        yield from ((place, row) for place, row, _ in read(problems) if row is not None)

    table = TableSource(rows_of(), questions, None, columns)
    return Parts(documents, table.queries, table.labels)


def _column(row: Row, names: Sequence[str]) -> str | None:
    return next((name for name in row if folded(str(name)) in names), None)


def _is_table(reference: DatasetReference, files: Files) -> bool:
    """Whether the first row of a file has a question and a context, and no documents are named."""
    row = {} if reference.documents else first_row(reference, files)
    columns = Columns(reference.columns)
    asks = (
        columns.name("query", row) is not None
        and columns.name("label_document", row) is None
    )
    return asks and _column(row, CONTEXTS) is not None


def _read_table(reference: DatasetReference, files: Files) -> Parts:
    row = first_row(reference, files)
    context, answer = _column(row, CONTEXTS) or CONTEXTS[0], _column(row, ANSWERS)
    declared = {
        **({"reference": answer} if answer else {}),
        **reference.columns,
        "label_document": context,
    }
    columns = Columns(declared, header=reference.header is True)
    return _parts(
        partial(_table_rows, table_files(reference, files), context, answer), columns
    )


def _table_rows(
    files: Sequence[File], context: str, answer: str | None, problems: Findings
) -> Quoted:
    passages = dict[str, Document]()
    for place, row in (one for file in files for one in read_rows(file, problems)):
        texts = texts_in(row.get(context), context, place, problems)
        found = [
            passages.setdefault(text, Document(f"p{len(passages)}", "", text))
            for text in texts
        ]
        changed = {context: [passage.id for passage in found] or None}
        if (
            answer
            and isinstance(answers := row.get(answer), Mapping)
            and "text" in answers
        ):  # SQuAD as a table
            changed[answer] = list(dict.fromkeys(answers["text"]))
        yield place, {**row, **changed} if context in row else row, found


def _paragraphs(file: File, problems: Findings) -> Quoted:
    """The paragraphs of SQuAD's JSON (https://rajpurkar.github.io/SQuAD-explorer, 1.1 and 2.0) with their questions.

    A question that its paragraph does not answer (`is_impossible`) has grade 0 for it.
    """
    whole = None
    with collecting(problems):
        whole = read_json(file)
    for number, article in enumerate(_list(whole, "data")):
        title = article.get("title") if isinstance(article, Mapping) else None
        for position, paragraph in enumerate(_list(article, "paragraphs")):
            place = SourceLocation(
                file.path.with_name(
                    f"{file.path.name}: data[{number}].paragraphs[{position}]"
                )
            )
            text = paragraph.get("context") if isinstance(paragraph, Mapping) else None
            if not isinstance(text, str):
                problems.wrong(
                    place, "'context' is missing, or no text", "as SQuAD has it"
                )
                continue
            name = title if isinstance(title, str) else ""
            passage = Document(
                nfc(f"{name or number}#{position}"), name.replace("_", " "), text
            )
            yield place, None, (passage,)
            for asked in _list(paragraph, "qas"):
                answers = [
                    one.get("text")
                    for one in _list(asked, "answers")
                    if isinstance(one, Mapping)
                ]
                row = (
                    {key: asked.get(key) for key in ("id", "question")}
                    if isinstance(asked, Mapping)
                    else {}
                )
                row |= {
                    "reference": list(dict.fromkeys(filter(None, answers))),
                    "doc_id": passage.id,
                }
                row["grade"] = int(not (row and asked.get("is_impossible")))
                yield SourceLocation(file.path), row, (passage,)


def _paragraph_rows(files: Sequence[File], problems: Findings) -> Quoted:
    """HotpotQA's questions (https://hotpotqa.github.io): paragraphs by their titles, relevant if they hold a fact.

    Its own files have pairs, `[title, sentences]`; those of the hub an object of lists, `{title: […], sentences: […]}`.
    """
    texts: dict[str, str] = {}
    for place, row in (one for file in files for one in read_rows(file, problems)):
        id_, question = row.get("_id", row.get("id")), row.get("question")
        context, facts = (
            _pairs(row.get(name)) for name in ("context", "supporting_facts")
        )
        if (
            not isinstance(id_, str)
            or not isinstance(question, str)
            or context is None
            or facts is None
        ):
            problems.wrong(
                place,
                "has no id, question, context and supporting_facts",
                "as HotpotQA has them",
            )
            continue
        relevant = {title for title, _ in facts}
        found: dict[bool, list[Document]] = {False: [], True: []}
        for title, sentences in context:
            text = (
                "".join(map(str, sentences))
                if isinstance(sentences, list)
                else str(sentences)
            )
            if texts.setdefault(title, text) != text:
                problems.wrong(
                    place,
                    f"the paragraph {title!r} has another text than before",
                    "give it another title",
                )
            found[title in relevant].append(Document(title, title, text))
        fields = {key: row[key] for key in ("type", "level") if row.get(key)}
        asked = {
            "id": id_,
            "question": question,
            "reference": row.get("answer"),
            **fields,
        }
        yield (
            place,
            {**asked, "doc_id": [one.id for one in found[True]]},
            [*found[False], *found[True]],
        )


def _pairs(held: object) -> list[tuple[str, Any]] | None:
    """Titles, each with what belongs to it; None where it is something else."""
    if (
        isinstance(held, Mapping)
        and len(held) == 2
        and all(isinstance(one, list) for one in held.values())
    ):
        held = list(zip(*held.values(), strict=False))
    if not isinstance(held, list) or not all(
        isinstance(one, list | tuple) and len(one) == 2 for one in held
    ):
        return None
    return [(nfc(str(title)), other) for title, other in held]


def _list(holder: Any, key: str) -> list[Any]:
    """The list under a key; empty where there is none."""
    held = holder.get(key) if isinstance(holder, Mapping) else None
    return held if isinstance(held, list) else []


ROWS = Reader(_is_table, _read_table)
"""A table, a question with its context a row; contexts may be a list."""
HOTPOT = Reader(
    lambda reference, files: (
        {"question", "context", "supporting_facts"}
        <= first_row(reference, files).keys()
    ),
    lambda reference, files: _parts(
        partial(_paragraph_rows, table_files(reference, files)), Columns()
    ),
)
"""HotpotQA, as JSON or in the shards of the hub."""
SQUAD = Reader(
    lambda reference, _: holds_keys(reference, "data", "paragraphs", "context", "qas"),
    lambda reference, _: _parts(
        partial(_paragraphs, File(reference.folder)), Columns()
    ),
)

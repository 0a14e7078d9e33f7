"""A folder of documents as files with ranked labels, as in iDEAKITT's experiment.

Every `*.md`, `*.markdown`, `*.rst` and `*.txt` below the folder is a document, but for README and LICENSE files at its
top; so is what the extra `documents` converts (`harness.dataset.corpus`). `queries.json` is a list of objects with
`query` and `relevant_documents`.

The head of a file between two lines `---`, as wikis and site generators write it, is YAML: an object of
names is read, each value as the text that it is. Any other head leaves the file as it is: a line of hyphens
is a rule in Markdown, too.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

import yaml

from harness.dataset import judgments
from harness.dataset.columns import FIELDS, Columns
from harness.dataset.corpus import CONVERTED, NotConverted, convert, installed
from harness.dataset.dataset_model import DatasetReference, source_named
from harness.dataset.files import File, Files, listing
from harness.dataset.label_rows import Labelled, merged
from harness.dataset.rows import Row, read_rows
from harness.dataset.source import Findings, Parts, SourceLocation, decode
from harness.dataset.table_source import TableSource, rows_of
from retrievers.errors import InputError, Problem, collecting
from retrievers.ids import nfc
from retrievers.types import Document

SUFFIXES = {
    ".md": "Markdown",
    ".markdown": "Markdown",
    ".rst": "reStructuredText",
    ".txt": "text",
}
"""Of text files, and what these are called."""
NOT_DOCUMENTS = {"readme", "license", "licence", "changelog"}
NOT_DOCUMENT_FILES = {"queries.txt", "questions.txt", judgments.NAME}
"""Questions without labels, one a line, and what was judged: at the top of the folder."""
HEAD = re.compile(r"---[ \t]*\r?\n((?:.*\n)*?)(?:---|\.\.\.)[ \t\r]*(?:\n|\Z)")
KEY = re.compile(r"[A-Za-z_][\w .-]{0,63}")
SURVEY_LINE = re.compile(r"[*-]([^::]*)[::](.*)")
"""A line of a survey's head, white space around it removed first: one look at each character."""
SURVEY_KEYS = {
    "id": "id",
    "アンケート名": "title",
    "survey name": "title",
    "カテゴリ": "category",
    "category": "category",
    "タグ": "tags",
    "tags": "tags",
}


def matches(_: DatasetReference, files: Files) -> bool:
    """Whether a folder or an archive holds a document of this form."""
    return holds_documents(files)


def holds_documents(files: Files) -> bool:
    """Whether one of the files is read as a document."""
    return any(_readable(name, file, converts=True) for name, file in files.items())


def documents_among(files: Files) -> tuple[list[str], list[str]]:
    """The ids of the documents among files, as far as their names say it; and the files that are not read."""
    converts = installed()
    readable = {
        name for name, file in files.items() if _readable(name, file, converts=converts)
    }
    others = [
        name
        for name, file in files.items()
        if name not in readable and _unread(name, file)
    ]
    return [_named(name, files[name]) for name in files if name in readable], others


def read(reference: DatasetReference, files: Files) -> Parts:
    """Open a folder of documents; the query files are in it, `queries.json` if none is named."""
    if reference.split is not None:
        raise InputError(
            Problem(
                "dataset.split",
                "a folder of Markdown has no splits",
                "name a file: queries = …",
            )
        )
    names = reference.queries or ("queries.json",)
    query_files = [files.get(name, File(reference.folder / name)) for name in names]
    asked = TableSource(
        rows_of(), partial(_questions, query_files), None, Columns(reference.columns)
    )
    labels = partial(_labels, query_files, Columns(reference.columns))
    return Parts(
        partial(documents, reference.folder, frozenset()), asked.queries, labels
    )


def documents(
    folder: Path, tables: Collection[Path], problems: Findings
) -> Iterator[tuple[SourceLocation, Document]]:
    """One document a file, in the order of their paths; what cannot be converted is counted.

    Args:
        folder: it, or an archive.
        tables: files in it that another reader takes.
        problems: where complaints go.
    """
    converts = installed()
    for name, file in listing(folder, problems).items():
        if file.path in tables:
            continue
        if not _readable(name, file, converts=converts):
            if _unread(name, file):
                problems.note("unread-file", name)
            continue
        try:
            with collecting(problems):
                if file.suffix in CONVERTED:
                    document = Document(_named(name, file), *convert(file))
                else:
                    document = parse_document(
                        decode(file.read(), SourceLocation(file.path)),
                        _named(name, file),
                    )
                problems.sizes[str(folder)][(CONVERTED | SUFFIXES)[file.suffix]] += 1
                yield SourceLocation(file.path), document
        except NotConverted as failure:
            problems.note("unconverted-file", f"{name}: {failure}")


def _questions(
    files: Sequence[File], problems: Findings
) -> Iterator[tuple[SourceLocation, Row]]:
    """The rows of the query files; a query that another file has with another labeller is labelled twice.

    Those without an id are q0, q1, … by their place in the file.
    """
    labellers: dict[tuple[object, object], set[str]] = {}
    for file in files:
        names, place = dict[str, None](), SourceLocation(file.path)
        for number, (place, written) in enumerate(read_rows(file, problems)):
            names |= dict.fromkeys(written)
            row = {"id": f"q{number}", **written}
            by, others = (
                str(row.pop("labelled_by", "")),
                labellers.setdefault((row["id"], row.get("query")), set()),
            )
            again = bool(by and others) and others.isdisjoint(["", by])
            others.add(by)
            if not again:
                yield place, _with_metadata(row, place, problems)
        if taken := problems.taken.get(place.file):  # as the file has it
            usual = dict.fromkeys(("tags", "fields"), FIELDS)
            names.pop("labelled_by", None)
            problems.taken[place.file] = {
                name: usual.get(name, "") or taken.get(name, "") for name in names
            }


def _labels(
    files: Sequence[File], columns: Columns, problems: Findings
) -> Iterator[Labelled]:
    """What `relevant_documents` says, file by file; several labellers of one query are merged."""

    def of_file(file: File) -> Iterator[Labelled]:
        rows = [
            (place, {"id": f"q{n}", **row})
            for n, (place, row) in enumerate(read_rows(file, Findings()))
        ]
        by = {place: str(row.pop("labelled_by", "")) for place, row in rows}
        source = TableSource(rows_of(), lambda _: iter(rows), None, columns)
        for place, id_, labels in source.labels(problems):
            yield (
                place,
                id_,
                replace(labels, by=by[place], source=source_named(by[place])),
            )

    yield from merged(one for file in files for one in of_file(file))


def _with_metadata(
    row: dict[str, Any], place: SourceLocation, problems: Findings
) -> Row:
    """A row with `fields` and `tags` as fields of the query."""
    fields, tags = row.pop("fields", {}), row.pop("tags", [])
    tags = [tags] if isinstance(tags, str) else tags
    if not isinstance(fields, dict) or not isinstance(tags, list):
        problems.wrong(
            place,
            "'tags' or 'fields' cannot be read",
            "a list of words; an object of strings",
        )
        return row
    metadata = {key: str(value) for key, value in fields.items()} | (
        {"tags": ", ".join(map(str, tags))} if tags else {}
    )
    return {**row, "metadata": metadata} if metadata else row


def parse_document(text: str, name: str) -> Document:
    r"""Read one file: a survey template by its head, any other text by its front matter or its first heading.

    >>> doc = parse_document("# Survey overview\n\n* ID: X1\n* Survey name: Hotels\n* Tags: a, b\n", "file")
    >>> doc.id, doc.title, doc.fields
    ('X1', 'Hotels', {'tags': 'a, b'})
    >>> parse_document("# Setting up\n\nPlug it in.", "manual/setup").title
    'Setting up'
    """
    named, fields, text = front_matter(text)
    lines = text.split("\n")
    headings = [i for i, line in enumerate(lines) if line.startswith("# ")]
    head = lines[: headings[1]] if len(headings) > 1 else lines
    values: dict[str, str] = {}
    id_line = None
    for number, line in enumerate(head):
        match = SURVEY_LINE.fullmatch(line.strip())
        key = SURVEY_KEYS.get(match[1].strip().lower()) if match else None
        if match and key and key not in values:
            values[key] = match[2].strip()
            id_line = number if key == "id" else id_line
    if id_line is None or not values["id"]:
        title = named or (lines[headings[0]][2:].strip() if headings else "")
        return Document(name, title, text.strip(), fields)
    body = "\n".join(lines[:id_line] + lines[id_line + 1 :]).strip()
    fields |= {key: values[key] for key in ("category", "tags") if values.get(key)}
    return Document(nfc(values["id"]), values.get("title", "") or named, body, fields)


def _readable(name: str, file: File, *, converts: bool) -> bool:
    if _paper(name) or file.table:
        return False
    return file.suffix in SUFFIXES or (converts and file.suffix in CONVERTED)


def _unread(name: str, file: File) -> bool:
    """Whether a file that is no document is worth a word: papers are not, and JSON at the top may hold queries."""
    return not _paper(name) and ("/" in name or file.suffix != ".json")


def _named(name: str, file: File) -> str:
    """A document's id: its path, without the suffix where that says no more than that it is text."""
    return nfc(
        name
        if file.suffix in CONVERTED
        else PurePosixPath(name).with_suffix("").as_posix()
    )


def _paper(name: str) -> bool:
    top = "/" not in name
    return top and (
        PurePosixPath(name).stem.lower() in NOT_DOCUMENTS
        or name.lower() in NOT_DOCUMENT_FILES
    )


def front_matter(text: str) -> tuple[str, dict[str, str], str]:
    r"""The title and the fields in the head of a file, and the text after it; the whole where no head can be read.

    >>> front_matter("---\ntitle: \"Setting up\"\ntags: [a, b]\n---\n\nPlug it in.")
    ('Setting up', {'tags': 'a, b'}, '\nPlug it in.')
    >>> front_matter("---\nTwo parts\n---\n")[2]
    '---\nTwo parts\n---\n'
    """
    head = HEAD.match(text)
    entries = _entries(head[1]) if head else {}
    if not head or not entries:
        return "", {}, text
    title = next((key for key in entries if key.lower() == "title"), "")
    fields = {key: value for key, value in entries.items() if value and key != title}
    return entries.get(title, ""), fields, text[head.end() :]


def _entries(head: str) -> dict[str, str]:
    """The entries of a head; none where it is not an object, or a name occurs twice in it."""
    try:
        node = yaml.compose(head, Loader=yaml.BaseLoader)
    except (yaml.YAMLError, RecursionError, ValueError):
        return {}
    pairs = node.value if isinstance(node, yaml.MappingNode) else []
    entries = {
        key.value: _text(value, head)
        for key, value in pairs
        if isinstance(key.value, str)
    }
    return (
        entries
        if len(entries) == len(pairs) and all(map(KEY.fullmatch, entries))
        else {}
    )


def _text(node: yaml.Node, head: str) -> str:
    """A value as text: lists with commas between, and deeper values as they are written, in one line."""
    if isinstance(node, yaml.SequenceNode):
        return ", ".join(text for one in node.value if (text := _text(one, head)))
    if isinstance(node, yaml.ScalarNode):
        value: str = node.value
        return " ".join(value.split()) if "\n" in value else value.strip()
    return " ".join(head[node.start_mark.index : node.end_mark.index].split())

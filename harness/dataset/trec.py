r"""TREC's collections; qrels and runs are those of `retrievers.runs`.

In a collection documents are
`<DOC>` … `</DOC>`, topics `<top>` … `</top>` or a line each. Documents lie in a folder `documents` or in files
`documents.*`, `docs.*`, `corpus.*`; topics in `topics.*` or `queries.*`; judgments in `qrels.*`; or as the experiment
says. Of a topic its title is asked, or the part that columns = { query = "desc" } names.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import NamedTuple

from harness.dataset.dataset_model import DatasetReference, Labels
from harness.dataset.files import File, Files, Reader, pick
from harness.dataset.label_rows import Gathered
from harness.dataset.rows import read_lines
from harness.dataset.source import Findings, Place, grade_of
from retrievers.errors import InputError, Problem
from retrievers.ids import nfc
from retrievers.runs import BOM, QRELS, lines_one_by_one
from retrievers.runs import Qrels as Qrels
from retrievers.runs import read_qrels as read_qrels
from retrievers.runs import write_qrels as write_qrels
from retrievers.types import Document, Query

TEXTS = (".trec", ".sgml", ".sgm", ".xml", ".txt", ".dat", "")
DOCUMENTS = ("documents", "docs", "corpus", "collection")
TOPICS = ("topics", "queries")
JUDGMENTS = ("qrels", "qrel")
TITLES = ("TITLE", "HEADLINE", "HEAD")
TAG = re.compile(r"<[^<>]*>")
NUMBER = re.compile(r"^\s*(?:Number|Query Number)\s*:\s*", re.IGNORECASE)
NUMBERED = re.compile(r"<topic[^<>]*\bnumber\s*+=\s*+[\"']?([^\"'<>\s]+)", re.IGNORECASE)
PART = re.compile(r"^\s*(?:Topic|Title|Description|Narrative)\s*:\s*", re.IGNORECASE)


def _matches(reference: DatasetReference, files: Files) -> bool:
    """Whether a folder or an archive holds topics and judgments, and documents in TREC's form."""
    documents = _files(files, DOCUMENTS)
    if reference.documents or not (documents and _files(files, TOPICS) and _files(files, JUDGMENTS)):
        return False
    first = next(read_lines(documents[0], Findings()), (0, ""))[1]
    return first.lstrip().upper().startswith("<DOC>")


def _read(reference: DatasetReference, files: Files) -> TrecSource:
    """Open the collection."""
    folder = reference.folder
    documents = [file for name, file in files.items() if reference.documents and name.startswith(reference.documents)]
    topics = [pick(files, name, folder) for name in reference.queries]
    qrels = [pick(files, reference.labels, folder)] if reference.labels else []
    parts = {
        "documents": documents or _files(files, DOCUMENTS),
        "topics": topics or _files(files, TOPICS),
        "qrels": qrels or _files(files, JUDGMENTS),
    }
    if lacking := [name for name, some in parts.items() if not some]:
        raise InputError([Problem(str(folder), f"holds no {name}", f"a file {name}.txt, or name it in the experiment")
                          for name in lacking])  # fmt: skip
    if reference.split:
        names = [file.name for file in parts["qrels"]]
        parts["qrels"] = [file for file in parts["qrels"] if reference.split in file.name]
        if not parts["qrels"]:
            what = f"{reference.split!r} is in the name of no file of judgments"
            raise InputError(Problem("dataset.split", what, f"there are {', '.join(names)}"))
    part = reference.columns.get("query", "title")
    return TrecSource(tuple(parts["documents"]), tuple(parts["topics"]), tuple(parts["qrels"]), part)


def _files(files: Files, stems: Iterable[str]) -> list[File]:
    """The files of these names, or in a folder of one of them, or whose names begin so (`qrels.test.txt`)."""
    chosen = []
    for name, file in files.items():
        pure = PurePosixPath(name)
        begins = pure.name.lower().split(".")[0] if len(pure.parts) == 1 else pure.parts[0].lower()
        if begins in stems and (pure.suffix.lower() in TEXTS or pure.suffix.lower() in (".qrels", ".tsv", ".topics")):
            chosen.append(file)
    return chosen


@dataclass(frozen=True, slots=True)
class TrecSource:
    """Files of documents, topics and judgments."""

    document_files: tuple[File, ...]
    topic_files: tuple[File, ...]
    qrels_files: tuple[File, ...]
    part: str = "title"

    def documents(self, problems: Findings) -> Iterator[tuple[Place, Document]]:
        """One document a `<DOC>`: its `DOCNO`, its title or headline, and all other text without the tags."""
        for file in self.document_files:
            for place, block in _blocks(file, "doc", problems):
                id_ = _tag(block, "DOCNO")
                if not id_:
                    problems.wrong(place, "the document has no <DOCNO>", "<DOCNO>its id</DOCNO>")
                    continue
                title = next((heading for tag in TITLES if (heading := _tag(block, tag))), "")
                text = _tag(block, "TEXT") if re.search("<TEXT>", block, re.IGNORECASE) else _body(block)
                yield place, Document(nfc(id_), title, text)

    def queries(self, problems: Findings) -> Iterator[tuple[Place, Query]]:
        """One query a topic, or a line: id, tab, text."""
        for file in self.topic_files:
            first = next(read_lines(file, Findings()), (0, ""))[1].lstrip().lower()
            yield from self._topics(file, problems) if first.startswith("<") else _lines(file, problems)

    def labels(self, problems: Findings) -> Iterator[tuple[Place, str, Labels]]:
        """The judgments, gathered by query."""
        gathered = Gathered()
        for file in self.qrels_files:

            def add(line: int, what: str, remedy: str, file: File = file) -> None:
                problems.wrong(Place(file.path, line), what, remedy)

            try:
                rows = lines_one_by_one(1, file.read().removeprefix(BOM), QRELS, add)
            except InputError as error:
                problems.extend(error.problems)
                continue
            for number, query, document, grade in rows:
                gathered.add(Place(file.path, number), query, document, grade, problems)
        yield from gathered.labels()

    def _topics(self, file: File, problems: Findings) -> Iterator[tuple[Place, Query]]:
        for place, block in _blocks(file, "top", problems):
            number = NUMBERED.search(block)
            id_ = number[1] if number else NUMBER.sub("", _open(block, "num"))
            text = PART.sub("", _open(block, self.part) or _open(block, "query" if self.part == "title" else ""))
            if id_.strip() and text.strip():
                yield place, Query(nfc(id_.strip()), text.strip())
            else:
                what = "the topic has no number" if not id_.strip() else f"topic {id_.strip()} has no <{self.part}>"
                problems.wrong(place, what, "<num> Number: 1 <title> what is asked")


def qrels_files(files: Files) -> list[File]:
    """The files of judgments in TREC's form, whatever documents and queries stand beside them."""
    return [file for file in _files(files, JUDGMENTS) if is_qrels(file)]


def topic_files(files: Files) -> list[File]:
    """The files of topics: elements, or lines of id, tab and text."""
    return [file for file in _files(files, TOPICS) if is_topics(file)]


def is_qrels(file: File) -> bool:
    """Whether the first line of a file, comments left aside, is a judgment in TREC's form."""
    first = next((line for _, line in read_lines(file, Findings()) if not line.startswith("#")), "").split()
    return len(first) == 4 and grade_of(first[3]) is not None


def is_topics(file: File) -> bool:
    """Whether a file of text holds topics, and not one question a line."""
    first = next(read_lines(file, Findings()), (0, ""))[1].lstrip().lower()
    id_, tab, text = first.partition("\t")
    return file.suffix in (*TEXTS, ".topics", ".tsv") and (
        first.startswith(("<top", "<?xml")) or bool(tab and text.strip() and id_.isalnum() and not id_.isalpha())
    )


def _lines(file: File, problems: Findings) -> Iterator[tuple[Place, Query]]:
    for number, line in read_lines(file, problems):
        id_, tab, text = line.partition("\t")
        if tab and id_.strip():
            yield Place(file.path, number), Query(nfc(id_.strip()), text.strip())
        else:
            what = "is neither a topic nor a query's id, a tab and its text"
            problems.wrong(Place(file.path, number), what, "1<tab>what is asked")


def _blocks(file: File, tag: str, problems: Findings) -> Iterator[tuple[Place, str]]:
    """The text of each element, with the line where it begins: `<doc>`, or `<top>` and `<topic …>`."""
    opening = re.compile(rf"<{tag}(ic\b[^>]*)?>" if tag == "top" else rf"<{tag}>", re.IGNORECASE)
    closing = re.compile(rf"</{tag}(ic)?>", re.IGNORECASE)
    begins, lines, blocks = 0, list[str](), 0
    for number, line in read_lines(file, problems):
        if begins and opening.search(line):
            what = f"<{tag}> has no end before line {number}"
            problems.wrong(Place(file.path, begins), what, f"close it with </{tag}>")
            begins = 0
        if not begins and opening.search(line):
            begins, lines = number, []
        if begins:
            lines.append(line)
        if begins and closing.search(line):
            blocks += 1
            yield Place(file.path, begins), "\n".join(lines)
            begins = 0
    if begins:
        problems.wrong(Place(file.path, begins), f"<{tag}> has no end", "the file is cut short")
    elif not blocks:
        problems.wrong(file.path, f"holds no <{tag}>", "is this the right file?")


def _tag(block: str, tag: str) -> str:
    """The text within all elements of this name, one after the other."""
    return "\n".join(_plain(block[one.inner]) for one in _elements(block, tag)).strip()


class _Element(NamedTuple):
    outer: slice
    inner: slice


def _elements(block: str, *tags: str) -> Iterator[_Element]:
    """The elements of these names that have an end, the outermost of those that lie in each other.

    Each tag is looked at once: `<a>.*?</a>` would look for the end of each `<a>` that has none to the end of the text.
    """
    marks = list(re.finditer(rf"<(/?)({'|'.join(tags)})>", block, re.IGNORECASE))
    last = {mark[2].upper(): number for number, mark in enumerate(marks) if mark[1]}
    begins: re.Match[str] | None = None
    for number, mark in enumerate(marks):
        name = mark[2].upper()
        if begins is None and not mark[1] and last.get(name, -1) > number:
            begins = mark
        elif begins is not None and mark[1] and name == begins[2].upper():
            yield _Element(slice(begins.start(), mark.end()), slice(begins.end(), mark.start()))
            begins = None


def _open(block: str, tag: str) -> str:
    """The text after a tag up to the next one: topics do not close theirs."""
    element = re.search(rf"<{tag}>([^<]*)", block, re.IGNORECASE) if tag else None
    return " ".join(html.unescape(element[1]).split()) if element else ""


def _body(block: str) -> str:
    """All that stands outside `DOCNO` and titles."""
    parts, at = list[str](), 0
    for element in _elements(block, "DOCNO", *TITLES):
        parts.append(block[at : element.outer.start])
        at = element.outer.stop
    return _plain(" ".join([*parts, block[at:]]))


def _plain(text: str) -> str:
    return html.unescape(TAG.sub("", text)).strip()


COLLECTION = Reader(_matches, _read)
"""In a folder or a zip."""

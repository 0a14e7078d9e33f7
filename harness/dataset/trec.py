r"""TREC's collections; qrels and runs are those of `retrievers.runs`.

In a collection documents are
`<DOC>` … `</DOC>`, topics `<top>` … `</top>` or a line each. Documents are in a folder `documents` or in files
`documents.*`, `docs.*`, `corpus.*`; topics in `topics.*` or `queries.*`; judgments in `qrels.*`; or as the experiment
says. Of a topic its title is asked, or the part that columns = { query = "desc" } names.
"""

import html
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import PurePosixPath

from harness.dataset.dataset_model import DatasetReference
from harness.dataset.files import File, Files, Reader, pick
from harness.dataset.rows import Row, read_lines
from harness.dataset.source import Findings, SourceLocation, grade_of
from harness.dataset.table_source import TableSource
from retrievers.errors import InputError, Problem, collecting
from retrievers.runs import BOM, QRELS, lines_one_by_one
from retrievers.runs import Qrels as Qrels
from retrievers.runs import read_qrels as read_qrels
from retrievers.runs import write_qrels as write_qrels

TEXTS = (".trec", ".sgml", ".sgm", ".xml", ".txt", ".dat", "")
DOCUMENTS = ("documents", "docs", "corpus", "collection")
TOPICS = ("topics", "queries")
JUDGMENTS = ("qrels", "qrel")
TITLES = ("TITLE", "HEADLINE", "HEAD")
TAG = re.compile(r"<[^<>]*>")
NUMBER = re.compile(r"^\s*(?:Number|Query Number)\s*:\s*", re.IGNORECASE)
NUMBERED = re.compile(
    r"<topic[^<>]*\bnumber\s*+=\s*+[\"']?([^\"'<>\s]+)", re.IGNORECASE
)
PART = re.compile(r"^\s*(?:Topic|Title|Description|Narrative)\s*:\s*", re.IGNORECASE)


def _matches(reference: DatasetReference, files: Files) -> bool:
    """Whether a folder or an archive holds topics and judgments, and documents in TREC's form."""
    documents = _files(files, DOCUMENTS)
    if reference.documents or not (
        documents and _files(files, TOPICS) and _files(files, JUDGMENTS)
    ):
        return False
    first = next(read_lines(documents[0], Findings()), (0, ""))[1]
    return first.lstrip().upper().startswith("<DOC>")


def _read(reference: DatasetReference, files: Files) -> TableSource:
    """Open the collection; of several files of judgments a split names those that it is in the name of."""
    folder = reference.folder
    documents = [
        file
        for name, file in files.items()
        if reference.documents and name.startswith(reference.documents)
    ]
    qrels = (
        [pick(files, reference.labels, folder)]
        if reference.labels
        else _files(files, JUDGMENTS)
    )
    parts = {
        "documents": documents or _files(files, DOCUMENTS),
        "topics": [pick(files, name, folder) for name in reference.queries]
        or _files(files, TOPICS),
        "qrels": [file for file in qrels if (reference.split or "") in file.name],
    }
    if lacking := [name for name, some in parts.items() if not some]:
        raise InputError(
            [
                Problem(
                    str(folder),
                    f"holds no {name}",
                    f"a file {name}.txt, or name it in the experiment",
                )
                for name in lacking
            ]
        )
    return TableSource(
        partial(_document_rows, parts["documents"]),
        partial(topic_rows, parts["topics"], reference.columns.get("query", "title")),
        partial(qrels_rows, parts["qrels"]),
    )


def _files(files: Files, stems: Iterable[str]) -> list[File]:
    """The files of these names, or in a folder of one of them, or whose names begin so (`qrels.test.txt`)."""
    chosen = []
    for name, file in files.items():
        pure = PurePosixPath(name)
        begins = (
            pure.name.lower().split(".")[0]
            if len(pure.parts) == 1
            else pure.parts[0].lower()
        )
        if begins in stems and (
            pure.suffix.lower() in TEXTS
            or pure.suffix.lower() in (".qrels", ".tsv", ".topics")
        ):
            chosen.append(file)
    return chosen


def _document_rows(
    files: Sequence[File], problems: Findings
) -> Iterator[tuple[SourceLocation, Row]]:
    """One document a `<DOC>`: its `DOCNO`, its title or headline, and all other text without the tags."""
    for file in files:
        for place, block in _blocks(file, "doc", problems):
            id_ = _tag(block, "DOCNO")
            if not id_:
                problems.wrong(
                    place, "the document has no <DOCNO>", "<DOCNO>its id</DOCNO>"
                )
                continue
            title = next(
                (heading for tag in TITLES if (heading := _tag(block, tag))), ""
            )
            text = (
                _tag(block, "TEXT")
                if re.search("<TEXT>", block, re.IGNORECASE)
                else _body(block)
            )
            yield place, {"_id": id_, "title": title, "text": text}


def topic_rows(
    files: Sequence[File], part: str, problems: Findings
) -> Iterator[tuple[SourceLocation, Row]]:
    """One query per topic, of which a part is searched, or per line: id, tab, text."""
    for file in files:
        first = next(read_lines(file, Findings()), (0, ""))[1].lstrip().lower()
        yield from (
            _topics(file, part, problems)
            if first.startswith("<")
            else _lines(file, problems)
        )


def qrels_rows(
    files: Sequence[File], problems: Findings
) -> Iterator[tuple[SourceLocation, Row]]:
    """One judgment a line."""
    for file in files:

        def add(line: int, what: str, remedy: str, file: File = file) -> None:
            problems.wrong(SourceLocation(file.path, line), what, remedy)

        with collecting(problems):
            for line, *judged in lines_one_by_one(
                1, file.read().removeprefix(BOM), QRELS, add
            ):
                yield (
                    SourceLocation(file.path, line),
                    dict(zip(("query_id", "doc_id", "score"), judged, strict=True)),
                )


def _topics(
    file: File, part: str, problems: Findings
) -> Iterator[tuple[SourceLocation, Row]]:
    for place, block in _blocks(file, "top", problems):
        number = NUMBERED.search(block)
        id_ = (number[1] if number else NUMBER.sub("", _open(block, "num"))).strip()
        text = PART.sub(
            "", _open(block, part) or _open(block, "query" if part == "title" else "")
        ).strip()
        if id_ and text:
            yield place, {"query_id": id_, "query": text}
        else:
            what = f"topic {id_} has no <{part}>" if id_ else "the topic has no number"
            problems.wrong(place, what, "<num> Number: 1 <title> what is asked")


def qrels_files(files: Files) -> list[File]:
    """The files of judgments in TREC's form, whatever documents and queries are there."""
    return [file for file in _files(files, JUDGMENTS) if is_qrels(file)]


def topic_files(files: Files) -> list[File]:
    """The files of topics: elements, or lines of id, tab and text."""
    return [file for file in _files(files, TOPICS) if is_topics(file)]


def is_qrels(file: File) -> bool:
    """Whether the first line of a file, comments skipped, is a judgment in TREC's form."""
    first = next(
        (line for _, line in read_lines(file, Findings()) if not line.startswith("#")),
        "",
    ).split()
    return len(first) == 4 and grade_of(first[3]) is not None


def is_topics(file: File) -> bool:
    """Whether a file of text holds topics, and not one question a line."""
    first = next(read_lines(file, Findings()), (0, ""))[1].lstrip().lower()
    id_, tab, text = first.partition("\t")
    return file.suffix in (*TEXTS, ".topics", ".tsv") and (
        first.startswith(("<top", "<?xml"))
        or bool(tab and text.strip() and id_.isalnum() and not id_.isalpha())
    )


def _lines(file: File, problems: Findings) -> Iterator[tuple[SourceLocation, Row]]:
    for number, line in read_lines(file, problems):
        id_, tab, text = line.partition("\t")
        if tab and id_.strip():
            yield (
                SourceLocation(file.path, number),
                {"query_id": id_.strip(), "query": text.strip()},
            )
        else:
            what = "is neither a topic nor a query's id, a tab and its text"
            problems.wrong(
                SourceLocation(file.path, number), what, "1<tab>what is asked"
            )


def _blocks(
    file: File, tag: str, problems: Findings
) -> Iterator[tuple[SourceLocation, str]]:
    """The text of each element, with the line where it begins: `<doc>`, or `<top>` and `<topic …>`."""
    opening = re.compile(
        rf"<{tag}(ic\b[^>]*)?>" if tag == "top" else rf"<{tag}>", re.IGNORECASE
    )
    closing = re.compile(rf"</{tag}(ic)?>", re.IGNORECASE)
    begins, lines, blocks = 0, list[str](), 0
    for number, line in read_lines(file, problems):
        if begins and opening.search(line):
            what = f"<{tag}> has no end before line {number}"
            problems.wrong(
                SourceLocation(file.path, begins), what, f"close it with </{tag}>"
            )
            begins = 0
        if not begins and opening.search(line):
            begins, lines = number, []
        if begins:
            lines.append(line)
        if begins and closing.search(line):
            blocks += 1
            yield SourceLocation(file.path, begins), "\n".join(lines)
            begins = 0
    if begins:
        problems.wrong(
            SourceLocation(file.path, begins),
            f"<{tag}> has no end",
            "the file is cut short",
        )
    elif not blocks:
        problems.wrong(file.path, f"holds no <{tag}>", "is this the right file?")


def _tag(block: str, tag: str) -> str:
    """The text within all elements of this name, one after the other."""
    return "\n".join(
        map(_plain, re.findall(rf"(?is)<{tag}>(.*?)</{tag}>", block))
    ).strip()


def _open(block: str, tag: str) -> str:
    """The text after a tag up to the next one: topics do not close theirs."""
    element = re.search(rf"<{tag}>([^<]*)", block, re.IGNORECASE) if tag else None
    return " ".join(html.unescape(element[1]).split()) if element else ""


def _body(block: str) -> str:
    """All text outside `DOCNO` and titles."""
    return _plain(re.sub(rf"(?is)<(DOCNO|{'|'.join(TITLES)})>.*?</\1>", " ", block))


def _plain(text: str) -> str:
    return html.unescape(TAG.sub("", text)).strip()


COLLECTION = Reader(_matches, _read)
"""In a folder or a zip."""

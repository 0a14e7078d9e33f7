"""TREC collections.

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

from harness.dataset.file import File, Files
from harness.dataset.listing import file_named
from harness.dataset.read_problems import ReadProblems
from harness.dataset.reference import DatasetReference
from harness.dataset.source import FormatReader, SourceLocation, TableRow
from harness.dataset.table_source import TableSource
from harness.dataset.text_rows import read_lines
from harness.dataset.written_values import parse_grade
from retrievers.errors import InputError, Problem, collect_errors
from retrievers.files.trec_columns import QRELS_FORM
from retrievers.files.trec_lines import UTF8_BOM, parse_lines

TREC_SUFFIXES = (".trec", ".sgml", ".sgm", ".xml", ".txt", ".dat", "")
TREC_DOCUMENT_STEMS = ("documents", "docs", "corpus", "collection")
TREC_TOPIC_STEMS = ("topics", "queries")
TREC_QRELS_STEMS = ("qrels", "qrel")
TITLE_TAGS = ("TITLE", "HEADLINE", "HEAD")
TAG_PATTERN = re.compile(r"<[^<>]*>")
TOPIC_NUMBER_LABEL = re.compile(r"^\s*(?:Number|Query Number)\s*:\s*", re.IGNORECASE)
TOPIC_NUMBER_ATTRIBUTE = re.compile(
    r"<topic[^<>]*\bnumber\s*+=\s*+[\"']?([^\"'<>\s]+)", re.IGNORECASE
)
TOPIC_PART_LABEL = re.compile(
    r"^\s*(?:Topic|Title|Description|Narrative)\s*:\s*", re.IGNORECASE
)


def _matches(reference: DatasetReference, files: Files) -> bool:
    """Whether a folder or an archive holds topics and judgments, and documents in TREC's form."""
    documents = _files(files, TREC_DOCUMENT_STEMS)
    if reference.documents or not (
        documents
        and _files(files, TREC_TOPIC_STEMS)
        and _files(files, TREC_QRELS_STEMS)
    ):
        return False
    first = next(read_lines(documents[0], ReadProblems()), (0, ""))[1]
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
        [file_named(files, reference.labels, folder)]
        if reference.labels
        else _files(files, TREC_QRELS_STEMS)
    )
    parts = {
        "documents": documents or _files(files, TREC_DOCUMENT_STEMS),
        "topics": [file_named(files, name, folder) for name in reference.queries]
        or _files(files, TREC_TOPIC_STEMS),
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
            pure.suffix.lower() in TREC_SUFFIXES
            or pure.suffix.lower() in (".qrels", ".tsv", ".topics")
        ):
            chosen.append(file)
    return chosen


def _document_rows(
    files: Sequence[File], problems: ReadProblems
) -> Iterator[tuple[SourceLocation, TableRow]]:
    """One document a `<DOC>`: its `DOCNO`, its title or headline, and all other text without the tags."""
    for file in files:
        for place, block in _blocks(file, "doc", problems):
            id_ = _tag(block, "DOCNO")
            if not id_:
                problems.add(
                    place, "the document has no <DOCNO>", "<DOCNO>its id</DOCNO>"
                )
                continue
            title = next(
                (heading for tag in TITLE_TAGS if (heading := _tag(block, tag))), ""
            )
            text = (
                _tag(block, "TEXT")
                if re.search("<TEXT>", block, re.IGNORECASE)
                else _body(block)
            )
            yield place, {"_id": id_, "title": title, "text": text}


def topic_rows(
    files: Sequence[File], part: str, problems: ReadProblems
) -> Iterator[tuple[SourceLocation, TableRow]]:
    """One query per topic, of which a part is searched, or per line: id, tab, text."""
    for file in files:
        first = next(read_lines(file, ReadProblems()), (0, ""))[1].lstrip().lower()
        yield from (
            _topics(file, part, problems)
            if first.startswith("<")
            else _lines(file, problems)
        )


def qrels_rows(
    files: Sequence[File], problems: ReadProblems
) -> Iterator[tuple[SourceLocation, TableRow]]:
    """One judgment a line."""
    for file in files:

        def add(line: int, what: str, remedy: str, file: File = file) -> None:
            problems.add(SourceLocation(file.path, line), what, remedy)

        with collect_errors(problems):
            for line, *judged in parse_lines(
                1, file.read().removeprefix(UTF8_BOM), QRELS_FORM, add
            ):
                yield (
                    SourceLocation(file.path, line),
                    dict(zip(("query_id", "doc_id", "score"), judged, strict=True)),
                )


def _topics(
    file: File, part: str, problems: ReadProblems
) -> Iterator[tuple[SourceLocation, TableRow]]:
    for place, block in _blocks(file, "top", problems):
        number = TOPIC_NUMBER_ATTRIBUTE.search(block)
        id_ = (
            number[1] if number else TOPIC_NUMBER_LABEL.sub("", _open(block, "num"))
        ).strip()
        text = TOPIC_PART_LABEL.sub(
            "", _open(block, part) or _open(block, "query" if part == "title" else "")
        ).strip()
        if id_ and text:
            yield place, {"query_id": id_, "query": text}
        else:
            what = f"topic {id_} has no <{part}>" if id_ else "the topic has no number"
            problems.add(place, what, "<num> Number: 1 <title> what is asked")


def find_qrels_files(files: Files) -> list[File]:
    """The files of judgments in TREC's form, whatever documents and queries are there."""
    return [file for file in _files(files, TREC_QRELS_STEMS) if is_qrels(file)]


def find_topic_files(files: Files) -> list[File]:
    """The files of topics: elements, or lines of id, tab and text."""
    return [file for file in _files(files, TREC_TOPIC_STEMS) if is_topics(file)]


def is_qrels(file: File) -> bool:
    """Whether the first line of a file, comments skipped, is a judgment in TREC's form."""
    first = next(
        (
            line
            for _, line in read_lines(file, ReadProblems())
            if not line.startswith("#")
        ),
        "",
    ).split()
    return len(first) == 4 and parse_grade(first[3]) is not None


def is_topics(file: File) -> bool:
    """Whether a file of text holds topics, and not one question a line."""
    first = next(read_lines(file, ReadProblems()), (0, ""))[1].lstrip().lower()
    id_, tab, text = first.partition("\t")
    return file.suffix in (*TREC_SUFFIXES, ".topics", ".tsv") and (
        first.startswith(("<top", "<?xml"))
        or bool(tab and text.strip() and id_.isalnum() and not id_.isalpha())
    )


def _lines(
    file: File, problems: ReadProblems
) -> Iterator[tuple[SourceLocation, TableRow]]:
    for number, line in read_lines(file, problems):
        id_, tab, text = line.partition("\t")
        if tab and id_.strip():
            yield (
                SourceLocation(file.path, number),
                {"query_id": id_.strip(), "query": text.strip()},
            )
        else:
            what = "is neither a topic nor a query's id, a tab and its text"
            problems.add(SourceLocation(file.path, number), what, "1<tab>what is asked")


def _blocks(
    file: File, tag: str, problems: ReadProblems
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
            problems.add(
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
        problems.add(
            SourceLocation(file.path, begins),
            f"<{tag}> has no end",
            "the file is cut short",
        )
    elif not blocks:
        problems.add(file.path, f"holds no <{tag}>", "is this the right file?")


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
    return _plain(re.sub(rf"(?is)<(DOCNO|{'|'.join(TITLE_TAGS)})>.*?</\1>", " ", block))


def _plain(text: str) -> str:
    return html.unescape(TAG_PATTERN.sub("", text)).strip()


TREC_COLLECTION = FormatReader(_matches, _read)
"""In a folder or a zip."""

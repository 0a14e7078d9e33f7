"""TREC collections.

In a collection documents are `<DOC>` … `</DOC>`, topics `<top>` … `</top>` or a line
each. Documents are in a folder `documents` or in files `documents.*`, `docs.*`,
`corpus.*`; topics in `topics.*` or `queries.*`; judgments in `qrels.*`; or as the
experiment says. The query is the title of a topic, or the part that
columns = { query = "desc" } names.
"""

import html
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import partial
from pathlib import PurePosixPath

from harness.dataset.columns import Columns
from harness.dataset.file import File, Files
from harness.dataset.listing import file_named, listing_name
from harness.dataset.read_problems import ReadProblems
from harness.dataset.reference import DatasetReference
from harness.dataset.row import Row
from harness.dataset.source import FormatReader, SourceLocation
from harness.dataset.table_source import TableSource
from harness.dataset.text_rows import NumberedLine, read_lines
from harness.dataset.written_values import parse_grade
from retrievers.errors import InputError, Problem, collect_errors
from retrievers.files.trec_columns import QRELS_FORM
from retrievers.files.trec_lines import UTF8_BOM, parse_lines

TREC_SUFFIXES = (".trec", ".sgml", ".sgm", ".xml", ".txt", ".dat", "")
TREC_TABLE_SUFFIXES = (".qrels", ".tsv", ".topics")
"""Suffixes of qrels and topics only."""
TREC_DOCUMENT_STEMS = ("documents", "docs", "corpus", "collection")
TREC_TOPIC_STEMS = ("topics", "queries")
TREC_QRELS_STEMS = ("qrels", "qrel")
QRELS_COLUMNS = ("query_id", "doc_id", "score")
TITLE_TAGS = ("TITLE", "HEADLINE", "HEAD")
TAG_PATTERN = re.compile(r"<[^<>]*>")
TOPIC_NUMBER_LABEL = re.compile(r"^\s*(?:Number|Query Number)\s*:\s*", re.IGNORECASE)
"""A word before the number of a topic, which is not part of it."""
TOPIC_NUMBER_ATTRIBUTE = re.compile(
    r"<topic[^<>]*\bnumber\s*+=\s*+[\"']?([^\"'<>\s]+)", re.IGNORECASE
)
"""The number of a topic as an attribute: <topic number="1">."""
TOPIC_PART_LABEL = re.compile(
    r"^\s*(?:Topic|Title|Description|Narrative)\s*:\s*", re.IGNORECASE
)
"""A word before a part of a topic, which is not part of its text."""


def _matches(reference: DatasetReference, files: Files) -> bool:
    """Whether a folder or an archive has documents, topics and qrels in TREC's form."""
    if reference.documents:
        return False
    documents = _files_with_stems(files, TREC_DOCUMENT_STEMS)
    topics = _files_with_stems(files, TREC_TOPIC_STEMS)
    qrels = _files_with_stems(files, TREC_QRELS_STEMS)
    if not documents or not topics or not qrels:
        return False
    return _first_line(documents[0]).upper().startswith("<DOC>")


def _first_line(file: File) -> str:
    """Return the first line of a file that is not blank, without leading space."""
    lines = (line for _, line in read_lines(file, ReadProblems()))
    return next(lines, "").lstrip()


def _read(reference: DatasetReference, files: Files) -> TableSource:
    """Open the collection.

    If there are several files of qrels, those with the split in their name count.

    Raises:
        InputError: a part is missing.
    """
    folder = reference.folder
    documents = _named_documents(reference, files)
    qrels = _files_with_stems(files, TREC_QRELS_STEMS)
    if reference.labels:
        qrels = [file_named(files, reference.labels, folder)]
    documents = documents or _files_with_stems(files, TREC_DOCUMENT_STEMS)
    topics = [file_named(files, name, folder) for name in reference.queries]
    topics = topics or _files_with_stems(files, TREC_TOPIC_STEMS)
    qrels = [file for file in qrels if (reference.split or "") in file.name]
    parts = {"documents": documents, "topics": topics, "qrels": qrels}
    missing_parts = [part for part, part_files in parts.items() if not part_files]
    if missing_parts:
        raise InputError([_missing_part(part, str(folder)) for part in missing_parts])
    topic_part = Columns(reference.columns).declared_name("query") or "title"
    return TableSource(
        document_rows=partial(_document_rows, documents),
        query_rows=partial(topic_rows, topics, topic_part),
        label_rows=partial(qrels_rows, qrels),
    )


def _named_documents(reference: DatasetReference, files: Files) -> list[File]:
    """Return the file of documents that the reference names, or those of a folder.

    Empty if the reference names neither.

    Raises:
        InputError: there is no file and no folder with that name.
    """
    if not reference.documents:
        return []
    name = listing_name(reference.documents)
    in_folder = [file for path, file in files.items() if path.startswith(f"{name}/")]
    return in_folder or [file_named(files, name, reference.folder)]


def _missing_part(part: str, folder: str) -> Problem:
    remedy = f"a file {part}.txt, or name it in the experiment"
    return Problem(folder, f"holds no {part}", remedy)


def _files_with_stems(files: Files, stems: Collection[str]) -> list[File]:
    """Return the files whose name, or whose folder, is one of some stems.

    The stem of a name ends at its first dot: `qrels.test.txt` has the stem `qrels`.
    """
    matching_files = []
    for path, file in files.items():
        parts = PurePosixPath(path).parts
        stem = parts[0].lower()
        if len(parts) == 1:
            stem = stem.split(".")[0]
        suffix = PurePosixPath(path).suffix.lower()
        is_trec = suffix in TREC_SUFFIXES or suffix in TREC_TABLE_SUFFIXES
        if is_trec and stem in stems:
            matching_files.append(file)
    return matching_files


def _document_rows(files: Sequence[File], problems: ReadProblems) -> Iterator[Row]:
    """Yield one document per `<DOC>`.

    It has its `DOCNO`, its title or headline, and all other text without the tags.
    """
    for file in files:
        for location, block in _blocks(file, "doc", problems):
            id_ = _text_of_tags(block, "DOCNO")
            if not id_:
                problem = "the document has no <DOCNO>"
                problems.add(location, problem, "<DOCNO>its id</DOCNO>")
                continue
            titles = [_text_of_tags(block, tag) for tag in TITLE_TAGS]
            title = next(filter(None, titles), "")
            cells = {"_id": id_, "title": title, "text": _main_text(block)}
            yield Row(location, cells)


def topic_rows(
    files: Sequence[File], part: str, problems: ReadProblems
) -> Iterator[Row]:
    """Yield one query per topic, or per line; one part of a topic is searched.

    A line has an id, a tab and a text.
    """
    for file in files:
        if _first_line(file).startswith("<"):
            yield from _topic_block_rows(file, part, problems)
        else:
            yield from _topic_line_rows(file, problems)


def qrels_rows(files: Sequence[File], problems: ReadProblems) -> Iterator[Row]:
    """Yield one judgment per line."""
    for file in files:

        def add_problem(line: int, text: str, remedy: str, file: File = file) -> None:
            problems.add(SourceLocation(file.path, line), text, remedy)

        with collect_errors(problems):
            content = file.read().removeprefix(UTF8_BOM)
            for line, *cells in parse_lines(1, content, QRELS_FORM, add_problem):
                judgment = dict(zip(QRELS_COLUMNS, cells, strict=True))
                yield Row(SourceLocation(file.path, line), judgment)


def _topic_block_rows(file: File, part: str, problems: ReadProblems) -> Iterator[Row]:
    for location, block in _blocks(file, "top", problems):
        number = TOPIC_NUMBER_ATTRIBUTE.search(block)
        id_ = number[1].strip() if number else _labelled_number(block)
        text = _text_after_tag(block, part)
        if not text and part == "title":
            text = _text_after_tag(block, "query")
        text = TOPIC_PART_LABEL.sub("", text).strip()
        if id_ and text:
            yield Row(location, {"query_id": id_, "query": text})
        else:
            problem = f"topic {id_} has no <{part}>"
            if not id_:
                problem = "the topic has no number"
            problems.add(location, problem, "<num> Number: 1 <title> what is asked")


def find_qrels_files(files: Files) -> list[File]:
    """Return the files of judgments in TREC's form, with or without documents."""
    return [
        file for file in _files_with_stems(files, TREC_QRELS_STEMS) if is_qrels(file)
    ]


def find_topic_files(files: Files) -> list[File]:
    """Return the files of topics: elements, or lines of id, tab and text."""
    return [
        file for file in _files_with_stems(files, TREC_TOPIC_STEMS) if is_topics(file)
    ]


def is_qrels(file: File) -> bool:
    """Whether the first line of a file, after comments, is a judgment of TREC."""
    lines = (line for _, line in read_lines(file, ReadProblems()))
    first_line = next((line for line in lines if not line.startswith("#")), "")
    cells = first_line.split()
    return len(cells) == 4 and parse_grade(cells[3]) is not None


def is_topics(file: File) -> bool:
    """Whether a file of text has topics, and not one query per line."""
    first_line = _first_line(file).lower()
    if file.suffix not in (*TREC_SUFFIXES, ".topics", ".tsv"):
        return False
    if first_line.startswith(("<top", "<?xml")):
        return True
    id_, tab, text = first_line.partition("\t")
    if not tab or not text.strip():
        return False
    return id_.isalnum() and not id_.isalpha()


def _topic_line_rows(file: File, problems: ReadProblems) -> Iterator[Row]:
    for number, line in read_lines(file, problems):
        location = SourceLocation(file.path, number)
        id_, tab, text = line.partition("\t")
        if tab and id_.strip():
            yield Row(location, {"query_id": id_.strip(), "query": text.strip()})
        else:
            problem = "is neither a topic nor a query's id, a tab and its text"
            problems.add(location, problem, "1<tab>what is asked")


def _blocks(
    file: File, tag: str, problems: ReadProblems
) -> Iterator[tuple[SourceLocation, str]]:
    """Yield the text of each element, with the line where it begins.

    Elements are `<doc>`, or `<top>` and `<topic …>`.
    """
    attributes = r"(ic\b[^>]*)?" if tag == "top" else ""
    opening = re.compile(rf"<{tag}{attributes}>", re.IGNORECASE)
    closing = re.compile(rf"</{tag}(ic)?>", re.IGNORECASE)
    first_line = 0  # of the element; 0 outside of elements
    lines: list[str] = []
    has_blocks = False
    for number, line in _split_at(opening, read_lines(file, problems)):
        if opening.search(line):
            if first_line:
                location = SourceLocation(file.path, first_line)
                problem = f"<{tag}> has no end before line {number}"
                problems.add(location, problem, f"close it with </{tag}>")
            first_line = number
            lines = []
        if not first_line:
            continue
        lines.append(line)
        if closing.search(line):
            has_blocks = True
            yield SourceLocation(file.path, first_line), "\n".join(lines)
            first_line = 0
    if first_line:
        location = SourceLocation(file.path, first_line)
        problems.add(location, f"<{tag}> has no end", "the file is cut short")
    elif not has_blocks:
        problems.add(file.path, f"holds no <{tag}>", "is this the right file?")


def _split_at(
    opening: re.Pattern[str], lines: Iterable[NumberedLine]
) -> Iterator[NumberedLine]:
    """Yield lines, cut before each beginning of an element; numbers stay."""
    for number, line in lines:
        starts = [match.start() for match in opening.finditer(line)]
        ends = [*starts[1:], len(line)]
        yield NumberedLine(number, line[: ends[0]])
        for start, end in zip(starts[1:], ends[1:], strict=False):
            yield NumberedLine(number, line[start:end])


def _text_of_tags(block: str, tag: str) -> str:
    """Return the text within all elements with this name, one after the other."""
    elements = re.findall(rf"(?is)<{tag}>(.*?)</{tag}>", block)
    return "\n".join(map(_without_tags, elements)).strip()


def _text_after_tag(block: str, tag: str) -> str:
    """Return the text after a tag up to the next one: topics do not close theirs."""
    element = re.search(rf"<{tag}>([^<]*)", block, re.IGNORECASE) if tag else None
    return " ".join(html.unescape(element[1]).split()) if element else ""


def _labelled_number(block: str) -> str:
    """Return the number of a topic, without a label such as `Number:`."""
    text = _text_after_tag(block, "num") or _text_after_tag(block, "number")
    return TOPIC_NUMBER_LABEL.sub("", text).strip()


def _main_text(block: str) -> str:
    """Return the text in `TEXT`; without it, all text outside `DOCNO` and titles."""
    if re.search("<TEXT>", block, re.IGNORECASE):
        return _text_of_tags(block, "TEXT")
    tags = "|".join(("DOCNO", *TITLE_TAGS))
    return _without_tags(re.sub(rf"(?is)<({tags})>.*?</\1>", " ", block))


def _without_tags(text: str) -> str:
    return html.unescape(TAG_PATTERN.sub("", text)).strip()


TREC_COLLECTION = FormatReader(_matches, _read)
"""A collection in a folder or a zip archive."""

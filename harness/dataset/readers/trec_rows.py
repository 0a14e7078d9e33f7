"""The rows of TREC's files: documents, topics, qrels."""

import re
from collections.abc import Iterator, Sequence

from harness.dataset.file import File
from harness.dataset.read_problems import ReadProblems
from harness.dataset.readers.tagged_text import (
    TITLE_TAGS,
    main_text,
    tagged_blocks,
    text_after_tag,
    text_of_tags,
)
from harness.dataset.row import Row
from harness.dataset.source import SourceLocation
from harness.dataset.text_rows import read_lines
from retrievers.errors import collect_errors
from retrievers.files.trec_columns import QRELS_FORM
from retrievers.files.trec_lines import UTF8_BOM, parse_lines

QRELS_COLUMNS = ("query_id", "doc_id", "score")
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


def first_line_of(file: File) -> str:
    """Return the first line of a file that is not blank, without leading space.

    Empty if there is none, or the file cannot be read: its reader reports that.
    """
    lines = (line for _, line in read_lines(file, ReadProblems()))
    return next(lines, "").lstrip()


def document_rows(files: Sequence[File], problems: ReadProblems) -> Iterator[Row]:
    """Yield one document per `<DOC>`: its DOCNO, its title or headline, its text.

    A missing title is empty. Blank lines of a text are left out.
    """
    for file in files:
        for location, block in tagged_blocks(file, "doc", problems):
            id_ = text_of_tags(block, "DOCNO")
            if not id_:
                problem = "the document has no <DOCNO>"
                problems.add(location, problem, "<DOCNO>its id</DOCNO>")
                continue
            titles = [text_of_tags(block, tag) for tag in TITLE_TAGS]
            title = next(filter(None, titles), "")
            cells = {"_id": id_, "title": title, "text": main_text(block)}
            yield Row(location, cells)


def topic_rows(
    files: Sequence[File], part: str, problems: ReadProblems
) -> Iterator[Row]:
    """Yield one query per topic, or per line of an id, a tab and a text.

    Args:
        files: each has topics, if its first line begins with a tag, or lines.
        part: the tag whose text is the query, such as `title`; lines have no parts.
        problems: takes topics without a number or this part, and other lines.
    """
    for file in files:
        if first_line_of(file).startswith("<"):
            yield from _topic_block_rows(file, part, problems)
        else:
            yield from _topic_line_rows(file, problems)


def qrels_rows(files: Sequence[File], problems: ReadProblems) -> Iterator[Row]:
    """Yield one judgment per line, without its iteration.

    Malformed lines become problems.
    """
    for file in files:

        def add_problem(line: int, text: str, remedy: str, file: File = file) -> None:
            problems.add(SourceLocation(file.path, line), text, remedy)

        with collect_errors(problems):
            content = file.read().removeprefix(UTF8_BOM)
            for line, *cells in parse_lines(1, content, QRELS_FORM, add_problem):
                judgment = dict(zip(QRELS_COLUMNS, cells, strict=True))
                yield Row(SourceLocation(file.path, line), judgment)


def _topic_block_rows(file: File, part: str, problems: ReadProblems) -> Iterator[Row]:
    for location, block in tagged_blocks(file, "top", problems):
        number = TOPIC_NUMBER_ATTRIBUTE.search(block)
        id_ = number[1] if number else _labelled_number(block)
        text = text_after_tag(block, part)
        # Topics of the Web tracks and of TREC-COVID call their title <query>.
        if not text and part == "title":
            text = text_after_tag(block, "query")
        text = TOPIC_PART_LABEL.sub("", text).strip()
        if id_ and text:
            yield Row(location, {"query_id": id_, "query": text})
        else:
            problem = f"topic {id_} has no <{part}>"
            if not id_:
                problem = "the topic has no number"
            problems.add(location, problem, "<num> Number: 1 <title> what is asked")


def _topic_line_rows(file: File, problems: ReadProblems) -> Iterator[Row]:
    for number, line in read_lines(file, problems):
        location = SourceLocation(file.path, number)
        id_, tab, text = line.partition("\t")
        if tab and id_.strip():
            yield Row(location, {"query_id": id_.strip(), "query": text.strip()})
        else:
            problem = "is neither a topic nor a query's id, a tab and its text"
            problems.add(location, problem, "1<tab>what is asked")


def _labelled_number(block: str) -> str:
    """Return the number of a topic, without a label such as `Number:`."""
    text = text_after_tag(block, "num") or text_after_tag(block, "number")
    return TOPIC_NUMBER_LABEL.sub("", text).strip()

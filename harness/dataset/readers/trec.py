"""TREC collections.

A collection has documents, `<DOC>` … `</DOC>`; topics, which are its queries,
`<top>` … `</top>` or a line each of id, tab and text; and qrels, its judgments, lines
of `query iteration document grade`. The files have the usual names, which are the
constants below, or the reference names them: `documents`, `queries`, `labels`.

The query is the title of a topic, or the part that columns = { query = "desc" } names.
"""

import html
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from pathlib import PurePosixPath
from typing import NamedTuple

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
from harness.english import first_names
from retrievers.errors import InputError, Problem, collect_errors
from retrievers.files.trec_columns import QRELS_FORM
from retrievers.files.trec_lines import UTF8_BOM, parse_lines
from retrievers.remedy import Option, Setting, compose_remedy

TREC_SUFFIXES = (".trec", ".sgml", ".sgm", ".xml", ".txt", ".dat", "")


class UsualNames(NamedTuple):
    """The usual names of the files that are one part of a collection."""

    stems: tuple[str, ...]
    """The file's name up to its first dot, or the name of the top folder it is in."""
    suffixes: tuple[str, ...]


DOCUMENT_NAMES = UsualNames(
    ("documents", "docs", "corpus", "collection"), TREC_SUFFIXES
)
TOPIC_NAMES = UsualNames(("topics", "queries"), (*TREC_SUFFIXES, ".topics", ".tsv"))
QRELS_NAMES = UsualNames(("qrels", "qrel"), (*TREC_SUFFIXES, ".qrels", ".tsv"))
DEFAULT_SPLIT = "test"
"""The split whose qrels are read, if no split is requested and a file has this one."""
QRELS_COLUMNS = ("query_id", "doc_id", "score")
TITLE_TAGS = ("TITLE", "HEADLINE", "HEAD")
TAG_PATTERN = re.compile(r"<[^<>]*>")
INLINE_TAG = re.compile(
    r"</?(?:a|b|em|font|i|small|span|strong|sub|sup|tt|u)(?:\s[^<>]*)?>", re.IGNORECASE
)
"""A tag that may be within a word: H<sub>2</sub>O."""
SEPARATING_TAGS = re.compile(r"(?<=[^\s>])(?:<[^<>]*>)+(?=[^\s<])")
"""Tags that alone stand between two words: a space takes their place."""
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
    """Whether a folder or an archive has documents, topics and qrels in TREC's form.

    The first file of documents, and judgments that the reference names, are looked
    into: they may be tables.

    Raises:
        InputError: the documents have TREC's form, but a file of topics or judgments
            that the reference names is not there.
    """
    try:
        documents = _document_files(reference, files)
    except InputError:
        return False  # the reader of tables says that they are missing
    if not documents or not _opening_tag("doc").match(_first_line(documents[0])):
        return False
    topics = _topic_files(reference, files)
    if not topics or any(file.suffix not in TOPIC_NAMES.suffixes for file in topics):
        return False
    if reference.labels:
        return all(map(is_qrels, _qrels_files(reference, files)))
    return bool(_qrels_files(reference, files))


def _first_line(file: File) -> str:
    """Return the first line of a file that is not blank, without leading space.

    Empty if there is none, or the file cannot be read: its reader reports that.
    """
    lines = (line for _, line in read_lines(file, ReadProblems()))
    return next(lines, "").lstrip()


def _read(reference: DatasetReference, files: Files) -> TableSource:
    """Open the collection.

    A split chooses among the files of qrels; the topics of all files are read.

    Raises:
        InputError: a part, or a file that the reference names, is missing; or no file
            of qrels has the split.
    """
    folder = reference.folder
    documents = _document_files(reference, files)
    qrels = _qrels_files(reference, files)
    topics = _topic_files(reference, files)
    parts = {"documents": documents, "topics": topics, "qrels": qrels}
    missing_parts = [part for part, part_files in parts.items() if not part_files]
    if missing_parts:
        raise InputError([_missing_part(part, str(folder)) for part in missing_parts])
    if not reference.labels:
        qrels = _qrels_of_split(qrels, reference)
    topic_part = Columns(reference.columns).declared_name("query") or "title"
    return TableSource(
        document_rows=partial(_document_rows, documents),
        query_rows=partial(topic_rows, topics, topic_part),
        label_rows=partial(qrels_rows, qrels),
    )


def _document_files(reference: DatasetReference, files: Files) -> list[File]:
    """Return the file of documents that is named, or all files of the folder named.

    If the reference names neither, those with a usual name; empty if there are none.

    Raises:
        InputError: there is no file and no folder with the name in the reference.
    """
    if not reference.documents:
        return _files_with_names(files, DOCUMENT_NAMES)
    name = listing_name(reference.documents)
    in_folder = [file for path, file in files.items() if path.startswith(f"{name}/")]
    return in_folder or [file_named(files, name, reference.folder)]


def _topic_files(reference: DatasetReference, files: Files) -> list[File]:
    """Return the files of topics that are named, else those with a usual name.

    Raises:
        InputError: a file that is named is not there.
    """
    folder = reference.folder
    topics = [file_named(files, path, folder) for path in reference.queries]
    return topics or _files_with_names(files, TOPIC_NAMES)


def _qrels_files(reference: DatasetReference, files: Files) -> list[File]:
    """Return the file of qrels that is named, else those with a usual name.

    Raises:
        InputError: the file that is named is not there.
    """
    if reference.labels:
        return [file_named(files, reference.labels, reference.folder)]
    return _files_with_names(files, QRELS_NAMES)


def _qrels_of_split(qrels: Sequence[File], reference: DatasetReference) -> list[File]:
    """Return the files whose names have the split as a part: `qrels.dev.txt` has dev.

    If no split is requested, those of `test`; all, if no name has it: a collection may
    have its judgments in several files. A single `qrels.txt`, which has no split, is
    read for any.

    Raises:
        InputError: no file has the split that is requested.
    """
    split = re.escape(reference.split or DEFAULT_SPLIT)
    # A part has no letter or digit beside it: `latest` is not of the split `test`.
    name_part = re.compile(rf"(?<![^\W_]){split}(?![^\W_])")
    of_split = [file for file in qrels if name_part.search(file.name)]
    if of_split or not reference.split:
        return of_split or list(qrels)
    stem = PurePosixPath(qrels[0].name).stem.lower()
    if len(qrels) == 1 and stem in QRELS_NAMES.stems:
        return list(qrels)
    file_names = first_names([file.name for file in qrels])
    problem = f"has no qrels of the split {reference.split!r}, but {file_names}"
    remedy = compose_remedy("name one: ", Setting("labels", "…"), Option("--labels"))
    raise InputError(Problem(str(reference.folder), problem, remedy))


def _missing_part(part: str, folder: str) -> Problem:
    remedy = f"a file {part}.txt, or name it in the experiment"
    return Problem(folder, f"holds no {part}", remedy)


def _files_with_names(files: Files, usual_names: UsualNames) -> list[File]:
    """Return the files with a usual name, or in a top folder with one.

    `qrels.test.txt`, `qrels/test.txt` and `qrels/a/b.txt` have the stem `qrels`.
    """
    matching_files = []
    for path, file in files.items():
        top_name, *below = PurePosixPath(path).parts
        stem = top_name if below else top_name.split(".")[0]
        if stem.lower() in usual_names.stems and file.suffix in usual_names.suffixes:
            matching_files.append(file)
    return matching_files


def _document_rows(files: Sequence[File], problems: ReadProblems) -> Iterator[Row]:
    """Yield one document per `<DOC>`: its DOCNO, its title or headline, its text.

    A missing title is empty. Blank lines of a text are left out.
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
    """Yield one query per topic, or per line of an id, a tab and a text.

    Args:
        files: each has topics, if its first line begins with a tag, or lines.
        part: the tag whose text is the query, such as `title`; lines have no parts.
        problems: takes topics without a number or this part, and other lines.
    """
    for file in files:
        if _first_line(file).startswith("<"):
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
    for location, block in _blocks(file, "top", problems):
        number = TOPIC_NUMBER_ATTRIBUTE.search(block)
        id_ = number[1] if number else _labelled_number(block)
        text = _text_after_tag(block, part)
        # Topics of the Web tracks and of TREC-COVID call their title <query>.
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
    """Return the files of judgments in TREC's form, for other readers.

    A folder of tables may have such judgments, too; there `qrels.tsv` may also be a
    table with a header, so that the name alone does not decide.
    """
    return [file for file in _files_with_names(files, QRELS_NAMES) if is_qrels(file)]


def find_topic_files(files: Files) -> list[File]:
    """Return the files of topics in TREC's form, for other readers."""
    return [file for file in _files_with_names(files, TOPIC_NAMES) if is_topics(file)]


def is_qrels(file: File) -> bool:
    """Whether the first line of a file, after comments, is a judgment of TREC."""
    lines = (line for _, line in read_lines(file, ReadProblems()))
    first_line = next((line for line in lines if not line.startswith("#")), "")
    cells = first_line.split()
    return len(cells) == 4 and parse_grade(cells[3]) is not None


def is_topics(file: File) -> bool:
    """Whether a file has topics, or lines of id, tab and text.

    Other files of queries are tables, or have a query per line without an id. The
    suffix decides, then the first line.
    """
    if file.suffix not in TOPIC_NAMES.suffixes:
        return False
    first_line = _first_line(file).lower()
    if first_line.startswith(("<top", "<?xml")):
        return True
    id_, tab, text = first_line.partition("\t")
    if not tab or not text.strip():
        return False
    # An id without a digit, or with other characters, may be the header of a table:
    # `id`, `query_id`.
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
    """Yield each element with its tags, and the line where it begins.

    Args:
        file: of documents or topics; text outside of elements is skipped.
        tag: `doc` or `top`; an element without its end becomes a problem.
        problems: takes such elements, and a file without any element.
    """
    opening = _opening_tag(tag)
    closing = re.compile(rf"</{_tag_names(tag)}>", re.IGNORECASE)
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
        end = closing.search(line)
        lines.append(line[: end.end()] if end else line)
        if end:
            has_blocks = True
            yield SourceLocation(file.path, first_line), "\n".join(lines)
            first_line = 0
    if first_line:
        location = SourceLocation(file.path, first_line)
        problems.add(location, f"<{tag}> has no end", "the file is cut short")
    elif not has_blocks:
        problems.add(file.path, f"holds no <{tag}>", "is this the right file?")


def _opening_tag(tag: str) -> re.Pattern[str]:
    """Return the pattern of `<doc>`, or of `<top>` and `<topic>`, with attributes."""
    return re.compile(rf"<{_tag_names(tag)}(?:\s[^<>]*)?>", re.IGNORECASE)


def _tag_names(tag: str) -> str:
    """Return the pattern of a tag's names: later tracks write `topic` for `top`."""
    return "top(?:ic)?" if tag == "top" else tag


def _split_at(
    opening: re.Pattern[str], lines: Iterable[NumberedLine]
) -> Iterator[NumberedLine]:
    """Yield lines, cut before each beginning of an element; numbers stay."""
    for number, line in lines:
        starts = [match.start() for match in opening.finditer(line)]
        for start, end in pairwise([0, *starts, len(line)]):
            if start < end:  # else nothing is before an element at the line's start
                yield NumberedLine(number, line[start:end])


def _text_of_tags(block: str, tag: str) -> str:
    """Return the text within all elements with this name, one after the other."""
    elements = re.findall(rf"(?is)<{tag}>(.*?)</{tag}>", block)
    return "\n".join(map(_without_tags, elements)).strip()


def _text_after_tag(block: str, tag: str) -> str:
    """Return the text after a tag up to the next one: topics do not close theirs."""
    element = re.search(rf"<{re.escape(tag)}>([^<]*)", block, re.IGNORECASE)
    return " ".join(html.unescape(element[1]).split()) if element else ""


def _labelled_number(block: str) -> str:
    """Return the number of a topic, without a label such as `Number:`."""
    text = _text_after_tag(block, "num") or _text_after_tag(block, "number")
    return TOPIC_NUMBER_LABEL.sub("", text).strip()


def _main_text(block: str) -> str:
    """Return the text in `TEXT`; without it, all text outside DOCNO and titles.

    So a `DATE` beside `TEXT` is left out, but is text where there is no `TEXT`.
    """
    if re.search("<TEXT>", block, re.IGNORECASE):
        return _text_of_tags(block, "TEXT")
    tags = "|".join(("DOCNO", *TITLE_TAGS))
    return _without_tags(re.sub(rf"(?is)<({tags})>.*?</\1>", " ", block))


def _without_tags(text: str) -> str:
    """Return the text outside of tags, entities as characters.

    >>> _without_tags("<p>H<sub>2</sub>O &amp; air</p><p>rise</p>")
    'H2O & air rise'
    """
    text = SEPARATING_TAGS.sub(" ", INLINE_TAG.sub("", text))
    return html.unescape(TAG_PATTERN.sub("", text)).strip()


TREC_COLLECTION = FormatReader(_matches, _read)
"""A collection in a folder or a zip archive."""

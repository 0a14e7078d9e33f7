"""Texts between tags, as the files of TREC have them."""

import html
import re
from collections.abc import Iterable, Iterator
from itertools import pairwise

from harness.dataset.file import File
from harness.dataset.read_problems import ReadProblems
from harness.dataset.source import SourceLocation
from harness.dataset.text_rows import NumberedLine, read_lines

TITLE_TAGS = ("TITLE", "HEADLINE", "HEAD")
TAG_PATTERN = re.compile(r"<[^<>]*>")
INLINE_TAG = re.compile(
    r"</?(?:a|b|em|font|i|small|span|strong|sub|sup|tt|u)(?:\s[^<>]*)?>", re.IGNORECASE
)
"""A tag that may be within a word: H<sub>2</sub>O."""
SEPARATING_TAGS = re.compile(r"(?<=[^\s>])(?:<[^<>]*>)+(?=[^\s<])")
"""Tags that alone stand between two words: a space takes their place."""


def tagged_blocks(
    file: File, tag: str, problems: ReadProblems
) -> Iterator[tuple[SourceLocation, str]]:
    """Yield each element with its tags, and the line where it begins.

    Args:
        file: of documents or topics; text outside of elements is skipped.
        tag: `doc` or `top`; an element without its end becomes a problem.
        problems: takes such elements, and a file without any element.
    """
    opening = opening_tag(tag)
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


def opening_tag(tag: str) -> re.Pattern[str]:
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


def text_of_tags(block: str, tag: str) -> str:
    """Return the text within all elements with this name, one after the other."""
    elements = re.findall(rf"(?is)<{tag}>(.*?)</{tag}>", block)
    return "\n".join(map(_without_tags, elements)).strip()


def text_after_tag(block: str, tag: str) -> str:
    """Return the text after a tag up to the next one: topics do not close theirs."""
    element = re.search(rf"<{re.escape(tag)}>([^<]*)", block, re.IGNORECASE)
    return " ".join(html.unescape(element[1]).split()) if element else ""


def main_text(block: str) -> str:
    """Return the text in `TEXT`; without it, all text outside DOCNO and titles.

    So a `DATE` beside `TEXT` is left out, but is text where there is no `TEXT`.
    """
    if re.search("<TEXT>", block, re.IGNORECASE):
        return text_of_tags(block, "TEXT")
    tags = "|".join(("DOCNO", *TITLE_TAGS))
    return _without_tags(re.sub(rf"(?is)<({tags})>.*?</\1>", " ", block))


def _without_tags(text: str) -> str:
    """Return the text outside of tags, entities as characters.

    >>> _without_tags("<p>H<sub>2</sub>O &amp; air</p><p>rise</p>")
    'H2O & air rise'
    """
    text = SEPARATING_TAGS.sub(" ", INLINE_TAG.sub("", text))
    return html.unescape(TAG_PATTERN.sub("", text)).strip()

"""Titles that a document of another program may have, best first.

The process that converts files imports this.
"""

import io
import re
import zipfile
from typing import Any
from xml.etree.ElementTree import Element

BOILERPLATE_TAGS = ("nav", "header", "footer")
"""Elements of a page of HTML that are not its text."""
WORD_XML = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
"""The namespace of the elements of Word, before their names."""
TITLE_PROPERTY = "{http://purl.org/dc/elements/1.1/}title"
TITLE_STYLE = "title"
"""The name of Word's style, whatever its id in a language is."""
PROGRAM_PREFIX = re.compile(r"^Microsoft (?:Word|PowerPoint|Excel) - ")
"""What printing to a PDF writes before a file's name."""
PLACEHOLDER_TITLES = ("", "untitled", "title", "document", "word document", "pdf")


def title_candidates(raw: bytes, suffix: str) -> list[str]:
    """Return the titles that a file itself declares, best first.

    A file with a damaged part has none: the conversion reports the file.
    """
    readers = {
        ".docx": _word_titles,
        ".pdf": _pdf_titles,
        ".html": _html_titles,
        ".htm": _html_titles,
    }
    if suffix not in readers:
        return []
    try:
        titles = readers[suffix](raw)
    except MemoryError:
        raise
    except Exception:  # a parser may raise anything
        return []
    cleaned = [" ".join(PROGRAM_PREFIX.sub("", title).split()) for title in titles]
    return [title for title in cleaned if title.casefold() not in PLACEHOLDER_TITLES]


def _word_titles(raw: bytes) -> list[str]:
    """Return the first paragraph in style Title, and the title among properties.

    Without such a paragraph, the first is "".
    """
    with zipfile.ZipFile(io.BytesIO(raw)) as archive:
        names = set(archive.namelist())
        body = _parse_xml(archive.read("word/document.xml"))
        style_ids = {TITLE_STYLE}
        if "word/styles.xml" in names:
            style_ids |= _title_style_ids(_parse_xml(archive.read("word/styles.xml")))
        titles = [_styled_text(body, style_ids)]
        if "docProps/core.xml" in names:
            properties = _parse_xml(archive.read("docProps/core.xml"))
            titles.append(properties.findtext(TITLE_PROPERTY, ""))
    return titles


def _parse_xml(raw: bytes) -> Element:
    """Parse XML without entities, which may grow without limit."""
    from defusedxml.ElementTree import fromstring

    element: Element = fromstring(raw)
    return element


def _title_style_ids(styles: Element) -> set[str]:
    ids: set[str] = set()
    for style in styles.iter(f"{WORD_XML}style"):
        name = style.find(f"{WORD_XML}name")
        shown_name = "" if name is None else name.get(f"{WORD_XML}val", "")
        if shown_name.casefold() == TITLE_STYLE:
            ids.add(style.get(f"{WORD_XML}styleId", "").casefold())
    return ids


def _styled_text(body: Element, style_ids: set[str]) -> str:
    """Return the first paragraph of some styles that has a text."""
    for paragraph in body.iter(f"{WORD_XML}p"):
        style = paragraph.find(f"{WORD_XML}pPr/{WORD_XML}pStyle")
        if style is None or style.get(f"{WORD_XML}val", "").casefold() not in style_ids:
            continue
        text = "".join(part.text or "" for part in paragraph.iter(f"{WORD_XML}t"))
        if text.strip():
            return text
    return ""


def _pdf_titles(raw: bytes) -> list[str]:
    from pdfminer.pdfdocument import PDFDocument
    from pdfminer.pdfparser import PDFParser
    from pdfminer.utils import decode_text

    titles: list[str] = []
    for information in PDFDocument(PDFParser(io.BytesIO(raw))).info:
        title = information.get("Title", b"")
        titles.append(decode_text(title) if isinstance(title, bytes) else str(title))
    return titles


def _html_titles(raw: bytes) -> list[str]:
    page = _parse_html(raw)
    return [tag.get_text(" ") for tag in (page.title, page.h1) if tag is not None]


def visible_html(raw: bytes) -> bytes:
    """Return a page without navigation, header, footer; whole if it is those alone.

    >>> visible_html(b"<nav>Home</nav><p>25 days</p>").decode().strip()
    '<p>25 days</p>'
    """
    page = _parse_html(raw)
    for tag in page.find_all(BOILERPLATE_TAGS):
        tag.decompose()
    body = page.body or page
    if not body.get_text(strip=True):
        return raw
    return str(page).encode("utf-8", "replace")


def _parse_html(raw: bytes) -> Any:
    from bs4 import BeautifulSoup

    return BeautifulSoup(raw, "html.parser", from_encoding="utf-8")

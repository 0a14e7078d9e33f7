"""What an id is, which document it means.

Text stays as it is written, in NFC (macOS names files in NFD). Numbers are reduced: an integer, and a float that is
whole, are their digits. Everything else is no id. An id that is none of the documents' is matched by one rule.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from itertools import takewhile
from numbers import Integral, Real
from typing import Any
from unicodedata import normalize


def document_id(value: object) -> str | None:
    r"""Return an id as text, None for what is none: a blank text, a bool, a number that is not whole, a list.

    >>> document_id(7), document_id(7.0), document_id("7.0"), document_id("007"), document_id(10**20)
    ('7', '7', '7.0', '007', '100000000000000000000')
    >>> document_id(" "), document_id(0.5), document_id(True), document_id(float("nan")), document_id(["a"])
    (None, None, None, None, None)
    >>> document_id("e\u0301") == "\u00e9"
    True
    """
    if isinstance(value, str):
        return to_nfc(value) if value and not value.isspace() else None
    if isinstance(value, bool) or not isinstance(value, Real):
        return None
    if isinstance(value, Integral):
        return str(int(value))
    number = float(value)
    return str(int(number)) if number.is_integer() else None


def hit_id(value: object) -> str | None:
    """An id as an answer gives it: a blank text stays, so that it is refused with the place where it was found."""
    return to_nfc(value) if isinstance(value, str) else document_id(value)


def id_column(values: Iterable[Any]) -> list[str | None]:
    """The ids of a column; if it holds a number that is not whole, its numbers are measurements and none is an id.

    >>> id_column([1.0, 2.0, "a"]), id_column([1.0, 2.5])
    (['1', '2', 'a'], [None, None])
    """
    values = list(values)
    ids = [document_id(value) for value in values]
    if any(
        id_ is None and isinstance(value, float) and value == value
        for id_, value in zip(ids, values, strict=True)
    ):
        return [
            id_ if isinstance(value, str) else None
            for id_, value in zip(ids, values, strict=True)
        ]
    return ids


def to_nfc(text: str) -> str:
    """A text in Unicode's composed form, in which ids are compared."""
    return text if text.isascii() else normalize("NFC", text)


DOCUMENT_SUFFIXES = (
    ".md",
    ".markdown",
    ".mdx",
    ".rst",
    ".adoc",
    ".org",
    ".txt",
    ".text",
    ".html",
    ".htm",
    ".xhtml",
    ".xml",
    ".json",
    ".yaml",
    ".yml",
    ".pdf",
    ".doc",
    ".docx",
    ".odt",
    ".rtf",
    ".ppt",
    ".pptx",
    ".xls",
    ".xlsx",
    ".csv",
    ".tsv",
    ".epub",
    ".eml",
    ".msg",
    ".ipynb",
)
"""Suffixes of files that are documents: no other is removed, since `pkg.load` and `pkg.save` are two ids."""
WHOLE_FLOAT = re.compile(r"([0-9]+)\.0+")
"""A whole number as a float is written."""


def without_suffix(name: str) -> str:
    r"""A path without the suffix of a file, its folders parted by slashes.

    >>> without_suffix("hr/leave.md"), without_suffix("hr\\leave.final.docx"), without_suffix("7.10"), without_suffix(".env")
    ('hr/leave', 'hr/leave.final', '7.10', '.env')
    """
    path = name.replace("\\", "/").removeprefix("./")
    before, dot, suffix = path.rpartition(".")
    return (
        before
        if before
        and not before.endswith("/")
        and f"{dot}{suffix.lower()}" in DOCUMENT_SUFFIXES
        else path
    )


def normalise_text(text: str) -> str:
    """A text without regard to white space and case."""
    return " ".join(to_nfc(text).split()).casefold()


@dataclass(frozen=True, slots=True)
class IdMatch:
    """The document that an id means."""

    document: str
    matched_by: str
    """File name, folder, base name, whole number, title; or id."""


@dataclass(slots=True)
class KnownDocuments:
    """The ids of a corpus, with what else may name its documents."""

    ids: set[str] = field(default_factory=set)
    _titles: dict[bytes, str] = field(default_factory=dict)
    """Digest of a title -> the document that has it, "" where several have."""
    _by_path: dict[str, dict[str, str]] = field(default_factory=dict)
    """Way -> what names a document -> its id, "" where it names several; made when it is first needed."""

    def add(self, id_: str, title: str = "") -> None:
        """Take in a document."""
        self.ids.add(id_)
        if title and (key := normalise_text(title)):
            digest = _digest(key)
            self._titles[digest] = id_ if self._titles.get(digest, id_) == id_ else ""

    def match(self, names: Iterable[str]) -> dict[str, IdMatch]:
        """Return the documents that some ids mean, those that mean none left out.

        The ids are looked at together: a folder that all of them have before them is ignored if nothing else
        helps, and two folders before the same name mean no document.

        >>> known = KnownDocuments({"hr/leave", "hr/pay", "it/vpn"})
        >>> {name: match.document for name, match in known.match(["docs/hr/leave.md", "vpn.md", "it/pay"]).items()}
        {'docs/hr/leave.md': 'hr/leave', 'vpn.md': 'it/vpn'}
        """
        names = dict.fromkeys(names)
        found = {name: IdMatch(name, "id") for name in names if name in self.ids}
        unknown = [name for name in names if name not in found]
        if not unknown or not self.ids:
            return found
        if not self._by_path:
            self._by_path = _paths(self.ids)
        named = {
            name: match for name in unknown if (match := self._named(name)) is not None
        }
        places = Counter(
            match.document for match in named.values() if match.matched_by == "folder"
        )
        found |= {
            one: match
            for one, match in named.items()
            if match.matched_by != "folder" or places[match.document] == 1
        }
        left = [name for name in unknown if name not in named]
        prefix = common_folder(left) if len(left) > 1 else ""
        if prefix and not any(
            without_suffix(id_).startswith(prefix) for id_ in self.ids
        ):
            inner = {
                name: self._named(without_suffix(name).removeprefix(prefix))
                for name in left
            }
            found |= {
                name: IdMatch(match.document, "folder")
                for name, match in inner.items()
                if match is not None
            }
        return found

    def find(self, name: str) -> str | None:
        """The document that one id means, looked at by itself."""
        match = self.match([name]).get(name)
        return None if match is None else match.document

    def _named(self, name: str) -> IdMatch | None:
        path = without_suffix(name)
        keys = [
            ("file name", path),
            *(("folder", tail) for tail in _tails(path)),
            ("base name", path),
        ]
        if whole := WHOLE_FLOAT.fullmatch(name.strip()):
            keys.append(("whole number", whole[1]))
        for way, key in keys:
            table = self._by_path["base name" if way == "base name" else "file name"]
            if (document := table.get(key)) is not None:
                return IdMatch(document, way) if document else None
        document = self._titles.get(_digest(normalise_text(name)), "")
        return IdMatch(document, "title") if document else None


def _paths(ids: Collection[str]) -> dict[str, dict[str, str]]:
    tables: dict[str, dict[str, str]] = {"file name": {}, "base name": {}}
    for id_ in ids:
        path = without_suffix(id_)
        whole = tables["file name"]
        whole[path] = "" if path in whole else id_
        for tail in _tails(path):
            tables["base name"][tail] = "" if tail in tables["base name"] else id_
    for id_ in ids:  # an id that another's stem equals still means itself
        tables["file name"].setdefault(id_, id_)
    return tables


def _tails(path: str) -> list[str]:
    """A path without its first folder, without its first two, and so on.

    >>> _tails("a/b/c")
    ['b/c', 'c']
    """
    parts = path.split("/")
    return [tail for start in range(1, len(parts)) if (tail := "/".join(parts[start:]))]


def common_folder(names: Collection[str]) -> str:
    """The folders that all paths begin with, with a slash behind them; "" where there are none.

    >>> common_folder(["docs/hr/a", "docs/b"]), common_folder(["a", "b"])
    ('docs/', '')
    """
    folders = zip(
        *(without_suffix(name).split("/")[:-1] for name in names), strict=False
    )
    return "".join(
        f"{one[0]}/" for one in takewhile(lambda one: len(set(one)) == 1, folders)
    )


def count_matches_by_way(matches: Iterable[IdMatch]) -> Counter[str]:
    """By what ids name their documents -> how many do."""
    return Counter(match.matched_by for match in matches)


def _digest(text: str) -> bytes:
    return hashlib.blake2b(
        text.encode("utf-8", "surrogatepass"), digest_size=8
    ).digest()


CONTROL_CHARACTERS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]+")
"""What no id may hold: it would make a row of its own in a table, or cannot be written."""

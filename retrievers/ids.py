"""Ids of documents, exact or nearly so.

A text is an id in NFC (macOS names files in NFD). A whole number, integer or float,
is an id by its digits. Nothing else is an id. An id that no document has may still mean
one, as a path, a number or a title: `KnownDocuments.match` is the only rule for that.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from numbers import Integral, Real
from typing import Any
from unicodedata import normalize

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
"""Suffixes of files that are documents: only these are removed from an id, since
`pkg.load` and `pkg.save` are two ids."""
WHOLE_FLOAT = re.compile(r"([0-9]+)\.0+")
"""A whole number written as a float."""
CONTROL_CHARACTERS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]+")
"""Characters that no id may have: they would break a table's row, or cannot be
written."""


def document_id(value: object) -> str | None:
    r"""Return an id as text; None for a value that is not an id.

    Blank texts, booleans, numbers that are not whole and lists are not ids.

    >>> document_id(7), document_id(7.0), document_id("7.0"), document_id("007")
    ('7', '7', '7.0', '007')
    >>> document_id(10**20)
    '100000000000000000000'
    >>> document_id(" "), document_id(0.5), document_id(True), document_id(["a"])
    (None, None, None, None)
    >>> document_id(float("nan")) is None
    True
    >>> document_id("e\u0301") == "\u00e9"
    True
    """
    if isinstance(value, str):
        is_blank = not value or value.isspace()
        return None if is_blank else to_nfc(value)
    if isinstance(value, bool) or not isinstance(value, Real):
        return None
    if isinstance(value, Integral):
        return str(int(value))
    number = float(value)
    return str(int(number)) if number.is_integer() else None


def hit_id(value: object) -> str | None:
    """Return a hit's id; a blank text stays, and is refused later with its location."""
    return to_nfc(value) if isinstance(value, str) else document_id(value)


def id_column(values: Iterable[Any]) -> list[str | None]:
    """Return the ids in a column.

    If the column has a number that is not whole, its numbers are measurements, not ids:
    they become None.

    >>> id_column([1.0, 2.0, "a"]), id_column([1.0, 2.5])
    (['1', '2', 'a'], [None, None])
    """
    cells = list(values)
    if any(map(_is_fraction, cells)):
        return [document_id(cell) if isinstance(cell, str) else None for cell in cells]
    return [document_id(cell) for cell in cells]


def _is_fraction(cell: Any) -> bool:
    """Whether a cell is a float that is neither whole nor NaN."""
    if not isinstance(cell, float) or math.isnan(cell):
        return False
    return document_id(cell) is None


def to_nfc(text: str) -> str:
    """Return a text in Unicode's composed form, in which ids are compared."""
    return text if text.isascii() else normalize("NFC", text)


def without_suffix(name: str) -> str:
    r"""Return a path without the suffix of a file, its folders separated by slashes.

    >>> without_suffix("hr/leave.md"), without_suffix("hr\\leave.final.docx")
    ('hr/leave', 'hr/leave.final')
    >>> without_suffix("7.10"), without_suffix(".env")
    ('7.10', '.env')
    """
    path = name.replace("\\", "/").removeprefix("./")
    stem, dot, suffix = path.rpartition(".")
    has_file_name = bool(stem) and not stem.endswith("/")
    if has_file_name and f"{dot}{suffix.lower()}" in DOCUMENT_SUFFIXES:
        return stem
    return path


def normalise_text(text: str) -> str:
    """Return a text with single spaces and in one case."""
    return " ".join(to_nfc(text).split()).casefold()


@dataclass(frozen=True, slots=True)
class IdMatch:
    """The document that an id means."""

    document: str
    matched_by: str
    """"id", "file name", "folder", "whole number" or "title"."""


@dataclass(slots=True)
class KnownDocuments:
    """The ids of a corpus, with everything else that may name its documents."""

    ids: set[str] = field(default_factory=set)
    _title_owners: dict[bytes, str] = field(default_factory=dict)
    """Digest of a title -> the document that has it; "" if several have it."""
    _paths: _DocumentPaths | None = None
    """Computed when it is first needed, after the last `add`."""

    def add(self, id_: str, title: str = "") -> None:
        """Add a document."""
        self.ids.add(id_)
        normalised_title = normalise_text(title)
        if normalised_title:
            digest = _digest(normalised_title)
            is_unique = self._title_owners.get(digest, id_) == id_
            self._title_owners[digest] = id_ if is_unique else ""

    def match(self, names: Iterable[str]) -> dict[str, IdMatch]:
        """Return the documents that some ids mean; ids that mean none are left out.

        The ids are matched together: a folder that all of them begin with is ignored
        if nothing else helps, and ids with different folders before the path of one
        document mean none.

        >>> known = KnownDocuments({"hr/leave", "hr/pay", "it/vpn"})
        >>> matches = known.match(["docs/hr/leave.md", "vpn.md", "it/pay"])
        >>> {name: match.document for name, match in matches.items()}
        {'docs/hr/leave.md': 'hr/leave', 'vpn.md': 'it/vpn'}
        """
        distinct_names = list(dict.fromkeys(names))
        matches: dict[str, IdMatch] = {}
        unknown_names = []
        for name in distinct_names:
            if name in self.ids:
                matches[name] = IdMatch(name, "id")
            else:
                unknown_names.append(name)
        if not unknown_names or not self.ids:
            return matches
        if self._paths is None:
            self._paths = _DocumentPaths.of_ids(self.ids)
        separate_matches: dict[str, IdMatch] = {}
        unmatched_names = []
        for name in unknown_names:
            match = self._match_separately(name, self._paths)
            if match is None:
                unmatched_names.append(name)
            else:
                separate_matches[name] = match
        matches |= _without_ambiguous_folders(separate_matches)
        matches |= self._match_below_common_folder(unmatched_names, self._paths)
        return matches

    def find(self, name: str) -> str | None:
        """Return the document that one id means by itself; None if it means none."""
        match = self.match([name]).get(name)
        return None if match is None else match.document

    def _match_separately(self, name: str, paths: _DocumentPaths) -> IdMatch | None:
        """Return the document that an id means if other ids are not considered."""
        # The first way that fits decides, and an id that fits several documents by it
        # means none: the path of a document, such a path with folders before it or
        # without its first folders, a number, a title.
        path = without_suffix(name)
        if path in paths.whole_paths:
            return paths.match(path, "file name")
        for tail in _path_tails(path):
            if tail in paths.whole_paths:
                return paths.match(tail, "folder")
        if path in paths.document_by_tail:
            return paths.match(path, "file name")
        whole_float = WHOLE_FLOAT.fullmatch(name.strip())
        if whole_float and whole_float[1] in paths.whole_paths:
            return paths.match(whole_float[1], "whole number")
        title_owner = self._title_owners.get(_digest(normalise_text(name)), "")
        return _unique_match(title_owner, "title")

    def _match_below_common_folder(
        self, names: Sequence[str], paths: _DocumentPaths
    ) -> dict[str, IdMatch]:
        """Return matches of several ids without the folder that all begin with.

        Empty if documents have that folder, too: then ids with it may differ by it.
        """
        prefix = common_folder(names) if len(names) > 1 else ""
        if not prefix:
            return {}
        if any(without_suffix(id_).startswith(prefix) for id_ in self.ids):
            return {}
        matches = {}
        for name in names:
            path_in_folder = without_suffix(name).removeprefix(prefix)
            match = self._match_separately(path_in_folder, paths)
            if match is not None:
                matches[name] = IdMatch(match.document, "folder")
        return matches


@dataclass(frozen=True, slots=True)
class _DocumentPaths:
    """The documents that paths name."""

    document_by_tail: dict[str, str]
    """Path, whole or without its first folders -> document; "" if it names several.

    A whole path names its own document, whatever other paths end with it.
    """
    whole_paths: frozenset[str]
    """The whole paths: ids, with and without their suffixes."""

    @classmethod
    def of_ids(cls, ids: Collection[str]) -> _DocumentPaths:
        by_path: dict[str, str] = {}
        by_tail: dict[str, str] = {}
        for id_ in ids:
            path = without_suffix(id_)
            by_path[path] = "" if path in by_path else id_
            for tail in _path_tails(path):
                by_tail[tail] = "" if tail in by_tail else id_
        for id_ in ids:  # an id that equals the path of another still means itself
            by_path.setdefault(id_, id_)
        return cls(by_tail | by_path, frozenset(by_path))

    def match(self, path: str, matched_by: str) -> IdMatch | None:
        """Return the match with the document of a path; None if it names several."""
        return _unique_match(self.document_by_tail[path], matched_by)


def _unique_match(document: str, matched_by: str) -> IdMatch | None:
    """Return the match with a document; None if there is none ("")."""
    return IdMatch(document, matched_by) if document else None


def _without_ambiguous_folders(matches: dict[str, IdMatch]) -> dict[str, IdMatch]:
    """Return matches, without those by a folder if several have the same document."""
    folder_counts = Counter(
        match.document for match in matches.values() if match.matched_by == "folder"
    )
    return {
        name: match
        for name, match in matches.items()
        if match.matched_by != "folder" or folder_counts[match.document] == 1
    }


def _path_tails(path: str) -> list[str]:
    """Return a path without its first folder, without its first two, and so on.

    >>> _path_tails("a/b/c")
    ['b/c', 'c']
    """
    steps = path.split("/")
    tails = ["/".join(steps[start:]) for start in range(1, len(steps))]
    return [tail for tail in tails if tail]


def common_folder(names: Collection[str]) -> str:
    """Return the folders that all paths begin with and a slash; empty if none.

    >>> common_folder(["docs/hr/a", "docs/b"]), common_folder(["a", "b"])
    ('docs/', '')
    """
    folders_by_path = [without_suffix(name).split("/")[:-1] for name in names]
    levels = map(set, zip(*folders_by_path, strict=False))
    common_levels = takewhile(lambda folders: len(folders) == 1, levels)
    return "".join(f"{folder}/" for (folder,) in common_levels)


def count_matches_by_way(matches: Iterable[IdMatch]) -> Counter[str]:
    """Return how many ids were matched in each way."""
    return Counter(match.matched_by for match in matches)


def _digest(text: str) -> bytes:
    encoded_text = text.encode("utf-8", "surrogatepass")
    return hashlib.blake2b(encoded_text, digest_size=8).digest()

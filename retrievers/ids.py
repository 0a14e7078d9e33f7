"""What an id is, on every road: files, frames, dicts, saved runs, search endpoints and functions.

Text stays as it is written, in NFC (macOS names files in NFD). Numbers are reduced: an integer, and a float that is
whole, are their digits. Everything else is no id.
"""

from collections.abc import Iterable
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
        return nfc(value) if value and not value.isspace() else None
    if isinstance(value, bool) or not isinstance(value, Real):
        return None
    if isinstance(value, Integral):
        return str(int(value))
    number = float(value)
    return str(int(number)) if number.is_integer() else None


def hit_id(value: object) -> str | None:
    """An id as an answer gives it: a blank text stays, so that it is refused with the place where it was found."""
    return nfc(value) if isinstance(value, str) else document_id(value)


def id_column(values: Iterable[Any]) -> list[str | None]:
    """The ids of a column; if it holds a number that is not whole, its numbers are measurements and none is an id.

    >>> id_column([1.0, 2.0, "a"]), id_column([1.0, 2.5])
    (['1', '2', 'a'], [None, None])
    """
    values = list(values)
    ids = [document_id(value) for value in values]
    if any(id_ is None and isinstance(value, float) and value == value for id_, value in zip(ids, values, strict=True)):
        return [id_ if isinstance(value, str) else None for id_, value in zip(ids, values, strict=True)]
    return ids


def nfc(text: str) -> str:
    """A text in Unicode's composed form, in which ids are compared."""
    return text if text.isascii() else normalize("NFC", text)

"""How many tokens texts have: exactly where the tokenizer lies on this machine, else an estimate."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import tempfile
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Counts = npt.NDArray[np.int64]
Count = Callable[[Sequence[str]], Counts]

_PIECES = re.compile(r"[A-Za-z]+|\d{1,3}|[^\sA-Za-z\d]")
_ASCII = re.compile(r"[\x00-\x7f]+")
_CL100K_URL = "https://openaipublic.blob.core.windows.net/encodings/cl100k_base.tiktoken"
_CL100K_SHA256 = "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7"


class Tokens(NamedTuple):
    """Tokens of some texts as they would be billed or read; not exact: an estimate, shown with ≈."""

    counts: Counts
    exact: bool


def estimate(texts: Sequence[str]) -> Counts:
    """Return an estimate of the tokens of each text for today's subword tokenizers: rather too many, of prose.

    It is no bound: code, and writing that a tokenizer knows little of, may have three times as many.

    A token for every four letters of an ASCII word, three digits, or other ASCII mark; 3/4 of a token for a letter
    of Latin, Greek and Cyrillic beyond ASCII; 3/2 for kana, kanji and Hangul; 5/2 for anything else.

    >>> estimate(["Retrieval harness", "顧客満足度", ""]).tolist()
    [5, 8, 0]
    """
    return np.asarray([_estimated(text) for text in texts], dtype=np.int64)


def beginning(text: str, limit: int) -> str:
    """Return the beginning of a text that has at most so many tokens, as estimated.

    >>> beginning("one two three four", 2)
    'one two'
    """
    while (count := int(estimate([text])[0])) > limit:
        end = min(len(text) * limit // count, len(text) - 1)
        whole = text[:end] if text[end].isspace() else text[:end].rpartition(" ")[0]
        text = whole.rstrip() or text[:end]
    return text


def _estimated(text: str) -> int:
    total = 0.0
    if not text.isascii():
        for letter in _ASCII.sub("", text):
            total += 0.75 if letter < "\u0530" else 1.5 if "\u3000" <= letter < "\ud7ff" or letter >= "\uff00" else 2.5
        text = " ".join(_ASCII.findall(text))
    for piece in _PIECES.findall(text):
        total += (len(piece) + 3) // 4 if piece[0].isalpha() else 1
    return int(np.ceil(total))


def openai_tokens(texts: Sequence[str]) -> Tokens:
    """Return the tokens of texts for OpenAI's embedding models.

    Exact where tiktoken is installed and its vocabulary cl100k_base lies in tiktoken's cache; it is never fetched.
    """
    encoding = _cl100k()
    if encoding is None:
        return Tokens(estimate(texts), exact=False)
    return Tokens(np.asarray([len(ids) for ids in encoding(list(texts))], dtype=np.int64), exact=True)


@lru_cache(maxsize=1)
def _cl100k() -> Callable[[list[str]], list[list[int]]] | None:
    """Tiktoken's encoder for many texts, None where using it would need the network."""
    if importlib.util.find_spec("tiktoken") is None:
        return None
    named = os.environ.get("TIKTOKEN_CACHE_DIR", os.environ.get("DATA_GYM_CACHE_DIR"))
    folder = Path(tempfile.gettempdir(), "data-gym-cache") if named is None else Path(named)
    file = folder / hashlib.sha1(_CL100K_URL.encode(), usedforsecurity=False).hexdigest()
    if named == "" or not file.is_file() or hashlib.sha256(file.read_bytes()).hexdigest() != _CL100K_SHA256:
        return None
    import tiktoken

    return tiktoken.get_encoding("cl100k_base").encode_ordinary_batch

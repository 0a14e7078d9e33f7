"""Tokens of texts in a context, by one tokenizer for all retrievers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from retrievers.errors import InputError, Problem
from retrievers.files.text_files import is_folder, user_path
from retrievers.local.text_limits import count_tokens, read_tokenizer
from retrievers.local.weights import HUB_NAME_PATTERN, Weights
from retrievers.options.placeholders import expand
from retrievers.texts.token_estimate import Counts, TokenCounter
from retrievers.texts.word_tokens import EAST_ASIAN_CHARACTERS, UNSPACED_CHARACTERS

TOKENS_PER_THREE_WORDS = 4
"""English prose has about four tokens for three words."""
TOKENIZER_FILE = "tokenizer.json"
SHORT_NAME_OWNER = "sentence-transformers"
"""Whose model a short name is, as for encoders."""


def words_as_tokens(texts: Sequence[str]) -> Counts:
    """Return the words of each text times 4/3, rounded up.

    A word ends at white space; each character of Chinese, Japanese and Korean, and of
    other scripts without spaces, is a word.

    >>> words_as_tokens(["one two three", "one two", "", "顧客 NPS"]).tolist()
    [4, 3, 0, 4]
    """
    counts = [
        math.ceil(_count_words(text) * TOKENS_PER_THREE_WORDS / 3) for text in texts
    ]
    return np.asarray(counts, dtype=np.int64)


def _count_words(text: str) -> int:
    if text.isascii():
        return len(text.split())
    return len(_word_pattern().findall(text))


@cache
def _word_pattern() -> Any:
    """Return the pattern of words, compiled on first use."""
    import regex

    unspaced = rf"[{EAST_ASIAN_CHARACTERS}{UNSPACED_CHARACTERS}]"
    return regex.compile(rf"{unspaced}|(?:(?!{unspaced})\S)+", regex.VERSION1)


def context_token_counter(tokenizer: str) -> TokenCounter:
    """Return the function that counts tokens by a declared tokenizer.

    Args:
        tokenizer: a tokenizer.json, a model's folder, or the name of a model whose
            files are on this machine; "" for words times 4/3.

    Raises:
        InputError: the tokenizer is missing, or cannot be read.
    """
    if not tokenizer:
        return words_as_tokens
    encoder = _read_tokenizer(tokenizer)
    return lambda texts: count_tokens(encoder, texts, special=False)


def _read_tokenizer(tokenizer: str) -> Any:
    option = "budget.tokenizer"
    remedy = "name a tokenizer.json, or a model's folder that has one"
    file = _tokenizer_file(tokenizer)
    if file is None or not file.is_file():
        problem = f"{tokenizer!r} is no tokenizer on this machine"
        raise InputError(Problem(option, problem, remedy))
    return read_tokenizer(file, option=option, remedy=remedy)


def _tokenizer_file(tokenizer: str) -> Path | None:
    """Return the file of a tokenizer, or of a model; None if there is no such model."""
    path = user_path(expand(tokenizer))
    try:
        if path.is_file():
            return path
    except OSError:  # the name is too long, or a folder above it may not be read
        return None
    if not is_folder(path) and not HUB_NAME_PATTERN.fullmatch(str(path)):
        return None
    snapshot = Weights(str(path), organization=SHORT_NAME_OWNER).snapshot
    return None if snapshot is None else snapshot / TOKENIZER_FILE

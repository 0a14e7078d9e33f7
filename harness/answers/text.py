"""Texts as tokens and sentences, in any language: what BLEU, ROUGE and token F1 all count."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Literal, get_args

from retrievers.errors import InputError, Problem

Tokenizer = Literal["13a", "intl", "char", "zh", "ja-mecab", "ko-mecab"]
"""Tokenizers of sacrebleu that download nothing; "flores200" and the like fetch a model, and are left out."""
TOKENIZERS: tuple[str, ...] = get_args(Tokenizer)
EXTRAS = {"ja-mecab": "ja", "ko-mecab": "ko"}
"""Tokenizers with a dictionary of their own: the extra of this project that installs it."""
UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af]"
)
"""Thai, Lao, Burmese, Khmer, kana, kanji and hangul: tokens at spaces say little or nothing there."""
LETTER = re.compile(r"[^\W\d_]")
SENTENCE_END = re.compile(r"(?<=[。！？!?])(?![」』）)\"'。！？!?\[])|(?<=[.])\s+|\n+")
WORD = re.compile(r"\w")


def tokenizer_of(texts: Iterable[str]) -> Tokenizer:
    """Choose a tokenizer by the script: characters where a fifth of the letters need no spaces, else 13a.

    It never depends on what is installed: dictionaries are used where they are asked for by name.

    >>> tokenizer_of(["survey on customer satisfaction"]), tokenizer_of(["顧客満足度に関する NPS"])
    ('13a', 'char')
    """
    letters = unspaced = 0
    for text in texts:
        letters += len(LETTER.findall(text))
        unspaced += len(UNSPACED.findall(text))
    return "char" if unspaced > letters / 5 else "13a"


def words(text: str, tokenizer: Tokenizer) -> list[str]:
    """Split a text into sacrebleu's tokens, lower-cased, without those that are punctuation alone.

    Raises:
        InputError: the tokenizer needs a package that is not installed.

    >>> words("The lazy dog.", "13a"), words("犬だ。", "char")
    (['the', 'lazy', 'dog'], ['犬', 'だ'])
    """
    return [token for token in splitter(tokenizer)(text.lower()).split() if WORD.search(token)]


@lru_cache
def splitter(tokenizer: Tokenizer) -> Callable[[str], str]:
    """The function of sacrebleu that puts spaces between the tokens of a text.

    Raises:
        InputError: sacrebleu or the tokenizer's dictionary is not installed, or there is no such tokenizer.
    """
    if tokenizer not in TOKENIZERS:
        raise InputError(Problem("tokenizer", f"there is none named {tokenizer!r}", f"known: {', '.join(TOKENIZERS)}"))
    needs_sacrebleu()
    from sacrebleu.metrics.bleu import BLEU

    try:
        split: Callable[[str], str] = BLEU(tokenize=tokenizer).tokenizer
    except (ImportError, RuntimeError):
        extra = f"[{EXTRAS[tokenizer]}]" if tokenizer in EXTRAS else ""
        remedy = f'pip install "sacrebleu{extra}", or use the tokenizer "char"'
        raise InputError(Problem("tokenizer", f"{tokenizer!r} needs a dictionary", remedy)) from None
    return split


def needs_sacrebleu() -> None:
    """Refuse to go on without sacrebleu, naming the extra that installs it."""
    try:
        import sacrebleu  # noqa: F401
    except ImportError:
        remedy = 'pip install sacrebleu, or the extra "answers"'
        raise InputError(Problem("answers", "BLEU, chrF and ROUGE need the package sacrebleu", remedy)) from None


def sentences(text: str) -> list[str]:
    """Split a text at the ends of its sentences and at line breaks.

    >>> sentences("It asks about price. Does it? Yes.")
    ['It asks about price.', 'Does it?', 'Yes.']
    >>> sentences("価格を聞く。理由も聞く。")
    ['価格を聞く。', '理由も聞く。']
    """
    return [part.strip() for part in SENTENCE_END.split(text) if part.strip()]

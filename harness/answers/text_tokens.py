"""Tokens of any language."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, get_args

import regex

from retrievers.errors import InputError, Problem, require_package
from retrievers.texts.word_tokens import WORD_CHARACTERS

if TYPE_CHECKING:
    from sacrebleu.metrics.bleu import BLEU

Tokenizer = Literal["13a", "intl", "char", "zh", "ja-mecab", "ko-mecab"]
"""Tokenizers of sacrebleu that download nothing.

Others, such as "flores200", download a model and are excluded.
"""
TOKENIZERS: tuple[str, ...] = get_args(Tokenizer)
TOKENIZER_EXTRAS = {"ja-mecab": "ja", "ko-mecab": "ko"}
"""Tokenizers that need a dictionary -> the extra that installs it."""
UNSPACED_LETTERS = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af]"
)
"""Thai, Lao, Burmese, Khmer, kana, kanji and hangul: spaces do not separate words."""
LETTER_PATTERN = re.compile(r"[^\W\d_]")
SENTENCE_END = re.compile(r"(?<=[。！？!?])(?![」』）)\"'。！？!?\[])|(?<=[.])\s+|\n+")
"""Where a sentence ends: after 。！？!?, unless another such mark, a closing quote or a
citation follows; after a full stop with white space; at the end of a line.
"""
TOKEN_PATTERN = regex.compile(rf"(?V1)[{WORD_CHARACTERS}_]")
"""A token without such a character is punctuation."""


def choose_tokenizer(texts: Iterable[str]) -> Tokenizer:
    """Choose a tokenizer by the script.

    "char" if more than a fifth of the letters need no spaces, else "13a". It does not
    depend on installed packages: dictionaries are used only if they are named.

    >>> choose_tokenizer(["survey on customer satisfaction"])
    '13a'
    >>> choose_tokenizer(["顧客満足度に関する NPS"])
    'char'
    """
    text = "\n".join(texts)
    unspaced_letters = len(UNSPACED_LETTERS.findall(text))
    letters = len(LETTER_PATTERN.findall(text))
    return "char" if unspaced_letters > letters / 5 else "13a"


def split_tokens(text: str, tokenizer: Tokenizer) -> list[str]:
    """Split a text into sacrebleu's tokens, lower-cased, without punctuation.

    Raises:
        InputError: the tokenizer needs a package that is not installed.

    >>> split_tokens("The lazy dog.", "13a")
    ['the', 'lazy', 'dog']
    >>> split_tokens("犬だ。", "char"), split_tokens("ดี", "char")
    (['犬', 'だ'], ['ด', 'ี'])
    """
    tokens = token_splitter(tokenizer)(text.lower()).split()
    return [token for token in tokens if TOKEN_PATTERN.search(token)]


@lru_cache
def token_splitter(tokenizer: Tokenizer) -> Callable[[str], str]:
    """The function of sacrebleu that puts spaces between the tokens of a text.

    Raises:
        InputError: as `sacrebleu_metric`.
    """
    split: Callable[[str], str] = sacrebleu_metric(tokenizer).tokenizer
    return split


def require_sacrebleu() -> None:
    """Raise an error without sacrebleu, with the extra that installs it."""
    with require_package("BLEU, chrF and ROUGE", "sacrebleu", "answers"):
        import sacrebleu  # noqa: F401


def split_sentences(text: str) -> list[str]:
    """Split a text at the ends of its sentences and at line breaks.

    >>> split_sentences("It asks about price. Does it? Yes.")
    ['It asks about price.', 'Does it?', 'Yes.']
    >>> split_sentences("価格を聞く。理由も聞く。")
    ['価格を聞く。', '理由も聞く。']
    """
    sentences = (part.strip() for part in SENTENCE_END.split(text))
    return [sentence for sentence in sentences if sentence]


def sacrebleu_metric(tokenizer: Tokenizer, **options: Any) -> BLEU:
    """BLEU of sacrebleu.

    Raises:
        InputError: sacrebleu or the tokenizer's dictionary is not installed, or there
            is no such tokenizer.
    """
    if tokenizer not in TOKENIZERS:
        remedy = f"known: {', '.join(TOKENIZERS)}"
        raise InputError(Problem("tokenizer", f"no tokenizer {tokenizer!r}", remedy))
    require_sacrebleu()
    from sacrebleu.metrics.bleu import BLEU

    try:
        return BLEU(tokenize=tokenizer, **options)
    except (ImportError, RuntimeError):
        package = "sacrebleu"
        if tokenizer in TOKENIZER_EXTRAS:
            package += f"[{TOKENIZER_EXTRAS[tokenizer]}]"
        problem = f"{tokenizer!r} needs a dictionary"
        remedy = f'pip install "{package}", or use the tokenizer "char"'
        raise InputError(Problem("tokenizer", problem, remedy)) from None

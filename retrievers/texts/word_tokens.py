"""What BM25 counts: the words of a text.

The rule follows the word boundaries of Unicode (UAX #29), with these decisions:

* A word is a run of letters, digits, underscores and **marks**: a vowel sign or a point never ends a word (WB4).
  One apostrophe between letters stays inside; every other punctuation ends a word, also `.` and `:` inside numbers.
* Scripts that UAX #29 leaves to a dictionary because they put no spaces between words (Line_Break=Complex_Context:
  Thai, Lao, Khmer, Burmese and their kin) are cut into runs of three grapheme clusters that overlap by two.
* Kana, kanji and hangul are cut into runs of two grapheme clusters that overlap by one.
* What has no look of its own (joiners, soft hyphens, marks of direction, variation selectors) is left out, so that a
  word is one term with and without it. A zero-width space ends a word, but not in a script that is cut into threes,
  where it is written in some texts and not in others.
* Letters are compared after compatibility composition (NFKC) and in lower case. Accents and vowel points are kept:
  nothing is folded that changes a word in some language.
"""

import re
import unicodedata
from functools import cache

import regex

TOKENIZATION_RULE = "uax29-3"
"""Names this rule in a retriever's fingerprint; another rule gets another name."""
BIGRAM_CHARACTERS = r"\u3040-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uac00-\ud7af々〆"
"""Kana, kanji and hangul."""
TRIGRAM_CHARACTERS = r"\p{Line_Break=Complex_Context}"
"""Scripts without spaces, as Unicode's line breaking names them."""
WORD_CHARACTERS = r"\p{L}\p{N}[\p{M}--\p{Default_Ignorable_Code_Point}]"
"""Letters, digits, and marks: without its vowel signs many a word of Hindi or Thai is another one."""
ASCII_WORD = re.compile(r"\w+(?:'\w+)?")
"""The same rule where a text holds nothing but ASCII, which is found in a third of the time."""
DOT_ABOVE = "\u0307"


def tokenize(text: str) -> list[str]:
    """Split text into the terms that BM25 counts.

    >>> tokenize("Don't use iPhone 15")
    ["don't", 'use', 'iphone', '15']
    >>> tokenize("हिन्दी भाषा")
    ['हिन्दी', 'भाषा']
    >>> tokenize("顧客満足 NPS")
    ['顧客', '客満', '満足', 'nps']
    >>> tokenize("ที่นี่ไทย")
    ['ที่นี่ไ', 'นี่ไท', 'ไทย']
    """
    if text.isascii():
        return ASCII_WORD.findall(text.lower())
    invisible, runs, cluster = _patterns()
    folded = unicodedata.normalize("NFKC", invisible.sub("", text)).lower()
    # The Turkish İ becomes i with a dot above, which no Turkish text holds.
    folded = folded.replace("i" + DOT_ABOVE, "i")
    terms: list[str] = []
    for run in runs.finditer(folded):
        if run.lastgroup is None:
            terms.append(run[0])
        else:
            terms.extend(
                _overlapping(
                    cluster.findall(run[0]), 3 if run.lastgroup == "tripled" else 2
                )
            )
    return terms


def _overlapping(clusters: list[str], size: int) -> list[str]:
    """Every `size` neighbours as one term; a shorter run is one term as it is."""
    return [
        "".join(clusters[i : i + size]) for i in range(max(1, len(clusters) - size + 1))
    ]


@cache
def _patterns() -> tuple[regex.Pattern[str], ...]:
    """What has no look; a run in one of the groups `paired` and `tripled`, or else a word; and a grapheme cluster.

    Compiled at the first use: Unicode's tables take longer than the rest of the import.
    """
    letter = rf"[[\w\p{{N}}]--[\p{{M}}{BIGRAM_CHARACTERS}{TRIGRAM_CHARACTERS}]]"
    word = rf"{letter}(?:{letter}|\p{{M}})*+"
    return (
        regex.compile(
            rf"(?V1)[\p{{Default_Ignorable_Code_Point}}--\u200b]|(?<={TRIGRAM_CHARACTERS})\u200b+(?={TRIGRAM_CHARACTERS})"
        ),
        regex.compile(
            rf"(?V1){word}(?:'{word})?+"
            rf"|(?P<tripled>{TRIGRAM_CHARACTERS}[{TRIGRAM_CHARACTERS}\p{{M}}]*+)|(?P<paired>[{BIGRAM_CHARACTERS}][{BIGRAM_CHARACTERS}\p{{M}}]*+)"
        ),
        regex.compile(r"\X"),
    )

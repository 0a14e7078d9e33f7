"""What BM25 counts: the words of a text.

The rule follows the word boundaries of Unicode (UAX #29), with these decisions:

* A word is a run of letters, digits, underscores and **marks**: a vowel sign or a point
  never ends a word (WB4). One apostrophe between letters stays inside; every other
  punctuation ends a word, also `.` and `:` inside numbers.
* Scripts that UAX #29 leaves to a dictionary because they put no spaces between words
  (Line_Break=Complex_Context: Thai, Lao, Khmer, Burmese and their kin) are cut into
  runs of three grapheme clusters that overlap by two.
* Kana, kanji and hangul are cut into runs of two grapheme clusters that overlap by one.
* Invisible characters (joiners, soft hyphens, marks of direction, variation selectors)
  are removed, so that a word is one term with and without them. A zero-width space ends
  a word, but not in a script that is cut into threes, where only some texts have it.
* Letters are compared after compatibility composition (NFKC) and in lower case. Accents
  and vowel points stay: nothing is folded that changes a word in some language.
"""

import re
import unicodedata
from functools import cache
from typing import NamedTuple

import regex

TOKENIZATION_RULE = "uax29-3"
"""The name of this rule in a retriever's fingerprint; another rule gets another
name."""
BIGRAM_CHARACTERS = (
    r"\u3040-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff"
    r"\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uac00-\ud7af々〆"
)
"""Kana, kanji and hangul."""
TRIGRAM_CHARACTERS = r"\p{Line_Break=Complex_Context}"
"""Scripts without spaces, as Unicode's line breaking names them."""
WORD_CHARACTERS = r"\p{L}\p{N}[\p{M}--\p{Default_Ignorable_Code_Point}]"
"""Letters, digits, and marks, which distinguish words of Hindi or Thai."""
ASCII_WORD = re.compile(r"\w+(?:'\w+)?")
"""The same rule for a text that is all ASCII, in a third of the time."""
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
    patterns = _patterns()
    visible_text = patterns.invisible.sub("", text)
    folded = unicodedata.normalize("NFKC", visible_text).lower()
    # The Turkish İ becomes i with a dot above, which no Turkish text has.
    folded = folded.replace("i" + DOT_ABOVE, "i")
    terms: list[str] = []
    for run in patterns.run.finditer(folded):
        if run.lastgroup is None:
            terms.append(run[0])
        else:
            clusters = patterns.cluster.findall(run[0])
            size = 3 if run.lastgroup == "trigrams" else 2
            terms.extend(_overlapping_terms(clusters, size))
    return terms


def _overlapping_terms(clusters: list[str], size: int) -> list[str]:
    """Return every `size` neighbours as one term; a shorter run is one term."""
    last_start = max(0, len(clusters) - size)
    return ["".join(clusters[i : i + size]) for i in range(last_start + 1)]


class _WordPatterns(NamedTuple):
    """The patterns of the rule."""

    invisible: regex.Pattern[str]
    run: regex.Pattern[str]
    """A run in one of the groups `bigrams` and `trigrams`, or a word in none."""
    cluster: regex.Pattern[str]
    """A grapheme cluster."""


@cache
def _patterns() -> _WordPatterns:
    """Compile the patterns at the first use.

    Unicode's tables take longer than all other imports.
    """
    letter = rf"[[\w\p{{N}}]--[\p{{M}}{BIGRAM_CHARACTERS}{TRIGRAM_CHARACTERS}]]"
    word = rf"{letter}(?:{letter}|\p{{M}})*+"
    trigrams = rf"{TRIGRAM_CHARACTERS}[{TRIGRAM_CHARACTERS}\p{{M}}]*+"
    bigrams = rf"[{BIGRAM_CHARACTERS}][{BIGRAM_CHARACTERS}\p{{M}}]*+"
    inner_space = rf"(?<={TRIGRAM_CHARACTERS})\u200b+(?={TRIGRAM_CHARACTERS})"
    return _WordPatterns(
        invisible=regex.compile(
            rf"(?V1)[\p{{Default_Ignorable_Code_Point}}--\u200b]|{inner_space}"
        ),
        run=regex.compile(
            rf"(?V1){word}(?:'{word})?+"
            rf"|(?P<trigrams>{trigrams})|(?P<bigrams>{bigrams})"
        ),
        cluster=regex.compile(r"\X"),
    )

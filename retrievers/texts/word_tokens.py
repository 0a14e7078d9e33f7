"""What BM25 counts: the words of a text.

The rule follows the word boundaries of Unicode (UAX #29), with these decisions:

* A word is a run of letters, digits, underscores and **marks**: a vowel sign or a point
  never ends a word (WB4). One apostrophe (`'`) between letters or digits stays inside;
  every other punctuation ends a word, also `’`, and `.` and `:` inside numbers.
* Kana, kanji, hangul, and the scripts that UAX #29 leaves to a dictionary because they
  put no spaces between words (Line_Break=Complex_Context: Thai, Lao, Khmer, Burmese and
  their kin) are cut into runs of two grapheme clusters that overlap by one.
* An emoji is a word, whatever its colour; a joined one is a word for each picture.
* Invisible characters (joiners, soft hyphens, marks of direction, variation selectors)
  are removed, so that a word is one term with and without them. A zero-width space ends
  a word, but not in a script of Complex_Context, where only some texts have it.
* Letters are compared after compatibility composition (NFKC) and in lower case. Accents
  stay: nothing is folded that changes a word in some language.
* Signs that most texts leave out are removed: points of Arabic and Hebrew (category Mn
  after NFKD), hamzas on letters, the tatweel. So are, as in Lucene's ICU folding, the
  marks of scripts of Complex_Context that Unicode calls Diacritic: signs of tone, but
  also viramas, the Burmese asat and the Khmer coeng. Forms of alef, yeh, kaf and heh
  are one letter each, as in Lucene's normalisers of Arabic and Persian.
"""

import re
import unicodedata
from functools import cache
from typing import NamedTuple

import regex

TOKENIZATION_RULE = "uax29-4"
"""The name of this rule in a retriever's fingerprint; another rule gets another
name."""
EAST_ASIAN_CHARACTERS = (
    r"\u3040-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff"
    r"\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uac00-\ud7af々〆"
)
"""Kana, kanji of Unicode's basic plane without 〇, and hangul.

Rarer kanji are letters of a word.
"""
UNSPACED_CHARACTERS = r"\p{Line_Break=Complex_Context}"
"""Scripts without spaces, as Unicode's line breaking names them."""
POINTED_CHARACTERS = r"\p{Script=Arabic}\p{Script=Hebrew}"
"""Scripts whose vowels are points that most texts leave out."""
TATWEEL = "\u0640"
LETTER_FORMS = str.maketrans(
    {
        "\u0671": "\u0627",  # alef wasla -> alef
        "\u0649": "\u064a",  # alef maksura -> yeh
        "\u06cc": "\u064a",  # Persian yeh -> yeh
        "\u0629": "\u0647",  # teh marbuta -> heh
        "\u06a9": "\u0643",  # Persian kaf -> kaf
        TATWEEL: None,
    }
)
"""Forms of Arabic letters that texts interchange; the other forms of alef decompose."""
WORD_CHARACTERS = r"\p{L}\p{N}[\p{M}--\p{Default_Ignorable_Code_Point}]"
"""Letters, digits, and marks, which distinguish words of Hindi or Thai.

For other modules that cut words: `tokenize` has its own pattern.
"""
ASCII_WORD = re.compile(r"\w+(?:'\w+)?")
"""The same rule for a text that is all ASCII, in a third of the time."""
DOT_ABOVE = "\u0307"
EMOJI = r"[\p{Extended_Pictographic}--[\u00a9\u00ae]]|\p{Regional_Indicator}{2}"
"""Pictures, and flags; without © and ®."""


def tokenize(text: str) -> list[str]:
    """Split text into the terms that BM25 counts.

    >>> tokenize("Don't use iPhone 15")
    ["don't", 'use', 'iphone', '15']
    >>> tokenize("हिन्दी भाषा")
    ['हिन्दी', 'भाषा']
    >>> tokenize("顧客満足 NPS")
    ['顧客', '客満', '満足', 'nps']
    >>> tokenize("ที่นี่ไทย")
    ['ทีนี', 'นีไ', 'ไท', 'ทย']
    >>> tokenize("مُحَمَّد 🎉")
    ['محمد', '🎉']
    """
    if text.isascii():
        return ASCII_WORD.findall(text.lower())
    patterns = _patterns()
    visible_text = patterns.invisible.sub("", text)
    folded = unicodedata.normalize("NFKC", visible_text).lower()
    # The Turkish İ becomes i with a dot above, which no Turkish text has.
    folded = folded.replace("i" + DOT_ABOVE, "i")
    folded = patterns.pointed.sub(_without_points, folded)
    folded = patterns.tone.sub("", folded)
    terms: list[str] = []
    for run in patterns.run.finditer(folded):
        if run.lastgroup is None:
            terms.append(run[0])
        else:
            terms.extend(_overlapping_pairs(patterns.cluster.findall(run[0])))
    return terms


def _without_points(run: regex.Match[str]) -> str:
    """Return a run of Arabic or Hebrew without points, its letters in one form."""
    decomposed = unicodedata.normalize("NFKD", run[0])
    letters = [sign for sign in decomposed if unicodedata.category(sign) != "Mn"]
    return "".join(letters).translate(LETTER_FORMS)


def _overlapping_pairs(clusters: list[str]) -> list[str]:
    """Return every two neighbours as one term; a single one is one term."""
    last_start = max(0, len(clusters) - 2)
    return ["".join(clusters[i : i + 2]) for i in range(last_start + 1)]


class _WordPatterns(NamedTuple):
    """The patterns of the rule."""

    invisible: regex.Pattern[str]
    pointed: regex.Pattern[str]
    """A run of Arabic or Hebrew with its points."""
    tone: regex.Pattern[str]
    run: regex.Pattern[str]
    """A run in the group `pairs`, or a word in none."""
    cluster: regex.Pattern[str]
    """A grapheme cluster."""


@cache
def _patterns() -> _WordPatterns:
    """Compile the patterns at the first use.

    Unicode's tables take longer than all other imports.
    """
    letter = rf"[[\w\p{{N}}]--[\p{{M}}{EAST_ASIAN_CHARACTERS}{UNSPACED_CHARACTERS}]]"
    word = rf"{letter}(?:{letter}|\p{{M}})*+"
    unspaced = rf"{UNSPACED_CHARACTERS}[{UNSPACED_CHARACTERS}\p{{M}}]*+"
    east_asian = rf"[{EAST_ASIAN_CHARACTERS}][{EAST_ASIAN_CHARACTERS}\p{{M}}]*+"
    inner_space = rf"(?<={UNSPACED_CHARACTERS})\u200b+(?={UNSPACED_CHARACTERS})"
    return _WordPatterns(
        invisible=regex.compile(
            rf"(?V1)[\p{{Default_Ignorable_Code_Point}}--\u200b]|{inner_space}"
        ),
        run=regex.compile(
            rf"(?V1){word}(?:'{word})?+|(?P<pairs>{unspaced}|{east_asian})|{EMOJI}"
        ),
        pointed=regex.compile(
            rf"(?V1)[{POINTED_CHARACTERS}{TATWEEL}][{POINTED_CHARACTERS}\p{{Mn}}{TATWEEL}]*+"
        ),
        tone=regex.compile(
            rf"(?V1)(?<=[{UNSPACED_CHARACTERS}])"
            rf"[{UNSPACED_CHARACTERS}&&\p{{Mn}}&&\p{{Diacritic}}]"
        ),
        cluster=regex.compile(r"\X"),
    )

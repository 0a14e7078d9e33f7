r"""The language of texts, and what BM25 counts: the words of a text, in any script, with no dictionary.

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
from collections import Counter
from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from functools import cache, lru_cache
from threading import Lock, Thread
from types import MappingProxyType
from typing import Any

import regex

RULE = "uax29-3"
"""Names this rule in a retriever's fingerprint; another rule gets another name."""
PAIRED = r"\u3040-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uac00-\ud7af々〆"
"""Kana, kanji and hangul."""
TRIPLED = r"\p{Line_Break=Complex_Context}"
"""Scripts without spaces, as Unicode's line breaking names them."""
KEPT = r"\p{L}\p{N}[\p{M}--\p{Default_Ignorable_Code_Point}]"
"""Letters, digits, and marks: without its vowel signs many a word of Hindi or Thai is another one."""
ASCII_WORD = re.compile(r"\w+(?:'\w+)?")
"""The same rule where a text holds nothing but ASCII, which is found in a third of the time."""
DOT_ABOVE = "\u0307"
NAMES: Mapping[str, str] = MappingProxyType(
    {
        "ar": "arabic",
        "bg": "bulgarian",
        "ca": "catalan",
        "cs": "czech",
        "da": "danish",
        "de": "german",
        "el": "greek",
        "en": "english",
        "eo": "esperanto",
        "es": "spanish",
        "et": "estonian",
        "eu": "basque",
        "fa": "persian",
        "fi": "finnish",
        "fr": "french",
        "ga": "irish",
        "he": "hebrew",
        "hi": "hindi",
        "hr": "croatian",
        "hu": "hungarian",
        "hy": "armenian",
        "id": "indonesian",
        "it": "italian",
        "ja": "japanese",
        "ko": "korean",
        "lt": "lithuanian",
        "mr": "marathi",
        "ms": "malay",
        "ne": "nepali",
        "nl": "dutch",
        "no": "norwegian",
        "pl": "polish",
        "pt": "portuguese",
        "ro": "romanian",
        "ru": "russian",
        "sk": "slovak",
        "sr": "serbian",
        "st": "sesotho",
        "sv": "swedish",
        "ta": "tamil",
        "th": "thai",
        "tr": "turkish",
        "uk": "ukrainian",
        "ur": "urdu",
        "vi": "vietnamese",
        "yi": "yiddish",
        "zh": "chinese",
    }
)
"""Codes of ISO 639 -> names; those that Snowball stems are called as Snowball calls them."""
SURE = 0.5
"""Probability from which on a language is named: more than that of all others together."""
AGREED = 0.9
"""Share of some texts that must be in one language for it to be theirs."""
READ = 1_000
"""Characters of a text that are looked at."""


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
    letter = rf"[[\w\p{{N}}]--[\p{{M}}{PAIRED}{TRIPLED}]]"
    word = rf"{letter}(?:{letter}|\p{{M}})*+"
    return (
        regex.compile(
            rf"(?V1)[\p{{Default_Ignorable_Code_Point}}--\u200b]|(?<={TRIPLED})\u200b+(?={TRIPLED})"
        ),
        regex.compile(
            rf"(?V1){word}(?:'{word})?+"
            rf"|(?P<tripled>{TRIPLED}[{TRIPLED}\p{{M}}]*+)|(?P<paired>[{PAIRED}][{PAIRED}\p{{M}}]*+)"
        ),
        regex.compile(r"\X"),
    )


def language_of(text: str) -> str:
    """Return the code of a text's language, as ISO 639 has it; "" where it is not clear, or the text in none.

    >>> language_of("Der Vertrag ist nicht gültig."), language_of("休暇は一年に二十五日あります。")
    ('de', 'ja')
    >>> language_of("vacation"), language_of("404 - #FF8800")
    ('', '')
    """
    code = _code(text[:READ])
    return {"und": "", "zxx": "", "nn": "no"}.get(
        code, code
    )  # undetermined, no language, Norwegian's other spelling


def shared_language(texts: Iterable[str]) -> str:
    """Return the code of the language in which nine in ten of some texts are, "" where there is none.

    >>> shared_language(["The lease ends in May.", "Nobody may smoke in here."])
    'en'
    >>> shared_language(["The lease ends in May.", "Hier darf niemand rauchen."]), shared_language([])
    ('', '')
    """
    counts = Counter(map(language_of, texts))
    (code, most), *_ = counts.most_common(1) or [("", 0)]
    return code if most >= AGREED * counts.total() else ""


@lru_cache(maxsize=1_000)
def _code(text: str) -> str:
    """The code as the model has it; the documents of many retrievers are the same sample."""
    code: str = load_language_model().result().classify(text)[0]
    return code


def load_language_model() -> Future[Any]:
    """Load the model of languages, which needs no network, in the background, and return where it will be.

    It takes half a second, most of it decompression beside which Python goes on: call it as soon as a text will come.
    """
    if _FIRST.acquire(blocking=False):
        Thread(
            target=_load, daemon=True
        ).start()  # a command that ends before it needs no language
    return _MODEL


_MODEL: Future[Any] = Future()
_FIRST = Lock()
"""Held from the first call on."""


def _load() -> None:
    try:
        from py3langid.langid import MODEL_FILE, LanguageIdentifier

        _MODEL.set_result(
            LanguageIdentifier.from_model_file(
                MODEL_FILE, norm_probs=True, min_confidence=SURE
            )
        )
    except BaseException as error:  # anyone who waits is told
        _MODEL.set_exception(error)

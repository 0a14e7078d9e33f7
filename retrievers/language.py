"""Which language texts are in, by py3langid: named only where it is sure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cache, lru_cache
from types import MappingProxyType
from typing import Any

NAMES: Mapping[str, str] = MappingProxyType({
    "ar": "arabic", "bg": "bulgarian", "ca": "catalan", "cs": "czech", "da": "danish", "de": "german", "el": "greek",
    "en": "english", "eo": "esperanto", "es": "spanish", "et": "estonian", "eu": "basque", "fa": "persian",
    "fi": "finnish", "fr": "french", "ga": "irish", "he": "hebrew", "hi": "hindi", "hr": "croatian", "hu": "hungarian",
    "hy": "armenian", "id": "indonesian", "it": "italian", "ja": "japanese", "ko": "korean", "lt": "lithuanian",
    "mr": "marathi", "ms": "malay", "ne": "nepali", "nl": "dutch", "no": "norwegian", "pl": "polish",
    "pt": "portuguese", "ro": "romanian", "ru": "russian", "sk": "slovak", "sr": "serbian", "st": "sesotho",
    "sv": "swedish", "ta": "tamil", "th": "thai", "tr": "turkish", "uk": "ukrainian", "ur": "urdu",
    "vi": "vietnamese", "yi": "yiddish", "zh": "chinese",
})  # fmt: skip
"""Codes of ISO 639 -> names; those that Snowball stems are called as Snowball calls them."""
SURE = 0.5
"""Probability from which on a language is named: more than that of all others together."""
AGREED = 0.9
"""Share of some texts that must be in one language for it to be theirs."""
READ = 1_000
"""Characters of a text that are looked at."""


def language_of(text: str) -> str:
    """Return the code of a text's language, as ISO 639 has it; "" where it is not clear, or the text in none.

    >>> language_of("Der Vertrag ist nicht gültig."), language_of("休暇は一年に二十五日あります。")
    ('de', 'ja')
    >>> language_of("vacation"), language_of("404 - #FF8800")
    ('', '')
    """
    code = _code(text[:READ])
    return {"und": "", "zxx": "", "nn": "no"}.get(code, code)  # undetermined, no language, Norwegian's other spelling


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
    code: str = _identifier().classify(text)[0]
    return code


@cache
def _identifier() -> Any:
    """The model, which takes half a second to load and needs no network."""
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True, min_confidence=SURE)

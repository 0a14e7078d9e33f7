"""The language of a text."""

from collections import Counter
from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from functools import lru_cache
from threading import Lock, Thread
from types import MappingProxyType
from typing import Any

LANGUAGE_NAMES: Mapping[str, str] = MappingProxyType(
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
MIN_LANGUAGE_PROBABILITY = 0.5
"""Probability from which on a language is named: more than that of all others together."""
MIN_LANGUAGE_SHARE = 0.9
"""Share of some texts that must be in one language for it to be theirs."""
MAX_LANGUAGE_CHARACTERS = 1_000
"""Characters of a text that are looked at."""


def detect_language(text: str) -> str:
    """Return the code of a text's language, as ISO 639 has it; "" where it is not clear, or the text in none.

    >>> detect_language("Der Vertrag ist nicht gültig."), detect_language("休暇は一年に二十五日あります。")
    ('de', 'ja')
    >>> detect_language("vacation"), detect_language("404 - #FF8800")
    ('', '')
    """
    code = _code(text[:MAX_LANGUAGE_CHARACTERS])
    return {"und": "", "zxx": "", "nn": "no"}.get(
        code, code
    )  # undetermined, no language, Norwegian's other spelling


def detect_shared_language(texts: Iterable[str]) -> str:
    """Return the code of the language in which nine in ten of some texts are, "" where there is none.

    >>> detect_shared_language(["The lease ends in May.", "Nobody may smoke in here."])
    'en'
    >>> detect_shared_language(["The lease ends in May.", "Hier darf niemand rauchen."]), detect_shared_language([])
    ('', '')
    """
    counts = Counter(map(detect_language, texts))
    (code, most), *_ = counts.most_common(1) or [("", 0)]
    return code if most >= MIN_LANGUAGE_SHARE * counts.total() else ""


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
                MODEL_FILE, norm_probs=True, min_confidence=MIN_LANGUAGE_PROBABILITY
            )
        )
    except BaseException as error:  # anyone who waits is told
        _MODEL.set_exception(error)

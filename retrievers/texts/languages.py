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
"""Codes of ISO 639 -> names: all languages that Snowball stems, by its names, and some
that it does not."""
MIN_LANGUAGE_PROBABILITY = 0.5
"""A language with at least this probability is detected: more than all others have."""
MIN_LANGUAGE_SHARE = 0.9
"""Share of texts that must be in one language for it to be shared."""
MAX_LANGUAGE_CHARACTERS = 1_000
"""Leading characters of a text that are read."""
_CODE_CORRECTIONS = {"und": "", "zxx": "", "nn": "no"}
"""Undetermined, no language, and Norwegian's other written form."""


def detect_language(text: str) -> str:
    """Return the ISO 639 code of a text's language; empty if it is not clear.

    `LANGUAGE_NAMES` need not have it.

    >>> detect_language("Der Vertrag ist nicht gültig.")
    'de'
    >>> detect_language("休暇は一年に二十五日あります。")
    'ja'
    >>> detect_language("vacation"), detect_language("404 - #FF8800")
    ('', '')
    """
    code = _classify(text[:MAX_LANGUAGE_CHARACTERS])
    return _CODE_CORRECTIONS.get(code, code)


def detect_shared_language(texts: Iterable[str]) -> str:
    """Return the code of the language of nine in ten texts; empty if there is none.

    >>> detect_shared_language(["The lease ends in May.", "Nobody may smoke in here."])
    'en'
    >>> detect_shared_language(["The lease ends in May.", "Hier darf niemand rauchen."])
    ''
    >>> detect_shared_language([])
    ''
    """
    counts = Counter(map(detect_language, texts))
    if not counts:
        return ""
    [(code, count)] = counts.most_common(1)
    return code if count >= MIN_LANGUAGE_SHARE * counts.total() else ""


@lru_cache(maxsize=1_000)
def _classify(text: str) -> str:
    """Return the model's code of a text; many retrievers read the same sample."""
    code: str = preload_language_model().result().classify(text)[0]
    return code


def preload_language_model() -> Future[Any]:
    """Start to load the model of languages in the background, and return its future.

    It needs no network. It takes half a second, most of it decompression in parallel to
    Python: call it as soon as a text is expected.
    """
    is_first_call = _FIRST_CALL.acquire(blocking=False)
    if is_first_call:
        # A daemon: a command that ends earlier does not need the model.
        Thread(target=_load, daemon=True).start()
    return _MODEL


_MODEL: Future[Any] = Future()
_FIRST_CALL = Lock()
"""Locked by the first call, and never released."""


def _load() -> None:
    try:
        from py3langid.langid import MODEL_FILE, LanguageIdentifier

        model = LanguageIdentifier.from_model_file(
            MODEL_FILE, norm_probs=True, min_confidence=MIN_LANGUAGE_PROBABILITY
        )
        _MODEL.set_result(model)
    except BaseException as error:  # it is raised for anyone who waits
        _MODEL.set_exception(error)

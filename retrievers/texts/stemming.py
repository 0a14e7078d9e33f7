"""Words without their endings."""

from collections.abc import Callable, Iterable

from retrievers.document import Document
from retrievers.errors import InputError, Problem, did_you_mean
from retrievers.texts.languages import (
    LANGUAGE_NAMES,
    detect_shared_language,
)

DOTLESS_I = "\u0131"


def detect_stemming(documents: Iterable[Document]) -> str:
    """Return the language of nine in ten documents if Snowball has it, else ""."""
    import Stemmer

    code = detect_shared_language(document.content for document in documents)
    language = LANGUAGE_NAMES.get(code, "")
    return language if language in Stemmer.algorithms() else ""


def load_stemmer(language: str) -> Callable[[str], str]:
    """Return the function that stems a word; without a language the word stays.

    The i without its dot becomes i: in lower case, every I has become i, and ILIK would
    not find ılık. So only after stemming, since a stemmer of Turkish needs the ı.
    """
    if not language:
        return _with_dotted_i
    import Stemmer

    if language not in Stemmer.algorithms():
        remedy = did_you_mean(language, Stemmer.algorithms())
        raise InputError(Problem("stemming", f"unknown language {language!r}", remedy))
    stem: Callable[[str], str] = Stemmer.Stemmer(language).stemWord
    return lambda word: _with_dotted_i(stem(word))


def _with_dotted_i(word: str) -> str:
    return word.replace(DOTLESS_I, "i")

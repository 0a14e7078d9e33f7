"""The language of the data."""

import re
from collections.abc import Mapping

from markupsafe import Markup

from harness.records import Results
from retrievers.texts.languages import LANGUAGE_NAMES

LANGUAGE_CODE = re.compile(r"[A-Za-z]{2,3}(-[A-Za-z0-9]{1,8})*")
"""The form of a BCP 47 code, such as "de" or "pt-BR"."""


def data_language(results: Results) -> str:
    """The BCP 47 code of the data's language from declarations alone; "" for none.

    The queries' field `language` or `lang` is used if all have the same value; else the
    language of the run's stemmer.
    """
    declared = {
        _declared_language(labelled.query.fields)
        for labelled in results.queries.values()
    }
    if len(declared) == 1:
        code = declared.pop()
        if code:
            return code
    stemmers = {
        outcome.provenance.model.word_stemming
        for outcome in results.manifest.retrievers.values()
    }
    stemmers.discard("")
    for code, language in LANGUAGE_NAMES.items():
        if stemmers == {f"stemmed as {language.capitalize()}"}:
            return code
    return ""


def _declared_language(fields: Mapping[str, str]) -> str:
    code = str(fields.get("language", fields.get("lang", "")))
    return code if LANGUAGE_CODE.fullmatch(code) else ""


def language_attribute(language: str) -> Markup | str:
    """Return the attribute of texts in the data's language; "" for the page's own."""
    if language in ("", "en"):
        return ""
    return Markup(' lang="{}"').format(language)

"""What the page calls things: measures by their short names, and the language of the data."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import NamedTuple

from harness.experiment.language import language_of
from harness.measures import parse
from harness.measures.table import row_of
from harness.records import Results


class MeasureName(NamedTuple):
    """A measure as people read it."""

    full: str
    """As in the CSV files."""
    short: str
    gloss: str
    """What the short name leaves open: the gain, the ideal, the depth; may be empty."""


def names_of(measures: Sequence[str], depth: int, largest: int) -> dict[str, MeasureName]:
    """Short names, and what they leave open; where two are the same, that becomes part of the name."""
    names = {}
    for full in measures:
        measure = parse(full)
        at = "" if measure.cutoff is None else f"@{measure.cutoff}"
        params = dict(measure.params)
        glosses = []
        if "dcg" in row_of(measure).options:
            glosses.append("exponential gain" if params.pop("dcg", None) == "exp-log2" else "linear gain")
        ideal = params.pop("ideal", None)
        if ideal is not None:
            glosses.append("ideal of what was retrieved")
        if row_of(measure).by_largest_grade:
            glosses.append(f"largest grade {largest}")
        glosses += [f"{key} {value}" for key, value in params.items()]
        if measure.cutoff is None:
            glosses.append(f"over the {depth} hits kept")
        names[full] = MeasureName(full, measure.name + at, ", ".join(glosses))
    shorts = Counter(name.short for name in names.values())
    return {full: name if shorts[name.short] == 1 else _with_parameters(name) for full, name in names.items()}


def _with_parameters(name: MeasureName) -> MeasureName:
    return MeasureName(name.full, f"{name.short} ({name.gloss})", "") if name.gloss else name


CODES = {
    "arabic": "ar", "armenian": "hy", "basque": "eu", "bulgarian": "bg", "catalan": "ca", "czech": "cs",
    "danish": "da", "dutch": "nl", "english": "en", "esperanto": "eo", "estonian": "et", "finnish": "fi",
    "french": "fr", "german": "de", "greek": "el", "hindi": "hi", "hungarian": "hu", "indonesian": "id",
    "irish": "ga", "italian": "it", "lithuanian": "lt", "malay": "ms", "marathi": "mr", "nepali": "ne",
    "norwegian": "no", "persian": "fa", "polish": "pl", "portuguese": "pt", "romanian": "ro", "russian": "ru",
    "serbian": "sr", "spanish": "es", "swedish": "sv", "tamil": "ta", "turkish": "tr", "ukrainian": "uk",
    "urdu": "ur", "yiddish": "yi",
}  # fmt: skip
"""What `language_of` names -> BCP 47."""
SCRIPTS = (("ja", re.compile("[\u3040-\u30ff]")), ("ko", re.compile("[\uac00-\ud7af]")), ("th", re.compile("[ก-๛]")))
"""Scripts of one language that needs no function words to be known."""
CODE = re.compile(r"[A-Za-z]{2,3}(-[A-Za-z0-9]{1,8})*")
READ, LETTERS = 200, 300
"""Texts that are read to tell the language, and letters of each."""
OFTEN = 0.05
"""Share of the letters from which on a script tells the language: one foreign name does not."""


def language(results: Results) -> str:
    """The BCP 47 code of the data's language; "" where it is not clear.

    What the queries' field `language` or `lang` says is believed, if it is the same for all of them.
    """
    declared = {_declared(labelled.query.fields) for labelled in results.queries.values()}
    if len(declared) == 1 and (code := declared.pop()):
        return code
    texts = [document.text[:LETTERS] for document in islice(results.documents.values(), READ)]
    texts += [labelled.query.text for labelled in islice(results.queries.values(), READ)]
    letters = sum(map(str.isalpha, "".join(texts)))
    for code, script in SCRIPTS:
        if letters and sum(len(script.findall(text)) for text in texts) > OFTEN * letters:
            return code
    return CODES.get(language_of(texts), "")


def _declared(fields: Mapping[str, str]) -> str:
    code = str(fields.get("language", fields.get("lang", "")))
    return code if CODE.fullmatch(code) else ""

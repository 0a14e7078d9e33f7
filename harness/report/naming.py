"""What the page calls things: measures by their short names, and the language of the data."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import NamedTuple

from harness.measures import parse
from harness.measures.table import row_of
from harness.records import Results
from retrievers.words import NAMES, shared_language


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


CODE = re.compile(r"[A-Za-z]{2,3}(-[A-Za-z0-9]{1,8})*")
READ = 40
"""Documents that are read to tell the language."""


def language(results: Results) -> str:
    """The BCP 47 code of the data's language; "" where it is not clear.

    What the queries' field `language` or `lang` says is believed, if it is the same for all of them; so is the language
    that the run took words for, since telling it again takes half a second.
    """
    declared = {_declared(labelled.query.fields) for labelled in results.queries.values()}
    if len(declared) == 1 and (code := declared.pop()):
        return code
    taken = {str(facts.provenance.get("words", "")) for facts in results.manifest.retrievers.values()} - {""}
    if codes := [code for code, name in NAMES.items() if taken == {f"stemmed as {name.capitalize()}"}]:
        return codes[0]
    return shared_language(document.content for document in islice(results.documents.values(), READ))


def _declared(fields: Mapping[str, str]) -> str:
    code = str(fields.get("language", fields.get("lang", "")))
    return code if CODE.fullmatch(code) else ""

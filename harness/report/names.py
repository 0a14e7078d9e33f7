"""Short names of measures on a page."""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from harness.measures import Measure, parse_measure
from harness.measures.table import row_of

CONTEXT_PARAMETERS = ("tokens", "unit")
"""Parameters that the short name of a measure of passages has."""


class MeasureName(NamedTuple):
    """A measure's names."""

    full: str
    """The name in the CSV files."""
    short: str
    gloss: str
    """Parameters that the short name omits: gain, ideal, depth; may be empty."""


def measure_names(
    measures: Sequence[str], depth: int, largest_grade: int
) -> dict[str, MeasureName]:
    """Short names with their parameters.

    If two short names are equal, the parameters become part of the name.
    """
    names = {full: _measure_name(full, depth, largest_grade) for full in measures}
    short_counts = Counter(name.short for name in names.values())
    return {
        full: name if short_counts[name.short] == 1 else _with_parameters(name)
        for full, name in names.items()
    }


def _measure_name(full: str, depth: int, largest_grade: int) -> MeasureName:
    """Return the short name of a measure, and what the short name leaves out."""
    measure = parse_measure(full)
    parameters = dict(measure.params)
    glosses: list[str] = []
    if "dcg" in row_of(measure).options:
        is_exponential = parameters.pop("dcg", None) == "exp-log2"
        glosses.append("exponential gain" if is_exponential else "linear gain")
    ideal = parameters.pop("ideal", None)
    if ideal is not None:
        # "retrieved" uses the hits within the cutoff, "retrieved-all" those below, too.
        extent = "all that" if ideal == "retrieved-all" else "what"
        glosses.append(f"ideal of {extent} was retrieved")
    if row_of(measure).by_largest_grade:
        glosses.append(f"largest grade {largest_grade}")
    context = _context_text(measure)
    parameters = {
        key: value for key, value in parameters.items() if key not in CONTEXT_PARAMETERS
    }
    glosses += [f"{key} {value}" for key, value in parameters.items()]
    if measure.uses_passages:
        return MeasureName(full, context, ", ".join(glosses))
    if measure.cutoff is None:
        glosses.append(f"over the {depth} hits kept")
        return MeasureName(full, measure.name, ", ".join(glosses))
    return MeasureName(full, f"{measure.name}@{measure.cutoff}", ", ".join(glosses))


def _context_text(measure: Measure) -> str:
    """Return the short name of a measure of passages.

    >>> _context_text(parse_measure("R(tokens=2000, unit='chars')"))
    'R(chars, 2,000 tokens)'
    >>> _context_text(parse_measure("IoU@5"))
    'IoU@5'
    """
    parts: list[str] = []
    if measure.get("unit"):
        parts.append(str(measure.get("unit")))
    if measure.tokens is not None:
        parts.append(f"{measure.tokens:,} tokens")
    text = f"{measure.name}({', '.join(parts)})" if parts else measure.name
    return text if measure.cutoff is None else f"{text}@{measure.cutoff}"


def _with_parameters(name: MeasureName) -> MeasureName:
    if not name.gloss:
        return name
    return MeasureName(name.full, f"{name.short} ({name.gloss})", "")

"""Short names of measures on a page."""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from harness.measures import parse_measure
from harness.measures.table import row_of


class MeasureName(NamedTuple):
    """A measure's names."""

    full: str
    """The name in the CSV files."""
    short: str
    gloss: str
    """Parameters that the short name omits: gain, ideal, depth; may be empty."""


def measure_names(
    measures: Sequence[str], depth: int, largest: int
) -> dict[str, MeasureName]:
    """Short names with their parameters, which become part of the name if two short names are equal."""
    names = {}
    for full in measures:
        measure = parse_measure(full)
        at = "" if measure.cutoff is None else f"@{measure.cutoff}"
        params = dict(measure.params)
        glosses = []
        if "dcg" in row_of(measure).options:
            glosses.append(
                "exponential gain"
                if params.pop("dcg", None) == "exp-log2"
                else "linear gain"
            )
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
    return {
        full: name if shorts[name.short] == 1 else _with_parameters(name)
        for full, name in names.items()
    }


def _with_parameters(name: MeasureName) -> MeasureName:
    return (
        MeasureName(name.full, f"{name.short} ({name.gloss})", "")
        if name.gloss
        else name
    )

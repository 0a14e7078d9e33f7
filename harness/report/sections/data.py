"""What the data set holds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from harness.report.figures import Section
from harness.report.view import View

PLACE = 74

IDS = 20
"""Values of a field that are listed."""


def section(view: View) -> Section:
    """What the data set holds."""
    labels = [len([g for g in view.grades[qid].values() if g > 0]) for qid in view.ids]
    grades = Counter(grade for judged in view.grades.values() for grade in judged.values())
    lengths = [len(view.results.queries[qid].query.text) for qid in view.ids if qid in view.results.queries]
    fields: dict[str, Counter[str]] = {}
    for qid in view.ids:
        for key, value in view.results.queries[qid].query.fields.items():
            fields.setdefault(key, Counter()).update(part.strip() for part in str(value).split(","))
    return Section(
        "data",
        "Data",
        {
            "facts": view.manifest.dataset,
            "labels": _five(labels),
            "lengths": _five(lengths),
            "grades": sorted(grades.items(), reverse=True)[:30],
            "fields": [(key, values.most_common(IDS), len(values)) for key, values in fields.items()],
            "relevance": view.resolved.relevance,
        },
        within="trust",
    )


def _five(values: Sequence[int]) -> list[float]:
    """Minimum, median, maximum."""
    return np.quantile(values, [0, 0.5, 1]).tolist() if values else []

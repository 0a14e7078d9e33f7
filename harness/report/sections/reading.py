"""How to read the report: what its words and numbers mean, and which nDCG this is."""

from __future__ import annotations

import math

from harness.evaluation.wording import settings_sentence
from harness.measures import parse
from harness.measures.table import row_of
from harness.report import text
from harness.report.figures import Section
from harness.report.view import View, other_gain

PLACE = 150


def section(view: View) -> Section:
    """The words, the measures, and linear beside exponential gain."""
    return Section(
        "reading",
        "How to read this",
        {
            "settings": text.visible(settings_sentence(view.settings)),
            "level": view.settings.level,
            "margin": view.settings.margin,
            "measures": [(view.names[full], row_of(parse(full)).meaning) for full in view.measures],
            "gains": gains(view),
        },
    )


def gains(view: View) -> list[tuple[str, str, dict[str, float], dict[str, float]]]:
    """Each nDCG with both gains: (measure, the other, means, means with the other gain).

    The primary measure of several retrievers stands among the other readings already.
    """
    rows = []
    listed = {view.primary} if len(view.retrievers) > 1 else set[str]()
    for full in view.measures:
        twin = other_gain(parse(full))
        if twin is None or full in listed:
            continue
        listed |= {full, str(twin)}
        if str(twin) in view.scores:
            others = view.scores[str(twin)]
        elif all(twin in answers.extra for answers in view.answers.values()):
            others = {name: answers.extra[twin] for name, answers in view.answers.items()}
        else:
            continue
        rows.append((
            full, str(twin),
            {name: view.mean(full, name) for name in view.ranked},
            {name: math.fsum(others[name]) / view.n for name in view.ranked},
        ))  # fmt: skip
    return rows

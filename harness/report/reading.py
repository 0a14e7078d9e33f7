"""How to read the report: what its words and numbers mean, and which nDCG this is."""

from __future__ import annotations

import math

from harness.measures import parse
from harness.report.section import Section
from harness.report.tests import describe_settings
from harness.report.view import View, other_gain

MEANINGS = {
    "P": "share of the first k hits that are relevant, also where fewer than k came back",
    "R": "share of the relevant documents that are among the first k hits",
    "Rcap": "hits among the first k, divided by the most that could be there",
    "F1": "harmonic mean of the query's precision and recall",
    "Success": "1 where a relevant document is among the first k hits",
    "RR": "1 divided by the rank of the first relevant hit; an ordinal number, its mean is to be read with care",
    "AP": "mean of the precision at each relevant document, those not found counting 0",
    "nDCG": "discounted gain of the hits, divided by that of the best possible order",
    "DCG": "sum of the hits' gains, discounted by the logarithm of their rank",
    "CG": "sum of the hits' gains",
    "ERR": "expected reciprocal rank of the hit at which a reader stops",
    "RBP": "rank-biased precision",
    "Rprec": "precision at the rank that equals the number of relevant documents",
    "Bpref": "how rarely a judged irrelevant document stands above a relevant one",
    "SetP": "share of the returned documents that are relevant",
    "SetR": "share of the relevant documents that were returned",
    "SetF": "harmonic mean of the set's precision and recall",
    "ContextPrecision": "mean of the precision at each hit, divided by the hits: finding more can lower it",
    "IDContextPrecision": "share of the returned documents that are relevant",
    "IDContextRecall": "share of the relevant documents that were returned",
    "Judged": "share of the returned documents that were judged at all",
}


def reading(view: View) -> Section:
    """The words, the measures, and linear beside exponential gain."""
    return Section(
        "reading",
        "How to read this",
        {
            "settings": describe_settings(view),
            "level": view.settings.level,
            "margin": view.settings.margin,
            "measures": [(view.names[full], MEANINGS.get(parse(full).name, "")) for full in view.measures],
            "gains": gains(view),
        },
    )


def gains(view: View) -> list[tuple[str, str, dict[str, float], dict[str, float]]]:
    """Each nDCG with both gains: (measure, the other, means, means with the other gain).

    The primary measure of several retrievers stands among the other readings already.
    """
    found = []
    told = {view.primary} if len(view.retrievers) > 1 else set[str]()
    for full in view.measures:
        twin = other_gain(parse(full))
        if twin is None or full in told:
            continue
        told |= {full, str(twin)}
        if str(twin) in view.scores:
            others = view.scores[str(twin)]
        elif all(twin in answers.extra for answers in view.answers.values()):
            others = {name: answers.extra[twin] for name, answers in view.answers.items()}
        else:
            continue
        found.append((
            full, str(twin),
            {name: math.fsum(view.scores[full][name]) / view.n for name in view.ranked},
            {name: math.fsum(others[name]) / view.n for name in view.ranked},
        ))  # fmt: skip
    return found

"""How far the judge of claims can be trusted: people's verdicts beside its own, and the estimates that use both."""

from __future__ import annotations

from harness.answers.judge_trust import trust_in_results
from harness.measures import parse
from harness.report.figures import Section
from harness.report.view import View

PLACE = 72


def section(view: View) -> Section | None:
    """Agreement beside every measure by claims, and means and differences by both; None where no claims were judged."""
    trust = trust_in_results(view.results)
    if trust is None:
        return None
    judge = view.manifest.judge
    measures = [measure for measure in view.measures if parse(measure).claimed]
    return Section(
        "verdicts",
        "Judged claims",
        {
            "judge": judge["judge"],
            "measures": measures,
            "sentences": list(trust.sentences()),
            "estimates": trust.estimates,
            "means": {measure: [(name, view.mean(measure, name)) for name in view.retrievers] for measure in measures},
            "weak": judge["judge"].startswith("lexical"),
        },
        within="trust",
    )

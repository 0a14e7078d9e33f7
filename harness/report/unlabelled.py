"""The report of rankings that nobody has judged: overlap, costs, and what to do next. There is no verdict in it."""

from __future__ import annotations

from harness.evaluation.evidence import next_step, overlaps
from harness.pages import policy
from harness.records import Results
from harness.report.costs import costs_of
from harness.report.markdown import escaped
from harness.report.page import environment, plain_environment, styled


def unlabelled(results: Results) -> dict[str, str]:
    """Return the files of the report: file name -> content."""
    variables = {
        "manifest": results.manifest,
        "queries": len(results.queries),
        "next_step": next_step(results),
        "overlaps": list(overlaps(results)),
        "costs": costs_of(results),
    }
    env = environment()
    style = styled(env)
    page = env.get_template("unlabelled.html").render(**variables, style=style, policy=policy([], str(style)))
    text = plain_environment(escaped).get_template("unlabelled.md").render(**variables)
    return {"report.html": page, "report.md": text}

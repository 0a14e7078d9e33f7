"""Does the winner depend on the grade rule, the gain or the labeller?"""

from typing import Any

from harness.evaluation.grading import alternatives
from harness.evaluation.labellers import labeller_verdicts
from harness.evaluation.wording import labellers_sentence, verdict_word
from harness.experiment import Relevance
from harness.measures import parse
from harness.measures.sensitivity import sensitivity
from harness.report.view import View
from retrievers.options import checked


def readings(view: View) -> dict[str, Any] | None:
    """The means under other grade rules and gains, and verdicts under each labeller; None if there are none."""
    if len(view.retrievers) < 2:
        return None
    relevance = checked(Relevance, view.resolved.relevance, "resolved.relevance")
    labels = {query_id: judged.labels for query_id, judged in view.results.queries.items()}
    primary = parse(view.primary)
    weights = view.table.weight_of
    heads = ((name, view.answers[name].heads) for name in view.retrievers)
    # A measure by claims has no grades.
    rows = [] if primary.claimed else sensitivity(primary, alternatives(labels, relevance), heads, weights)
    changed = [row for row in rows if row.changed]
    if len(rows) > 1 and changed:
        others = ", ".join(f"{' and '.join(row.winners)} under {row.rule} grades ({row.measure})" for row in changed)
        verdict = f"Another retriever has the highest mean under other rules: {others}."
    elif len(rows) > 1:
        have = "has" if len(rows[0].winners) == 1 else "share"
        verdict = f"{' and '.join(rows[0].winners)} {have} the highest mean under each of these {len(rows)} readings."
    else:
        verdict = ""
    people = () if primary.claimed else labeller_verdicts(view.results, relevance)
    family = view.comparisons[view.primary]
    found = {
        "verdict": verdict,
        "changed": bool(changed),
        "rows": rows if len(rows) > 1 else [],
        "family": family,
        "people": people,
        "word": verdict_word,
        "by_people": view.spoken(labellers_sentence(family, people)),
    }
    return found if verdict or people else None

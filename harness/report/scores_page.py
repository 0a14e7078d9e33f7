"""A page for per-query scores of any tool; for answers it also says where claims were lost: retriever or generator?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from harness.answers.cases import FATES, TracedAnswer, shares
from harness.evaluation.board import said_of
from harness.evaluation.evaluation import Evaluation
from harness.pages import policy
from harness.report.html_page import environment, styled
from retrievers.opening import masking, writing
from retrievers.types import Query

TracedSystems = Mapping[str, Sequence[TracedAnswer]]
"""System -> its answers, claim by claim."""

LISTED = 200
"""Queries whose answers are shown in full: those that lost most claims."""
MEANINGS = {
    "answered": "the response states it",
    "contradicted": "the response says otherwise: noise",
    "not retrieved": "no retrieved text holds it: the retriever's",
    "not used": "a retrieved text holds it, the response does not: the generator's",
    "unknown": "a verdict is missing",
}


def write_scores(
    path: Path, title: str, evaluation: Evaluation, notes: Sequence[str] = (), traced: TracedSystems | None = None
) -> None:
    """Write the page as one HTML file without scripts.

    Raises:
        InputError: the file cannot be written.
    """
    page = scores_page(title, evaluation, notes, traced or {})
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with masking(path, "w") as file:
            file.write(page)


def scores_page(title: str, evaluation: Evaluation, notes: Sequence[str], traced: TracedSystems) -> str:
    """The page: the verdict, every mean, every comparison, and for answers every claim."""
    env, summary, rows = environment(), evaluation.summary_rows(), evaluation.comparison_rows()
    style, beside = styled(env), side_by_side(traced)
    measures = list(dict.fromkeys(row["measure"] for row in summary))
    return env.get_template("scores.html").render(
        title=title,
        said=said_of(evaluation),
        primary=evaluation.scores.primary,
        measures=measures,
        names=list(dict.fromkeys(row["retriever"] for row in summary)),
        means={(row["retriever"], row["measure"]): row for row in summary},
        low_is_good=evaluation.low_is_good,
        families={measure: [row for row in rows if row["measure"] == measure] for measure in measures},
        notes=notes,
        fates=FATES,
        meanings=MEANINGS,
        shares={name: shares(answers, evaluation.settings.level) for name, answers in traced.items()},
        answers=beside[:LISTED],
        left=max(0, len(beside) - LISTED),
        style=style,
        policy=policy([], str(style)),
    )


def side_by_side(traced: TracedSystems) -> list[tuple[Query, dict[str, TracedAnswer]]]:
    """Query -> system -> its answer, the queries on which most claims were lost first."""
    found: dict[str, tuple[Query, dict[str, TracedAnswer]]] = {}
    for name, answers in traced.items():
        for one in answers:
            found.setdefault(one.query.id, (one.query, {}))[1][name] = one
    lost = {
        query: sum(claim.fate != "answered" for one in of.values() for claim in one.claims)
        for query, (_, of) in found.items()
    }
    return [found[query] for query in sorted(found, key=lambda query: (-lost[query], query))]

"""The command `explain`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from harness.console import options as shared
from harness.console.completion import complete_results_retrievers
from harness.console.output import print_result

if TYPE_CHECKING:
    from harness.evaluation.explain import Explanation, SliceFinding
    from harness.records import PropertyValue

ExplainedRetriever = Annotated[
    str,
    typer.Argument(
        metavar="A",
        help="A retriever of the run.",
        autocompletion=complete_results_retrievers,
    ),
]
OtherRetriever = Annotated[
    str,
    typer.Argument(
        metavar="B",
        help="The retriever to compare it with.",
        autocompletion=complete_results_retrievers,
    ),
]


def explain(
    results: shared.ResultsFolder,
    a: ExplainedRetriever,
    b: OtherRetriever,
    as_json: shared.JsonOutput = False,
) -> None:
    """Show on which queries one of two retrievers loses to the other.

    At most five sentences, the strongest first: what these queries have in common, by
    how much the retriever scores lower, and how sure that is.
    """
    from harness import records
    from harness.evaluation.explain import explain_results

    explanation = explain_results(records.read_results(results), a, b)
    cells = _explanation_cells(explanation)
    print_result(_explanation_lines(explanation), as_json=as_json, **cells._asdict())


def _explanation_lines(explanation: Explanation) -> list[str]:
    """Return the sentences, then each suggestion once."""
    from harness.wording.explanation import explanation_sentences, suggestion_line

    suggestions = dict.fromkeys(
        finding.suggestion for finding in explanation.findings if finding.suggestion
    )
    lines = explanation_sentences(explanation)
    return [*lines, *map(suggestion_line, suggestions)]


class SliceCells(NamedTuple):
    """A slice as an object of JSON."""

    property: str
    condition: str
    value: PropertyValue
    where: str
    """The three above in words."""
    loser: str
    winner: str
    queries: int
    """Queries in the slice; `other_queries` are the rest."""
    other_queries: int
    difference: float
    """Mean of the loser minus mean of the winner, in the slice."""
    other_difference: float
    gap: float
    """The difference in the slice minus that on the other queries."""
    ci_low: float | None
    """Interval of the gap; None if it cannot be estimated."""
    ci_high: float | None
    p_adjusted: float
    explained: float
    """The share of the variance of the differences that the slice explains."""
    confirmed: bool | None
    """Whether a second half of the queries shows it alone; None with too few."""
    follows: str
    """What may help; empty if it is unknown."""
    link: str


class ExplanationCells(NamedTuple):
    """An explanation as an object of JSON."""

    a: str
    b: str
    measure: str
    n: int
    tested: int
    """How many slices were tested."""
    reason: str
    """Why there are no slices; empty if there are."""
    sentences: list[str]
    slices: list[SliceCells]


def _explanation_cells(explanation: Explanation) -> ExplanationCells:
    from harness.wording.explanation import explanation_sentences

    return ExplanationCells(
        a=explanation.a,
        b=explanation.b,
        measure=explanation.measure,
        n=explanation.n,
        tested=explanation.tested,
        reason="" if explanation.silence is None else explanation.silence.value,
        sentences=explanation_sentences(explanation),
        slices=[_slice_cells(finding) for finding in explanation.findings],
    )


def _slice_cells(finding: SliceFinding) -> SliceCells:
    """Return one slice as a row of the JSON output."""
    from harness.wording.explanation import slice_phrase, suggestion_link

    return SliceCells(
        property=finding.name.property_name,
        condition=finding.name.condition.value,
        value=finding.name.value,
        where=slice_phrase(finding.name),
        loser=finding.loser,
        winner=finding.winner,
        queries=finding.queries,
        other_queries=finding.other_queries,
        difference=finding.difference,
        other_difference=finding.other_difference,
        gap=finding.gap,
        ci_low=finding.ci_low,
        ci_high=finding.ci_high,
        p_adjusted=finding.p_adjusted,
        explained=finding.explained,
        confirmed=finding.confirmed,
        follows="" if finding.suggestion is None else finding.suggestion.value,
        link="" if finding.suggestion is None else suggestion_link(finding.suggestion),
    )

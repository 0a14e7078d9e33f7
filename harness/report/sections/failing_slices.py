"""Slices on which the leader's rival fails, or the leader itself."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from harness.evaluation.explain import (
    Silence,
    SliceFinding,
    explain_scores,
)
from harness.records import PropertyValue
from harness.report.sections.query_groups import QueryGroup, order_by_loss
from harness.report.view import View, main_rival
from harness.wording.explanation import (
    SUGGESTION_LINES,
    explanation_sentences,
    property_text,
    slice_phrase,
)


class FailingSlices(NamedTuple):
    """Where the leader and its main rival differ."""

    lead: str
    """The first of `sentences`; "" without any, or if it is that nothing was found."""
    sentences: tuple[str, ...]
    """A sentence for each slice, strongest first; without a slice, why.

    Empty with one retriever, or if there are too few queries to divide.
    """
    suggestions: tuple[str, ...]
    """What may help, one line each."""
    groups: tuple[QueryGroup, ...]
    """The queries of each slice."""


NO_SLICES = FailingSlices("", (), (), ())


def failing_slices(view: View) -> FailingSlices:
    """Return the slices that explain the leader's difference from its main rival.

    They are those of `harness explain`, for the leader and `main_rival`.
    """
    rival = main_rival(view)
    leader = view.evaluation.leader
    if rival == leader:
        return NO_SLICES
    explanation = explain_scores(
        view.results, view.scores, view.settings, rival, b=leader
    )
    if explanation.silence is Silence.NO_SLICES:
        return NO_SLICES
    suggestions = dict.fromkeys(
        finding.suggestion for finding in explanation.findings if finding.suggestion
    )
    order = order_by_loss(view)
    groups = [_query_group(view, order, finding) for finding in explanation.findings]
    sentences = tuple(map(view.with_short_names, explanation_sentences(explanation)))
    nothing_found = explanation.silence is Silence.NOTHING_FOUND
    return FailingSlices(
        "" if nothing_found else sentences[0],
        sentences,
        tuple(SUGGESTION_LINES[suggestion] for suggestion in suggestions),
        tuple(groups),
    )


def _query_group(view: View, order: Sequence[int], finding: SliceFinding) -> QueryGroup:
    """Return the queries of a slice as a group to choose."""
    query_ids = [view.ids[i] for i in order if finding.mask[i]]
    title = f"{finding.loser} loses where {slice_phrase(finding.name)}"
    return QueryGroup(title, tuple(query_ids))


def property_texts(view: View) -> Mapping[str, list[str]]:
    """Return query -> its properties as its card shows them.

    What is the same for all queries, and a "no", is left out.
    """
    rows = view.results.query_properties
    values_by_name: dict[str, set[PropertyValue]] = {}
    for row in rows:
        values_by_name.setdefault(row.name, set()).add(row.value)
    texts: dict[str, list[str]] = {}
    for row in rows:
        if row.value is not False and len(values_by_name[row.name]) > 1:
            texts.setdefault(row.query_id, []).append(property_text(row))
    return texts

"""Sentences that may change the decision, for the first screen."""

from collections.abc import Iterator, Mapping, Sequence

from harness.evaluation.costs import RetrieverCost, retriever_costs
from harness.evaluation.warning_sentences import warning_sentence
from harness.evaluation.warnings import WarningKind
from harness.report.slice_comparison import (
    compare_slices,
    decisive_slice,
    slice_name,
    view_slices,
)
from harness.report.view import View
from harness.wording.verdicts import trials_sentence

MAX_LATENCY_RATIO = 2.0
"""Largest credible ratio of two latencies of the same encoder."""
MAX_LOAD_PER_CORE = 1.0
"""Running and waiting processes per core above which a machine is busy."""
BUSY_SENTENCE = "Other programs were running: do not compare latencies."


def decision_alerts(view: View) -> list[str]:
    """What may change the decision and is not shown elsewhere, most important first."""
    # The conclusion, Data and the section of contexts show these.
    shown_elsewhere = (
        WarningKind.FRAGILE,
        WarningKind.JUDGED_GAP,
        WarningKind.ESTIMATED_TOKENS,
        WarningKind.WHOLE_DOCUMENTS,
    )
    sentences = [
        warning_sentence(warning)
        for warning in view.evaluation.warnings
        if warning.kind not in shown_elsewhere
    ]
    trials = trials_sentence(view.evaluation.trial_means)
    notes = [trials] if trials else []
    return [*sentences, *notes, *_decisive_slice_alert(view), *_latency_alert(view)]


def _decisive_slice_alert(view: View) -> Iterator[str]:
    """Yield the slice that makes up the whole lead over the next retriever, in words.

    Nothing is yielded if no lead is shown.
    """
    leader, *others = view.ranked
    if not others or others[0] not in view.evaluation.shown_worse:
        return
    pair = compare_slices(view, leader, others[0], view_slices(view))
    row = decisive_slice(view, pair)
    if row is not None:
        yield (
            f"{pair.a} leads {pair.b} only because of the {row.queries:,} queries "
            f"of {slice_name(row)}."
        )


def _latency_alert(view: View) -> Iterator[str]:
    """Timings that cannot be trusted.

    One encoder has very different speeds, or the machine was busy.
    """
    costs = retriever_costs(view.results)
    is_timed = any(cost.stages for cost in costs.values())
    if _speeds_differ(view, costs) or (_was_busy(view) and is_timed):
        yield BUSY_SENTENCE


def _speeds_differ(view: View, costs: Mapping[str, RetrieverCost]) -> bool:
    """Whether retrievers with the same encoder embed queries at different speeds."""
    latencies: dict[str, list[float]] = {}
    for retriever in view.retrievers:
        encoder = view.resolved.retriever_by_name[retriever].encoder
        if not encoder:
            continue
        encoder_latencies = latencies.setdefault(repr(encoder), [])
        for stage in costs[retriever].stages:
            if stage.stage == "embed-queries":
                encoder_latencies.append(stage.p50)
    return any(_differ_too_much(numbers) for numbers in latencies.values())


def _differ_too_much(milliseconds: Sequence[float]) -> bool:
    if not milliseconds:
        return False
    return max(milliseconds) > MAX_LATENCY_RATIO * min(milliseconds) > 0


def _was_busy(view: View) -> bool:
    machine = view.manifest.machine
    if not machine.cores or machine.load is None:
        return False
    return machine.load > MAX_LOAD_PER_CORE * machine.cores

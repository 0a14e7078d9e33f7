"""The first screen of a report."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from harness.english import common_prefix, percent_text
from harness.evaluation.board import Board
from harness.evaluation.costs import RetrieverCost, retriever_costs
from harness.evaluation.judging_effort import quoted_folder
from harness.evaluation.warnings import WarningKind, warning_sentence
from harness.report.charts.axes import round_steps, tick_labels
from harness.report.charts.figure import Figure
from harness.report.charts.forest import ForestRow, ForestTexts, forest_figure
from harness.report.numbers import difference_text
from harness.report.sections.costs import COST_KINDS
from harness.report.sections.slices import (
    compare_slices,
    compared_retrievers,
    decisive_slice,
    labels_by_family,
    slice_name,
)
from harness.report.templates import Section
from harness.report.view import View
from harness.wording.conclusion import verdict_lines
from harness.wording.looks import look_sentences
from harness.wording.verdicts import STANDING_WORDS, single_p_note, trials_sentence

MAX_LATENCY_RATIO = 2.0
"""Largest credible ratio of two latencies of the same encoder."""
MAX_LOAD_PER_CORE = 1.0
"""Waiting processes per core of a busy machine."""


class FirstScreen(NamedTuple):
    """The content of the first screen, in its order."""

    headline: str
    reason: str
    """Why, in one sentence; may be empty."""
    step: str
    """What to do next; may be empty."""
    warnings: tuple[str, ...]
    """Sentences that may change the decision, most important first."""
    board: Board
    common_prefix: str
    """The shared start of all names, which the head shows once; "" for none."""
    failed: Mapping[str, str]
    initial_rows: int = 6
    """Rows of the leaderboard that are shown at first."""
    standings: Mapping[str, tuple[str, str]] = STANDING_WORDS

    def without_prefix(self, name: str) -> str:
        """A name without the shared start."""
        return name.removeprefix(self.common_prefix)

    @property
    def signs(self) -> list[tuple[str, str]]:
        """The signs of the leaderboard with their words.

        Those of the leader and of failed retrievers are left out.
        """
        standings = [
            self.standings[row.standing]
            for row in self.board.rows
            if row.mean is not None and row.standing != "leader"
        ]
        return [(sign, word) for sign, word in dict.fromkeys(standings) if sign]

    @property
    def star_note(self) -> str:
        """What the star at a p means; "" without one."""
        return single_p_note(self.board)

    @property
    def axis(self) -> tuple[float, float]:
        """The ends of the forest's axis, with some room."""
        low, high = self.board.axis_range
        room = (high - low) * 0.04 or 0.05
        return low - room, high + room

    @property
    def folded(self) -> frozenset[str]:
        """The retrievers that the leaderboard shows on demand."""
        later_retrievers = [
            row.retriever
            for row in self.board.rows[self.initial_rows :]
            if row.standing not in ("baseline", "failed")
        ]
        return frozenset(later_retrievers if len(later_retrievers) > 2 else ())

    @property
    def ticks(self) -> list[tuple[float, str]]:
        """The round values of the axis, with labels."""
        ticks = round_steps(*self.axis, 5)
        return list(zip(ticks, tick_labels(ticks, "-"), strict=True))


def decision_section(view: View) -> Section:
    """The verdict, the reason, the next step, and the paired leaderboard."""
    screen = first_screen(view)
    figures = (_forest_figure(view, screen.board),) if screen.board.has_pairs else ()
    return Section("decision", "Decision", {"screen": screen}, figures)


def _forest_figure(view: View, board: Board) -> Figure:
    """The paired forest as a figure, with the counts of each row."""
    measure = view.names[view.primary].short
    rows: list[ForestRow] = []
    for row in board.rows:
        if row.difference is None:
            continue
        record = f"{row.wins:,} / {row.ties:,} / {row.losses:,}"
        rows.append(
            ForestRow(
                label=row.retriever,
                slice=row.retriever,
                difference=row.difference,
                low=row.low,
                high=row.high,
                queries=board.n,
                record=record,
                side_text=record,
                color=view.colors[row.retriever],
            )
        )
    direction = "ahead of" if board.against_baseline else "behind"
    axis_title = f"{measure} {direction} {board.reference}"
    differences = "; ".join(
        f"{row.label} {difference_text(row.difference)}" for row in rows
    )
    texts = ForestTexts(
        name="leaderboard",
        title=(
            f"{axis_title}, with {percent_text(board.level)} % intervals; "
            "queries won / tied / lost"
        ),
        description=(
            f"Mean paired difference of {measure}, {direction} {board.reference}: "
            f"{differences}."
        ),
        axis_title=axis_title,
    )
    return forest_figure(texts, {"": rows}, board.margin)


def first_screen(view: View) -> FirstScreen:
    """Put the first screen together."""
    lines = verdict_lines(view.evaluation, folder=quoted_folder(view.results))
    prefix = common_prefix(list(view.evaluation.means))

    def shorten(sentence: str) -> str:
        # The head of the leaderboard shows the shared start of all names once.
        short_sentence = view.with_short_names(sentence)
        return short_sentence.replace(prefix, "…") if prefix else short_sentence

    warnings = [
        *decision_alerts(view),
        *look_sentences(view.evaluation),
        *lines.alerts,
    ]
    return FirstScreen(
        headline=shorten(lines.headline),
        reason=shorten(lines.reason),
        step=shorten(lines.next_step + cheapest_sentences(view)),
        warnings=tuple(map(shorten, warnings)),
        board=view.evaluation.board,
        common_prefix=prefix,
        failed=view.evaluation.failed,
        initial_rows=2 if view.evaluation.sweep else 6,
    )


def cheapest_sentences(view: View) -> str:
    """The fastest, cheapest and smallest of the retrievers as good as the leader."""
    if not _recommends_a_retriever(view):
        return ""
    costs = retriever_costs(view.results)
    candidates = view.evaluation.as_good_as_leader
    sentences = ""
    for kind in COST_KINDS.values():
        prices: dict[str, float] = {}
        for retriever in candidates:
            price = kind.read_cost(costs[retriever])
            if price is not None:
                prices[retriever] = price
        if len(prices) == len(candidates) and len(set(prices.values())) > 1:
            cheapest = min(prices, key=prices.__getitem__)
            sentences += f" {kind.superlative}: {cheapest}."
    return sentences


def _recommends_a_retriever(view: View) -> bool:
    """Whether a retriever is recommended, and no other step comes first."""
    evaluation = view.evaluation
    if evaluation.queries_needed or evaluation.failed or evaluation.sweep:
        return False
    return evaluation.measured and evaluation.settings.judged_by_people


def decision_alerts(view: View) -> list[str]:
    """Everything that may change the decision, most important first."""
    # The conclusion, Trust and the section of contexts show these.
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
    """The slice that makes up the whole difference between the leader and the next.

    Only if a difference is shown.
    """
    families = labels_by_family(view)
    if len(view.retrievers) < 2 or not families:
        return
    if view.ranked[1] not in view.evaluation.shown_worse:
        return
    leader = view.evaluation.leader
    pair = compare_slices(view, leader, compared_retrievers(view)[0], families)
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
        yield "The machine was busy: latencies may be too long, so do not compare them."


def _speeds_differ(view: View, costs: Mapping[str, RetrieverCost]) -> bool:
    """Whether retrievers with the same encoder embed queries at different speeds."""
    latencies: dict[str, list[float]] = {}
    for retriever in view.retrievers:
        encoder = view.resolved.retriever_tables[retriever].get("encoder")
        if not encoder:
            continue
        encoder_latencies = latencies.setdefault(repr(encoder), [])
        for stage in costs[retriever].stages:
            if stage.stage == "embed-queries":
                encoder_latencies.append(stage.p50)
    return any(
        max(milliseconds) > MAX_LATENCY_RATIO * min(milliseconds) > 0
        for milliseconds in latencies.values()
        if milliseconds
    )


def _was_busy(view: View) -> bool:
    machine = view.manifest.machine
    cores = machine.get("cores")
    load = machine.get("load")
    if not cores or load is None:
        return False
    return bool(load > MAX_LOAD_PER_CORE * cores)

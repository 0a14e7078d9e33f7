"""The first screen of a report."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from harness.english import common_prefix
from harness.evaluation.board import Board
from harness.evaluation.costs import retriever_costs
from harness.evaluation.warnings import WarningKind, warning_sentence
from harness.report.charts.axes import round_steps, tick_labels
from harness.report.charts.figure import Figure
from harness.report.charts.forest import ForestRow, forest_figure
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
from harness.wording.verdicts import STANDING_WORDS

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
    """What may change the decision, most important first."""
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
        """The signs of the leaderboard with their words, except the leader's and those of failed retrievers."""
        rows = [
            row
            for row in self.board.rows
            if row.mean is not None and row.standing != "leader"
        ]
        shown = dict.fromkeys(self.standings[row.standing] for row in rows)
        return [(sign, word) for sign, word in shown if sign]

    @property
    def axis(self) -> tuple[float, float]:
        """The ends of the forest's axis, with some room."""
        low, high = self.board.axis_range
        room = (high - low) * 0.04 or 0.05
        return low - room, high + room

    @property
    def folded(self) -> frozenset[str]:
        """The retrievers that the leaderboard shows on demand."""
        rest = [
            row.retriever
            for row in self.board.rows[self.initial_rows :]
            if row.standing not in ("baseline", "failed")
        ]
        return frozenset(rest if len(rest) > 2 else ())

    @property
    def ticks(self) -> list[tuple[float, str]]:
        """The round values of the axis, with labels."""
        values = round_steps(*self.axis, 5)
        return list(zip(values, tick_labels(values, "-"), strict=True))


def decision_section(view: View) -> Section:
    """The verdict, the reason, the next step, and the paired leaderboard."""
    screen = first_screen(view)
    drawn = (_figure(view, screen),) if screen.board.has_pairs else ()
    return Section("decision", "Decision", {"screen": screen}, drawn)


def _figure(view: View, screen: FirstScreen) -> Figure:
    """The paired forest as a figure, with the counts of each row."""
    board, name = screen.board, view.names[view.primary].short
    rows = [
        ForestRow(
            row.retriever,
            row.retriever,
            row.difference,
            row.low,
            row.high,
            board.n,
            record := f"{row.wins:,} / {row.ties:,} / {row.losses:,}",
            side_text=record,
            color=view.colors[row.retriever],
        )
        for row in board.rows
        if row.difference is not None
    ]
    where = (
        f"ahead of {board.reference}"
        if board.against_baseline
        else f"behind {board.reference}"
    )
    differences = "; ".join(
        f"{row.label} {difference_text(row.difference)}" for row in rows
    )
    words = (
        "leaderboard",
        f"{name} {where}, with {100 * board.level:g} % intervals; queries won / tied / lost",
        f"Mean paired difference of {name}, {where}: {differences}.",
        f"{name} {where}",
    )
    return forest_figure(words, {"": rows}, board.margin)


def first_screen(view: View) -> FirstScreen:
    """Put the first screen together."""
    said, beginning = (
        verdict_lines(view.evaluation),
        common_prefix(list(view.evaluation.means)),
    )

    def short(sentence: str) -> str:
        # The head of the leaderboard shows the shared start of all names once.
        spoken = view.with_short_names(sentence)
        return spoken.replace(beginning, "…") if beginning else spoken

    return FirstScreen(
        headline=short(said.headline),
        reason=short(said.reason),
        step=short(said.next_step + _cheapest(view)),
        warnings=tuple(
            map(
                short,
                [
                    *decision_alerts(view),
                    *look_sentences(view.evaluation),
                    *said.alerts,
                ],
            )
        ),
        board=view.evaluation.board,
        common_prefix=beginning,
        failed=view.evaluation.failed,
        initial_rows=2 if view.evaluation.sweep else 6,
    )


def _cheapest(view: View) -> str:
    """The fastest, cheapest and smallest of the retrievers that are shown to be as good as the leader."""
    result, costs, said = view.evaluation, retriever_costs(view.results), ""
    if (
        result.queries_needed
        or result.failed
        or result.sweep
        or not result.measured
        or not result.settings.judged_by_people
    ):
        return ""  # nothing is recommended, or another step comes first
    good = result.as_good_as_leader
    for price in COST_KINDS.values():
        priced = {
            name: value
            for name in good
            if (value := price.read_cost(costs[name])) is not None
        }
        if len(priced) == len(good) and len(set(priced.values())) > 1:
            said += (
                f" {price.superlative}: {min(priced, key=lambda name: priced[name])}."
            )
    return said


def decision_alerts(view: View) -> list[str]:
    """Everything that may change the decision, most important first."""
    left_out = (
        WarningKind.FRAGILE,
        WarningKind.JUDGED_GAP,
    )  # shown by the conclusion and by Trust
    known = [
        warning_sentence(one)
        for one in view.evaluation.warnings
        if one.kind not in left_out
    ]
    return [*known, *_carried(view), *_latency(view)]


def _carried(view: View) -> Iterator[str]:
    """The slice that makes up the whole difference between the leader and the next, if a difference is shown."""
    kinds = labels_by_family(view)
    if (
        len(view.retrievers) < 2
        or not kinds
        or view.ranked[1] not in view.evaluation.shown_worse
    ):
        return
    pair = compare_slices(
        view, view.evaluation.leader, compared_retrievers(view)[0], kinds
    )
    if (row := decisive_slice(view, pair)) is not None:
        yield f"{pair.a} leads {pair.b} only because of the {row.queries:,} queries of {slice_name(row)}."


def _latency(view: View) -> Iterator[str]:
    """Timings that cannot be trusted: one encoder at very different speeds, or a busy machine."""
    costs, encoders = retriever_costs(view.results), dict[str, list[float]]()
    for name in view.retrievers:
        encoder = view.resolved.retriever_tables[name].get("encoder")
        timed = [
            stage.p50
            for stage in costs[name].stages
            if encoder and stage.stage == "embed-queries"
        ]
        encoders.setdefault(repr(encoder), []).extend(timed)
    apart = any(
        max(timed) > MAX_LATENCY_RATIO * min(timed) > 0
        for timed in encoders.values()
        if timed
    )
    cores, load = view.manifest.machine.get("cores"), view.manifest.machine.get("load")
    busy = cores and load is not None and load > MAX_LOAD_PER_CORE * cores
    if apart or (busy and any(cost.stages for cost in costs.values())):
        yield "The machine was busy: latencies may be too long, so do not compare them."

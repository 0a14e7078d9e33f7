"""The first screen of a report."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from harness.english import (
    common_prefix,
    count_of,
    count_queries,
    percent_text,
)
from harness.evaluation.board import Board, BoardRow
from harness.evaluation.costs import RetrieverCost, retriever_costs
from harness.experiment.value_labels import value_labels
from harness.records.staging import quoted_folder
from harness.report.charts.figure import Figure
from harness.report.charts.forest import ForestRow, ForestTexts, forest_figure
from harness.report.charts.strip import StripAxis, fit_strip_axis
from harness.report.decision_alerts import decision_alerts
from harness.report.numbers import difference_text
from harness.report.palette import standing_shade
from harness.report.templates import Section
from harness.report.view import View
from harness.wording.conclusion import verdict_lines
from harness.wording.dates import date_text
from harness.wording.looks import look_sentences
from harness.wording.verdicts import STANDING_WORDS, single_p_note

MAX_WARNINGS = 2
"""Warnings of the first screen; the others are under Data."""
MAX_SETTING_COLUMNS = 3
"""Axes of a sweep up to which each has a column."""
MAX_HIGH_ROWS = 5
"""Rows of the leaderboard up to which each is a tall one."""


class BoardLine(NamedTuple):
    """One row of the leaderboard with its cost."""

    row: BoardRow
    state: str
    """Its class in the style sheet, without "is-", which sets its colour."""
    sign: str
    word: str
    cost: RetrieverCost | None
    """What it costs; None if it failed."""
    failure: str
    """Why it failed; "" if it did not."""
    is_folded: bool
    name: str
    """Its name, without the settings that have columns."""
    settings: tuple[str, ...]
    """Its value of each axis of a sweep; empty without columns of them."""


class FirstScreen(NamedTuple):
    """The content of the first screen, in its order."""

    facts: tuple[str, ...]
    """The number of queries, documents, the measure, the date."""
    headline: str
    reason: str
    """Why, and what to do next; may be empty."""
    command: str
    """The command of the next step; "" if there is no next step."""
    warnings: tuple[str, ...]
    """Sentences that may change the decision, most important first."""
    board: Board
    lines: tuple[BoardLine, ...]
    axis: StripAxis
    common_prefix: str
    """The shared start of all names, which the head shows once; "" for none."""
    note: str
    """Says for what the intervals and the p of the board hold."""
    setting_names: tuple[str, ...]
    """The axes of a sweep that have a column."""

    def without_prefix(self, name: str) -> str:
        """A name without the shared start."""
        return name.removeprefix(self.common_prefix)

    @property
    def is_timed(self) -> bool:
        """Whether the latency of a retriever is known."""
        return any(line.cost and line.cost.p95 is not None for line in self.lines)

    @property
    def shown_warnings(self) -> tuple[str, ...]:
        """The warnings of the first screen."""
        return self.warnings[:MAX_WARNINGS]

    @property
    def hidden_warnings(self) -> int:
        """The number of warnings that are under Data alone."""
        return len(self.warnings) - len(self.shown_warnings)

    @property
    def folded(self) -> int:
        """The number of rows that are opened on demand."""
        return sum(line.is_folded for line in self.lines)

    @property
    def has_few_rows(self) -> bool:
        """Whether the rows are so few that each is a tall one."""
        return len(self.lines) <= MAX_HIGH_ROWS


@dataclass(frozen=True, slots=True)
class DecisionContext:
    """The section's content."""

    screen: FirstScreen


def decision_section(view: View) -> Section[DecisionContext]:
    """The verdict, the reason, the next step, and the paired leaderboard."""
    screen = first_screen(view)
    figures = (_forest_figure(view, screen.board),) if screen.board.has_pairs else ()
    return Section("decision", "Decision", DecisionContext(screen), figures)


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
                difference=row.difference,
                low=row.low,
                high=row.high,
                queries=board.n,
                record=record,
                side_text=record,
                color=standing_shade(row.standing).light,
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
    evaluation = view.evaluation
    verdict = verdict_lines(evaluation, folder=quoted_folder(view.results.folder))
    board = evaluation.board
    prefix = common_prefix([row.retriever for row in board.rows])

    def shorten(sentence: str) -> str:
        # The head of the leaderboard shows the shared start of all names once.
        short_sentence = view.with_short_names(sentence)
        return short_sentence.replace(prefix, "…") if prefix else short_sentence

    warnings = [
        *decision_alerts(view),
        *look_sentences(evaluation),
        *verdict.alerts,
    ]
    setting_names = _setting_names(view)
    return FirstScreen(
        facts=_facts(view),
        headline=shorten(verdict.headline),
        reason=shorten(f"{verdict.reason} {verdict.next_step}".strip()),
        command=verdict.command,
        warnings=tuple(map(shorten, warnings)),
        board=board,
        lines=tuple(_board_lines(view, board, setting_names)),
        axis=fit_strip_axis(
            board.axis_range, board.margin, is_signed=board.against_baseline
        ),
        common_prefix=prefix,
        note=_board_note(view, board),
        setting_names=setting_names,
    )


def _facts(view: View) -> tuple[str, ...]:
    """The line of facts at the top."""
    queries = count_queries(view.n)
    if view.evaluation.clusters is not None:
        queries += f", {count_of(view.evaluation.clusters, 'cluster')}"
    facts = [queries]
    if view.settings.weight:
        facts.append(f"weighted by {view.settings.weight}")
    facts += [
        count_of(view.manifest.dataset.documents, "document"),
        view.names[view.primary].short,
        date_text(view.manifest.started),
    ]
    return tuple(facts)


def _setting_names(view: View) -> tuple[str, ...]:
    """The axes of a sweep, if each can have a column.

    Empty without a sweep, with too many axes, or if the name of a configuration lacks
    the value of one.
    """
    sweep = view.resolved.sweep
    if not sweep or view.evaluation.sweep is None:  # such as after a failed default
        return ()
    # The value of "of" is the name of a configuration before its bracket.
    axes = [axis for axis in sweep.axes if axis != "of"]
    configurations = [name for name in view.ranked if "[" in name]
    are_in_names = all(len(_settings(name)) == len(axes) for name in configurations)
    if not are_in_names or not 0 < len(axes) <= MAX_SETTING_COLUMNS:
        return ()
    short_names = tuple(axis.rpartition(".")[2] for axis in axes)
    is_distinct = len(set(short_names)) == len(short_names)
    return short_names if is_distinct else tuple(axes)


def _settings(name: str) -> tuple[str, ...]:
    """The values in the name of a configuration.

    >>> _settings("bm25[2, 0.4]"), _settings("bm25")
    (('2', '0.4'), ())
    """
    _, _, values = name.removesuffix("]").partition("[")
    return tuple(values.split(", ")) if values else ()


def _settings_of_default(view: View) -> tuple[str, ...]:
    """The default's value of each axis; empty if the grid does not have it."""
    sweep = view.resolved.sweep
    if sweep is None or sweep.default not in sweep.configurations:
        return ()
    indices = sweep.configurations[sweep.default]
    return tuple(
        labels[indices[axis]] if axis in indices else ""
        for axis, labels in value_labels(sweep).items()
        if axis != "of"
    )


def _board_lines(
    view: View, board: Board, setting_names: Sequence[str]
) -> Iterator[BoardLine]:
    """Yield the lines of the leaderboard, each with its costs and its failure."""
    costs = retriever_costs(view.results)
    reasons = dict(view.evaluation.failed)
    folded = board.folded
    rows = board.rows
    settings_of_default = _settings_of_default(view)
    if view.evaluation.sweep is not None:
        # What is in use today is first.
        rows = tuple(sorted(rows, key=lambda row: row.standing != "baseline"))
    for row in rows:
        sign, word = STANDING_WORDS[row.standing]
        name = row.retriever
        settings: tuple[str, ...] = ()
        if setting_names:
            settings = _settings(name) or ("",) * len(setting_names)
            if row.standing == "baseline":
                settings = settings_of_default or settings
            name = name.partition("[")[0]
        yield BoardLine(
            row,
            state="undecided" if row.standing in ("open", "same") else row.standing,
            sign=sign,
            word=word,
            cost=costs.get(row.retriever),
            failure=reasons.get(row.retriever, ""),
            is_folded=row.retriever in folded,
            name=name,
            settings=settings,
        )


def _board_note(view: View, board: Board) -> str:
    """What the margin, the intervals and the p of the board hold for."""
    if not board.has_pairs:
        return ""
    parts: list[str] = []
    if board.margin:
        parts.append(f"grey: margin {board.margin:g}")
    pairs = len(view.comparisons[view.primary])
    units = " by cluster" if view.evaluation.clusters is not None else ""
    if view.settings.weight:
        units += f" weighted by {view.settings.weight}"
    has_several = sum(row.mean is not None for row in board.rows) > 2
    all_rows = "all rows at once" if has_several else "this pair"
    intervals = f"CI: {all_rows}{units}"
    if pairs > 1:
        intervals += f"; p: adjusted for {count_of(pairs, 'pair')}"
    parts.append(intervals)
    star_note = single_p_note(board)
    if star_note:
        parts.append(star_note)
    return " · ".join(parts)

"""Tables that fit: results of comparisons, scores alone, results folders. printing.py prints them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from harness.console.layout import (
    GAP,
    Column,
    fitted,
    fitting,
    forest,
    grid,
    head_of,
    side_by_side,
    text_line,
)
from harness.english import asked, count, format_p, join, shared_beginning

if TYPE_CHECKING:
    from rich.console import RenderableType

    from harness.evaluation.evaluation import Evaluation
    from harness.evaluation.verdict import Comparison
    from harness.records import Results
    from harness.report.index import Entry
    from harness.stats.settings import Settings

Row = Mapping[str, Any]
"""A row of summary.csv."""

NO_INTERVAL = "not estimable"
"""Shown in place of an interval where all values are equal, which does not show how far they scatter."""
NOTES = 2
"""Warnings that are told unasked: --explain tells them all."""
ROWS = 2
"""Configurations of a sweep that are told unasked, beside its default."""
MOST = 20
"""Comparisons shown; `--json`, the CSV and the report hold them all."""


WIDTH = 100
"""Of text that is not in a terminal."""


def as_text(
    build: Callable[..., Iterable[RenderableType]], *args: object, width: int = WIDTH
) -> str:
    """What fits a terminal of this width, as plain text."""
    from rich.console import Console

    console = Console(width=width, color_system=None, force_terminal=False)
    with console.capture() as captured:
        for part in build(*args, width=width):
            console.print(part)
    return "\n".join(line.rstrip() for line in captured.get().splitlines())


def results(record: Results, explain: bool, *, width: int) -> Iterator[RenderableType]:
    """All that a run has to say: the verdict, what may change it, the paired leaderboard."""
    from harness.evaluation.evaluate import evaluation_of
    from harness.evaluation.wording import abstention_sentence, warning_sentences

    if not record.scored:
        yield from _unlabelled(record)
        return
    evaluation = evaluation_of(record)
    head = f"{record.manifest.name} · {evaluation.measure} · {count(evaluation.n)}"
    notes = warning_sentences(evaluation.warnings)
    yield from verdict(evaluation, width=width, explain=explain, notes=notes, head=head)
    if evaluation.abstention is not None:
        yield text_line(abstention_sentence(evaluation.abstention))
    if explain:
        yield from _stems(record)


def _unlabelled(record: Results) -> Iterator[RenderableType]:
    """What rankings without labels show, and the next step."""
    from harness.evaluation.evidence import SECONDS, next_step, overlaps, to_judge

    judging = to_judge(record)
    yield text_line("No query has labels: there are rankings to judge, and no scores.")
    yield text_line(
        f"The first ten hits of each retriever make {judging.pairs:,} pairs of query and document: about "
        f"{judging.time} at {SECONDS} seconds a label."
    )
    for row in overlaps(record):
        common = f"{row.common:.1f} of the first 10 in common"
        yield text_line(
            f"{row.a} and {row.b}: {common}, rank-biased overlap {row.rbo:.3f}"
        )
    yield from _stems(record)
    yield text_line(f"next: {next_step(record)}")


def _stems(record: Results) -> Iterator[RenderableType]:
    """How the retrievers that compare words take them: "bm25: words stemmed as English"."""
    named: dict[str, list[str]] = {}
    for name, facts in record.manifest.retrievers.items():
        if how := facts.provenance.get("words"):
            named.setdefault(how, []).append(name)
    yield from (
        text_line(f"{join(names)}: words {how}") for how, names in named.items()
    )


def verdict(
    evaluation: Evaluation,
    *,
    width: int,
    explain: bool = False,
    notes: Sequence[str] = (),
    complete: bool = True,
    head: str = "",
) -> Iterator[RenderableType]:
    """The verdict in words, what may change it, the paired leaderboard; then what was asked for besides.

    Args:
        evaluation: what was found.
        width: cells of the terminal.
        explain: whether all that was found is printed.
        notes: what may change the verdict.
        complete: whether no retriever is missing; else nothing is recommended.
        head: on what; the measure and the number of queries if left out.
    """
    from harness.evaluation.conclusions import first_lines
    from harness.evaluation.csv_views import summary_rows

    said, board = first_lines(evaluation, complete=complete), evaluation.board
    beginning = shared_beginning([row.retriever for row in board.rows])

    def short(sentence: str) -> str:
        # The head of the table says once what all names begin with.
        return sentence.replace(beginning, "…") if beginning else sentence

    yield text_line(
        head or f"{evaluation.measure} over {asked(evaluation.n, evaluation.clusters)}",
        "dim",
    )
    yield text_line(short(f"{said.headline}. {said.reason}".rstrip()), "bold")
    for sentence in said.details if explain else ():
        yield text_line(short(sentence))
    few = [
        *board.rows[:ROWS],
        *(row for row in board.rows[ROWS:] if row.standing in ("baseline", "failed")),
    ]
    shown = board.rows if explain or evaluation.sweep is None else few
    yield from forest(replace(board, rows=tuple(shown)), width=width)
    if left := len(board.rows) - len(shown):
        yield text_line(f"{left} more: --explain", "dim")
    notes = [*said.alerts, *notes]
    for note in notes if explain else notes[:NOTES]:
        yield text_line(f"! {short(note)}")
    if said.step:
        yield text_line(short(said.step))
    if not explain:
        return
    yield ""
    yield from leaderboard(
        summary_rows(evaluation.summary),
        evaluation.measure,
        width=width,
        level=evaluation.settings.level,
        clusters=evaluation.clusters,
        low_is_good=evaluation.low_is_good,
    )
    yield ""
    if rows := evaluation.comparisons[evaluation.measure]:
        yield from comparisons(
            rows, width=width, settings=evaluation.settings, leader=evaluation.leader
        )


def leaderboard(
    summary: Sequence[Row],
    primary: str,
    *,
    width: int,
    level: float = 0.95,
    clusters: int | None = None,
    low_is_good: AbstractSet[str] = frozenset(),
) -> Iterator[RenderableType]:
    """Means by retriever, best first by the primary measure, which has its interval.

    Args:
        summary: rows of summary.csv; the measures are shown in their order, as many as fit.
        primary: the measure that decides.
        width: cells of the terminal.
        level: confidence of the intervals.
        clusters: of queries, where these are declared.
        low_is_good: measures for which less is better.
    """
    from harness.evaluation.scores import by_mean

    by_cell = {(row["retriever"], row["measure"]): row for row in summary}
    own = {
        row["retriever"]: row["mean"] for row in summary if row["measure"] == primary
    }
    order = list(by_mean(own, low_is_good=primary in low_is_good))
    others = [
        measure
        for measure in dict.fromkeys(row["measure"] for row in summary)
        if measure != primary
    ]

    def means(measure: str, digits: int, rank: int) -> Column:
        known = {
            name: by_cell[name, measure]["mean"]
            for name in order
            if (name, measure) in by_cell
        }
        known = by_mean(known, low_is_good=measure in low_is_good)
        values = [known.get(name) for name in order]
        top = next(iter(known.values()))
        best = frozenset(
            i for i, value in enumerate(values) if value == top and len(values) > 1
        )
        return Column(
            head_of(measure),
            [_shown(value, digits) for value in values],
            bold=best,
            rank=rank,
        )

    ends = [
        tuple(by_cell[name, primary][key] for key in ("ci_low", "ci_high", "ci_method"))
        for name in order
    ]
    intervals = _intervals(ends, "{:z.3f}", level, rank=1)
    measured = [means(measure, 3, rank) for rank, measure in enumerate(others, 2)]
    n = by_cell[order[0], primary]["count"]
    yield text_line(f"{primary} over {asked(n, clusters)}", "bold")
    yield from fitted(
        [
            Column("", order, left=True, name=True),
            means(primary, 4, 0),
            intervals,
            *measured,
        ],
        width,
    )


def comparisons(
    family: Sequence[Comparison], *, width: int, settings: Settings, leader: str = ""
) -> Iterator[RenderableType]:
    """The tests of one measure's family: the difference and its interval before p.

    Args:
        family: its comparisons, one or more.
        width: cells of the terminal.
        settings: those that it was made with.
        leader: its pairs come first, then the closest.
    """
    from harness.evaluation.evaluation import wilcoxon_floors
    from harness.evaluation.wording import verdict_cell, verdict_word

    measure = family[0].measure
    shown = sorted(
        family, key=lambda row: (leader not in (row.a, row.b), abs(row.mean_difference))
    )[:MOST]
    baselines, floors = {row.b for row in family}, wilcoxon_floors(family, settings)
    names = [Column("a", [row.a for row in shown], left=True, name=True)]
    if len(baselines) > 1 or len(family) == 1:
        names.append(Column("b", [row.b for row in shown], left=True, name=True))
    columns = [
        *names,
        Column("a - b", [f"{row.mean_difference:+z.4f}" for row in shown], rank=1),
        _intervals(
            [(row.ci_low, row.ci_high, row.ci_method) for row in shown],
            "{:+z.3f}",
            settings.level,
            rank=3,
        ),
        Column(
            "wins/ties/\nlosses",
            [f"{row.wins:,}/{row.ties:,}/{row.losses:,}" for row in shown],
            rank=5,
        ),
        Column("adjusted\np", [format_p(row.p_adjusted) for row in shown], rank=2),
        Column(
            "exact\nWilcoxon p",
            [
                _exact(row.p_wilcoxon_adjusted, floors.get((row.a, row.b)))
                for row in shown
            ],
            rank=4,
        ),
    ]
    bold = frozenset(i for i, row in enumerate(shown) if row.verdict.separates)
    whole = [
        *columns,
        Column(
            "verdict",
            [verdict_cell(row.finding) for row in shown],
            left=True,
            bold=bold,
        ),
    ]
    short = [
        *columns,
        Column(
            "verdict",
            [verdict_word(row.finding) for row in shown],
            left=True,
            bold=bold,
        ),
    ]
    yield text_line(
        f"{measure}: a and b"
        if len(names) > 1
        else f"{measure}: a against b = {family[0].b}",
        "bold",
    )
    yield from fitted(
        whole if len(fitting(whole, width)) == len(whole) else short, width
    )
    if len(family) > len(shown):
        yield text_line(
            f"Here are {len(shown)} of {len(family)} comparisons: those of {leader}, then the closest. "
            "--json shows them all.",
            "dim",
        )


def _exact(p: float | None, floor: float | None) -> str:
    least = "" if floor is None else f" (≥ {format_p(floor)})"
    return "–" if p is None else f"{format_p(p)}{least}"


def _intervals(
    ends: Iterable[tuple[float | None, float | None, str]],
    form: str,
    level: float,
    *,
    rank: int,
) -> Column:
    """Confidence intervals; what has no width is none."""
    cells = []
    for low, high, method in ends:
        none = method == NO_INTERVAL or low is None or high is None
        cells.append(
            NO_INTERVAL if none else f"{form.format(low)} … {form.format(high)}"
        )
    return Column(f"{100 * level:.3g} %\ninterval", cells, rank=rank)


def runs(entries: Sequence[Entry], *, width: int) -> Iterator[RenderableType]:
    """Results folders, a line each: date, data, what leads on which measure.

    Args:
        entries: newest first.
        width: cells of the terminal.
    """
    failed = any(entry.manifest.failed for entry in entries)
    first = [next(iter(entry.means.items()), ("no labels", None)) for entry in entries]
    yield grid(
        fitting(
            [
                Column(
                    "folder", [entry.folder for entry in entries], left=True, name=True
                ),
                Column(
                    "date",
                    [entry.manifest.started[:10] for entry in entries],
                    left=True,
                    rank=2,
                ),
                Column(
                    "data",
                    [entry.manifest.dataset.path for entry in entries],
                    left=True,
                    name=True,
                    rank=4,
                ),
                Column(
                    "queries",
                    [f"{entry.manifest.dataset.scored:,}" for entry in entries],
                    rank=3,
                ),
                Column(
                    "measure",
                    [head_of(entry.primary).replace("\n", "") for entry in entries],
                    left=True,
                    rank=1,
                ),
                Column("highest", [name for name, _ in first], left=True, name=True),
                Column("mean", [_shown(mean) for _, mean in first]),
                *(
                    [
                        Column(
                            "failed",
                            [f"{len(entry.manifest.failed):,}" for entry in entries],
                        )
                    ]
                    if failed
                    else []
                ),
            ],
            width,
        )
    )


def scoreboard(summary: Sequence[Row], *, width: int) -> Iterator[RenderableType]:
    """Means, a line a measure and a column a run; where the runs have no room side by side, a line a run.

    Args:
        summary: rows with retriever, measure and mean.
        width: cells of the terminal.
    """
    by_cell = {(row["retriever"], row["measure"]): row["mean"] for row in summary}
    names, measures = (
        list(dict.fromkeys(row[key] for row in summary))
        for key in ("retriever", "measure")
    )
    beside = [
        Column("", measures, left=True),
        *(
            Column(name, [_shown(by_cell.get((name, one))) for one in measures])
            for name in names
        ),
    ]
    if sum(column.width for column in beside) + GAP * len(names) <= width:
        yield grid(beside)
        return
    yield from side_by_side(
        Column("", names, left=True, name=True),
        [
            Column(head_of(one), [_shown(by_cell.get((name, one))) for name in names])
            for one in measures
        ],
        width,
    )


def by_query(
    scores: Sequence[Row], run: str, *, width: int
) -> Iterator[RenderableType]:
    """The scores of one run, a line a query and a column a measure; what has no room beside comes beneath.

    Args:
        scores: rows with query_id, measure and value.
        run: its name.
        width: cells of the terminal.
    """
    by_cell = {(row["query_id"], row["measure"]): row["value"] for row in scores}
    ids = list(dict.fromkeys(row["query_id"] for row in scores))
    queries = Column("query", ids, left=True, name=True)
    yield text_line(run, "bold")
    yield from side_by_side(
        queries,
        [
            Column(head_of(measure), [_shown(by_cell[query, measure]) for query in ids])
            for measure in dict.fromkeys(row["measure"] for row in scores)
        ],
        width,
    )


def _shown(value: float | None, digits: int = 4) -> str:
    """A mean or a score; a dash where it is undefined.

    >>> _shown(0.5), _shown(None), _shown(float("nan"))
    ('0.5000', '–', '–')
    """
    return "–" if value is None or value != value else f"{value:.{digits}f}"

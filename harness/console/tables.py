"""What the command line shows: tables that fit the terminal, and the verdict in words. It builds; cli.py prints."""

from __future__ import annotations

import os.path
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from retrievers.errors import HarnessError, InputError, NotShown

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import RenderableType
    from rich.table import Table
    from rich.text import Text
    from typer.exceptions import TyperException

    from harness.records import Results
    from harness.running.plan import Plan
    from harness.stats import Settings, Whole

Row = Mapping[str, Any]
"""A row of summary.csv or comparisons.csv."""

GAP = 2
"""Cells between two columns."""
NARROWEST = 6
"""Cells of a name that are left in the narrowest terminal."""
NO_INTERVAL = "not estimable"
"""The `ci_method` where all values are equal, which tells nothing of how far they scatter."""
LISTED = 20
"""Problems of one error that are listed; the rest is counted."""
MOST = 20
"""Comparisons shown; `--json`, the CSV and the report hold them all."""


class Column(NamedTuple):
    """One column of a table."""

    head: str
    cells: Sequence[str]
    left: bool = False
    """Words stand at the left, numbers at the right."""
    bold: frozenset[int] = frozenset()
    """Rows that stand out."""
    rank: int = 0
    """Where the room is short, the highest rank is left out first; 0 stays."""
    name: bool = False
    """Where the room is short, the middle of the cells is left out."""

    @property
    def width(self) -> int:
        """Cells that the widest line takes; Chinese, Japanese and Korean letters take two."""
        return max(map(_cells, [*self.head.split("\n"), *self.cells]), default=0)


def message(error: HarnessError) -> str:
    """What is wrong; where it is more than one thing, a line each under a head that counts them."""
    problems = error.problems if isinstance(error, InputError) else ()
    if isinstance(error, NotShown):
        return str(error)
    if len(problems) < 2:
        return f"error: {error}"
    number = sum(problem.stands_for for problem in problems)
    shown = problems[:LISTED]
    rest = number - sum(problem.stands_for for problem in shown)
    lines = [f"  {problem}" for problem in shown]
    return "\n".join([f"error: {number:,} problems", *lines, *([f"  and {rest:,} more"] if rest else [])])


def usage(error: TyperException) -> str:
    """A misspelt command line: what is wrong, and where help is."""
    said = error.format_message()
    known = getattr(error, "possibilities", None) or ()
    if known:
        near = get_close_matches(getattr(error, "option_name", ""), known, n=1) or sorted(known)[:1]
        said = f"{said.partition(' (')[0]}; did you mean {near[0]!r}?"
    context = getattr(error, "ctx", None)
    return f"error: {said.rstrip('.')} (see {context.command_path if context else 'harness'} --help)"


def results(found: Results, *, width: int) -> Iterator[RenderableType]:
    """All that a run has to say: means, comparisons, the verdict in words."""
    from harness.scoring.outcome import outcome_of

    if not found.scored:
        yield from _unlabelled(found)
        return
    outcome = outcome_of(found)
    if outcome.incomplete:
        yield _text(f"{outcome.incomplete}.", "bold")
        yield ""
    whole, settings = outcome.whole, outcome.settings
    yield from leaderboard(rows_of(found.summary), whole.measure, width=width, level=settings.level)
    yield from (_text(f"{name} failed: {reason}") for name, reason in outcome.failed.items())
    yield from _compared(rows_of(found.comparisons), whole, settings.level, width=width)
    yield from (_text(sentence) for sentence in outcome.sentences())


def _unlabelled(found: Results) -> Iterator[RenderableType]:
    """What rankings say that nobody has judged, and the next step."""
    from harness.scoring.overlap import next_step, overlaps

    yield _text("No question has labels: there are rankings to judge, and no scores.")
    for row in overlaps(found):
        yield _text(
            f"{row.a} and {row.b}: {row.common:.1f} of the first 10 in common, rank-biased overlap {row.rbo:.3f}"
        )
    yield _text(f"next: {next_step(found)}")


def verdict(
    summary: Sequence[Row], rows: Sequence[Row], whole: Whole, settings: Settings, *, width: int
) -> Iterator[RenderableType]:
    """Means, comparisons, and what they came to in words.

    Args:
        summary: rows of summary.csv.
        rows: rows of comparisons.csv.
        whole: the three sets, on the primary measure.
        settings: those of the comparisons.
        width: cells of the terminal.
    """
    from harness.stats import whole_sentences

    yield from leaderboard(summary, whole.measure, width=width, level=settings.level)
    yield from _compared(rows, whole, settings.level, width=width)
    yield from (_text(sentence) for sentence in whole_sentences(whole, settings))


def _compared(rows: Sequence[Row], whole: Whole, level: float, *, width: int) -> Iterator[RenderableType]:
    """The comparisons between empty lines."""
    yield ""
    if rows:
        yield from comparisons(rows, whole.measure, width=width, level=level, leader=whole.leader)
        yield ""


def rows_of(table: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows of a table, undefined values as None."""
    return [
        {str(name): None if value != value else value for name, value in row.items()}
        for row in table.to_dict("records")
    ]


def leaderboard(summary: Sequence[Row], primary: str, *, width: int, level: float = 0.95) -> Iterator[RenderableType]:
    """Means by retriever, best first by the primary measure, which has its interval.

    Args:
        summary: rows of summary.csv; the measures are shown in their order, as many as fit.
        primary: the measure that decides.
        width: cells of the terminal.
        level: confidence of the intervals.
    """
    told = {(row["retriever"], row["measure"]): row for row in summary}
    order = sorted(dict.fromkeys(row["retriever"] for row in summary), key=lambda name: -told[name, primary]["mean"])
    others = [measure for measure in dict.fromkeys(row["measure"] for row in summary) if measure != primary]

    def means(measure: str, digits: int, rank: int) -> Column:
        values = [told[name, measure]["mean"] for name in order]
        best = frozenset(i for i, value in enumerate(values) if value == max(values) and len(values) > 1)
        return Column(_head(measure), [f"{value:.{digits}f}" for value in values], bold=best, rank=rank)

    intervals = _intervals([told[name, primary] for name in order], "{:.3f}", level, rank=1)
    measured = {measure: means(measure, 3, rank) for rank, measure in enumerate(others, 2)}
    columns = [Column("", order, left=True, name=True), means(primary, 4, 0), intervals, *measured.values()]
    kept = _fitting(columns, width)
    n = told[order[0], primary]["count"]
    yield _text(f"{primary} over {n:,} {'query' if n == 1 else 'queries'}", "bold")
    yield _table(kept)
    if missing := [measure for measure, column in measured.items() if column not in kept]:
        yield _text(_left_out(missing), "dim")


def comparisons(
    rows: Sequence[Row], measure: str, *, width: int, level: float = 0.95, leader: str = ""
) -> Iterator[RenderableType]:
    """The tests of one measure's family: the difference and its interval before p.

    Args:
        rows: rows of comparisons.csv.
        measure: whose family is shown.
        width: cells of the terminal.
        level: confidence of the intervals.
        leader: where there are more pairs than are shown, those of this retriever stand first, then the closest.
    """
    from harness.stats import format_p

    family = [row for row in rows if row["measure"] == measure]
    if not family:
        return
    shown = family
    if len(family) > MOST:
        shown = sorted(family, key=lambda row: (leader not in (row["a"], row["b"]), abs(row["mean_difference"])))[:MOST]
    baselines = {row["b"] for row in family}
    names = [Column("a", [row["a"] for row in shown], left=True, name=True)]
    if len(baselines) > 1 or len(family) == 1:
        names.append(Column("b", [row["b"] for row in shown], left=True, name=True))
    columns = [
        *names,
        Column("a - b", [f"{row['mean_difference']:+.4f}" for row in shown], rank=1),
        _intervals(shown, "{:+.3f}", level, rank=3),
        Column("wins/ties/\nlosses", [f"{row['wins']}/{row['ties']}/{row['losses']}" for row in shown], rank=4),
        Column("adjusted\np", [format_p(row["p_adjusted"]) for row in shown], rank=2),
    ]
    words = [row["verdict"] for row in shown]
    bold = frozenset(i for i, word in enumerate(words) if word.startswith(("better", "worse")))
    whole = [*columns, Column("verdict", words, left=True, bold=bold)]
    short = [*columns, Column("verdict", [word.partition(":")[0] for word in words], left=True, bold=bold)]
    kept = _fitting(whole, width)
    yield _text(f"{measure}: a and b" if len(names) > 1 else f"{measure}: a against b = {family[0]['b']}", "bold")
    kept = kept if len(kept) == len(whole) else _fitting(short, width)
    yield _table(kept)
    heads = [column.head for column in kept]
    if missing := [
        column.head.replace("/\n", "/").replace("\n", " ") for column in columns if column.head not in heads
    ]:
        yield _text(_left_out(missing), "dim")
    if len(family) > len(shown):
        yield _text(
            f"Here are {len(shown)} of {len(family)} comparisons: those of {leader}, then the closest. "
            "--json shows them all.", "dim",
        )  # fmt: skip


def _left_out(columns: Sequence[str]) -> str:
    """The columns that the terminal is too narrow for.

    >>> _left_out(["RR@10", "AP"])
    'Too wide for this terminal: RR@10 and AP. A wider one or --json shows them.'
    """
    from harness.stats.words import join

    return (
        f"Too wide for this terminal: {join(columns)}. A wider one or --json shows {'them' if columns[1:] else 'it'}."
    )


def scoreboard(summary: Sequence[Row], *, width: int) -> Iterator[RenderableType]:
    """Means, a line a measure and a column a run; what has no room beside stands beneath.

    Args:
        summary: rows with retriever, measure and mean.
        width: cells of the terminal.
    """
    told = {(row["retriever"], row["measure"]): row["mean"] for row in summary}
    measures = Column("", list(dict.fromkeys(row["measure"] for row in summary)), left=True)
    room = max(NARROWEST, width - measures.width - GAP)
    names = list(dict.fromkeys(row["retriever"] for row in summary))
    yield from _beside(measures, [
        Column(short, [f"{told[name, measure]:.4f}" for measure in measures.cells])
        for name, short in zip(names, shortened(names, room), strict=True)
    ], width)  # fmt: skip


def by_query(scores: Sequence[Row], run: str, *, width: int) -> Iterator[RenderableType]:
    """The scores of one run, a line a query and a column a measure; what has no room beside stands beneath.

    Args:
        scores: rows with query_id, measure and value.
        run: its name.
        width: cells of the terminal.
    """
    told = {(row["query_id"], row["measure"]): row["value"] for row in scores}
    ids = list(dict.fromkeys(row["query_id"] for row in scores))
    queries = Column("query", shortened(ids, max(NARROWEST, width // 2)), left=True)
    yield _text(run, "bold")
    yield from _beside(queries, [
        Column(_head(measure), [f"{told[query, measure]:.4f}" for query in ids])
        for measure in dict.fromkeys(row["measure"] for row in scores)
    ], width)  # fmt: skip


def plan(found: Plan, shards: int | None = None, *, width: int) -> Iterator[RenderableType]:
    """What a run would take, a line a stage, then the sums and where prices and minutes are from.

    Args:
        found: the plan.
        shards: into how many equal shares the embedding would be cut; None for none.
        width: cells of the terminal.
    """
    total = found.total()
    rows = [row._asdict() for row in found.rows]
    rows.append({"retriever": "total", "stage": "", **total})

    def cells(name: str, digits: int = 0, *, estimated: bool = False) -> list[str]:
        return [_amount(row[name], digits, "≈" if estimated or not row["exact"] else "") for row in rows]

    columns = [
        Column("", [row["retriever"] for row in rows], left=True, name=True),
        Column("stage", [row["stage"].removeprefix("embed-") for row in rows], left=True),
        Column("texts", [f"{row['texts']:,}" for row in rows]),
        Column("cached", [f"{row['cached']:,}" for row in rows]),
        Column("calls", [f"{row['calls']:,}" for row in rows]),
        Column("tokens", cells("tokens")),
        Column("dollars", cells("usd", 4)),
        Column("minutes", cells("minutes", 1, estimated=True)),
    ]
    yield _table(_fitting(columns, width))
    if shards is not None:
        share = found.share(shards)
        usd, minutes = _amount(share["usd"], 4, ""), _amount(share["minutes"], 1, "≈")
        yield _text(f"each of {shards} shards: {share['texts']:,} texts, {usd} dollars, {minutes} minutes", "bold")
    yield from (_text(note, "dim") for note in found.notes)


def _amount(value: float | None, digits: int, mark: str) -> str:
    """An amount as a table shows it: "?" where it is unknown, never 0 for a little.

    >>> _amount(None, 1, "≈"), _amount(0, 1, "≈"), _amount(0.00002, 4, "≈"), _amount(1234.56, 1, "≈")
    ('?', '0', '<0.0001', '≈1,234.6')
    """
    if not value:
        return "?" if value is None else "0"
    return f"<{10**-digits:.{digits}f}" if value < 10**-digits else f"{mark}{value:,.{digits}f}"


def shortened(names: Sequence[str], width: int) -> list[str]:
    """Return names of at most `width` cells; the middle goes, or what else leaves them different.

    >>> shortened(["titan-v1", "text-embedding-3-small-reranked", "text-embedding-3-large-reranked"], 16)
    ['titan-v1', '…-small-reranked', '…-large-reranked']
    """
    for tail in (width // 2, width - 1, 0):
        short = [_cropped(name, width, tail) for name in names]
        if len(set(short)) == len(set(names)):
            return short
    start = len(os.path.commonprefix([name for name in names if _cells(name) > width]))  # noqa: RUF071 - letters
    return [name if _cells(name) <= width else _cropped("…" + name[start:], width, 0) for name in names]


def _cropped(name: str, width: int, tail: int) -> str:
    from rich.cells import set_cell_size

    if _cells(name) <= width:
        return name
    end = name[len(name) - tail :]
    while _cells(end) > tail:
        end = end[1:]
    return set_cell_size(name, width - 1 - _cells(end)).rstrip() + "…" + end


def _cells(text: str) -> int:
    from rich.cells import cell_len

    return cell_len(text)


def _head(measure: str) -> str:
    r"""A measure's name in short lines: broken before the cutoff, and in parameters.

    >>> _head("nDCG(dcg='exp-log2')@10").split("\n")
    ['nDCG(', 'dcg=', "'exp-log2')", '@10']
    """
    return "\n".join(re.split(r"(?=@)|(?<=[(=,])\s*", measure))


def _intervals(rows: Iterable[Row], form: str, level: float, *, rank: int) -> Column:
    """Confidence intervals; what has no width is none."""
    cells = [
        NO_INTERVAL
        if row["ci_method"] == NO_INTERVAL
        else f"{form.format(row['ci_low'])} … {form.format(row['ci_high'])}"
        for row in rows
    ]
    return Column(f"{100 * level:.3g} %\ninterval", cells, rank=rank)


def _fitting(columns: Sequence[Column], width: int) -> list[Column]:
    """The columns for which there is room: names get at least half of it, and the highest ranks go first."""
    kept = list(columns)
    names = [column for column in columns if column.name]
    longest = max((column.width for column in names), default=0)
    limit = min(longest, max(NARROWEST, width // 2 // max(1, len(names))))

    def room() -> int:
        taken = sum(min(column.width, limit) if column.name else column.width for column in kept)
        return width - taken - GAP * (len(kept) - 1)

    while room() < 0 and (ranked := [column for column in kept if column.rank]):
        kept.remove(max(ranked, key=lambda column: column.rank))
    while room() < 0 and limit > NARROWEST:
        limit -= 1
    while room() >= len(names) and limit < longest:
        limit += 1
    cells = list(dict.fromkeys(cell for column in names for cell in column.cells))
    short = dict(zip(cells, shortened(cells, limit), strict=True))
    return [c._replace(cells=[short[cell] for cell in c.cells]) if c.name else c for c in kept]


def _beside(first: Column, others: Sequence[Column], width: int) -> Iterator[Table]:
    """Tables that begin with the same column, each with as many of the others as there is room for."""
    row = [first]
    for column in others:
        if len(row) > 1 and sum(c.width + GAP for c in row) + column.width > width:
            yield _table(row)
            row = [first]
        row.append(column)
    yield _table(row)


def _text(text: str, style: str = "") -> Text:
    from rich.text import Text

    return Text(text, style)


def _table(columns: Sequence[Column]) -> Table:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, show_edge=False, padding=(0, GAP - 1, 0, 0), pad_edge=False)
    for column in columns:
        side: Literal["left", "right"] = "left" if column.left else "right"
        table.add_column(
            Text(column.head), justify=side, overflow="fold", vertical="bottom", header_style="not bold dim"
        )
    for number in range(len(columns[0].cells)):
        table.add_row(*(Text(column.cells[number], "bold" if number in column.bold else "") for column in columns))
    return table

"""The index of many results folders.

It groups the runs by experiment, newest first.
"""

from __future__ import annotations

import os
import shlex
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from markupsafe import Markup

from harness import records
from harness.english import count_of
from harness.pages import OVERVIEW_MARK, is_overview
from harness.report.charts.trend import (
    Trend,
    TrendRun,
    draw_trend,
    fit_time_axis,
)
from harness.report.results_listing import (
    IndexEntry,
    ResultsListing,
    SetsEntry,
    list_results,
)
from harness.report.templates import render_page
from harness.wording.dates import date_text, day_of, short_date_text
from harness.wording.numerals import capital_numeral, numeral
from harness.wording.short_verdict import (
    ShortVerdict,
)
from harness.wording.verdicts import capitalized
from retrievers.errors import InputError, Problem
from retrievers.files.text_files import explain_write_errors

INDEX_FILE = "index.html"


def write_index(results_folder: Path) -> ResultsListing:
    """Write index.html into a folder of results folders.

    Raises:
        InputError: it cannot be written, or an index.html exists that harness did not
            write.
    """
    path = results_folder / INDEX_FILE
    temporary = results_folder / f".{INDEX_FILE}.{os.getpid()}"
    with explain_write_errors(path):
        if path.exists() and not is_overview(path):
            problem = "is not a page of harness"
            raise InputError(Problem(str(path), problem, "move it elsewhere"))
        listing = list_results(results_folder)
        with records.new_text_file(temporary) as file:
            file.write(index_page(listing, results_folder.resolve().name))
        temporary.replace(path)  # atomic: two runs may end at the same time
    return listing


def index_page(listing: ResultsListing, folder: str) -> str:
    """Return the page as one HTML text.

    Args:
        listing: its content.
        folder: the folder of the results, as commands name it.
    """
    experiments = group_experiments(listing.entries, folder)
    rows = place_sets(experiments, listing.sets)
    days = [entry.manifest.started for entry in listing.entries]
    variables = {
        "generator": Markup(OVERVIEW_MARK),  # noqa: S704 - ours
        "folder": folder,
        "facts": _facts(listing, len(experiment_verdicts(rows))),
        "headline": index_headline(experiment_verdicts(rows)),
        "rows": rows,
        "axis": fit_time_axis(days),
        "has_trends": any(len(experiment.runs) > 1 for experiment in experiments),
        "skipped": listing.skipped,
    }
    return render_page("index.html", variables, ("start", "index"), ("index.css",))


def _facts(listing: ResultsListing, experiments: int) -> tuple[str, ...]:
    """The numbers of experiments and runs, and their days."""
    facts = [count_of(experiments, "experiment"), count_of(len(listing.entries), "run")]
    days = sorted(entry.manifest.started for entry in listing.entries)
    if days:
        last = date_text(days[-1])
        first = short_date_text(days[0])
        is_one_day = day_of(days[0]) == day_of(days[-1])
        facts.append(last if is_one_day else f"{first} to {last}")
    return tuple(facts)


class IndexHeadline(NamedTuple):
    """The verdict of the page."""

    headline: str
    reason: str


def index_headline(verdicts: Sequence[ShortVerdict]) -> IndexHeadline:
    """Return how many experiments have a winner."""
    if not verdicts:
        return IndexHeadline("No run yet", "Run an experiment: harness run FILE.")
    winners = sum(verdict.word == "use" for verdict in verdicts)
    total = len(verdicts)
    verb = "has" if winners <= 1 else "have"
    none = "Neither" if total == 2 else "None"
    winner_count = capital_numeral(winners) if winners else none
    headline = f"{winner_count} of {numeral(total)} experiments {verb} a winner"
    if total == 1:
        headline = _single_headline(verdicts[0])
    others: list[str] = []
    counts = Counter(verdict.word for verdict in verdicts if verdict.word != "use")
    for word, count in counts.items():
        if total > 1:
            others.append(f"{numeral(count)} {_state_words(word, count)}")
    reason = "; ".join(others)
    return IndexHeadline(headline, f"{capitalized(reason)}." if reason else "")


def _single_headline(verdict: ShortVerdict) -> str:
    """Return whether the only experiment has a winner."""
    if verdict.word == "use":
        return "The experiment has a winner"
    if verdict.word == "keep":
        return "Nothing is shown to beat what you have"
    return "No winner yet"


def _state_words(word: str, count: int) -> str:
    """Return a state with its verb.

    >>> _state_words("no labels", 1), _state_words("undecided", 2)
    ('has no labels', 'are undecided')
    >>> _state_words("keep", 1)
    'keeps what it has'
    """
    if word == "failed":
        return "failed"
    if word == "keep":
        return "keeps what it has" if count == 1 else "keep what they have"
    if word.startswith("no "):
        return f"{'has' if count == 1 else 'have'} {word}"
    return f"{'is' if count == 1 else 'are'} {word}"


class RunLine(NamedTuple):
    """One run of an experiment."""

    entry: IndexEntry
    command: str
    """It compares the run with the one before it; "" if that is not possible."""
    is_oldest: bool


class ExperimentRuns(NamedTuple):
    """All runs of one experiment."""

    name: str
    runs: tuple[RunLine, ...]
    """The newest first."""
    trend: Trend

    @property
    def newest(self) -> IndexEntry:
        """The last run."""
        return self.runs[0].entry


class IndexRow(NamedTuple):
    """One experiment of the page."""

    experiment: ExperimentRuns
    set_of: str
    """The folder of several data sets, if it ran on one of them; else ""."""
    common: SetsEntry | None
    """The common page of these sets, with the first of their rows; else None."""


def place_sets(
    experiments: Sequence[ExperimentRuns], sets: Sequence[SetsEntry]
) -> list[IndexRow]:
    """Return the experiments; a common page comes before the newest of its sets."""
    pages = {page.folder: page for page in sets}
    folders = frozenset(pages)
    rows: list[IndexRow] = []
    for experiment in experiments:
        parent, _, _ = experiment.newest.folder.rpartition("/")
        set_of = parent if parent in folders else ""
        rows.append(IndexRow(experiment, set_of, pages.pop(parent, None)))
    return rows


def experiment_verdicts(rows: Sequence[IndexRow]) -> list[ShortVerdict]:
    """The verdict of each experiment; one on several data sets has one."""
    verdicts: list[ShortVerdict] = []
    for row in rows:
        if row.common is not None:
            verdicts.append(row.common.verdict)
        elif not row.set_of:
            verdicts.append(row.experiment.newest.verdict)
    return verdicts


def group_experiments(
    entries: Sequence[IndexEntry], parent: str
) -> list[ExperimentRuns]:
    """Return the experiments with their runs; the one that ran last is first.

    Args:
        entries: newest first.
        parent: the folder of the results, as commands name it.
    """
    axis = fit_time_axis([entry.manifest.started for entry in entries])
    runs_by_name: dict[str, list[IndexEntry]] = {}
    for entry in entries:
        runs_by_name.setdefault(_experiment_name(entry), []).append(entry)
    experiments: list[ExperimentRuns] = []
    for name, runs in runs_by_name.items():
        lines: list[RunLine] = []
        for position, entry in enumerate(runs):
            earlier = runs[position + 1] if position + 1 < len(runs) else None
            command = (
                "" if earlier is None else _compare_command(entry, earlier, parent)
            )
            lines.append(RunLine(entry, command, is_oldest=earlier is None))
        points = [
            TrendRun(
                entry.manifest.started,
                entry.mean,
                entry.verdict.state,
                entry.verdict.retriever or next(iter(entry.means), ""),
                f"{entry.manifest.dataset.digest} {entry.primary}",
                entry.queries,
            )
            for entry in reversed(runs)
        ]
        experiments.append(ExperimentRuns(name, tuple(lines), draw_trend(points, axis)))
    return experiments


def _experiment_name(entry: IndexEntry) -> str:
    """The name of an experiment; the sets of one experiment are apart."""
    parent, _, _ = entry.folder.rpartition("/")
    return f"{parent}/{entry.manifest.name}" if parent else entry.manifest.name


def _compare_command(entry: IndexEntry, earlier: IndexEntry, parent: str) -> str:
    """The command that compares a run with the one before it.

    "" if the data set or the measure changed, or one has no labels.
    """
    is_same = (
        entry.manifest.dataset.digest == earlier.manifest.dataset.digest
        and entry.primary == earlier.primary
    )
    if not (is_same and entry.means and earlier.means):
        return ""
    folders = [f"{parent}/{earlier.folder}", f"{parent}/{entry.folder}"]
    return shlex.join(["harness", "compare", *folders])

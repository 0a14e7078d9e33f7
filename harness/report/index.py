"""The index of many results folders.

`list_results` reads them, a folder that cannot be read with its reason; `index_page`
groups the runs by experiment, newest first.
"""

from __future__ import annotations

import os
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from markupsafe import Markup

from harness import records
from harness.english import count_of
from harness.evaluation.compare_sets import compare_sets_of_folder
from harness.evaluation.evaluation import Evaluation
from harness.evaluation.evaluation_file import read_evaluation, read_or_evaluate
from harness.pages import OVERVIEW_MARK, is_overview
from harness.records import Manifest
from harness.records.data_sets_csv import holds_sets, read_sets
from harness.report.charts.trend import (
    Trend,
    TrendRun,
    draw_trend,
    fit_time_axis,
)
from harness.report.templates import render_page
from harness.wording.dates import date_text, day_of, short_date_text
from harness.wording.numerals import capital_numeral, numeral
from harness.wording.short_verdict import (
    NO_LABELS,
    ShortVerdict,
    short_sets_verdict,
    short_verdict,
)
from harness.wording.verdicts import capitalized
from retrievers.errors import InputError, Problem
from retrievers.files.text_files import explain_write_errors

INDEX_FILE = "index.html"


@dataclass(frozen=True, slots=True, eq=False)
class IndexEntry:
    """One results folder of the list."""

    folder: str
    """Its path below the listed folder: "name", or "sets/name" of a data set."""
    manifest: Manifest
    primary: str
    means: Mapping[str, float]
    """Retriever -> mean of the primary measure, the best first.

    Empty without labels.
    """
    verdict: ShortVerdict
    queries: int
    """How many queries were scored; without labels, how many were searched."""
    has_report: bool = False
    """Whether the folder has a report."""

    @property
    def mean(self) -> float | None:
        """The mean of the retriever in the verdict, else of the leader."""
        if self.verdict.retriever in self.means:
            return self.means[self.verdict.retriever]
        return next(iter(self.means.values()), None)


class SetsEntry(NamedTuple):
    """The common page of one experiment on several data sets."""

    folder: str
    """The name of the folder of all sets."""
    verdict: ShortVerdict
    mean: float
    """The leader's mean over the sets."""
    retrievers: tuple[str, ...]
    sets: int
    """How many data sets there are."""
    queries: int
    """How many queries they have together."""
    started: str
    """The start of its newest run."""
    has_report: bool


class SkippedFolder(NamedTuple):
    """A folder that is not listed, and why."""

    folder: str
    """Its path below the listed folder."""
    reason: str


class ResultsListing(NamedTuple):
    """The content of a folder of results folders."""

    entries: tuple[IndexEntry, ...]
    """The newest first."""
    skipped: tuple[SkippedFolder, ...]
    """In the order of their paths."""
    sets: tuple[SetsEntry, ...] = ()
    """The common pages; the folders of their data sets are entries."""


def list_results(results_folder: Path) -> ResultsListing:
    """Read every results folder of a folder, also those of several data sets.

    One that cannot be read is among those that are skipped, with the reason; hidden
    folders are ignored.
    """
    entries: list[IndexEntry] = []
    skipped: list[SkippedFolder] = []
    for folder in _results_folders(results_folder):
        folder_name = folder.relative_to(results_folder).as_posix()
        try:
            manifest = records.read_complete_manifest(folder)
            entries.append(_read_entry(folder, folder_name, manifest))
        except InputError as error:
            skipped.append(SkippedFolder(folder_name, _skip_reason(folder, error)))
    sets: list[SetsEntry] = []
    for folder in filter(holds_sets, sorted(results_folder.iterdir())):
        if folder.name.startswith("."):
            continue
        try:
            sets.append(_read_sets_entry(folder))
        except InputError as error:
            skipped.append(SkippedFolder(folder.name, _skip_reason(folder, error)))
    entries.sort(key=lambda entry: (entry.manifest.started, entry.folder), reverse=True)
    return ResultsListing(tuple(entries), tuple(sorted(skipped)), tuple(sets))


def _read_sets_entry(folder: Path) -> SetsEntry:
    sets = read_sets(folder)
    comparison = compare_sets_of_folder(sets)
    leader = comparison.ranked_retrievers[0]
    means = [comparison.mean(set_name, leader) for set_name in comparison.sets]
    return SetsEntry(
        folder.name,
        short_sets_verdict(comparison),
        mean=sum(means) / len(means),
        retrievers=comparison.ranked_retrievers,
        sets=len(sets),
        queries=sum(scores.n for scores in comparison.sets.values()),
        started=max(results.manifest.started for results in sets),
        has_report=(folder / records.REPORT_FILE).is_file(),
    )


def _results_folders(parent: Path) -> Iterator[Path]:
    """The folders of a folder, without hidden ones.

    A folder of several data sets is replaced by its own folders.
    """
    for folder in sorted(parent.iterdir()):
        if not folder.is_dir() or folder.name.startswith("."):
            continue
        if records.holds_results_folders(folder):
            yield from _results_folders(folder)
            continue
        # `harness export` writes "export", without a manifest.
        if folder.name != "export" or (folder / "manifest.json").exists():
            yield folder


def _read_entry(folder: Path, folder_name: str, manifest: Manifest) -> IndexEntry:
    evaluation = _find_evaluation(folder, manifest)
    return IndexEntry(
        folder_name,
        manifest,
        primary=manifest.resolved.primary,
        means={} if evaluation is None else evaluation.means,
        verdict=NO_LABELS if evaluation is None else short_verdict(evaluation),
        queries=manifest.dataset.queries if evaluation is None else evaluation.n,
        has_report=(folder / records.REPORT_FILE).is_file(),
    )


def _find_evaluation(folder: Path, manifest: Manifest) -> Evaluation | None:
    """Return the stored evaluation, else a new one; None without scores."""
    evaluation = read_evaluation(folder, manifest)
    if evaluation is not None or not manifest.dataset.scored:
        return evaluation
    results = records.read_results(folder)
    return read_or_evaluate(results) if results.scored else None


def _skip_reason(folder: Path, error: InputError) -> str:
    """Why a folder is not listed: its first problem, and how many more there are.

    A run that did not end has no manifest; its rankings are counted.
    """
    if not (folder / "manifest.json").exists() and folder.name.endswith(".unfinished"):
        rankings = count_of(
            sum(1 for _ in folder.glob("runs/*.trec")), "finished ranking"
        )
        return f"a run that was stopped, or is under way; {rankings}"
    first, *others = error.problems or [error]
    reason = str(first).removeprefix(f"{folder}/").removeprefix(f"{folder}: ")
    return f"{reason}; and {len(others)} more" if others else reason


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

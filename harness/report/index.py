"""The index of many results folders."""

import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from markupsafe import Markup

from harness import records
from harness.english import count_of
from harness.evaluation.evaluation import Evaluation
from harness.evaluation.evaluation_file import read_evaluation, read_or_evaluate
from harness.evaluation.verdict import Verdict
from harness.pages import OVERVIEW_MARK, is_overview
from harness.records import Manifest
from harness.report.templates import render_page
from harness.scoring.stored_scores import primary_measure
from harness.wording.verdicts import VERDICT_SIGNS
from retrievers.errors import InputError, Problem
from retrievers.files.text_files import explain_write_errors

INDEX_FILE = "index.html"


@dataclass(frozen=True, slots=True, eq=False)
class IndexEntry:
    """One results folder of the list."""

    folder: str
    """Its name."""
    manifest: Manifest
    primary: str
    means: Mapping[str, float]
    """Retriever -> mean of the primary measure, the highest first; empty without labels."""
    verdict: str
    """Of the first, in words; "" without a comparison."""
    has_report: bool = False
    """Whether the folder has a report."""


class SkippedFolder(NamedTuple):
    """A folder that is not listed, and why."""

    folder: str
    reason: str


class ResultsListing(NamedTuple):
    """The content of a folder of results folders."""

    entries: tuple[IndexEntry, ...]
    """Newest first."""
    skipped: tuple[SkippedFolder, ...]


def list_results(results_folder: Path) -> ResultsListing:
    """Read every folder of a folder; one that cannot be read is listed with the reason."""
    entries, unread = [], []
    for folder in _folders(results_folder):
        name = folder.relative_to(results_folder).as_posix()
        try:
            entries.append(_entry(folder, name, records.read_complete_manifest(folder)))
        except InputError as error:
            unread.append(SkippedFolder(name, _reason(folder, error)))
    entries.sort(key=lambda entry: (entry.manifest.started, entry.folder), reverse=True)
    return ResultsListing(tuple(entries), tuple(sorted(unread)))


def _folders(place: Path) -> Iterator[Path]:
    """The folders of a folder; a folder of several data sets is replaced by its own folders."""
    for folder in sorted(
        path
        for path in place.iterdir()
        if path.is_dir() and not path.name.startswith(".")
    ):
        if records.holds_results_folders(folder):
            yield from _folders(folder)
        elif (
            folder.name != "export" or (folder / "manifest.json").exists()
        ):  # written by `harness export`
            yield folder


def _entry(folder: Path, name: str, manifest: Manifest) -> IndexEntry:
    evaluation = read_evaluation(folder, manifest)
    if (
        evaluation is None
        and manifest.dataset.scored
        and (results := records.read_results(folder)).scored
    ):
        evaluation = read_or_evaluate(results)
    means, verdict = (
        ({}, "") if evaluation is None else (evaluation.means, _verdict(evaluation))
    )
    return IndexEntry(
        name,
        manifest,
        primary_measure(manifest.resolved),
        means,
        verdict,
        (folder / records.REPORT_FILE).is_file(),
    )


def _verdict(evaluation: Evaluation) -> str:
    """The result of the highest mean against the others; "" without a comparison."""
    first = evaluation.leader
    pairs = [
        row
        for row in evaluation.comparisons[evaluation.measure]
        if first in (row.a, row.b)
    ]
    verdicts = {
        row.b: row.verdict
        for row in (one if one.a == first else one.swapped for one in pairs)
    }
    worse = [name for name, verdict in verdicts.items() if verdict is Verdict.BETTER]
    if len(verdicts) == 1 and worse:
        return f"{VERDICT_SIGNS[Verdict.BETTER]} better than {worse[0]}"
    if worse:
        return f"{VERDICT_SIGNS[Verdict.BETTER]} better than {len(worse)} of {len(verdicts)}"
    return f"{VERDICT_SIGNS[Verdict.UNDECIDED]} undecided" if verdicts else ""


def _reason(folder: Path, error: InputError) -> str:
    """Why a folder is not listed, without its own path before every problem."""
    if not (folder / "manifest.json").exists() and folder.name.endswith(".unfinished"):
        finished = sum(1 for _ in folder.glob("runs/*.trec"))
        return f"a run that was stopped, or is under way; {count_of(finished, 'finished ranking')}"
    first, *more = error.problems or [error]
    said = str(first).removeprefix(f"{folder}/").removeprefix(f"{folder}: ")
    return f"{said}; and {len(more)} more" if more else said


def write_index(results_folder: Path) -> ResultsListing:
    """Write index.html into a folder of results folders.

    Raises:
        InputError: it cannot be written, or an index.html exists that harness did not write.
    """
    path = results_folder / INDEX_FILE
    temporary = results_folder / f".{INDEX_FILE}.{os.getpid()}"
    with explain_write_errors(path):
        if path.exists() and not is_overview(path):
            raise InputError(
                Problem(str(path), "is not a page of harness", "move it elsewhere")
            )
        read = list_results(results_folder)
        with records.new_text_file(temporary) as file:
            file.write(index_page(read, results_folder.resolve().name))
        temporary.replace(path)  # atomic: two runs may end at the same time
    return read


def index_page(listing: ResultsListing, folder: str) -> str:
    """Return the page as one HTML text.

    Args:
        listing: its content.
        folder: the folder of the results, as commands name it.
    """
    shown = {
        **listing._asdict(),
        "generator": Markup(OVERVIEW_MARK),  # noqa: S704 - ours
        "compared": _compared(listing.entries, folder),
        "data_sets": len({entry.manifest.dataset.digest for entry in listing.entries}),
    }
    return render_page(
        "index.html",
        shown,
        ("start", "sort", "index"),
        styles=("board.css", "index.css"),
    )


def _compared(entries: Sequence[IndexEntry], place: str) -> dict[str, str]:
    """Folder -> the command that compares it with the run before it on the same data by the same measure."""
    commands: dict[str, str] = {}
    earlier: dict[tuple[str, str], str] = {}
    for entry in reversed([entry for entry in entries if entry.means]):
        key = entry.manifest.dataset.digest, entry.primary
        if before := earlier.get(key):
            commands[entry.folder] = shlex.join(
                ["harness", "compare", f"{place}/{before}", f"{place}/{entry.folder}"]
            )
        earlier[key] = entry.folder
    return commands

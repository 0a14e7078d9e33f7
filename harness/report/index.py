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
    """Retriever -> mean of the primary measure, the highest first.

    Empty without labels.
    """
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
    """Read every folder of a folder.

    A folder that cannot be read is listed with the reason.
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
    entries.sort(key=lambda entry: (entry.manifest.started, entry.folder), reverse=True)
    return ResultsListing(tuple(entries), tuple(sorted(skipped)))


def _results_folders(parent: Path) -> Iterator[Path]:
    """The folders of a folder.

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
        verdict="" if evaluation is None else _leader_verdict(evaluation),
        has_report=(folder / records.REPORT_FILE).is_file(),
    )


def _find_evaluation(folder: Path, manifest: Manifest) -> Evaluation | None:
    """Return the stored evaluation, else a new one; None without scores."""
    evaluation = read_evaluation(folder, manifest)
    if evaluation is not None or not manifest.dataset.scored:
        return evaluation
    results = records.read_results(folder)
    return read_or_evaluate(results) if results.scored else None


def _leader_verdict(evaluation: Evaluation) -> str:
    """The result of the highest mean against the others; "" without a comparison."""
    leader = evaluation.leader
    verdicts: dict[str, Verdict] = {}
    for row in evaluation.comparisons[evaluation.measure]:
        if leader in (row.a, row.b):
            leader_row = row if row.a == leader else row.swapped
            verdicts[leader_row.b] = leader_row.verdict
    if not verdicts:
        return ""
    worse = [name for name, verdict in verdicts.items() if verdict is Verdict.BETTER]
    if not worse:
        return f"{VERDICT_SIGNS[Verdict.UNDECIDED]} undecided"
    sign = VERDICT_SIGNS[Verdict.BETTER]
    if len(verdicts) == 1:
        return f"{sign} better than {worse[0]}"
    return f"{sign} better than {len(worse)} of {len(verdicts)}"


def _skip_reason(folder: Path, error: InputError) -> str:
    """Why a folder is not listed, without its own path before every problem."""
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
    variables = {
        **listing._asdict(),
        "generator": Markup(OVERVIEW_MARK),  # noqa: S704 - ours
        "compared": _compare_commands(listing.entries, folder),
        "data_sets": len({entry.manifest.dataset.digest for entry in listing.entries}),
    }
    return render_page(
        "index.html",
        variables,
        ("start", "sort", "index"),
        styles=("board.css", "index.css"),
    )


def _compare_commands(entries: Sequence[IndexEntry], parent: str) -> dict[str, str]:
    """Folder -> the command that compares it with the run before it.

    That run has the same data and the same measure.
    """
    commands: dict[str, str] = {}
    earlier_folders: dict[tuple[str, str], str] = {}
    for entry in reversed(entries):
        if not entry.means:
            continue
        key = (entry.manifest.dataset.digest, entry.primary)
        earlier = earlier_folders.get(key)
        if earlier:
            commands[entry.folder] = shlex.join(
                [
                    "harness",
                    "compare",
                    f"{parent}/{earlier}",
                    f"{parent}/{entry.folder}",
                ]
            )
        earlier_folders[key] = entry.folder
    return commands

"""The results folders in a folder.

One that cannot be read is listed with the reason.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from harness import records
from harness.english import count_of
from harness.evaluation.compare_sets import compare_sets_of_folder
from harness.evaluation.evaluation import Evaluation
from harness.evaluation.evaluation_file import read_evaluation, read_or_evaluate
from harness.records import Manifest
from harness.records.data_sets_csv import holds_sets, read_sets
from harness.wording.short_verdict import (
    NO_LABELS,
    ShortVerdict,
    short_sets_verdict,
    short_verdict,
)
from retrievers.errors import InputError


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

    One that cannot be read is among those that are skipped, with the reason. Hidden
    folders are ignored, and links to folders of the list.
    """
    entries: list[IndexEntry] = []
    skipped: list[SkippedFolder] = []
    for folder in _results_folders(results_folder, results_folder.resolve()):
        folder_name = folder.relative_to(results_folder).as_posix()
        try:
            manifest = records.read_complete_manifest(folder)
            entries.append(_read_entry(folder, folder_name, manifest))
        except OSError as error:
            reason = f"cannot be read: {error.strerror}"
            skipped.append(SkippedFolder(folder_name, reason))
        except InputError as error:
            skipped.append(SkippedFolder(folder_name, _skip_reason(folder, error)))
    common = _list_sets(results_folder)
    entries.sort(key=lambda entry: (entry.manifest.started, entry.folder), reverse=True)
    all_skipped = sorted([*skipped, *common.skipped])
    return ResultsListing(tuple(entries), tuple(all_skipped), common.sets)


def _list_sets(results_folder: Path) -> ResultsListing:
    """List the common pages in a folder alone, and those that cannot be read."""
    sets: list[SetsEntry] = []
    skipped: list[SkippedFolder] = []
    for folder in sorted(results_folder.iterdir()):
        if folder.name.startswith("."):
            continue
        try:
            if holds_sets(folder):
                sets.append(_read_sets_entry(folder))
        except OSError:
            continue  # it is among those that are skipped already
        except InputError as error:
            skipped.append(SkippedFolder(folder.name, _skip_reason(folder, error)))
    return ResultsListing((), tuple(skipped), tuple(sets))


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


def _results_folders(parent: Path, root: Path) -> Iterator[Path]:
    """The folders of a folder, without hidden ones.

    A folder that holds results folders, such as that of several data sets, is replaced
    by them.

    Args:
        parent: the folder.
        root: the listed folder, resolved.
    """
    for folder in sorted(parent.iterdir()):
        if not folder.is_dir() or folder.name.startswith("."):
            continue
        if folder.is_symlink() and _is_listed(folder.resolve(), root):
            continue
        try:
            holds_folders = records.holds_results_folders(folder)
        except OSError:
            holds_folders = False  # reading it tells why
        if holds_folders:
            yield from _results_folders(folder, root)
            continue
        # `harness export` writes "export", without a manifest.
        if folder.name != "export" or (folder / "manifest.json").exists():
            yield folder


def _is_listed(target: Path, root: Path) -> bool:
    """Whether a link leads to a folder of the list, or to one that holds the list."""
    return target.is_relative_to(root) or root.is_relative_to(target)


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

"""The list of results folders, printed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from harness.console.output import print_json, print_lines, print_to_fit, print_warnings
from harness.console.score_tables import folders_table
from harness.english import (
    count_of,
)

if TYPE_CHECKING:
    from harness.report.results_listing import ResultsListing


def print_listing(
    listing: ResultsListing, folder: Path, *, quiet: bool, as_json: bool
) -> None:
    """Print the runs of a folder of results, newest first.

    Also the verdicts over several data sets, the folders that are not listed, and the
    path of the page.
    """
    if as_json:
        runs = [
            {
                "folder": entry.folder,
                "started": entry.manifest.started,
                "experiment": entry.manifest.name,
                "dataset": entry.manifest.dataset.path,
                "digest": entry.manifest.dataset.digest,
                "measure": entry.primary,
                "means": dict(entry.means),
                "failed": list(dict(entry.manifest.failed)),
            }
            for entry in listing.entries
        ]
        sets = [
            {
                "folder": page.folder,
                "started": page.started,
                "sets": page.sets,
                "retrievers": list(page.retrievers),
                "mean": page.mean,
                "verdict": page.verdict.sentence,
            }
            for page in listing.sets
        ]
        skipped_folders = [skipped._asdict() for skipped in listing.skipped]
        print_json(runs=runs, sets=sets, not_listed=skipped_folders)
        return
    if quiet:
        return
    print_to_fit(folders_table, listing.entries)
    for page in listing.sets:
        count = count_of(page.sets, "data set")
        print_lines(f"{page.folder}, over {count}: {page.verdict.sentence}")
    for skipped in listing.skipped:
        print_warnings(f"not listed: {skipped.folder}: {skipped.reason}")
    print_lines("", f"index: {folder / 'index.html'}")

"""A results folder under way until it takes its place.

TREC files, MTEB, Parquet, trackers.
"""

import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from harness.identity import run_identity
from harness.records.csv_table import read_table_columns
from harness.records.manifest import Manifest
from harness.records.manifest_file import read_manifest
from retrievers.errors import HarnessError, InputError, Problem
from retrievers.files.text_files import exclusive_lock

REPORT_FILE = "report.html"
"""What a run writes last, after the manifest, where it writes a report: a folder that has it is whole."""
LOCKED = (
    "another run of this experiment is writing here",
    "wait for it, or choose another --results",
)


def staging_path(folder: Path) -> Path:
    """Where a run writes until it is whole; a stopped run leaves its finished rankings there, with their qrels."""
    return folder.with_name(f"{folder.name}.unfinished")


@contextmanager
def staging_folder(folder: Path) -> Iterator[Path]:
    """An empty folder beside the place of the results, held by this process alone.

    Whole results that a killed run could not put in place any more are put there first.

    Raises:
        InputError: another run writes here, it cannot be written, or an experiment of the name has its results there.
    """
    with ExitStack() as locks:
        try:
            folder.parent.mkdir(parents=True, exist_ok=True)
            locks.enter_context(exclusive_lock(folder, *LOCKED))
            staging_dir = staging_path(folder)
            locks.enter_context(
                exclusive_lock(staging_dir, *LOCKED)
            )  # an experiment of that name would write there
            _recover(folder, staging_dir)
            shutil.rmtree(staging_dir, ignore_errors=True)
            staging_dir.mkdir()
        except OSError as error:
            what = f"cannot be written: {error.strerror}"
            raise InputError(
                Problem(str(folder.parent), what, "choose another --results")
            ) from None
        try:
            yield staging_dir
        except HarnessError:
            if not (staging_dir / "rankings").exists():
                shutil.rmtree(staging_dir)  # there is nothing in it to be judged
            raise


def publish(staging_dir: Path, folder: Path) -> str:
    """Put whole results in their place; an earlier folder is replaced only where nothing that it says is lost.

    One of another experiment, of other data, or with a score that is not among the new ones is moved to
    `<name>.1`, `<name>.2`, …: the first that is free.

    Returns:
        Where an earlier folder was moved, and why, as a sentence; "" where none was.
    """
    old = _old(folder)
    shutil.rmtree(old, ignore_errors=True)
    sentence = ""
    if folder.exists():
        if reason := _lost(folder, staging_dir):
            number = next(
                n
                for n in range(1, 1_000_000)
                if not folder.with_name(f"{folder.name}.{n}").exists()
            )
            kept = folder.with_name(f"{folder.name}.{number}")
            sentence = f"{folder} held {reason}: kept as {kept}"
            folder.rename(kept)
        else:
            folder.rename(old)
    staging_dir.rename(folder)
    shutil.rmtree(old, ignore_errors=True)
    return sentence


def _lost(earlier: Path, newer: Path) -> str:
    """What an earlier folder holds that a newer one does not; "" where it may be replaced."""
    if stored_identity(earlier) != stored_identity(newer):
        return "another experiment, or other data"
    before, now = _manifest(earlier), _manifest(newer)
    if before is None or now is None:
        return "what cannot be read"
    if not (before.dataset.scored or now.dataset.scored):
        rankings = {
            name: digest
            for name, digest in before.file_digests.items()
            if name.startswith("rankings/")
        }
        return "" if rankings.items() <= now.file_digests.items() else "other rankings"
    if "scores.csv" in before.file_digests and before.file_digests[
        "scores.csv"
    ] == now.file_digests.get("scores.csv"):
        return ""
    try:
        scores = [_scores(folder) for folder in (earlier, newer)]
    except (OSError, ValueError):
        return "scores that cannot be read"
    return "" if scores[0].items() <= scores[1].items() else "other scores"


def _scores(folder: Path) -> dict[tuple[str, ...], str]:
    """(retriever, query, measure) -> the score as text: so that one that is undefined equals itself."""
    table = read_table_columns(folder / "scores.csv")
    names = zip(table["retriever"], table["query_id"], table["measure"], strict=True)
    return dict(zip(names, map(repr, table["value"]), strict=True))


def stored_identity(folder: Path) -> tuple[Any, Any] | None:
    """What a results folder answers: what its experiment asks, and the data; None where that cannot be read."""
    manifest = _manifest(folder)
    return (
        None
        if manifest is None
        else run_identity(manifest.experiment, manifest.dataset.digest)
    )


def _recover(place: Path, staging_dir: Path) -> None:
    """Finish what a killed run left undone between writing its last file and putting its folder in place."""
    written = _manifest(staging_dir)
    if (staging_dir / "manifest.json").is_file() and (
        written is None or written.name != place.name
    ):
        raise InputError(
            Problem(
                str(staging_dir),
                "holds other results",
                "move them, or choose another --results",
            )
        )
    if written is not None and (
        not written.resolved.report or (staging_dir / REPORT_FILE).is_file()
    ):
        publish(staging_dir, place)
    elif not place.exists() and _old(place).is_dir():
        _old(place).rename(place)


def _old(place: Path) -> Path:
    """Where earlier results are for the moment in which new ones take their place."""
    return place.with_name(f".{place.name}.old")


def _manifest(folder: Path) -> Manifest | None:
    try:
        return read_manifest(folder)
    except InputError:
        return None

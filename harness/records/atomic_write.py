"""Atomic writing of a results folder: a run writes beside its place, and what is whole is put there at once."""

import json
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from harness.identity import run_of
from harness.records.csv_tables import read_columns
from harness.records.manifest import Manifest, read_manifest
from retrievers.errors import HarnessError, InputError, Problem
from retrievers.opening import locked

LAST_FILE = "report.html"
"""What a run writes last, after the manifest, where it writes a report: a folder that has it is whole."""
TAKEN = ("another run of this experiment is writing here", "wait for it, or choose another --results")


def unfinished(place: Path) -> Path:
    """Where a run writes until it is whole; a stopped run leaves its finished rankings there, with their qrels.

    Where an experiment of that very name has its results there, the name is lengthened until it is free.
    """
    staging_dir = place.with_name(f"{place.name}.unfinished")
    while _name_in(staging_dir) not in (None, place.name):
        staging_dir = staging_dir.with_name(f"{staging_dir.name}.unfinished")
    return staging_dir


@contextmanager
def unfinished_folder(place: Path) -> Iterator[Path]:
    """An empty folder beside the place of the results, held by this process alone.

    Whole results that a killed run could not put in place any more are put there first.

    Raises:
        InputError: another run writes here, or it cannot be written.
    """
    with ExitStack() as locks:
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            locks.enter_context(locked(place, *TAKEN))
            staging_dir = unfinished(place)
            locks.enter_context(locked(staging_dir, *TAKEN))  # an experiment of that name would write there
            _recover(place, staging_dir)
            shutil.rmtree(staging_dir, ignore_errors=True)
            staging_dir.mkdir()
        except OSError as error:
            what = f"cannot be written: {error.strerror}"
            raise InputError(Problem(str(place.parent), what, "choose another --results")) from None
        try:
            yield staging_dir
        except HarnessError:
            if not (staging_dir / "rankings").exists():
                shutil.rmtree(staging_dir)  # there is nothing in it to be judged
            raise


def put_in_place(staging_dir: Path, place: Path) -> str:
    """Put whole results in their place; an earlier folder is replaced only where nothing that it says is lost.

    One of another experiment, of other data, or with a score that is not among the new ones is moved to
    `<name>.1`, `<name>.2`, …: the first that is free.

    Returns:
        Where an earlier folder was moved, and why, as a sentence; "" where none was.
    """
    old = _old(place)
    shutil.rmtree(old, ignore_errors=True)
    sentence = ""
    if place.exists():
        if reason := _lost(place, staging_dir):
            number = next(n for n in range(1, 1_000_000) if not place.with_name(f"{place.name}.{n}").exists())
            kept = place.with_name(f"{place.name}.{number}")
            sentence = f"{place} held {reason}: kept as {kept}"
            place.rename(kept)
        else:
            place.rename(old)
    staging_dir.rename(place)
    shutil.rmtree(old, ignore_errors=True)
    return sentence


def _lost(earlier: Path, newer: Path) -> str:
    """What an earlier folder holds that a newer one does not; "" where it may be replaced."""
    if experiment_and_data(earlier) != experiment_and_data(newer):
        return "another experiment, or other data"
    before, now = _manifest(earlier), _manifest(newer)
    if before is None or now is None:
        return "what cannot be read"
    if not (before.dataset.scored or now.dataset.scored):
        rankings = {name: digest for name, digest in before.tables.items() if name.startswith("rankings/")}
        return "" if rankings.items() <= now.tables.items() else "other rankings"
    if "scores.csv" in before.tables and before.tables["scores.csv"] == now.tables.get("scores.csv"):
        return ""
    try:
        scores = [_scores(folder) for folder in (earlier, newer)]
    except (OSError, ValueError):
        return "scores that cannot be read"
    return "" if scores[0].items() <= scores[1].items() else "other scores"


def _scores(folder: Path) -> dict[tuple[str, ...], str]:
    """(retriever, query, measure) -> the score as text: so that one that is undefined equals itself."""
    table = read_columns(folder / "scores.csv")
    names = zip(table["retriever"], table["query_id"], table["measure"], strict=True)
    return dict(zip(names, map(repr, table["value"]), strict=True))


def experiment_and_data(folder: Path) -> tuple[Any, Any] | None:
    """What a results folder answers: what its experiment asks, and the data; None where that cannot be read."""
    manifest = _manifest(folder)
    return None if manifest is None else run_of(manifest.experiment, manifest.dataset.digest)


def _recover(place: Path, staging_dir: Path) -> None:
    """Finish what a killed run left undone between writing its last file and putting its folder in place."""
    written = _manifest(staging_dir)
    if written is not None and (not written.resolved.report or (staging_dir / LAST_FILE).is_file()):
        put_in_place(staging_dir, place)
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


def _name_in(folder: Path) -> str | None:
    """The experiment whose results are in a folder, whichever release wrote them; None if unknown."""
    try:
        content = json.loads((folder / "manifest.json").read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    name = content.get("name") if isinstance(content, dict) else None
    return name if isinstance(name, str) else None

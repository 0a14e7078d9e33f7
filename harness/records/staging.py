"""The folder of a run until its results are complete.

A run writes to `<name>.unfinished`, which is renamed at its end: a results folder is
complete, or is not there. The next run finishes a renaming that was killed.
"""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from shlex import quote

from harness.identity import RunIdentity, run_identity
from harness.records.csv_table import read_table_columns
from harness.records.manifest import Manifest
from harness.records.manifest_file import read_manifest
from retrievers.errors import HarnessError, InputError, Problem
from retrievers.files.text_files import exclusive_lock
from retrievers.remedy import Option, compose_remedy

REPORT_FILE = "report.html"
"""The last file of a run with a report, after the manifest: its folder is complete."""
STAGING_SUFFIX = ".unfinished"
"""The end of the name of a folder in which a run writes."""
TEMPORARY_PREFIX = "harness-"
"""The start of the name of a temporary folder of results that nobody named."""
OTHER_FOLDER = compose_remedy("choose another folder of results", Option("--results"))
LOCKED = (
    "another run of this experiment is writing here",
    compose_remedy("wait for it, or ", OTHER_FOLDER),
)
"""The problem and the remedy of a folder that another process has locked."""


def is_temporary(folder: Path) -> bool:
    """Whether a folder of results has no name of its own, and goes with its process."""
    temporary = Path(tempfile.gettempdir()).resolve()
    parent = folder.resolve().parent
    return parent.parent == temporary and parent.name.startswith(TEMPORARY_PREFIX)


def quoted_folder(folder: Path) -> str:
    """Return a folder of results as a command names it.

    A temporary one is called FOLDER: `results.save(FOLDER)` comes first.
    """
    if is_temporary(folder):
        return "FOLDER"
    # A run writes its page before its folder gets its final name.
    return quote(folder.with_name(folder.name.removesuffix(STAGING_SUFFIX)).as_posix())


def staging_path(folder: Path) -> Path:
    """Return the folder in which a run writes until it is complete.

    A stopped run leaves its finished rankings there, with their qrels.
    """
    return folder.with_name(folder.name + STAGING_SUFFIX)


@contextmanager
def staging_folder(folder: Path) -> Iterator[Path]:
    """Open an empty folder for a run, locked by this process.

    Complete results that a killed run did not publish are published first.

    Raises:
        InputError: another run writes here, it cannot be written, or an experiment with
            the name of the staging folder has its results there.
    """
    with ExitStack() as locks:
        try:
            folder.parent.mkdir(parents=True, exist_ok=True)
            locks.enter_context(exclusive_lock(folder, *LOCKED))
            staging_dir = staging_path(folder)
            # An experiment with that name would write there.
            locks.enter_context(exclusive_lock(staging_dir, *LOCKED))
            _recover(folder, staging_dir)
            shutil.rmtree(staging_dir, ignore_errors=True)
            staging_dir.mkdir()
        except OSError as error:
            problem = f"cannot be written: {error.strerror}"
            where = str(folder.parent)
            raise InputError(Problem(where, problem, OTHER_FOLDER)) from None
        try:
            yield staging_dir
        except HarnessError:
            if not (staging_dir / "rankings").exists():
                shutil.rmtree(staging_dir)  # it has nothing to judge
            raise


def publish(staging_dir: Path, folder: Path) -> str:
    """Rename the staging folder to the folder of the results.

    An earlier folder is replaced only if it is of the same experiment and data, and all
    its scores (without labels: its rankings) are among the new ones. Else it is moved
    to `<name>.1`, `<name>.2`, …: the first that is free.

    Returns:
        Where an earlier folder was moved, and why, as a sentence; "" if none was.
    """
    replaced = _replaced_path(folder)
    shutil.rmtree(replaced, ignore_errors=True)
    sentence = ""
    if folder.exists():
        lost = _what_would_be_lost(folder, staging_dir)
        if lost:
            moved = _free_path(folder)
            sentence = f"{folder} held {lost}: kept as {moved}"
            folder.rename(moved)
        else:
            folder.rename(replaced)
    staging_dir.rename(folder)
    shutil.rmtree(replaced, ignore_errors=True)
    return sentence


def _free_path(folder: Path) -> Path:
    """Return `<name>.1`, `<name>.2`, …: the first that is free."""
    number = 1
    while folder.with_name(f"{folder.name}.{number}").exists():
        number += 1
    return folder.with_name(f"{folder.name}.{number}")


def _what_would_be_lost(earlier: Path, newer: Path) -> str:
    """Return the content of an earlier folder that a newer one lacks; "" if none."""
    before = _readable_manifest(earlier)
    after = _readable_manifest(newer)
    if before is None or after is None:
        return "what cannot be read as results"
    if stored_identity(earlier) != stored_identity(newer):
        return "another experiment, or other data"
    if not before.dataset.scored and not after.dataset.scored:
        # Without labels there are no scores to lose: rankings are compared.
        rankings = {
            stored
            for stored in before.file_digests
            if stored.path.startswith("rankings/")
        }
        has_all_rankings = rankings <= set(after.file_digests)
        return "" if has_all_rankings else "other rankings"
    digest = before.digest_of("scores.csv")
    if digest is not None and digest == after.digest_of("scores.csv"):
        return ""
    try:
        has_all_scores = _read_scores(earlier).items() <= _read_scores(newer).items()
    except (OSError, ValueError):
        return "scores that cannot be read"
    return "" if has_all_scores else "other scores"


def _read_scores(folder: Path) -> dict[tuple[str, ...], str]:
    """Return (retriever, query, measure) -> the score as text.

    As text, an undefined score equals itself.
    """
    table = read_table_columns(folder / "scores.csv")
    keys = zip(table["retriever"], table["query_id"], table["measure"], strict=True)
    return dict(zip(keys, map(repr, table["value"]), strict=True))


def stored_identity(folder: Path) -> RunIdentity | None:
    """Return the identity of a folder's experiment and data; None if unreadable."""
    manifest = _readable_manifest(folder)
    if manifest is None:
        return None
    return run_identity(manifest.experiment, manifest.dataset.digest)


def _recover(folder: Path, staging_dir: Path) -> None:
    """Finish what a killed run did not after it wrote its last file.

    Raises:
        InputError: the staging folder has the results of another experiment.
    """
    manifest = _readable_manifest(staging_dir)
    has_manifest = (staging_dir / "manifest.json").is_file()
    if has_manifest and (manifest is None or manifest.name != folder.name):
        problem = "holds other results"
        remedy = compose_remedy("move them, or ", OTHER_FOLDER)
        raise InputError(Problem(str(staging_dir), problem, remedy))
    if manifest is not None and _is_complete(staging_dir, manifest):
        publish(staging_dir, folder)
    elif not folder.exists() and _replaced_path(folder).is_dir():
        _replaced_path(folder).rename(folder)


def _is_complete(staging_dir: Path, manifest: Manifest) -> bool:
    """Whether a run wrote its last file: the report, or the manifest without one."""
    return not manifest.resolved.report or (staging_dir / REPORT_FILE).is_file()


def _replaced_path(folder: Path) -> Path:
    """Return the path of earlier results while new ones take their name.

    A run that is killed between the two renamings leaves them there: see `_recover`.
    """
    return folder.with_name(f".{folder.name}.old")


def _readable_manifest(folder: Path) -> Manifest | None:
    try:
        return read_manifest(folder)
    except InputError:
        return None

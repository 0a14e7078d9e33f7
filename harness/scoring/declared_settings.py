"""The statistics that folders declare."""

from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import NamedTuple

from harness import records
from harness.english import join_names
from harness.records import Manifest
from harness.records.results import is_results_folder
from harness.stats.settings import Settings

UNLABELLED_KINDS = {"unjudged-query", "unlabelled-query"}
"""Kinds of queries that may still get labels."""


def settings_of_run(manifest: Manifest) -> Settings:
    """Return the statistics that a run declares, with its seed and its earlier looks.

    `alpha` is that of all planned looks together: see `settings_at_look`.
    """
    settings = Settings.from_statistics(
        manifest.resolved.statistics, manifest.resolved.seed, manifest.earlier_looks
    )
    if settings.looks is None:
        return settings
    has_planned = manifest.dataset.judged >= settings.looks.queries[-1]
    has_unlabelled = not UNLABELLED_KINDS.isdisjoint(manifest.ledger.dataset)
    return replace(settings, no_more_queries=has_planned and not has_unlabelled)


class DeclaredSettings(NamedTuple):
    """The statistics that results folders declare in `[statistics]`."""

    settings: Settings
    """The statistics that all folders share, with the defaults where they differ.

    Where `weight`, `cluster` or `seed` differ, those of the first folder.
    """
    note: str = ""
    """A sentence on the statistics that differ; "" if none do."""


def read_declared_settings(paths: Sequence[Path]) -> DeclaredSettings:
    """Return how the experiments of results folders test.

    Args:
        paths: results folders, each of one data set or of several; with anything else
            among them nothing is declared.
    """
    folders: list[Path] = []
    for path in paths:
        run_folders = _run_folders(path)
        if not run_folders:
            return DeclaredSettings(Settings())
        folders += run_folders
    declared = [settings_of_run(records.read_manifest(folder)) for folder in folders]
    differing = _differing_fields(declared)
    # The scores have the first folder's weights and clusters; the seed decides random
    # draws alone.
    defaults = {
        name: getattr(Settings(), name)
        for name in differing
        if name not in ("weight", "cluster", "seed")
    }
    settings = replace(declared[0], **defaults)
    # These follow from the runs; no experiment declares them.
    reported = sorted(defaults.keys() - {"earlier", "no_more_queries"})
    if not reported:
        return DeclaredSettings(settings)
    differences = (
        f"The experiments declare different statistics ({join_names(reported)})"
    )
    return DeclaredSettings(settings, f"{differences}: the defaults count here.")


def _run_folders(path: Path) -> list[Path]:
    """Return the folders of runs: the path itself, or those in it, sorted by name.

    Hidden ones, as of an unfinished run, do not count.
    """
    if is_results_folder(path):
        return [path]
    folders = [manifest.parent for manifest in path.glob("*/manifest.json")]
    return sorted(folder for folder in folders if not folder.name.startswith("."))


def _differing_fields(declared: Sequence[Settings]) -> list[str]:
    """Return the names of the settings that are not all alike."""
    first, *others = declared
    return [
        field.name
        for field in fields(Settings)
        if any(
            getattr(settings, field.name) != getattr(first, field.name)
            for settings in others
        )
    ]

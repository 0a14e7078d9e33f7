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


def settings_of_run(manifest: Manifest) -> Settings:
    """The statistics that a run was made with."""
    return Settings.from_table(
        manifest.resolved.statistics, manifest.resolved.seed, manifest.earlier_looks
    )


class DeclaredSettings(NamedTuple):
    """What results folders declare in `[statistics]`."""

    settings: Settings
    """What all of them declare alike, with the default where they differ."""
    note: str = ""
    """What they declare otherwise; "" where that is nothing."""


def read_declared_settings(paths: Sequence[Path]) -> DeclaredSettings:
    """Return how the experiments of results folders test: a comparison claims no more than a run of theirs.

    Args:
        paths: results folders, each of one data set or of several; with anything else among them nothing is declared.
    """
    inner = [
        [path]
        if is_results_folder(path)
        else [one.parent for one in path.glob("*/manifest.json")]
        for path in paths
    ]
    if not all(inner):
        return DeclaredSettings(Settings())
    every = [
        settings_of_run(records.read_manifest(folder))
        for folders in inner
        for folder in folders
    ]
    first, apart = (
        every[0],
        [
            one.name
            for one in fields(Settings)
            if len({getattr(s, one.name) for s in every}) > 1
        ],
    )
    # The scores have the first folder's weights and clusters; the seed only draws resamples.
    own = {
        name: getattr(Settings(), name)
        for name in apart
        if name not in ("weight", "cluster", "seed")
    }
    told = sorted(own.keys() - {"earlier"})
    note = (
        f"The experiments declare different statistics ({join_names(told)}): the defaults count here."
        if told
        else ""
    )
    return DeclaredSettings(replace(first, **own), note)

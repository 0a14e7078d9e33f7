"""Settings of a comparison that differ from the declared ones."""

from collections.abc import Sequence
from pathlib import Path

from harness.records import read_manifest
from harness.records.results import is_results_folder
from harness.stats.settings import Settings


def undeclared_choices(
    folders: Sequence[Path], primary: str, declared: Settings, used: Settings
) -> tuple[str, ...]:
    """Return what a comparison of results folders uses that they do not declare.

    Args:
        folders: the results folders.
        primary: the measure that decides the comparison.
        declared: the statistics that the folders declare.
        used: those of the comparison.
    """
    return (
        *undeclared_measure(folders, primary),
        *undeclared_settings(declared, used),
    )


def undeclared_settings(declared: Settings, used: Settings) -> tuple[str, ...]:
    """Return the statistics that differ from the declared ones, each with both.

    Only those that a command has options for can differ.

    >>> undeclared_settings(Settings(), Settings(margin=0.02, test="wilcoxon"))
    ('test wilcoxon (declared: randomization)', 'margin 0.02 (declared: none)')
    """
    choices: list[str] = []
    for field in ("test", "correction", "alpha", "margin"):
        old = getattr(declared, field)
        new = getattr(used, field)
        if old != new:
            choices.append(f"{field} {_text(new)} (declared: {_text(old)})")
    return tuple(choices)


def _text(setting: float | str | None) -> str:
    if setting is None:
        return "none"
    return setting if isinstance(setting, str) else f"{setting:g}"


def undeclared_measure(paths: Sequence[Path], primary: str) -> tuple[str, ...]:
    """Return the measure if it is not the one by which results folders decide.

    Args:
        paths: results folders; if any other path is among them, nothing counts as
            declared.
        primary: the measure that decides the comparison.
    """
    if not all(is_results_folder(path) for path in paths):
        return ()
    manifests = [read_manifest(path) for path in paths]
    declared = {manifest.resolved.primary for manifest in manifests}
    if primary in declared:
        return ()
    names = ", ".join(sorted(declared))
    return (f"measure {primary} (declared: {names})",)

"""The data set of a results folder."""

from __future__ import annotations

from pathlib import Path

from harness.dataset import Dataset, DatasetReference, load_dataset
from harness.experiment import locate_dataset
from harness.records.results import Results
from retrievers.errors import InputError


def current_dataset(results: Results) -> Dataset:
    """Return the data set as it is now; it may have moved with the experiment's file.

    Raises:
        InputError: it no longer exists, or cannot be read.
    """
    return _load_dataset(find_dataset(results), results)


def _load_dataset(reference: DatasetReference, results: Results) -> Dataset:
    relevance = results.manifest.resolved.relevance
    return load_dataset(reference, drop_dangling=relevance.dangling == "drop")


def find_dataset(results: Results) -> DatasetReference:
    """Return the reference to the data set of a run.

    It is searched from the experiment's file, and from the results folder, since the
    path of that file may be relative to another working directory. If these searches
    find different data, the ones with the run's digest are meant.

    Raises:
        InputError: it is in neither place.
    """
    declared = results.manifest.resolved.dataset
    if DatasetReference(declared.path).scheme:  # a name, the same everywhere
        return locate_dataset(declared, results.folder)
    first, *others = _locate_candidates(results)
    if not others:
        return first
    for reference in (first, *others):
        if _has_digest_of_run(reference, results):
            return reference
    return first


def _locate_candidates(results: Results) -> list[DatasetReference]:
    """Return the data sets that the path of a run may mean, the likeliest first.

    Raises:
        InputError: there is none.
    """
    candidates: dict[Path, DatasetReference] = {}
    problems: list[InputError] = []
    for path in (
        Path(results.manifest.experiment_file),
        results.folder.resolve() / "experiment.toml",
    ):
        try:
            reference = locate_dataset(results.manifest.resolved.dataset, path)
        except InputError as error:
            problems.append(error)
        else:
            candidates.setdefault(reference.folder.resolve(), reference)
    if not candidates:
        raise problems[0] from None
    return list(candidates.values())


def _has_digest_of_run(reference: DatasetReference, results: Results) -> bool:
    """Whether a data set is the one of a run."""
    try:
        dataset = _load_dataset(reference, results)
    except InputError:
        return False
    return dataset.digest == results.manifest.dataset.digest

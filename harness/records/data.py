"""The data set of a results folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from harness.dataset import Dataset, DatasetReference, load
from harness.experiment import DatasetTable, locate
from harness.records.results import Results
from retrievers.errors import InputError


def dataset_of(results: Results) -> Dataset:
    """Return the data set as it is now; it may have moved with the experiment's file.

    Raises:
        InputError: it is not there any more, or cannot be read.
    """
    resolved = results.manifest.resolved
    return load(data_reference(results), drop_dangling=resolved.relevance.get("dangling") == "drop")


def data_reference(results: Results) -> DatasetReference:
    """Return where the data set is: looked for from its experiment's file, and from the results folder.

    Raises:
        InputError: it is in neither place.
    """
    resolved = results.manifest.resolved
    # JSON has no tuples, as the tables of an experiment have.
    table: dict[str, Any] = {k: tuple(one) if isinstance(one, list) else one for k, one in resolved.dataset.items()}
    try:
        return locate(DatasetTable(**table), Path(results.manifest.experiment_file))
    except InputError as absent:
        # The experiment's file may be named by a path that is right in another working directory alone.
        try:
            return locate(DatasetTable(**table), results.folder.resolve() / "experiment.toml")
        except InputError:
            raise absent from None

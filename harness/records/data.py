"""The data set of a results folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from harness.dataset import Dataset, load
from harness.experiment import DatasetTable, locate
from harness.records.results import Results


def dataset_of(results: Results) -> Dataset:
    """Return the data set as it is now; it may have moved with the experiment's file.

    Raises:
        InputError: it is not there any more, or cannot be read.
    """
    resolved = results.manifest.resolved
    # JSON has no tuples, as the tables of an experiment have.
    table: dict[str, Any] = {k: tuple(one) if isinstance(one, list) else one for k, one in resolved.dataset.items()}
    reference = locate(DatasetTable(**table), Path(results.manifest.experiment_file))
    return load(reference, drop_dangling=resolved.relevance.get("dangling") == "drop")

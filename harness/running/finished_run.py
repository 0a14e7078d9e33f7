"""A run that finished before."""

from collections.abc import Sequence
from pathlib import Path

from harness import records
from harness.dataset import load_dataset
from harness.experiment import LoadedExperiment
from harness.identity import run_identity
from harness.records import Results


def read_finished_sets(
    sets: Sequence[LoadedExperiment], results: Path
) -> list[Results]:
    """Return the stored results if this very experiment has run on all its data sets.

    Empty if any data set still has to run. Nothing is embedded, searched or timed.

    Args:
        sets: the experiment on each of its data sets.
        results: the folder of all results.

    Raises:
        InputError: a data set, or its stored results, cannot be read.
    """
    finished: list[Results] = []
    for loaded in sets:
        folder = results / loaded.set_of / loaded.experiment.name
        drop_dangling = loaded.experiment.relevance.dangling == "drop"
        dataset = load_dataset(loaded.dataset, drop_dangling=drop_dangling)
        identity = run_identity(loaded.tables, dataset.digest)
        if records.stored_identity(folder) != identity:
            return []
        finished.append(records.read_results(folder))
    return finished

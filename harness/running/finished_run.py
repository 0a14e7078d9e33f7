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
    """Return the results of an experiment that ran before as it is written now.

    Nothing is embedded, searched or timed. Empty if a data set of it has to run.

    Args:
        sets: the experiment on each of its data sets.
        results: the folder of all results.
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

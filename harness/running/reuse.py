"""What an earlier results folder gives to a run."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from harness import records
from harness.dataset import Dataset
from harness.experiment import LoadedExperiment
from harness.identity import run_identity
from harness.records import Results, Run, StageLatency
from harness.records.facts import CHANGED_FACT, COMPARED_FACT
from harness.running.options import RunOptions
from retrievers.errors import InputError, Problem, did_you_mean

REPETITION_FACTS = (COMPARED_FACT, CHANGED_FACT)


@dataclass(frozen=True, slots=True)
class ReusableRuns:
    """Parts of an earlier run of the same experiment on the same data."""

    runs: Mapping[str, Run] = field(default_factory=dict)
    """Retriever -> its run, of those that `--only` leaves out."""
    latencies: Mapping[str, Mapping[str, StageLatency]] = field(default_factory=dict)
    """Retriever -> stage -> what was measured, kept with its date."""
    repetitions: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Retriever -> how its timed answers compared with those of the run."""


def find_reusable(
    folder: Path, loaded: LoadedExperiment, dataset: Dataset, options: RunOptions
) -> ReusableRuns:
    """Return what the results folder of an experiment gives to its next run.

    Raises:
        InputError: `only` names no retriever of the experiment, or the folder lacks the
            rankings of the others.
    """
    earlier = _read_same_run(folder, loaded, dataset, options)
    runs = _runs_left_out(folder, loaded, earlier, options.only)
    latencies: dict[str, Mapping[str, StageLatency]] = {}
    repetitions: dict[str, Mapping[str, str]] = {}
    if loaded.experiment.latency and earlier is not None and not options.fresh:
        for retriever in earlier.retrievers:
            latencies[retriever] = earlier.run(retriever).latency
            facts = earlier.manifest.retrievers[retriever].provenance
            repetitions[retriever] = {
                fact: facts[fact] for fact in REPETITION_FACTS if fact in facts
            }
    return ReusableRuns(runs, latencies, repetitions)


def _read_same_run(
    folder: Path, loaded: LoadedExperiment, dataset: Dataset, options: RunOptions
) -> Results | None:
    """Read the folder if it is of this experiment and these data, and is needed."""
    identity = run_identity(loaded.tables, dataset.digest)
    if records.stored_identity(folder) != identity:
        return None
    if not options.only and not loaded.experiment.latency:
        return None
    return records.read_results(folder)


def _runs_left_out(
    folder: Path,
    loaded: LoadedExperiment,
    earlier: Results | None,
    only: tuple[str, ...],
) -> dict[str, Run]:
    """The runs of the retrievers that `--only` does not name."""
    retrievers = [config.name for config in loaded.experiment.retrievers]
    for retriever in only:
        if retriever not in retrievers:
            message = f"there is no retriever {retriever!r}"
            remedy = did_you_mean(retriever, retrievers)
            raise InputError(Problem("--only", message, remedy))
    if not only:
        return {}
    if earlier is None:
        message = "holds no results of this experiment and this data"
        raise InputError(Problem(str(folder), message, "run once without --only"))
    left_out = [retriever for retriever in retrievers if retriever not in only]
    absent = [name for name in left_out if name not in earlier.retrievers]
    if absent:
        message = f"holds no rankings of {', '.join(absent)}"
        raise InputError(Problem(str(folder), message, "name them under --only too"))
    return {retriever: earlier.run(retriever) for retriever in left_out}

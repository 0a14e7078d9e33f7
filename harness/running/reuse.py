"""Results of an earlier run that are used again."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from harness import records
from harness.build.build import BuiltExperiment
from harness.dataset import load_dataset
from harness.experiment import LoadedExperiment
from harness.identity import run_identity
from harness.records import Results, Run, StageLatency
from harness.running.options import RunOptions
from retrievers.errors import InputError, Problem, did_you_mean
from retrievers.remedy import Option, compose_remedy
from retrievers.types import AnswerFacts


@dataclass(frozen=True, slots=True)
class ReusableRuns:
    """Parts of an earlier run.

    Its rankings are of the same experiment on the same data; its times only of the same
    retrievers, on the same documents and as many queries.
    """

    runs: Mapping[str, Run] = field(default_factory=dict)
    """Retriever -> its run, of those that `--only` leaves out."""
    latencies: Mapping[str, Mapping[str, StageLatency]] = field(default_factory=dict)
    """Retriever -> stage -> what was measured, kept with its date."""
    repetitions: Mapping[str, AnswerFacts] = field(default_factory=dict)
    """Retriever -> how many of its timed answers were compared with those of its run,
    and how many were others."""


def find_reusable(
    folder: Path, built: BuiltExperiment, options: RunOptions
) -> ReusableRuns:
    """Return what the results folder of an experiment gives to its next run.

    Args:
        folder: its results; it need not exist.
        built: the experiment of the next run.
        options: `only` names the retrievers to run; with `fresh`, times are measured
            again.

    Raises:
        InputError: `only` names no retriever of the experiment, or the folder lacks the
            rankings of the others.
    """
    earlier = _read_same_run(folder, built, options)
    runs = _runs_left_out(folder, built, earlier, options.only)
    if options.fresh:
        return ReusableRuns(runs)
    latencies, repetitions = _read_timings(folder, built)
    return ReusableRuns(runs, latencies, repetitions)


def _read_same_run(
    folder: Path, built: BuiltExperiment, options: RunOptions
) -> Results | None:
    """Return the folder's results if `only` needs them; None without such results.

    They must be of this experiment on this data.
    """
    if not options.only or records.stored_identity(folder) != built.identity:
        return None
    return records.read_results(folder)


class _Timings(NamedTuple):
    """What an earlier run measured of single queries."""

    latencies: Mapping[str, Mapping[str, StageLatency]]
    """Retriever -> stage -> percentiles."""
    repetitions: Mapping[str, AnswerFacts]
    """See `ReusableRuns`."""


def _read_timings(folder: Path, built: BuiltExperiment) -> _Timings:
    """Return the times of the retrievers that are the same on the same documents.

    Labels, measures and tests change no time; with another depth, number of queries or
    sample it is measured again.
    """
    dataset = built.dataset
    resolved = built.resolved
    try:
        manifest = records.read_manifest(folder)
        latencies = records.read_latencies(folder, manifest)
    except (InputError, OSError, ValueError):
        return _Timings({}, {})  # no results, or not of today's form
    if (
        manifest.dataset.corpus_digest != dataset.corpus_digest
        or manifest.dataset.queries != len(dataset.queries)
        or manifest.resolved.depth != resolved.depth
        or manifest.resolved.latency != resolved.latency
    ):
        return _Timings({}, {})
    latency_by_retriever: dict[str, Mapping[str, StageLatency]] = {}
    repetitions: dict[str, AnswerFacts] = {}
    retrievers = resolved.retriever_by_name
    earlier_retrievers = manifest.resolved.retriever_by_name
    for retriever in manifest.finished:
        parts = manifest.resolved.retriever_with_parts(retriever)
        if any(retrievers.get(part) != earlier_retrievers[part] for part in parts):
            continue
        latency_by_retriever[retriever] = latencies.get(retriever, {})
        facts = manifest.retrievers[retriever].provenance.answers
        repetitions[retriever] = AnswerFacts(
            compared=facts.compared, changed=facts.changed
        )
    return _Timings(latency_by_retriever, repetitions)


def _runs_left_out(
    folder: Path,
    built: BuiltExperiment,
    earlier: Results | None,
    only: tuple[str, ...],
) -> dict[str, Run]:
    """The runs of the retrievers that `--only` does not name."""
    retrievers = list(built.resolved.retriever_by_name)
    for retriever in only:
        if retriever not in retrievers:
            message = f"there is no retriever {retriever!r}"
            hint = did_you_mean(retriever, retrievers)
            raise InputError(Problem("only", message, hint))
    if not only:
        return {}
    if earlier is None:
        message = "holds no results of this experiment and this data"
        remedy = compose_remedy("run all retrievers once", Option("without --only"))
        raise InputError(Problem(str(folder), message, remedy))
    left_out = [retriever for retriever in retrievers if retriever not in only]
    absent = [name for name in left_out if name not in earlier.retrievers]
    if absent:
        message = f"holds no rankings of {', '.join(absent)}"
        remedy = compose_remedy("name them, too", Option("--only"))
        raise InputError(Problem(str(folder), message, remedy))
    return {retriever: earlier.run(retriever) for retriever in left_out}


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

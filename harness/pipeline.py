"""One run of an experiment."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from harness import records
from harness.build.build import build
from harness.dataset import Dataset
from harness.experiment import Experiment, LoadedExperiment, load
from harness.identity import query_identity, run_identity
from harness.preflight.embedding import import_stored_vectors
from harness.records import Manifest, Results, Run, StageLatency
from harness.records.judge_readings import JudgedClaims
from harness.report.write import write_report
from harness.running.claims import judge_claims
from harness.running.context import RunContext, RunOptions
from harness.running.run_retrievers import run_retrievers
from harness.scoring.grades import GradedLabels
from harness.stats.looks import nested_look_sizes
from harness.wording.reading import reading_line
from harness.writing.describe_run import describe_run
from harness.writing.write_results import (
    RunMaterial,
    write_qrels_files,
    write_score_files,
)
from retrievers.cache import Cache, default_cache_path
from retrievers.errors import (
    BackendError,
    InputError,
    OverBudget,
    Problem,
    did_you_mean,
)
from retrievers.meter import Budget, Meter


def run(
    experiment: str | Path | Mapping[str, Any] | Experiment | LoadedExperiment,
    options: RunOptions = RunOptions(),  # noqa: B008
) -> Results:
    """Run an experiment: check, index, replay, score, compare, write the results folder and, if asked, its report.

    Args:
        experiment: its file; or its tables as a dict, or an `Experiment`; or what was loaded of one.
        options: where results go, and what to run.

    Returns:
        The results, read back from their folder.

    Raises:
        InputError: the experiment, its data or its environment is at fault; nothing was embedded.
        BackendError: every retriever failed; earlier results are untouched. OverBudget: more was billed than
            `max_cost`, or the judge of a further measure would have cost more; the results are written.
    """
    loaded = load(experiment, allow_code=options.allow_code)
    dataset, graded, built = build(loaded)
    if unread := reading_line(dataset):
        options.on_message(unread)
    place = Path(options.results) / loaded.set_of / loaded.experiment.name
    same = records.stored_identity(place) == run_identity(loaded.tables, dataset.digest)
    earlier = (
        records.read_results(place)
        if same and (options.only or loaded.experiment.latency)
        else None
    )
    known = _known(place, loaded, earlier, options.only)
    with records.staging_folder(place) as staging_dir:
        budget = Budget(options.max_cost)
        together = Meter(budget, lambda meter: options.on_progress("", meter))
        work = RunMaterial(
            loaded,
            dataset,
            graded,
            place,
            together,
            datetime.now(UTC),
            time.perf_counter(),
        )
        finished = dict(known)
        write_qrels_files(staging_dir, graded)
        with Cache(default_cache_path(), fresh=options.fresh) as cache:
            if options.max_cost is not None and loaded.experiment.judge is not None:
                from harness.answers.declared_judge import check_judge_price

                check_judge_price(
                    loaded.experiment.judge, loaded.question.measures, cache
                )
            import_stored_vectors(loaded.experiment.vectors, built, cache)
            stores = cache.path.parent / "collections"
            latency, measured = (
                loaded.experiment.latency,
                dict[str, Mapping[str, StageLatency]](),
            )
            if (
                latency and earlier and not options.fresh
            ):  # what was measured is kept, with its date
                measured = {
                    name: earlier.run(name).latency for name in earlier.retrievers
                }
            shared = RunContext(
                dataset,
                cache,
                stores,
                loaded.experiment.depth,
                budget,
                options.on_progress,
                fresh=options.fresh,
                exclude_self=loaded.experiment.dataset.exclude_self,
                latency_sample=latency.sample if latency else 0,
                latencies=measured,
            )
            for one in run_retrievers(built, shared, known=known):
                finished[one.retriever] = one
                if not one.error:
                    records.write_run_files(staging_dir, one)
            runs = [finished[block.name] for block in loaded.experiment.retrievers]
            if all(one.error for one in runs):
                raise BackendError(
                    "\n".join(f"{one.retriever}: {one.error}" for one in runs)
                )
            judgment = judge_claims(staging_dir, work, runs, cache)
        results = _write(staging_dir, work, runs, judgment)
        if moved := records.publish(staging_dir, place):
            options.on_message(moved)
    try:
        if find_spec("harness.report.index"):  # a wing: what runs needs none of it
            from harness.report.index import write_index

            write_index(place.parent)
    except InputError as error:  # the results are whole without it
        options.on_message(f"the page of all results is not written: {error}")
    kept = f"the results are kept: harness report {place} shows them"
    if judgment.warning and budget.refused:
        raise OverBudget(f"{judgment.warning}; {kept}")
    budget.check(kept)
    return replace(results, folder=place)


def _write(
    staging_dir: Path, work: RunMaterial, runs: Sequence[Run], judgment: JudgedClaims
) -> Results:
    """Write all that follows from the rankings, the manifest after it, and last any report.

    Returns:
        What was written, read back.
    """
    loaded, dataset = work.loaded, work.dataset
    graded = work.graded._replace(claims=judgment.claims)
    for one in runs:
        if (
            not one.error
            and not (staging_dir / "rankings" / f"{one.retriever}.jsonl").exists()
        ):
            records.write_run_files(staging_dir, one)  # of an earlier run
    records.write_labels_and_documents(staging_dir, dataset, runs)
    records.write_costs(staging_dir, runs, work.meter.stages())
    manifest = describe_run(loaded, dataset, graded, runs)
    manifest = replace(
        manifest, earlier_looks=_earlier_looks(work.folder, manifest, dataset, graded)
    )
    write_score_files(staging_dir, work._replace(graded=graded), runs, manifest)
    manifest = replace(
        manifest,
        judge=dict(judgment.facts),
        warnings=(*manifest.warnings, *filter(None, [judgment.warning])),
        started=work.started.isoformat(timespec="seconds"),
        seconds=time.perf_counter() - work.clock,
        file_digests=records.file_digests(staging_dir),
    )
    records.write_manifest(staging_dir, manifest)
    results = records.read_results(staging_dir)
    if loaded.experiment.report:
        with work.meter.stage("reporting"):
            write_report(results)
    return results


def _known(
    place: Path,
    loaded: LoadedExperiment,
    earlier: Results | None,
    only: tuple[str, ...],
) -> dict[str, Run]:
    """The runs of an existing folder that `--only` leaves as they are."""
    names = [block.name for block in loaded.experiment.retrievers]
    for name in only:
        if name not in names:
            raise InputError(
                Problem(
                    "--only",
                    f"there is no retriever {name!r}",
                    did_you_mean(name, names),
                )
            )
    if not only:
        return {}
    if earlier is None:
        what = "holds no results of this experiment and this data"
        raise InputError(Problem(str(place), what, "run once without --only"))
    kept = [name for name in names if name not in only]
    if absent := [name for name in kept if name not in earlier.retrievers]:
        raise InputError(
            Problem(
                str(place),
                f"holds no rankings of {', '.join(absent)}",
                "name them under --only too",
            )
        )
    return {name: earlier.run(name) for name in kept}


def _earlier_looks(
    place: Path, manifest: Manifest, dataset: Dataset, graded: GradedLabels
) -> tuple[int, ...]:
    """How many queries runs beside this one had that asked the same with some of its queries."""
    scored = frozenset(
        query_identity(query)
        for query in dataset.stored_queries
        if query.id in graded.grades
    )
    return nested_look_sizes(
        records.earlier_scored_queries(place, manifest, scored), scored
    )

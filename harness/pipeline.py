"""The one path from an experiment file to its Results."""

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from harness import records
from harness.dataset import Dataset, trec
from harness.dataset.load import reading_line
from harness.evaluation.csv_views import by_price, tables_of
from harness.evaluation.evaluate import RunInputs, evaluate_run, write_evaluation
from harness.evaluation.grading import GradedLabels, gains
from harness.evaluation.readers import Judged, score_lists
from harness.experiment import Experiment, Loaded, load
from harness.identity import query_of, run_of
from harness.records import (
    Commit,
    DatasetFacts,
    Ledger,
    Manifest,
    Results,
    RetrieverFacts,
    Run,
    StageLatency,
)
from harness.records.readings import FOLDER, ClaimsJudging
from harness.report.html_page import write_sets
from harness.report.write import write_report
from harness.running import machine
from harness.running.check import prepare
from harness.running.forecast import Options, RunContext, take_over
from harness.running.runner import run_all
from harness.stats.power import earlier_looks
from retrievers.cache import Cache, default_path
from retrievers.errors import (
    BackendError,
    InputError,
    OverBudget,
    Problem,
    did_you_mean,
)
from retrievers.meter import Budget, Meter
from retrievers.placeholders import without_keys


def run(
    experiment: str | Path | Mapping[str, Any] | Experiment | Loaded,
    options: Options = Options(),  # noqa: B008
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
    loaded = load(experiment, code=options.code)
    dataset, graded, built = prepare(loaded)
    if unread := reading_line(dataset):
        options.on_message(unread)
    place = Path(options.results) / loaded.within / loaded.experiment.name
    same = records.experiment_and_data(place) == run_of(loaded.written, dataset.digest)
    earlier = (
        records.read(place)
        if same and (options.only or loaded.experiment.latency)
        else None
    )
    known = _known(place, loaded, earlier, options.only)
    with records.unfinished_folder(place) as staging_dir:
        budget = Budget(options.max_cost)
        together = Meter(budget, lambda meter: options.watch("", meter))
        work = _RunInputs(
            loaded,
            dataset,
            graded,
            place,
            together,
            datetime.now(UTC),
            time.perf_counter(),
        )
        finished = dict(known)
        write_qrels(staging_dir, graded)
        with Cache(default_path(), fresh=options.fresh) as cache:
            if options.max_cost is not None and loaded.experiment.judge is not None:
                from harness.answers.chat_judge import check_price

                check_price(loaded.experiment.judge, loaded.question.measures, cache)
            take_over(loaded.experiment.vectors, built, cache)
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
                options.watch,
                fresh=options.fresh,
                exclude_self=loaded.experiment.dataset.exclude_self,
                sample=latency.sample if latency else 0,
                latencies=measured,
            )
            for one in run_all(built, shared, known=known):
                finished[one.retriever] = one
                if not one.error:
                    records.write_run(staging_dir, one)
            runs = [finished[block.name] for block in loaded.experiment.retrievers]
            if all(one.error for one in runs):
                raise BackendError(
                    "\n".join(f"{one.retriever}: {one.error}" for one in runs)
                )
            judgment = _judged(staging_dir, work, runs, cache)
        results = _write(staging_dir, work, runs, judgment)
        if moved := records.put_in_place(staging_dir, place):
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


def run_sets(sets: Sequence[Loaded], options: Options = Options()) -> list[Results]:  # noqa: B008 - immutable
    """Run an experiment on each of its data sets, and write what they say together.

    Every set is checked before anything is embedded; `max_cost` holds for all of them together.

    Args:
        sets: what `load_sets` gave.
        options: as for `run`.

    Returns:
        The results of each data set; their folders are together in one, which also holds their common page.

    Raises:
        As `run`; what finished before is kept. A set on which every retriever failed is reported at the end.
    """
    if len(sets) > 1 and (
        problems := [problem for one in sets for problem in _problems_of(one)]
    ):
        raise InputError(problems)
    finished: list[Results] = []
    failed: list[str] = []
    for one in sets:
        try:
            told = options.told_as(one.experiment.name) if one.within else options
            finished.append(run(one, with_rest_of_budget(told, finished)))
        except BackendError as error:
            failed.append(
                f"{one.experiment.name}: {error}" if one.within else str(error)
            )
    if sets[0].within and finished and all(one.scored for one in finished):
        write_sets(
            Path(options.results) / sets[0].within,
            finished,
            report=sets[0].experiment.report,
        )
    if failed:
        raise BackendError("\n".join(failed))
    return finished


def with_rest_of_budget(options: Options, finished: Sequence[Results]) -> Options:
    """The options with what is left of `max_cost` after some runs."""
    spent = math.fsum(row["usd"] for results in finished for row in results.cost_rows)
    return options._replace(
        max_cost=None
        if options.max_cost is None
        else max(0.0, options.max_cost - spent)
    )


def _problems_of(loaded: Loaded) -> tuple[Problem, ...]:
    try:
        prepare(loaded)
    except InputError as error:
        return tuple(
            problem._replace(where=f"{loaded.experiment.name}: {problem.where}")
            for problem in error.problems
        )
    return ()


class _RunInputs(NamedTuple):
    """The inputs of a run."""

    loaded: Loaded
    dataset: Dataset
    graded: GradedLabels
    place: Path
    """Where the results will be."""
    meter: Meter
    """Of what is done for all retrievers together."""
    started: datetime
    clock: float


def _write(
    staging_dir: Path, work: _RunInputs, runs: Sequence[Run], judgment: ClaimsJudging
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
            records.write_run(staging_dir, one)  # of an earlier run
    records.write_evidence(staging_dir, dataset, runs)
    records.write_costs(staging_dir, runs, work.meter.stages())
    manifest = _manifest(loaded, dataset, graded, runs)
    manifest = replace(
        manifest, earlier_looks=_earlier_looks(work.place, manifest, dataset, graded)
    )
    _write_scores(staging_dir, work._replace(graded=graded), runs, manifest)
    manifest = replace(
        manifest,
        judge=dict(judgment.facts),
        warnings=(*manifest.warnings, *filter(None, [judgment.warning])),
        started=work.started.isoformat(timespec="seconds"),
        seconds=time.perf_counter() - work.clock,
        tables=records.file_digests(staging_dir),
    )
    records.write_manifest(staging_dir, manifest)
    results = records.read(staging_dir)
    if loaded.experiment.report:
        with work.meter.stage("reporting"):
            write_report(results)
    return results


def write_qrels(folder: Path, graded: GradedLabels) -> None:
    """Write the judgments after the grade rule: first of all, so that a stopped run's rankings can be scored."""
    trec.write_qrels(folder / "qrels.trec", graded.grades)
    exponential = gains(graded.grades)
    if exponential is not None:
        trec.write_qrels(folder / "qrels.gains.trec", exponential)


def _write_scores(
    folder: Path, work: _RunInputs, runs: Sequence[Run], manifest: Manifest
) -> None:
    """Write what follows from rankings and labels: the scores, their evaluation, and the tables that show it."""
    graded, meter = work.graded, work.meter
    question, queries = (
        work.loaded.question,
        {query.id: query for query in work.dataset.recorded},
    )
    judged = Judged(
        question.measures,
        question.primary,
        graded,
        queries,
        question.experiment.statistics,
    )
    with meter.stage("scoring"):
        scores = score_lists(
            judged, {one.retriever: one.lists for one in runs if not one.error}
        )
    prices = by_price(manifest, records.read_rows(folder / "costs.csv"))
    with meter.stage("comparing"):
        evaluation = None
        answers = {one.retriever: one.rankings.items for one in runs if not one.error}
        if scores.n:
            evaluation = evaluate_run(
                RunInputs(manifest, scores, graded, queries, prices, answers)
            )
            write_evaluation(folder, evaluation)
    for name, table in tables_of(scores, evaluation).items():
        records.write_table(folder, name, table)


def _judged(
    staging_dir: Path, work: _RunInputs, runs: Sequence[Run], cache: Cache
) -> ClaimsJudging:
    """Have the claims of reference answers judged, where the experiment measures by them.

    Raises:
        BackendError: the judge failed, and the measure that decides rests on it; rankings and replies are kept.
    """
    loaded, meter = work.loaded, work.meter
    measures = [measure for measure in loaded.question.measures if measure.claimed]
    if not measures or loaded.experiment.judge is None:
        return ClaimsJudging({}, {})
    from harness.answers.chat_judge import build_judge
    from harness.answers.judging import judge_run

    rankings = {one.retriever: one.rankings for one in runs if not one.error}
    with meter.stage("judge"):
        judge = build_judge(loaded.experiment.judge, cache, meter)
        judgment = judge_run(
            staging_dir / FOLDER,
            work.place / FOLDER,
            judge,
            work.dataset,
            rankings,
            measures,
        )
    counts = meter.counts("judge")
    asked = {
        name: str(int(counts[name]))
        for name in ("truncated", "without_schema")
        if counts.get(name)
    }
    warning = without_keys(judgment.warning)
    if warning and loaded.question.primary.claimed:
        raise BackendError(warning)
    return judgment._replace(facts={**judgment.facts, **asked}, warning=warning)


def _known(
    place: Path, loaded: Loaded, earlier: Results | None, only: tuple[str, ...]
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
        query_of(query) for query in dataset.recorded if query.id in graded.grades
    )
    return earlier_looks(records.earlier_queries(place, manifest, scored), scored)


def _manifest(
    loaded: Loaded, dataset: Dataset, graded: GradedLabels, runs: Sequence[Run]
) -> Manifest:
    """The record of a run, but for its times and the digests of its tables."""
    resolved = loaded.experiment.resolved()
    resolved |= {
        "measures": map(str, loaded.question.measures),
        "primary": str(loaded.question.primary),
    }
    return Manifest(
        name=loaded.experiment.name,
        experiment=loaded.written,
        resolved=records.resolved_experiment(resolved),
        experiment_file=loaded.path.as_posix(),
        dataset=DatasetFacts(
            path=loaded.experiment.dataset.path,
            format=dataset.format,
            digest=dataset.digest,
            corpus_digest=dataset.corpus_digest,
            documents=dataset.count,
            queries=len(dataset.queries),
            judged=len(dataset.labels),
            scored=len(graded.grades),
        ),
        warnings=(graded.warning,) if graded.warning else (),
        ledger=Ledger(
            dataset=dataset.ledger,
            retrievers={one.retriever: records.ledger(one) for one in runs},
        ),
        retrievers={
            one.retriever: RetrieverFacts(
                error=one.error, provenance=dict(one.provenance)
            )
            for one in runs
        },
        started="",
        seconds=0.0,
        versions=machine.versions(),
        machine=machine.machine(),
        git=Commit(**machine.git(Path.cwd())),
    )

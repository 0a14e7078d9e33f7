"""The check of an experiment before anything is embedded."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

from harness.build.build import build
from harness.build.built_retriever import BuiltRetriever
from harness.build.extras import all_extras_named
from harness.build.missing import (
    missing_requirements,
    name_retriever,
    unanswered_queries,
)
from harness.build.shared_words import unshared_queries
from harness.dataset import Dataset, DatasetReference, parse_reference
from harness.dataset import load_dataset as load_dataset
from harness.dataset.extras import missing_dataset_extras
from harness.dataset.read_problems import unconverted_reasons
from harness.evaluation.warnings import UnconvertedFiles
from harness.experiment import LoadedExperiment, find_reference
from harness.experiment import load as load_experiment
from harness.experiment.retriever_config import RetrieverConfig
from harness.experiment.table_values import walk_values
from harness.preflight.dataset_summary import DatasetSummary, summarise_dataset
from harness.preflight.detectable import (
    DetectableDifference,
    detectable_difference,
    scorable_queries,
)
from harness.preflight.passages import PassageCount, count_passages
from harness.preflight.plan import RunPlan, plan_run
from harness.preflight.truncation import TruncationEstimate, estimate_truncation
from retrievers.agents.agent import Agent
from retrievers.encoders.python_encoder import PythonEncoder
from retrievers.errors import InputError, Problem, collect_errors
from retrievers.options.user_code import require_module
from retrievers.texts.languages import preload_language_model
from retrievers.types import Model


@dataclass(frozen=True, slots=True)
class AbsentModel:
    """A model that a run downloads."""

    retriever: str


@dataclass(frozen=True, slots=True)
class MissingRequirement:
    """What a model lacks for texts that are not cached, such as a key."""

    problem: Problem


@dataclass(frozen=True, slots=True)
class UnsharedQueries:
    """Queries whose words are in no document: BM25 finds nothing for them."""

    ids: tuple[str, ...]
    queries: int
    """How many queries are searched."""


CheckWarning = (
    TruncationEstimate
    | AbsentModel
    | MissingRequirement
    | UnsharedQueries
    | UnconvertedFiles
)
"""A warning: the run works, but its results may be worth less."""


@dataclass(frozen=True, slots=True)
class RespondingService:
    """A service that responded to one text."""

    retriever: str
    """A retriever, or "judge"."""
    kind: str
    """encoder, reranker, endpoint, store, or model."""
    has_no_hits: bool = False
    """Whether an endpoint found nothing for the first query."""


@dataclass(frozen=True, slots=True)
class CheckReport:
    """A data set without problems, with what is known of a run on it."""

    dataset: Dataset
    summary: DatasetSummary
    detectable: DetectableDifference
    plan: RunPlan | None = None
    """What a run would do; None for a data set without an experiment."""
    warnings: tuple[CheckWarning, ...] = ()
    services: tuple[RespondingService, ...] = ()
    """The services that responded; empty if none was pinged."""
    name: str = ""
    """The name of the data set, if it is one of several of an experiment."""
    configurations: tuple[str, ...] = ()
    """The retrievers that a sweep compares; the default may be one of them."""
    sweep_default: str = ""
    """The retriever that a sweep compares them with; "" without a sweep."""
    passages: tuple[PassageCount, ...] = ()
    """The passages of each way in which retrievers cut documents."""

    @property
    def queries_with_answers(self) -> int:
        """Queries with a reference answer."""
        return sum(bool(query.reference.answers) for query in self.dataset.queries)

    @property
    def queries_with_claims(self) -> int:
        """Queries with claims."""
        return sum(bool(query.reference.claims) for query in self.dataset.queries)


def check_target(
    target: Path | DatasetReference | LoadedExperiment,
    *,
    allow_code: bool = True,
    results: Path = Path("results"),
    ping: bool = False,
) -> CheckReport:
    """Check an experiment with its data set, or a data set alone.

    Args:
        target: an experiment file, a data set, or a loaded experiment.
        allow_code: whether the experiment may name code that is run.
        results: the folder of earlier runs, which show how fast models are.
        ping: whether one text is sent to every service of the experiment.

    Raises:
        InputError: the problems of the experiment and of its data; if there are none,
            those for which a run would refuse a retriever.
        BackendError: services that do not respond.
    """
    preload_language_model()  # in the background, while the data are read
    if isinstance(target, Path) and target.suffix.lower() != ".toml":
        return _check_dataset(parse_reference(target))
    if isinstance(target, DatasetReference):
        return _check_dataset(target)
    try:
        loaded = load_experiment(target, allow_code=allow_code)
    except InputError as error:
        raise InputError([*error.problems, *_data_problems(target)]) from None
    return _check_experiment(loaded, results, ping=ping)


def _check_dataset(reference: DatasetReference) -> CheckReport:
    with all_extras_named(partial(missing_dataset_extras, reference)):
        dataset = load_dataset(reference)
    detectable = DetectableDifference(len(scorable_queries(dataset)))
    warnings: tuple[CheckWarning, ...] = (
        *_unconverted_files(dataset),
        *_unshared_queries(dataset, ()),
    )
    return CheckReport(
        dataset, summarise_dataset(dataset), detectable, warnings=warnings
    )


def _unconverted_files(dataset: Dataset) -> Iterator[UnconvertedFiles]:
    """Yield the files that could not be converted, if there are any."""
    notes = dataset.data_quality.get("unconverted-file", ())
    if notes:
        yield UnconvertedFiles(tuple(unconverted_reasons(notes)))


def _unshared_queries(
    dataset: Dataset, retrievers: Sequence[BuiltRetriever]
) -> Iterator[UnsharedQueries]:
    """Yield the queries without a word of the corpus, if there are any."""
    ids = unshared_queries(dataset, retrievers)
    if ids:
        yield UnsharedQueries(tuple(ids), len(dataset.queries))


def _check_experiment(
    loaded: LoadedExperiment, results: Path, *, ping: bool
) -> CheckReport:
    """Build the experiment and return what a run of it would take and find.

    Raises:
        InputError: the experiment, its data or its environment has a problem.
    """
    experiment = build(loaded)
    dataset = experiment.dataset
    retrievers = experiment.retrievers
    problems: list[Problem] = []
    configs = {config.name: config for config in loaded.experiment.retrievers}
    for built in retrievers:
        problems += _run_problems(built, configs[built.name], dataset)
    if problems:
        with all_extras_named(experiment.find_missing_extras):
            raise InputError(problems)
    detectable = detectable_difference(loaded, dataset, experiment.labels.grades)
    summary = summarise_dataset(
        dataset, partial(estimate_truncation, retrievers), seed=loaded.experiment.seed
    )
    truncations = [estimate for estimate in summary.reaches if estimate.is_much]
    warnings = (
        *_unconverted_files(dataset),
        *truncations,
        *_model_warnings(retrievers),
        *_unshared_queries(dataset, retrievers),
    )
    services: tuple[RespondingService, ...] = ()
    if ping:
        services = _ping(loaded, retrievers, dataset)
    sweep = loaded.experiment.sweep
    return CheckReport(
        dataset,
        summary,
        detectable,
        plan_run(loaded, dataset, retrievers, results),
        warnings,
        services,
        name=loaded.experiment.name if loaded.set_of else "",
        configurations=tuple(sweep.configurations) if sweep else (),
        sweep_default=sweep.default if sweep else "",
        passages=count_passages(retrievers, dataset, seed=loaded.experiment.seed),
    )


class _UserFunction(NamedTuple):
    """A function of the user that a table calls."""

    key: str
    """The key in the retriever's table."""
    call: str
    """The function, as "package.module:function"."""


def _run_problems(
    built: BuiltRetriever, config: RetrieverConfig, dataset: Dataset
) -> list[Problem]:
    """Return the problems for which a run would refuse a retriever.

    The functions of a user are located, and not imported: nothing else of a retriever
    that calls them can be checked.
    """
    problems: list[Problem] = []
    user_functions = list(_user_functions(config))
    if user_functions:
        for key, call in user_functions:
            with collect_errors(problems, partial(name_retriever, built.name)):
                require_module(call, key)
        return problems
    query_ids = [query.id for query in dataset.queries]
    for retriever in built.other_retrievers:
        if isinstance(retriever, Agent):  # what its model lacks is a warning
            continue
        missing = missing_requirements(built.name, retriever)
        problems += missing or unanswered_queries(built.name, retriever, query_ids)
    for dense in built.dense_parts:
        with collect_errors(problems, partial(name_retriever, built.name)):
            if dense.chunks is not None:
                dense.chunks.check()
    return problems


def _user_functions(config: RetrieverConfig) -> Iterator[_UserFunction]:
    """Yield the functions of the user that a table calls."""
    for path, table in walk_values(config.model_dump()):
        if not isinstance(table, Mapping) or not table.get("call"):
            continue
        if table.get("kind") == "python" or path.endswith("chunk"):
            yield _UserFunction(f"{path}.call".lstrip("."), table["call"])


def _model_warnings(
    retrievers: Sequence[BuiltRetriever],
) -> Iterator[AbsentModel | MissingRequirement]:
    """Yield each model that only the hub has, or that lacks something."""
    checked: set[int] = set()
    for built in retrievers:
        for agent in built.agents:
            for problem in missing_requirements(built.name, agent):
                yield MissingRequirement(problem)
        models: list[Model] = [dense.encoder for dense in built.dense_parts]
        models += built.rerankers
        for model in models:
            if id(model) in checked or isinstance(model, PythonEncoder):
                continue
            checked.add(id(model))
            problems = missing_requirements(built.name, model)
            if not model.at_hand and not problems:
                yield AbsentModel(built.name)
            for problem in problems:
                yield MissingRequirement(problem)


def _ping(
    loaded: LoadedExperiment, retrievers: Sequence[BuiltRetriever], dataset: Dataset
) -> tuple[RespondingService, ...]:
    # The clients of all services are imported with it.
    from harness.preflight.services import ping_services

    services = ping_services(retrievers, loaded.experiment.judge, dataset)
    return tuple(
        RespondingService(service.retriever, service.kind, service.has_no_hits)
        for service in services
    )


def _data_problems(target: object) -> list[Problem]:
    """The problems of the data set of an experiment file that has problems itself.

    Empty for a loaded experiment. Problems of the key `dataset` are left out: they are
    among those of the file.
    """
    if not isinstance(target, Path):
        return []
    problems: list[Problem] = []
    with collect_errors(problems):
        reference, drop_dangling = find_reference(target)
        load_dataset(reference, drop_dangling=drop_dangling)
    file_prefixes = (str(target), "dataset")
    return [
        problem for problem in problems if not problem.where.startswith(file_prefixes)
    ]

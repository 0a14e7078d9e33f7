"""A check before anything is embedded."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Any

from harness.build.build import build
from harness.build.built_retriever import BuiltRetriever
from harness.build.missing import missing_requirements, name_retriever
from harness.dataset import Dataset, DatasetReference, parse_reference
from harness.dataset import load_dataset as load_dataset
from harness.english import count_of, count_units, first_names
from harness.experiment import LoadedExperiment, find_reference
from harness.experiment import load as load_experiment
from harness.preflight.dataset_summary import DatasetSummary, summarise_dataset
from harness.preflight.detectable import (
    DetectableDifference,
    detectable_difference,
    scorable_queries,
)
from harness.preflight.plan import RunPlan, plan_run
from harness.preflight.truncation import estimate_truncation
from harness.wording.reading import QUALITY_PHRASES, column_lines, reading_line
from retrievers.encoders.python_encoder import PythonEncoder
from retrievers.errors import InputError, Problem, collect_errors
from retrievers.options.user_code import require_module
from retrievers.texts.languages import load_language_model


@dataclass(frozen=True, slots=True)
class CheckReport:
    """A data set without faults, and what is to be known of it."""

    dataset: Dataset
    summary: DatasetSummary
    detectable: DetectableDifference
    """What its queries can show."""
    plan: RunPlan | None = None
    """What a run of an experiment takes."""
    warnings: tuple[str, ...] = ()
    """What hinders no run and may change what it is worth: documents that a model reads the beginning of, weights that
    are not on this machine."""
    services: tuple[str, ...] = ()
    """Services that answered, where they were asked."""
    name: str = ""
    """What the experiment calls it, where it is one of several."""

    @property
    def answers(self) -> int:
        """Queries with a reference answer."""
        return sum(bool(query.reference.answers) for query in self.dataset.queries)

    @property
    def claims(self) -> int:
        """Queries with claims."""
        return sum(bool(query.reference.claims) for query in self.dataset.queries)

    def lines(self) -> list[str]:
        """What `harness check` prints: `SHOWN` rows of a terminal, the number of further lines among them."""
        verdict = (
            f"no error; {count_of(len(self.warnings), 'warning')}"
            if self.warnings
            else "nothing is wrong"
        )
        lines, first = [*self._first(), *self._more()], sum(1 for _ in self._first())
        ends = accumulate(-(-len(line) // CHECK_WIDTH) for line in lines)
        fit = max(first, sum(end <= MAX_CHECK_ROWS - 2 for end in ends))
        return [
            *lines[:fit],
            verdict,
            *(
                [f"and {len(lines) - fit:,} more lines (--json)"]
                if fit < len(lines)
                else []
            ),
        ]

    def _first(self) -> Iterator[str]:
        """What must be seen."""
        dataset = self.dataset
        documents = count_of(dataset.document_count, "document")
        queries = count_units(
            len(dataset.queries),
            self.detectable.units if self.detectable.clusters else None,
        )
        head = f"{self.name}: {dataset.path}" if self.name else dataset.path
        yield f"{head}: {dataset.format}, {documents}, {queries}"
        if unread := reading_line(dataset):
            yield unread
        yield from (f"warning: {warning}" for warning in self.warnings)
        yield from self.services
        if self.plan is not None:
            yield (
                f"a run takes {self.plan.sentence()}"
                if self.plan.rows
                else "a run needs no model"
            )
        yield self.detectable.sentence()

    def _more(self) -> Iterator[str]:
        """The data, how they were read, and what a run takes in detail."""
        dataset = self.dataset
        yield from self.summary.lines(dataset)
        if self.answers or self.claims:
            answered, claimed = (
                count_of(self.answers, "query"),
                count_of(self.claims, "query"),
            )
            yield f"{answered} with a reference answer, {claimed} with claims"
        for kind, ids in dataset.data_quality.items():
            yield f"{QUALITY_PHRASES[kind]} ({len(ids):,}): {first_names(ids)}"
        if dataset.representatives:
            behind = count_of(len(dataset.representatives), "document")
            yield f"labels name fields: {behind} share the value of another"
        yield from column_lines(dataset)
        if self.plan is not None:
            yield from self.plan.details()
        yield f"digest {dataset.digest}"

    def as_json(self) -> dict[str, Any]:
        """The same as data."""
        dataset = self.dataset
        named = {"name": self.name} if self.name else {}
        planned = (
            {}
            if self.plan is None
            else {
                "plan": self.plan.rows,
                "total": self.plan.total(),
                "notes": self.plan.notes,
            }
        )
        return {
            **named,
            "path": dataset.path,
            "format": dataset.format,
            "documents": dataset.document_count,
            "queries": len(dataset.queries),
            "references": self.answers,
            "claims": self.claims,
            "digest": dataset.digest,
            "columns": {file: dict(one) for file, one in dataset.columns.items()},
            "ledger": dict(dataset.data_quality),
            "portrait": self.summary.as_json(),
            "warnings": list(self.warnings),
            "online": list(self.services),
            "capacity": self.detectable.as_json(),
            **planned,
        }


MAX_CHECK_ROWS, CHECK_WIDTH = 25, 80
"""Rows that are printed of a data set or an experiment, and the width of the terminal that they are counted for."""


def check_target(
    target: Path | DatasetReference | LoadedExperiment,
    *,
    allow_code: bool = True,
    results: Path = Path("results"),
    ping: bool = False,
) -> CheckReport:
    """Check an experiment file with its data set, or a data set alone.

    Args:
        target: either of them, or what was loaded of an experiment; a reference says more of a data set than its path.
        allow_code: whether the experiment may name code that is run.
        results: where earlier runs are, which show how fast models are.
        ping: whether every service of the experiment is asked for one text.

    Raises:
        InputError: with every problem that was found, of the experiment and of its data.
        BackendError: services that do not answer.
    """
    load_language_model()
    if isinstance(target, DatasetReference) or (
        isinstance(target, Path) and target.suffix.lower() != ".toml"
    ):
        dataset = load_dataset(
            target if isinstance(target, DatasetReference) else parse_reference(target)
        )
        return CheckReport(
            dataset,
            summarise_dataset(dataset),
            DetectableDifference(len(scorable_queries(dataset))),
        )
    try:
        loaded = load_experiment(target, allow_code=allow_code)
    except InputError as error:
        raise InputError([*error.problems, *_of_the_data(target)]) from None
    dataset, graded, built = build(loaded)
    if problems := [problem for one in built for problem in _refused(one)]:
        raise InputError(problems)
    capacity = detectable_difference(loaded, dataset, graded.grades)
    seen = summarise_dataset(
        dataset,
        lambda some: estimate_truncation(built, some),
        seed=loaded.experiment.seed,
    )
    unread = (reach.warning() for reach in seen.reaches if reach.is_much)
    warnings = (*unread, *_lacking(built))
    answered: tuple[str, ...] = ()
    if ping:
        from harness.preflight.services import (
            ping_services,  # and the clients of all services with it
        )

        answered = tuple(ping_services(built, loaded.experiment.judge, dataset))
    name = loaded.experiment.name if loaded.set_of else ""
    takes = plan_run(loaded, dataset, built, results)
    return CheckReport(dataset, seen, capacity, takes, warnings, answered, name)


def _refused(one: BuiltRetriever) -> Iterator[Problem]:
    """What a run would refuse of a retriever; the user's functions are looked for, and not imported."""
    for key, call in one.user_functions.items():
        problems: list[Problem] = []
        with collect_errors(problems, partial(name_retriever, one.name)):
            require_module(call, key)
        yield from problems
    for whole in one.other_retrievers if not one.user_functions else ():
        yield from missing_requirements(one.name, whole)


def _lacking(built: Sequence[BuiltRetriever]) -> Iterator[str]:
    """Warn of encoders and rerankers that only the hub has, or that lack something, such as a key."""
    seen: set[int] = set()
    for one in built:
        for model in (*(dense.encoder for dense in one.dense_parts), *one.rerankers):
            if id(model) in seen or isinstance(model, PythonEncoder):
                continue
            seen.add(id(model))
            if not model.at_hand:
                yield f"{one.name}: its model is not on this machine; a run downloads it"
            for problem in missing_requirements(one.name, model):
                yield f"{problem}; a run needs it for what is not cached"


def _of_the_data(target: object) -> list[Problem]:
    """What is wrong with the data set of an experiment file that is itself wrong, as far as it can be known."""
    problems: list[Problem] = []
    if isinstance(target, Path):
        with collect_errors(problems):
            reference, drops = find_reference(target)
            load_dataset(reference, drop_dangling=drops)
    return [
        problem
        for problem in problems
        if not problem.where.startswith((str(target), "dataset"))
    ]

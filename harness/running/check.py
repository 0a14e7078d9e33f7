"""What can be known of an experiment or a data set before anything is embedded."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

from harness.build import Built, build, in_block, missing_requirements
from harness.dataset import Dataset, DatasetReference, reference_of
from harness.dataset import load as load_dataset
from harness.dataset.load import column_lines, reading_line
from harness.english import asked, counted, first_few
from harness.evaluation.grading import (
    GradedLabels,
    grade_labels,
    weights_of,
    with_bare_queries,
)
from harness.experiment import Loaded, reference_in
from harness.experiment import load as load_experiment
from harness.measures import score, span
from harness.running.dataset_summary import DatasetSummary, dataset_summary
from harness.running.forecast import truncation_estimates
from harness.running.plan import Capacity, RunPlan, measured, plan, planned
from harness.stats.settings import check_margin
from retrievers.encoders.python_encoder import PythonEncoder
from retrievers.errors import InputError, Problem, collecting, did_you_mean
from retrievers.user_objects import find_module
from retrievers.words import load_language_model

MEANINGS = {
    "empty-document": "empty documents: never embedded, never retrieved",
    "duplicate-text": "documents with the text of another",
    "unanswerable-query": "queries without an answer: searched, and measured by Abstain and by their scores",
    "no-relevant-document": "labelled queries without a relevant document: in no mean",
    "unjudged-query": "queries without labels: not searched",
    "unlabelled-query": "queries without labels: searched, but in no mean except those of claims",
    "judged-elsewhere": "labels of queries that are not in this data set",
    "replaced-labels": "queries whose labels in the files are replaced by judgments.jsonl",
    "changed-text": "labels whose query or document has changed since: judge these pairs again",
    "dangling-document": "labels of documents that do not exist: dropped",
    "dangling-query": "labels of queries that do not exist: dropped",
    "repeated-row": "rows that repeat an earlier query: searched once",
    "repeated-label": "rows that name a query and a document again: counted once",
    "clicked-label": "queries whose labels are clicks, not grades",
    "blank-query": "queries without text: not searched",
    "document-without-key": "documents without the fields that labels use: no label can name them",
    "unread-file": "files that cannot be read",
    "unread-table": "tables that are not read, although no query has labels: name one with --labels",
    "unconverted-file": "files that could not be converted",
    "unmatched-context": "reference contexts that match no document",
    "placeholder-query": "queries on so many rows that they may be placeholders: each counts once",
    "found-labels": "columns read as labels, since their values name documents",
}


@dataclass(frozen=True, slots=True)
class Checked:
    """A data set without faults, and what is to be known of it."""

    dataset: Dataset
    summary: DatasetSummary
    capacity: Capacity
    """What its queries can show."""
    plan: RunPlan | None = None
    """What a run of an experiment takes."""
    warnings: tuple[str, ...] = ()
    """What hinders no run and may change what it is worth: documents that a model reads the beginning of, weights that
    are not on this machine."""
    online: tuple[str, ...] = ()
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
            f"no error; {counted(len(self.warnings), 'warning')}"
            if self.warnings
            else "nothing is wrong"
        )
        lines, first = [*self._first(), *self._more()], sum(1 for _ in self._first())
        ends = accumulate(-(-len(line) // WIDTH) for line in lines)
        fit = max(first, sum(end <= SHOWN - 2 for end in ends))
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
        documents = counted(dataset.count, "document")
        queries = asked(
            len(dataset.queries),
            self.capacity.units if self.capacity.clusters else None,
        )
        head = f"{self.name}: {dataset.path}" if self.name else dataset.path
        yield f"{head}: {dataset.format}, {documents}, {queries}"
        if unread := reading_line(dataset):
            yield unread
        yield from (f"warning: {warning}" for warning in self.warnings)
        yield from self.online
        if self.plan is not None:
            yield (
                f"a run takes {self.plan.sentence()}"
                if self.plan.rows
                else "a run needs no model"
            )
        yield self.capacity.sentence()

    def _more(self) -> Iterator[str]:
        """The data, how they were read, and what a run takes in detail."""
        dataset = self.dataset
        yield from self.summary.lines(dataset)
        if self.answers or self.claims:
            answered, claimed = (
                counted(self.answers, "query"),
                counted(self.claims, "query"),
            )
            yield f"{answered} with a reference answer, {claimed} with claims"
        for kind, ids in dataset.ledger.items():
            yield f"{MEANINGS[kind]} ({len(ids):,}): {first_few(ids)}"
        if dataset.same_as:
            behind = counted(len(dataset.same_as), "document")
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
            "documents": dataset.count,
            "queries": len(dataset.queries),
            "references": self.answers,
            "claims": self.claims,
            "digest": dataset.digest,
            "columns": {file: dict(one) for file, one in dataset.columns.items()},
            "ledger": dict(dataset.ledger),
            "portrait": self.summary.as_json(),
            "warnings": list(self.warnings),
            "online": list(self.online),
            "capacity": self.capacity.as_json(),
            **planned,
        }


SHOWN, WIDTH = 25, 80
"""Rows that are printed of a data set or an experiment, and the width of the terminal that they are counted for."""


class Prepared(NamedTuple):
    """An experiment's data set without faults, and its retrievers."""

    dataset: Dataset
    graded: GradedLabels
    """Its labels after the grade rule."""
    built: tuple[Built, ...]
    """The retrievers; nothing is loaded yet."""


def check(
    target: Path | DatasetReference | Loaded,
    *,
    code: bool = True,
    results: Path = Path("results"),
    online: bool = False,
) -> Checked:
    """Check an experiment file with its data set, or a data set alone.

    Args:
        target: either of them, or what was loaded of an experiment; a reference says more of a data set than its path.
        code: whether the experiment may name code that is run.
        results: where earlier runs are, which show how fast models are.
        online: whether every service of the experiment is asked for one text.

    Raises:
        InputError: with every problem that was found, of the experiment and of its data.
        BackendError: services that do not answer.
    """
    load_language_model()
    if isinstance(target, DatasetReference) or (
        isinstance(target, Path) and target.suffix.lower() != ".toml"
    ):
        dataset = load_dataset(
            target if isinstance(target, DatasetReference) else reference_of(target)
        )
        return Checked(
            dataset, dataset_summary(dataset), Capacity(len(measured(dataset)))
        )
    try:
        loaded = load_experiment(target, code=code)
    except InputError as error:
        raise InputError([*error.problems, *_of_the_data(target)]) from None
    dataset, graded, built = prepare(loaded)
    if problems := [problem for one in built for problem in _refused(one)]:
        raise InputError(problems)
    capacity = planned(loaded, dataset, graded.grades)
    seen = dataset_summary(
        dataset,
        lambda some: truncation_estimates(built, some),
        seed=loaded.experiment.seed,
    )
    unread = (reach.warning() for reach in seen.reaches if reach.is_much)
    warnings = (*unread, *_lacking(built))
    answered: tuple[str, ...] = ()
    if online:
        from harness.running.forecast import (
            ask_services,
        )  # and the clients of all services with it

        answered = tuple(ask_services(built, loaded.experiment.judge, dataset))
    name = loaded.experiment.name if loaded.within else ""
    takes = plan(loaded, dataset, built, results)
    return Checked(dataset, seen, capacity, takes, warnings, answered, name)


def _refused(one: Built) -> Iterator[Problem]:
    """What a run would refuse of a retriever; the user's functions are looked for, and not imported."""
    for key, call in one.functions.items():
        problems: list[Problem] = []
        with collecting(problems, partial(in_block, one.name)):
            find_module(call, key)
        yield from problems
    for whole in one.wholes if not one.functions else ():
        yield from missing_requirements(one.name, whole)


def _lacking(built: Sequence[Built]) -> Iterator[str]:
    """Warn of encoders and rerankers that only the hub has, or that lack something, such as a key."""
    seen: set[int] = set()
    for one in built:
        for model in (*(dense.encoder for dense in one.denses), *one.rerankers):
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
        with collecting(problems):
            reference, drops = reference_in(target)
            load_dataset(reference, drop_dangling=drops)
    return [
        problem
        for problem in problems
        if not problem.where.startswith((str(target), "dataset"))
    ]


def prepare(loaded: Loaded) -> Prepared:
    """Load an experiment's data set and build what its retrievers use; labels and measures are seen to fit.

    Args:
        loaded: the experiment.

    Raises:
        InputError: with every problem that was found.
    """
    relevance, statistics = loaded.experiment.relevance, loaded.experiment.statistics
    problems: list[Problem] = []
    unbuilt: list[Problem] = []
    in_file = partial(_in_file, loaded)
    dataset = graded = built = None
    with collecting(unbuilt, in_file):
        built = build(loaded.experiment.retrievers)
    with collecting(problems):
        dataset = load_dataset(
            loaded.dataset, drop_dangling=relevance.dangling == "drop"
        )
    with collecting(problems, in_file):
        if dataset is not None:
            problems += _unknown_fields(loaded, built or (), dataset)
            graded = grade_labels(dataset.labels, relevance)
            # Scoring empty rankings finds out whether every measure can read these labels.
            score(
                loaded.question.measures,
                graded.grades,
                {},
                groups=graded.groups or None,
                claims={},
            )
            _check_claims(loaded, dataset)
            graded = with_bare_queries(graded, dataset.queries, loaded.question)
            weights_of(
                [query for query in dataset.queries if query.id in graded.grades],
                statistics.weight,
            )
            reach = span(loaded.question.primary, graded.grades)
            check_margin("[statistics] margin", statistics.margin, reach)
    problems += unbuilt
    if problems or dataset is None or graded is None or built is None:
        raise InputError(problems)
    return Prepared(dataset, graded, built)


def _unknown_fields(
    loaded: Loaded, built: Sequence[Built], dataset: Dataset
) -> Iterator[Problem]:
    """Fields of filters and of clusters that no document, or no query, has."""
    of_queries = {name for query in dataset.queries for name in query.fields}
    cluster = loaded.experiment.statistics.cluster
    if cluster is not None and cluster not in of_queries:
        where = f"{loaded.path}: [statistics] cluster"
        yield Problem(
            where,
            f"{cluster!r} is a field of no query",
            did_you_mean(cluster, of_queries),
        )
    for one in built:
        for condition in one.conditions:
            where, wanted = (
                f"{loaded.path}: retriever {one.name!r}: filter.{condition.field}",
                condition.query_field,
            )
            if condition.field not in dataset.field_names:
                remedy = did_you_mean(condition.field, dataset.field_names)
                yield Problem(where, "is a field of no document", remedy)
            if wanted and wanted not in of_queries:
                yield Problem(
                    where,
                    f"{wanted!r} is a field of no query",
                    did_you_mean(wanted, of_queries),
                )


def _in_file(loaded: Loaded, error: InputError) -> list[Problem]:
    return [
        problem._replace(where=f"{loaded.path}: {problem.where}")
        for problem in error.problems
    ]


def _check_claims(loaded: Loaded, dataset: Dataset) -> None:
    claimed = next((str(one) for one in loaded.question.measures if one.claimed), None)
    if claimed and not any(
        query.reference.claims or query.reference.answers for query in dataset.queries
    ):
        remedy = 'give queries "claims": what a right answer states, in a list; or a "reference" answer'
        raise InputError(
            Problem("measures", f"{claimed} needs claims, and no query has any", remedy)
        )
    judge = loaded.experiment.judge
    if claimed and judge is not None and judge.kind == "openai":
        key = judge.key_name or ("" if judge.base_url else "OPENAI_API_KEY")
        if key and not os.environ.get(key):
            raise InputError(
                Problem(
                    "judge", f"{key} is not set in the environment", f"export {key}=…"
                )
            )

"""A loaded experiment to objects.

Retrievers are built without their models, the data set is read, and its labels are
graded and tried with every measure. The problems of all of these are raised together.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import NamedTuple, Self

from harness import records
from harness.build.built_retriever import BuiltRetriever
from harness.build.extras import all_extras_named, missing_extras
from harness.build.retrievers import build_retrievers
from harness.dataset import Dataset, load_dataset
from harness.experiment import LoadedExperiment
from harness.identity import RunIdentity, run_identity
from harness.measures import QueryClaims, measure_rankings, value_bounds
from harness.records import ResolvedExperiment
from harness.scoring.grades import (
    ABSTAIN_MEASURE,
    GradedLabels,
    grade_measured_queries,
    unmeasured_abstention,
)
from harness.scoring.query_units import (
    QueryUnits,
    query_units,
    refuse_absent_fields,
)
from harness.stats.settings import check_margin
from retrievers.conditions import Condition
from retrievers.errors import InputError, Problem, collect_errors, did_you_mean
from retrievers.services.addresses import openai_key_variable
from retrievers.texts.context_tokens import context_token_counter, words_as_tokens
from retrievers.texts.token_estimate import TokenCounter


class BuiltExperiment(NamedTuple):
    """An experiment's checked data set with its retrievers; no model is loaded yet."""

    dataset: Dataset
    labels: GradedLabels
    """The labels of the data set after the grade rule."""
    units: QueryUnits
    """The cluster and the weight of each graded query, in the order of query ids."""
    retrievers: tuple[BuiltRetriever, ...]
    """The retrievers in the order in which they run: each after those that it uses."""
    count_tokens: TokenCounter
    """Counts the tokens of passages, for all retrievers alike."""
    resolved: ResolvedExperiment
    """The experiment with its defaults, as the manifest stores it."""
    identity: RunIdentity
    """What makes another run the same."""
    find_missing_extras: Callable[[], set[str]]
    """Returns all missing extras (sets of optional packages) that it needs.

    It is slow, since it looks at every file of the data set: call it only if an import
    failed.
    """

    def with_claims(self, claims: Mapping[str, QueryClaims]) -> Self:
        """Return it with the claims that were judged: query id -> its claims."""
        return self._replace(labels=self.labels._replace(claims=claims))


def build(loaded: LoadedExperiment) -> BuiltExperiment:
    """Load an experiment's data set, grade its labels and build its retrievers.

    Raises:
        InputError: the problems of the retrievers, of the budget, of the data set, and
            the first of its labels, in one error.
    """
    find_missing_extras = partial(missing_extras, loaded)
    with all_extras_named(find_missing_extras):
        return _build(loaded, find_missing_extras)


def _build(
    loaded: LoadedExperiment, find_missing_extras: Callable[[], set[str]]
) -> BuiltExperiment:
    """Build the parts one by one, and collect their problems.

    Retrievers are built first, since their filters name fields of the documents; their
    problems come last all the same. Filters are checked if every retriever was built.
    """
    in_file = partial(_problems_in_file, loaded)
    retriever_problems: list[Problem] = []
    retrievers: tuple[BuiltRetriever, ...] = ()
    with collect_errors(retriever_problems, in_file):
        retrievers = build_retrievers(loaded.experiment.retrievers)
    problems: list[Problem] = []
    count_tokens: TokenCounter = words_as_tokens
    if loaded.experiment.budget is not None:
        with collect_errors(problems, in_file):
            count_tokens = context_token_counter(loaded.experiment.budget.tokenizer)
    dataset: Dataset | None = None
    with collect_errors(problems):
        drop_dangling = loaded.experiment.relevance.dangling == "drop"
        dataset = load_dataset(loaded.dataset, drop_dangling=drop_dangling)
    labels: GradedLabels | None = None
    units: QueryUnits | None = None
    if dataset is not None:
        with collect_errors(problems, in_file):
            problems += _filter_field_problems(loaded, retrievers, dataset)
            labels = _grade(loaded, dataset)
            units = _query_units(loaded, dataset, labels)
    problems += retriever_problems
    if problems or dataset is None or labels is None or units is None:
        raise InputError(problems)
    question = loaded.question
    return BuiltExperiment(
        dataset,
        labels,
        units,
        retrievers,
        count_tokens,
        records.resolved_experiment(
            question.experiment, question.measures, question.primary
        ),
        run_identity(loaded.tables, dataset.digest),
        find_missing_extras,
    )


def _problems_in_file(loaded: LoadedExperiment, error: InputError) -> list[Problem]:
    return [
        problem._replace(where=f"{loaded.path}: {problem.where}")
        for problem in error.problems
    ]


def _filter_field_problems(
    loaded: LoadedExperiment,
    retrievers: tuple[BuiltRetriever, ...],
    dataset: Dataset,
) -> Iterator[Problem]:
    for retriever in retrievers:
        for condition in retriever.conditions:
            field = condition.field
            where = f"{loaded.path}: retriever {retriever.name!r}: filter.{field}"
            yield from _condition_problems(condition, where, dataset)


def _condition_problems(
    condition: Condition, where: str, dataset: Dataset
) -> Iterator[Problem]:
    if condition.field not in dataset.field_names:
        remedy = did_you_mean(condition.field, dataset.field_names)
        yield Problem(where, "is a field of no document", remedy)
    query_fields = _query_fields(dataset)
    if condition.query_field and condition.query_field not in query_fields:
        yield Problem(
            where,
            f"{condition.query_field!r} is a field of no query",
            did_you_mean(condition.query_field, query_fields),
        )


def _query_fields(dataset: Dataset) -> set[str]:
    return {field for query in dataset.queries for field in query.fields}


def _grade(loaded: LoadedExperiment, dataset: Dataset) -> GradedLabels:
    """Grade the labels; every measure and the margin are checked against them."""
    question = loaded.question
    labels = grade_measured_queries(dataset.labels, dataset.queries, question)
    # Scoring empty rankings shows whether every measure can read these labels.
    measure_rankings(
        question.measures,
        labels.grades,
        {},
        groups=labels.groups or None,
        claims={},
        passages={},
        spans=labels.spans,
    )
    bounds = value_bounds(question.primary, labels.grades)
    _check_claims(loaded, dataset)
    _check_abstention(loaded, labels)
    margin = question.experiment.statistics.margin
    check_margin("[statistics] margin", margin, bounds)
    return labels


def _query_units(
    loaded: LoadedExperiment, dataset: Dataset, labels: GradedLabels
) -> QueryUnits:
    """Return the units of the graded queries.

    Raises:
        InputError: no query that counts has the declared field of clusters or of
            weights, or one has no weight.
    """
    cluster = loaded.experiment.statistics.cluster
    weight = loaded.experiment.statistics.weight
    graded_queries = [query for query in dataset.queries if query.id in labels.grades]
    graded_queries.sort(key=lambda query: query.id)
    # So misspelt fields are reported before there are labels, too.
    refuse_absent_fields(graded_queries or dataset.queries, cluster, weight)
    return query_units(graded_queries, cluster, weight)


def _check_claims(loaded: LoadedExperiment, dataset: Dataset) -> None:
    """Refuse measures by claims if no query has claims, or the judge has no key."""
    claim_measures = [
        str(measure) for measure in loaded.question.measures if measure.uses_claims
    ]
    if not claim_measures:
        return
    references = [query.reference for query in dataset.queries]
    if not any(reference.claims or reference.answers for reference in references):
        remedy = (
            'give queries "claims": what a right answer states, in a list; '
            'or a "reference" answer'
        )
        message = f"{claim_measures[0]} needs claims, and no query has any"
        raise InputError(Problem("measures", message, remedy))
    judge = loaded.experiment.judge
    if judge is None or judge.kind != "openai":
        return
    key = judge.key_name or openai_key_variable(judge.base_url)
    if key and not os.environ.get(key):
        message = f"{key} is not set in the environment"
        raise InputError(Problem("judge", message, f"export {key}=…"))


def _check_abstention(loaded: LoadedExperiment, labels: GradedLabels) -> None:
    """Refuse Abstain as the primary measure if every query may have an answer.

    Without any labels nothing is measured yet.
    """
    is_primary = loaded.question.primary.name == ABSTAIN_MEASURE
    if is_primary and labels.grades and not labels.unanswerable:
        raise InputError(unmeasured_abstention("primary"))

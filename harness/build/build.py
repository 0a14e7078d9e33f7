"""A loaded experiment to objects."""

import os
from collections.abc import Iterator, Sequence
from functools import partial
from typing import NamedTuple

from harness.build.built_retriever import BuiltRetriever
from harness.build.retrievers import build_retrievers
from harness.dataset import Dataset
from harness.dataset import load_dataset as load_dataset
from harness.experiment import LoadedExperiment
from harness.measures import measure_rankings, value_span
from harness.scoring.grades import (
    GradedLabels,
    grade_labels,
    with_queries_without_relevant,
)
from harness.scoring.query_units import query_weights
from harness.stats.settings import check_margin
from retrievers.errors import InputError, Problem, collect_errors, did_you_mean


class BuiltExperiment(NamedTuple):
    """An experiment's data set without faults, and its retrievers."""

    dataset: Dataset
    labels: GradedLabels
    """Its labels after the grade rule."""
    retrievers: tuple[BuiltRetriever, ...]
    """The retrievers; nothing is loaded yet."""


def build(loaded: LoadedExperiment) -> BuiltExperiment:
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
    with collect_errors(unbuilt, in_file):
        built = build_retrievers(loaded.experiment.retrievers)
    with collect_errors(problems):
        dataset = load_dataset(
            loaded.dataset, drop_dangling=relevance.dangling == "drop"
        )
    with collect_errors(problems, in_file):
        if dataset is not None:
            problems += _unknown_fields(loaded, built or (), dataset)
            graded = grade_labels(dataset.labels, relevance)
            # Scoring empty rankings finds out whether every measure can read these labels.
            measure_rankings(
                loaded.question.measures,
                graded.grades,
                {},
                groups=graded.groups or None,
                claims={},
            )
            _check_claims(loaded, dataset)
            graded = with_queries_without_relevant(
                graded, dataset.queries, loaded.question
            )
            query_weights(
                [query for query in dataset.queries if query.id in graded.grades],
                statistics.weight,
            )
            reach = value_span(loaded.question.primary, graded.grades)
            check_margin("[statistics] margin", statistics.margin, reach)
    problems += unbuilt
    if problems or dataset is None or graded is None or built is None:
        raise InputError(problems)
    return BuiltExperiment(dataset, graded, built)


def _unknown_fields(
    loaded: LoadedExperiment, built: Sequence[BuiltRetriever], dataset: Dataset
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


def _in_file(loaded: LoadedExperiment, error: InputError) -> list[Problem]:
    return [
        problem._replace(where=f"{loaded.path}: {problem.where}")
        for problem in error.problems
    ]


def _check_claims(loaded: LoadedExperiment, dataset: Dataset) -> None:
    claimed = next(
        (str(one) for one in loaded.question.measures if one.uses_claims), None
    )
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

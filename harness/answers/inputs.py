"""An experiment with its answers."""

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from harness.answers.systems import System, read_systems
from harness.dataset import load_dataset
from harness.experiment import JudgeConfig, LoadedExperiment, load
from harness.scoring.query_units import refuse_absent_fields
from retrievers.errors import InputError, Problem
from retrievers.types import Query


@dataclass(frozen=True, slots=True)
class AnswerInputs:
    """A checked folder of answers with their queries."""

    loaded: LoadedExperiment
    queries: tuple[Query, ...]
    """Queries with a reference answer or claims: only these can be measured."""
    systems: tuple[System, ...]
    ignored_queries: int
    """Number of queries without a reference answer and without claims."""

    @property
    def judge(self) -> JudgeConfig:
        """The judge of the experiment; by default the lexical one."""
        return self.loaded.experiment.judge or JudgeConfig()


class SystemCounts(NamedTuple):
    """The contents of one system's file, in numbers."""

    system: str
    answers: int
    """Answers in the file, also to queries that are not measured."""
    missing: int
    """Number of measured queries without an answer: each counts as an empty one."""
    empty: int
    """Number of empty answers in the file."""
    without_contexts: int
    """Number of answers in the file without contexts."""


def read_answer_inputs(
    experiment: Path, folder: Path, *, allow_code: bool = True
) -> AnswerInputs:
    """Read an experiment's data set and a folder of answers.

    Args:
        experiment: the file.
        folder: with <system>.jsonl for each system.
        allow_code: whether the experiment may name Python code.

    Raises:
        InputError: with every problem of the experiment; if it has none, of the data
            set; if that has none, of the answers. Or no query has the declared field of
            clusters or weights, or a reference answer or claims to measure by.
    """
    loaded = load(experiment, allow_code=allow_code)
    dataset = load_dataset(
        loaded.dataset, drop_dangling=loaded.experiment.relevance.dangling == "drop"
    )
    queries = {query.id: query for query in (*dataset.judged_queries, *dataset.queries)}
    statistics = loaded.experiment.statistics
    refuse_absent_fields(list(queries.values()), statistics.cluster, statistics.weight)
    # Beside labelled queries, one with neither labels nor a reference is not searched.
    unsearched = dataset.data_quality.get("unjudged-query", ())
    systems = read_systems(folder, {*queries, *unsearched})
    measured_queries = tuple(
        query
        for query in queries.values()
        if query.reference.answers or query.reference.claims
    )
    if not measured_queries:
        problem = "no query has a reference answer or claims"
        remedy = (
            'give queries a "reference" (a right answer) or "claims" '
            "(its statements) in the file of queries"
        )
        raise InputError(Problem(dataset.path, problem, remedy))
    return AnswerInputs(
        loaded,
        measured_queries,
        tuple(systems),
        ignored_queries=len(queries) + len(unsearched) - len(measured_queries),
    )


def count_answers(inputs: AnswerInputs) -> list[SystemCounts]:
    """Count the contents of each system's file."""
    counts: list[SystemCounts] = []
    for system in inputs.systems:
        answers = system.answers.values()
        system_counts = SystemCounts(
            system.name,
            answers=len(answers),
            missing=sum(query.id not in system.answers for query in inputs.queries),
            empty=sum(not answer.response.strip() for answer in answers),
            without_contexts=sum(not answer.contexts for answer in answers),
        )
        counts.append(system_counts)
    return counts

"""An experiment with its answers."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from harness.answers.systems import System, read_systems
from harness.dataset import load_dataset as load_dataset
from harness.english import count_of, count_queries
from harness.experiment import JudgeConfig, LoadedExperiment, load
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
    """Queries of the data set without a reference answer and without claims."""

    @property
    def judge(self) -> JudgeConfig:
        """The judge of the experiment; by default the lexical one."""
        return self.loaded.experiment.judge or JudgeConfig()


class SystemCounts(NamedTuple):
    """The contents of one system's file."""

    system: str
    answers: int
    missing: int
    """Queries with a reference but no answer: each counts as an empty answer."""
    empty: int
    """Empty answers."""
    without_contexts: int


def read_answer_inputs(
    experiment: Path, folder: Path, *, code: bool = True
) -> AnswerInputs:
    """Read an experiment's data set and a folder of answers; `code` as for `harness.experiment.load`.

    Raises:
        InputError: with every problem; or no query has a reference answer or claims.
    """
    loaded = load(experiment, allow_code=code)
    dataset = load_dataset(
        loaded.dataset, drop_dangling=loaded.experiment.relevance.dangling == "drop"
    )
    known = {query.id: query for query in (*dataset.judged_queries, *dataset.queries)}
    systems = read_systems(folder, known.keys())
    measured = tuple(
        q for q in known.values() if q.reference.answers or q.reference.claims
    )
    if not measured:
        remedy = 'give queries a "reference" (a right answer) or "claims" (its statements) in the file of queries'
        raise InputError(
            Problem(dataset.path, "no query has a reference answer or claims", remedy)
        )
    return AnswerInputs(loaded, measured, tuple(systems), len(known) - len(measured))


def count_answers(inputs: AnswerInputs) -> list[SystemCounts]:
    """Count the contents of each system's file."""
    asked = [query.id for query in inputs.queries]
    return [
        SystemCounts(
            system.name,
            len(system.answers),
            sum(id_ not in system.answers for id_ in asked),
            sum(not answer.response.strip() for answer in system.answers.values()),
            sum(not answer.contexts for answer in system.answers.values()),
        )
        for system in inputs.systems
    ]


def answer_count_lines(inputs: AnswerInputs) -> Iterator[str]:
    """The output of `harness answers check`."""
    claims = count_of(
        sum(len(query.reference.claims) for query in inputs.queries), "claim"
    )
    answers = count_of(
        sum(bool(query.reference.answers) for query in inputs.queries),
        "reference answer",
    )
    have = f"{count_queries(len(inputs.queries))} to measure: {answers}, {claims}; with neither, ignored: {inputs.ignored_queries:,}"
    yield f"{inputs.loaded.dataset.path}: {have}"
    for one in count_answers(inputs):
        yield (
            f"{one.system}: {count_of(one.answers, 'answer')}, {one.missing:,} missing "
            f"(each counts as an empty answer), {one.empty:,} empty, {one.without_contexts:,} without contexts"
        )
    yield "no problem found"

"""What the commands for answers start from: an experiment's questions and judge, and a folder of answers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from harness.answers.evidence import Case, pairs_of
from harness.answers.judges import signed
from harness.answers.judging import Judge
from harness.answers.systems import System, read_systems
from harness.dataset import load as load_dataset
from harness.experiment import JudgeOptions, Loaded, load
from harness.records import Readings, read_readings
from retrievers.errors import InputError, Problem
from retrievers.types import Query


@dataclass(frozen=True, slots=True)
class Inputs:
    """A checked folder of answers with the questions that they answer."""

    loaded: Loaded
    queries: tuple[Query, ...]
    """Those with a reference answer or claims: only they can be measured."""
    systems: tuple[System, ...]
    bare: int
    """Queries of the data set without a reference answer and without claims."""

    @property
    def judge(self) -> JudgeOptions:
        """The judge that the experiment declares; words alone where it declares none."""
        return self.loaded.experiment.judge or JudgeOptions()


class Counted(NamedTuple):
    """What one system's file holds."""

    system: str
    answers: int
    missing: int
    """Queries with a reference that it did not answer: each counts as an empty answer."""
    empty: int
    """Answers without a word."""
    without_contexts: int


def read_inputs(experiment: Path, folder: Path, *, code: bool = True) -> Inputs:
    """Read an experiment's data set and a folder of answers; `code` as for `harness.experiment.load`.

    Raises:
        InputError: with every problem that was found; no query has a reference answer or claims.
    """
    loaded = load(experiment, code=code)
    dataset = load_dataset(loaded.dataset, drop_dangling=loaded.experiment.relevance.dangling == "drop")
    known = {query.id: query for query in (*dataset.judged, *dataset.queries)}
    systems = read_systems(folder, known.keys())
    measured = tuple(q for q in known.values() if q.reference.answers or q.reference.claims)
    if not measured:
        remedy = 'give queries a "reference" (a right answer) or "claims" (what it states) in the file of queries'
        raise InputError(Problem(dataset.path, "no query has a reference answer or claims", remedy))
    return Inputs(loaded, measured, tuple(systems), len(known) - len(measured))


def counted(inputs: Inputs) -> list[Counted]:
    """Count what each system's file holds."""
    asked = [query.id for query in inputs.queries]
    return [
        Counted(
            system.name,
            len(system.answers),
            sum(id_ not in system.answers for id_ in asked),
            sum(not answer.response.strip() for answer in system.answers.values()),
            sum(not answer.contexts for answer in system.answers.values()),
        )
        for system in inputs.systems
    ]


def lines_of(inputs: Inputs) -> Iterator[str]:
    """What `harness answers check` prints."""
    claims = sum(len(query.reference.claims) for query in inputs.queries)
    answers = sum(bool(query.reference.answers) for query in inputs.queries)
    yield f"{inputs.loaded.dataset.path}: {len(inputs.queries):,} queries to measure: {answers:,} reference answers, "
    yield f"  {claims:,} claims; {inputs.bare:,} queries without either are left aside"
    for one in counted(inputs):
        yield (
            f"{one.system}: {one.answers:,} answers, {one.missing:,} missing (each counts as an empty answer), "
            f"{one.empty:,} empty, {one.without_contexts:,} without contexts"
        )
    yield "nothing is wrong"


class Noise(NamedTuple):
    """How far a judge agrees with itself."""

    twice: int
    """Pairs that were read twice."""
    differing: int
    """Of them, those with two verdicts."""


class VerdictCounts(NamedTuple):
    """What a judge said of a folder, in numbers."""

    judge: str
    verdicts: int
    unreadable: int
    """Pairs without a verdict: null, never a no."""
    noise: Noise
    claims_missing: int
    """Texts whose claims could not be read."""
    truncated: int = 0
    """Items for which a chat model was shown only the beginning of a text, in this call."""
    without_schema: int = 0
    """Replies of a server that takes no schema for them, in this call."""

    def as_json(self) -> dict[str, Any]:
        """The same as data."""
        return {**self._asdict(), "noise": self.noise._asdict()}

    def lines(self) -> Iterator[str]:
        """What `harness answers judge` prints."""
        yield f"{self.judge}: {self.verdicts:,} verdicts, {self.unreadable:,} unreadable (undefined, never 0)"
        if self.claims_missing:
            yield f"the claims of {self.claims_missing:,} texts could not be read"
        yield from asking_lines(self.truncated, self.without_schema)
        if self.noise.twice:
            share = self.noise.differing / self.noise.twice
            yield f"asked twice: {self.noise.differing:,} of {self.noise.twice:,} verdicts differ ({share:.1%})"
        if self.judge.startswith("lexical"):
            yield "weak: words are compared, no meaning; a paraphrase is missed and nothing is ever contradicted"


def asking_lines(truncated: float, without_schema: float) -> Iterator[str]:
    """What a reader must know of how a chat model was asked; nothing where all went as it should.

    >>> list(asking_lines(3, 0))
    ['3 were judged by the beginning of a text that is longer than the model is shown ([judge] longest)']
    """
    if truncated:
        yield f"{truncated:,.0f} were judged by the beginning of a text that is longer than the model is shown " \
              "([judge] longest)"  # fmt: skip
    if without_schema:
        yield f"the server takes no schema for its replies: {without_schema:,.0f} replies came without one"


def judged(inputs: Inputs, judge: Judge, readings: Readings) -> VerdictCounts:
    """Count what a judge said of the pairs that the measures need."""
    cases = cases_of(inputs.queries, inputs.systems, readings)
    pairs = list(dict.fromkeys(pair for case in cases for pair in pairs_of(case)))
    words = [readings.word(*pair) for pair in pairs]
    again = [(first, readings.word(*pair, 2)) for pair, first in zip(pairs, words, strict=True)]
    both = [(first, second) for first, second in again if first is not None and second is not None]
    return VerdictCounts(
        judge.name,
        sum(word is not None for word in words),
        sum(word is None for word in words),
        Noise(len(both), sum(first != second for first, second in both)),
        len({case.answer.response for case in cases if case.made is None}),
    )


def cases_of(queries: Sequence[Query], systems: Sequence[System], readings: Readings) -> list[Case]:
    """Every system's answer to every query."""
    return [Case(query, system.answer(query.id), readings) for system in systems for query in queries]


def readings_for(folder: Path, judge: Judge) -> Readings:
    """What a judge said in a folder.

    Raises:
        InputError: it said nothing there yet.
    """
    readings = read_readings(folder, signed(judge))
    if not readings.verdicts:
        remedy = "first: harness answers judge EXPERIMENT ANSWERS"
        raise InputError(Problem(str(folder), f"holds no verdict of the judge {judge.name!r}", remedy))
    return readings

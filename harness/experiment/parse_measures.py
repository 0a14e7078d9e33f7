"""The measures of an experiment."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from harness import measures
from harness.experiment.experiment import Experiment
from harness.experiment.raw_table import RawTable
from harness.measures import Measure
from retrievers.errors import InputError, Problem, collect_errors


class MeasuredExperiment(NamedTuple):
    """An experiment with its measures parsed."""

    experiment: Experiment
    measures: tuple[Measure, ...]
    """The measures with the options of `[relevance]`, each once."""
    primary: Measure
    """The measure that decides, one of them."""


def measure_problems(tables: RawTable, prefix: str) -> Iterator[Problem]:
    """Yield the measures that cannot be parsed, in tables that may have other errors.

    Args:
        tables: of an experiment.
        prefix: comes before the key in each problem.
    """
    names = tables.get("measures")
    if not isinstance(names, list):
        names = []
    for key, key_names in (("primary", [tables.get("primary")]), ("measures", names)):
        for name in key_names:
            if not isinstance(name, str):
                continue
            problems: list[Problem] = []
            with collect_errors(problems):
                measures.parse_measure_list([name])
            for problem in problems:
                yield problem._replace(where=f"{prefix}{key}: {name!r}")


def parse_measures(experiment: Experiment) -> MeasuredExperiment:
    """Parse the measures, and the primary one among them.

    Raises:
        InputError: one is unknown or needs more hits than `depth`, the primary measure
            is not among them, or is a residual, or a measure by claims has no judge.
    """
    problems: list[Problem] = []
    primary = None
    parsed_primary = _parse_name(experiment, "primary", experiment.primary, problems)
    if parsed_primary:
        primary = parsed_primary[0]
    # A primary measure that cannot be parsed is reported once.
    names = [
        name
        for name in experiment.measures
        if parsed_primary or name != experiment.primary
    ]
    all_measures = _parse_all(experiment, names, problems)
    if not problems and primary not in all_measures:
        problem = f"{experiment.primary} is not among the measures"
        remedy = f"they are {', '.join(experiment.measures)}"
        problems.append(Problem("primary", problem, remedy))
    if primary is not None and primary.get("residual"):
        problem = f"{experiment.primary} is no quality: unjudged documents may add it"
        problems.append(Problem("primary", problem, f"name {primary.name} itself"))
    claim_measures = [measure for measure in all_measures if measure.uses_claims]
    if experiment.judge is None and claim_measures:
        problems.append(_missing_judge(claim_measures[0]))
    if problems or primary is None:
        raise InputError(problems)
    return MeasuredExperiment(experiment, tuple(dict.fromkeys(all_measures)), primary)


def _parse_all(
    experiment: Experiment, names: Sequence[str], problems: list[Problem]
) -> list[Measure]:
    """Return all measures, with those that a name adds."""
    all_measures: list[Measure] = []
    # Without those that a name adds: RBP's residual may also be named itself.
    named_measures: set[Measure] = set()
    for name in names:
        parsed = _parse_name(experiment, "measures", name, problems)
        if not parsed:
            continue
        measure = parsed[0]
        if measure in named_measures:
            remedy = "name each measure once"
            problems.append(Problem("measures", f"{name} occurs twice", remedy))
        named_measures.add(measure)
        all_measures += parsed
        if (measure.cutoff or 0) > experiment.depth:
            needed = f"{name} needs depth {measure.cutoff} or more"
            problem = f"{needed}; depth is {experiment.depth}"
            problems.append(Problem("measures", problem, "raise depth"))
    return all_measures


def _parse_name(
    experiment: Experiment, key: str, name: str, problems: list[Problem]
) -> Sequence[Measure]:
    """Return the measure that a name means, then those that it adds: RBP's residual.

    Empty if it cannot be parsed, with a problem.
    """
    relevance = experiment.relevance
    try:
        return measures.parse_measure_list(
            [name], gain=relevance.gain, ideal=relevance.ideal
        )
    except InputError as error:
        for problem in error.problems:
            where = f"{key}: {name!r}"
            problems.append(Problem(where, problem.what, problem.remedy))
    return ()


def _missing_judge(measure: Measure) -> Problem:
    problem = f"is missing: {measure} needs verdicts on claims"
    remedy = 'say who judges whether a text entails a claim: [judge] kind = "lexical"'
    return Problem("judge", problem, remedy)

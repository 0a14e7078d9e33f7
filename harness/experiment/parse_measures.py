"""The measures of an experiment."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from harness import measures
from harness.experiment.experiment import Experiment
from harness.measures import Measure
from retrievers.errors import InputError, Problem, collect_errors


def measure_problems(tables: Mapping[str, Any], where: str) -> Iterator[Problem]:
    """The measures that cannot be read, told also where another key is wrong."""
    listed = tables.get("measures")
    for key, some in (
        ("primary", [tables.get("primary")]),
        ("measures", listed if isinstance(listed, list) else []),
    ):
        for text in (one for one in some if isinstance(one, str)):
            problems: list[Problem] = []
            with collect_errors(problems):
                measures.parse_measure_list([text])
            yield from (
                one._replace(where=f"{where}{key}: {text!r}") for one in problems
            )


def parse_measures(experiment: Experiment) -> MeasuredExperiment:
    """Parse the measures, and the primary one among them.

    Raises:
        InputError: one is unknown, looks deeper than `depth`, or the primary measure is not among them.
    """
    relevance, problems = experiment.relevance, list[Problem]()
    named: list[Measure] = []
    written: set[Measure] = (
        set()
    )  # without what rows put beside: RBP's residual may be named too
    for where, text in [
        ("primary", experiment.primary),
        *(("measures", text) for text in experiment.measures),
    ]:
        try:
            parsed = measures.parse_measure_list(
                [text], gain=relevance.gain, ideal=relevance.ideal
            )
        except InputError as error:
            problems += [
                Problem(f"{where}: {text!r}", p.what, p.remedy) for p in error.problems
            ]
            continue
        if where == "measures" and parsed[0] in written:
            problems.append(
                Problem(where, f"{text} occurs twice", "name each measure once")
            )
        written |= {parsed[0]} if where == "measures" else set()
        named += parsed[:1] if where == "primary" else parsed
        if where == "measures" and (parsed[0].cutoff or 0) > experiment.depth:
            what = f"{text} needs depth {parsed[0].cutoff} or more; depth is {experiment.depth}"
            problems.append(Problem(where, what, "raise depth"))
    primary, others = (named[0], named[1:]) if named else (None, [])
    if not problems and primary not in others:
        known = ", ".join(experiment.measures)
        problems.append(
            Problem(
                "primary",
                f"{experiment.primary} is not among the measures",
                f"they are {known}",
            )
        )
    if experiment.judge is None and (
        claimed := [str(one) for one in others if one.uses_claims]
    ):
        remedy = (
            'say who judges whether a text entails a claim: [judge] kind = "lexical"'
        )
        problems.append(
            Problem(
                "judge", f"is missing: {claimed[0]} needs verdicts on claims", remedy
            )
        )
    if problems or primary is None:
        raise InputError(problems)
    return MeasuredExperiment(experiment, tuple(dict.fromkeys(others)), primary)


class MeasuredExperiment(NamedTuple):
    """An experiment with its measures parsed."""

    experiment: Experiment
    measures: tuple[Measure, ...]
    """What is measured, `[relevance]` filled in; each once."""
    primary: Measure
    """The measure that decides, one of them."""

"""The command `gate`."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from harness.console import options as shared
from harness.console.completion import complete_results_retrievers
from harness.console.forest import leaderboard_in_letters
from harness.console.options import refuse_two_formats
from harness.console.output import (
    print_json,
    print_lines,
    print_warnings,
    rendered_text,
)
from retrievers.errors import InputError, NotConfirmed, Problem
from retrievers.files.text_files import explain_write_errors, open_text_file

if TYPE_CHECKING:
    from harness.evaluation.gate import Gate
    from harness.records import Results

SUMMARY_VARIABLE = "GITHUB_STEP_SUMMARY"
"""The environment variable that names the file of the job's summary."""


def annotate_workflow(
    results: Results, sentence: str, *, passed: bool, which: str
) -> None:
    """Print the annotation, and add the paired leaderboard to the summary of the job; outside of one, print it, too.

    Args:
        results: whose leaderboard is shown.
        sentence: what the gate found.
        passed: whether it lets the change pass.
        which: run it speaks of.

    Raises:
        InputError: the summary cannot be written.
    """
    outcome = "passed" if passed else "failed"
    print_lines(
        f"::{'notice' if passed else 'error'} title=Retrieval gate {outcome}::{_escaped(f'{sentence}; {which}')}"
    )
    text = f"### Retrieval gate {outcome}\n\n{sentence}.\n\n```text\n{_in_letters(results)}\n```\n\n{which}\n"
    place = os.environ.get(SUMMARY_VARIABLE, "")
    if not place:
        print_lines(*text.splitlines())
        return
    with explain_write_errors(Path(place)), open_text_file(place, "a") as file:
        file.write(text)


def _in_letters(results: Results) -> str:
    from harness.evaluation.evaluation_file import read_or_evaluate

    # A fence in a name would end the block.
    return rendered_text(
        leaderboard_in_letters, read_or_evaluate(results).board
    ).replace("`", "'")


def _escaped(text: str) -> str:
    r"""A message of a workflow command on one line.

    >>> _escaped("97 %\nof all")
    '97 %25%0Aof all'
    """
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


BaselineInUse = Annotated[
    str,
    typer.Option(
        help="The retriever in use.", autocompletion=complete_results_retrievers
    ),
]
CHALLENGER_HELP = "The retriever that would replace it."
Challenger = Annotated[
    str, typer.Option(help=CHALLENGER_HELP, autocompletion=complete_results_retrievers)
]
MARGINS_HELP = "Largest acceptable loss of the primary measure's mean; for several data sets, one for each."
GateMargins = Annotated[
    list[str], typer.Option(metavar="[SET=]NUMBER", help=MARGINS_HELP)
]
EARLIER_RESULTS_HELP = (
    "A folder of earlier results that holds the baseline; default: RESULTS."
)
EarlierResults = Annotated[
    Path | None, typer.Option("--from", metavar="FOLDER", help=EARLIER_RESULTS_HELP)
]
GATE_FORMAT_HELP = "github writes an annotation and the summary of the job."
GateFormat = Annotated[
    Literal["text", "github"], typer.Option("--format", help=GATE_FORMAT_HELP)
]


def gate(
    results: shared.ResultsFolder,
    baseline: BaselineInUse,
    challenger: Challenger,
    margin: GateMargins,
    source: EarlierResults = None,
    corpus_changed: shared.CorpusChanged = False,
    form: GateFormat = "text",
    as_json: shared.JsonOutput = False,
) -> None:
    """Exit 0 if the challenger is shown to lose less than MARGIN to the baseline; otherwise 1.

    A challenger that loses the whole margin passes in up to 8 % of cases.
    """
    from harness import records
    from harness.evaluation.gate import (
        GateArm,
        gate_retrievers,
        gate_sets,
        shared_gate_queries,
    )
    from harness.records.data_sets_csv import holds_sets
    from harness.scoring.grades import people_judged
    from harness.wording.verdicts import gate_cells, gate_sentence

    refuse_two_formats(form, as_json=as_json)
    margins = parse_margins(margin)
    if holds_sets(results):
        shared.refuse_options(
            {"--from": source, "--format github": form == "github"},
            "is for the results of one data set",
        )
        _print_gates(gate_sets(results, challenger, baseline, margins), as_json=as_json)
        return
    shared.refuse_options(
        {"--margin": [*margins] != [""]},
        "names data sets, and there is one",
        "give a number, such as 0.02",
    )
    read = records.read_results(results)
    earlier = read if source is None else records.read_results(source)
    for one in (read, earlier):
        if not people_judged(
            {query: labelled.labels for query, labelled in one.queries.items()}
        ):
            raise NotConfirmed(
                "gate failed: no person judged these queries, and a model's labels alone show nothing"
            )
    states = {"--corpus-changed": corpus_changed and source is None}
    shared.refuse_options(states, "is for two folders", "name the earlier by --from")
    sides = GateArm(read, challenger), GateArm(earlier, baseline)
    verdict = gate_retrievers(*sides, margin=margins[""], corpus_changed=corpus_changed)
    note = (
        ""
        if source is None
        else shared_gate_queries(
            read, earlier, corpus_changed=corpus_changed
        ).sentence()
    )
    which = (
        read.run_label
        if source is None
        else f"{read.run_label}, against the {earlier.run_label}"
    )
    if as_json:
        print_json(
            **gate_cells(verdict), which=which, **({"note": note} if note else {})
        )
    elif note:
        print_warnings(note)
    if form == "github":
        annotate_workflow(
            read, gate_sentence(verdict), passed=verdict.passed, which=which
        )
    if not verdict.passed:
        raise NotConfirmed(f"gate failed: {gate_sentence(verdict)}; {which}")
    if not as_json and form == "text":
        print_lines(f"gate passed: {gate_sentence(verdict)}; {which}")


def _print_gates(gates: Mapping[str, Gate], *, as_json: bool) -> None:
    """Print the gate of each data set; raises NotShown unless all of them let the challenger pass."""
    from harness.wording.verdicts import gate_cells, gate_sentence

    passed = all(one.passed for one in gates.values())
    told = [f"{name}: {gate_sentence(one)}" for name, one in gates.items()]
    if as_json:
        print_json(
            passed=passed,
            data_sets={name: gate_cells(one) for name, one in gates.items()},
        )
    if not passed:
        raise NotConfirmed("\n".join(["gate failed:", *told]))
    if not as_json:
        print_lines("gate passed:", *told)


def parse_margins(texts: Sequence[str]) -> dict[str, float]:
    """Read margins: a number for all data sets, or NAME=NUMBER for one.

    >>> parse_margins(["0.02", "law=0.05"])
    {'': 0.02, 'law': 0.05}
    """
    margins: dict[str, float] = {}
    for one in texts:
        name, _, number = one.rpartition("=")
        try:
            margins[name] = float(number)
        except ValueError:
            what = f"{one!r} is not a number"
            raise InputError(
                Problem("--margin", what, "such as 0.02, or of one data set: law=0.05")
            ) from None
    return margins

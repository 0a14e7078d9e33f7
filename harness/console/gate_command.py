"""The command `gate`."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

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
    results: Results, sentence: str, *, passed: bool, run_label: str
) -> None:
    """Print the annotation, and add the paired leaderboard to the summary of the job.

    Outside of a job, the leaderboard is printed.

    Args:
        results: with the leaderboard.
        sentence: the result of the gate.
        passed: whether the change passes.
        run_label: the run that the sentence is about.

    Raises:
        InputError: the summary cannot be written.
    """
    outcome = "passed" if passed else "failed"
    level = "notice" if passed else "error"
    message = _escape_command(f"{sentence}; {run_label}")
    print_lines(f"::{level} title=Retrieval gate {outcome}::{message}")
    text = (
        f"### Retrieval gate {outcome}\n\n{sentence}.\n\n"
        f"```text\n{_leaderboard_text(results)}\n```\n\n{run_label}\n"
    )
    path = os.environ.get(SUMMARY_VARIABLE, "")
    if not path:
        print_lines(*text.splitlines())
        return
    with explain_write_errors(Path(path)), open_text_file(path, "a") as file:
        file.write(text)


def _leaderboard_text(results: Results) -> str:
    from harness.evaluation.evaluation_file import read_or_evaluate

    board = read_or_evaluate(results).board
    # A fence in a name would end the block.
    return rendered_text(leaderboard_in_letters, board).replace("`", "'")


def _escape_command(text: str) -> str:
    r"""A message of a workflow command on one line.

    >>> _escape_command("97 %\nof all")
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
MARGINS_HELP = (
    "Largest acceptable loss of the primary measure's mean; for several "
    "data sets, one for each."
)
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
    """Exit 0 if the challenger is shown to lose less than MARGIN to the baseline;
    otherwise 1.

    A challenger that loses the whole margin passes in up to 8 % of cases.
    """  # noqa: D205
    from harness import records
    from harness.evaluation.gate import gate_sets
    from harness.records.data_sets_csv import holds_sets

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
    new = records.read_results(results)
    earlier = new if source is None else records.read_results(source)
    for stored in (new, earlier):
        _require_people(stored)
    states = {"--corpus-changed": corpus_changed and source is None}
    shared.refuse_options(states, "is for two folders", "name the earlier by --from")
    _print_gate(
        GateRequest(
            new,
            challenger,
            earlier,
            baseline,
            margins[""],
            corpus_changed=corpus_changed,
        ),
        form=form,
        as_json=as_json,
    )


def _require_people(results: Results) -> None:
    """Refuse results that only a model judged."""
    from harness.scoring.grades import people_judged

    labels = {
        query_id: labelled.labels for query_id, labelled in results.queries.items()
    }
    if not people_judged(labels):
        raise NotConfirmed(
            "gate failed: no person judged these queries, "
            "and a model's labels alone show nothing"
        )


class GateRequest(NamedTuple):
    """The question of a gate for one data set."""

    results: Results
    challenger: str
    earlier: Results
    """The results of the baseline; may be the same results."""
    baseline: str
    margin: float
    corpus_changed: bool


def _print_gate(
    request: GateRequest, *, form: Literal["text", "github"], as_json: bool
) -> None:
    """Print the gate of one data set; raises NotConfirmed if the challenger fails."""
    from harness.evaluation.gate import GateArm, gate_retrievers, shared_gate_queries
    from harness.wording.verdicts import gate_cells, gate_sentence

    results = request.results
    earlier = request.earlier
    verdict = gate_retrievers(
        GateArm(results, request.challenger),
        GateArm(earlier, request.baseline),
        margin=request.margin,
        corpus_changed=request.corpus_changed,
    )
    note = ""
    run_label = results.run_label
    if earlier is not results:
        note = shared_gate_queries(
            results, earlier, corpus_changed=request.corpus_changed
        ).sentence()
        run_label = f"{run_label}, against the {earlier.run_label}"
    sentence = gate_sentence(verdict)
    if as_json:
        optional_note = {"note": note} if note else {}
        print_json(**gate_cells(verdict), which=run_label, **optional_note)
    elif note:
        print_warnings(note)
    if form == "github":
        annotate_workflow(results, sentence, passed=verdict.passed, run_label=run_label)
    if not verdict.passed:
        raise NotConfirmed(f"gate failed: {sentence}; {run_label}")
    if not as_json and form == "text":
        print_lines(f"gate passed: {sentence}; {run_label}")


def _print_gates(gates: Mapping[str, Gate], *, as_json: bool) -> None:
    """Print the gate of each data set.

    Raises:
        NotConfirmed: the challenger fails on a data set.
    """
    from harness.wording.verdicts import gate_cells, gate_sentence

    passed = all(gate.passed for gate in gates.values())
    sentences = [
        f"{set_name}: {gate_sentence(gate)}" for set_name, gate in gates.items()
    ]
    if as_json:
        cells = {set_name: gate_cells(gate) for set_name, gate in gates.items()}
        print_json(passed=passed, data_sets=cells)
    if not passed:
        raise NotConfirmed("\n".join(["gate failed:", *sentences]))
    if not as_json:
        print_lines("gate passed:", *sentences)


def parse_margins(texts: Sequence[str]) -> dict[str, float]:
    """Read margins: a number for all data sets, or NAME=NUMBER for one.

    >>> parse_margins(["0.02", "law=0.05"])
    {'': 0.02, 'law': 0.05}
    """
    margins: dict[str, float] = {}
    for text in texts:
        set_name, _, number = text.rpartition("=")
        try:
            margins[set_name] = float(number)
        except ValueError:
            problem = f"{text!r} is not a number"
            remedy = "such as 0.02, or of one data set: law=0.05"
            raise InputError(Problem("--margin", problem, remedy)) from None
    return margins

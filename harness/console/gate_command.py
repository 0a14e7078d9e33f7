"""The command `gate`.

It reads the arguments and prints; `evaluation.gate` decides, and `wording.verdicts`
says it. With --format github the result is an annotation of a job, and what was
compared goes to the job's summary.
"""

from __future__ import annotations

import os
import re
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
from harness.english import count_queries, with_minus_sign
from retrievers.errors import InputError, NotConfirmed, Problem
from retrievers.files.text_files import explain_write_errors, open_text_file

if TYPE_CHECKING:
    from harness.evaluation.gate_verdict import Gate
    from harness.records import Results

SUMMARY_VARIABLE = "GITHUB_STEP_SUMMARY"
"""The environment variable that names the file of the job's summary."""


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
    "Largest acceptable loss of the primary measure's mean: a loss that is shown to be "
    "smaller passes, also with --fail-if worse. For several data sets, one for each."
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
FAIL_IF_HELP = (
    "not-passed: exit 1 unless it is shown; worse: exit 1 only if it is shown worse."
)
FailIf = Annotated[
    Literal["not-passed", "worse"], typer.Option("--fail-if", help=FAIL_IF_HELP)
]


def gate(
    *,
    results: shared.ResultsFolder,
    baseline: BaselineInUse,
    challenger: Challenger,
    margin: GateMargins,
    source: EarlierResults = None,
    corpus_changed: shared.CorpusChanged = False,
    fail_if: FailIf = "not-passed",
    form: GateFormat = "text",
    as_json: shared.JsonOutput = False,
) -> None:
    """Exit 0 if the challenger is shown to lose less than MARGIN to the baseline, or
    ranks the same.

    Otherwise 1; with --fail-if worse, 1 only if it is shown to be worse, or failed. A
    challenger that loses the whole margin passes in up to 8 % of cases.
    """  # noqa: D205
    from harness import records
    from harness.evaluation.gate import RetrieversFailed, gate_sets
    from harness.records.data_sets_csv import holds_sets
    from harness.wording.verdicts import failed_gate_cells

    refuse_two_formats(form, as_json=as_json)
    margins = parse_margins(margin)
    if holds_sets(results):
        shared.refuse_options(
            {
                "--from": source,
                "--corpus-changed": corpus_changed,
                "--format github": form == "github",
            },
            "is for the results of one data set",
        )
        try:
            gates = gate_sets(results, challenger, baseline, margins)
        except RetrieversFailed as failure:
            if as_json:
                print_json(**failed_gate_cells(str(failure)))
            else:
                print_lines(str(failure))
            raise typer.Exit(failure.exit_code) from None
        _print_gates(gates, fail_if=fail_if, as_json=as_json)
        return
    shared.refuse_options(
        {"--margin": [*margins] != [""]},
        "names data sets, and there is one",
        "give a number, such as 0.02",
    )
    new = records.read_results(results)
    earlier = new if source is None else records.read_results(source)
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
        fail_if=fail_if,
        form=form,
        as_json=as_json,
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


def _fails(gate: Gate, fail_if: Literal["not-passed", "worse"]) -> bool:
    """Whether a gate's outcome is an error of the command."""
    from harness.evaluation.gate_verdict import GateOutcome

    if fail_if == "worse":
        return gate.outcome is GateOutcome.WORSE
    return not gate.passed


def _print_gate(
    request: GateRequest,
    *,
    fail_if: Literal["not-passed", "worse"],
    form: Literal["text", "github"],
    as_json: bool,
) -> None:
    """Print the gate of one data set.

    Raises:
        typer.Exit: the outcome is one that fails.
    """
    from harness.evaluation.gate import RetrieversFailed
    from harness.wording.verdicts import gate_cells, gate_sentence

    results = request.results
    earlier = request.earlier
    run_label = results.run_label
    if earlier is not results:
        run_label = f"{run_label}, against the {earlier.run_label}"
    try:
        verdict = _decide(request)
    except RetrieversFailed as failure:
        _print_failure(str(failure), run_label, form=form, as_json=as_json)
        raise typer.Exit(failure.exit_code) from None
    note = _shared_note(request)
    sentence = gate_sentence(verdict)
    fails = _fails(verdict, fail_if)
    if as_json:
        optional_note = {"note": note} if note else {}
        print_json(**gate_cells(verdict), which=run_label, **optional_note)
    elif note:
        print_warnings(note)
    if form == "github":
        _annotate_workflow(
            _summary_table(request, verdict),
            sentence,
            fails=fails,
            outcome=verdict.outcome.value,
            run_label=run_label,
        )
    elif not as_json:
        print_lines(f"{sentence}; {run_label}")
    if fails:
        raise typer.Exit(NotConfirmed.exit_code)


def _decide(request: GateRequest) -> Gate:
    from harness.evaluation.gate import GateArm, gate_retrievers

    return gate_retrievers(
        GateArm(request.results, request.challenger),
        GateArm(request.earlier, request.baseline),
        margin=request.margin,
        corpus_changed=request.corpus_changed,
    )


def _print_failure(
    sentence: str,
    run_label: str,
    *,
    outcome: str = "failed",
    fails: bool = True,
    form: Literal["text", "github"],
    as_json: bool,
) -> None:
    """Print why nothing was tested: a retriever failed, or no person judged.

    Args:
        sentence: why.
        run_label: the run that the sentence is about.
        outcome: the word of the result.
        fails: whether it is an error of the job.
        form: of the output.
        as_json: whether one object is printed.
    """
    from harness.wording.verdicts import failed_gate_cells

    if as_json:
        print_json(**failed_gate_cells(sentence, outcome), which=run_label)
    elif form == "text":
        print_lines(f"{sentence}; {run_label}")
    else:
        _annotate_workflow(
            "", sentence, fails=fails, outcome=outcome, run_label=run_label
        )


def _shared_note(request: GateRequest) -> str:
    """Return which queries of two folders are compared; "" for one folder."""
    from harness.console.corpus_change_text import state_queries_sentence
    from harness.evaluation.gate import shared_gate_queries
    from harness.scoring.states import find_state_queries

    if request.earlier is request.results:
        return ""
    if request.corpus_changed:
        queries = find_state_queries(request.earlier, request.results)
        return state_queries_sentence(queries)
    return shared_gate_queries(request.results, request.earlier).sentence()


def _annotate_workflow(
    table: str, sentence: str, *, fails: bool, outcome: str, run_label: str
) -> None:
    """Print an annotation for GitHub, and add what is compared to the job's summary.

    Outside of a job, the summary is printed.

    Args:
        table: what is compared, as lines of Markdown; "" if nothing is.
        sentence: the result of the gate.
        fails: whether the job fails.
        outcome: the word of the result, such as "worse".
        run_label: the run that the sentence is about.

    Raises:
        InputError: the summary cannot be written.
    """
    level = "error" if fails else "notice"
    message = _escape_command(f"{sentence}; {run_label}")
    print_lines(f"::{level} title=Retrieval gate: {outcome}::{message}")
    paragraphs = [f"### Retrieval gate: {outcome}", f"{sentence}.", table, run_label]
    text = "\n\n".join(filter(None, paragraphs)) + "\n"
    path = os.environ.get(SUMMARY_VARIABLE, "")
    if not path:
        print_lines(*text.splitlines())
        return
    with explain_write_errors(Path(path)), open_text_file(path, "a") as file:
        file.write(text)


def _summary_table(request: GateRequest, verdict: Gate) -> str:
    """Return the leaderboard; for two folders, the means before and after.

    As lines of Markdown.
    """
    if request.earlier is not request.results:
        return _change_table(request, verdict)
    from harness.evaluation.evaluation_file import read_or_evaluate

    board = read_or_evaluate(request.results).board
    # A fence in a name would end the block.
    text = rendered_text(leaderboard_in_letters, board).replace("`", "'")
    return f"```text\n{text}\n```"


def _change_table(request: GateRequest, verdict: Gate) -> str:
    """Return the means of both folders with their difference, in Markdown."""
    measure = request.results.manifest.resolved.primary
    before = "before"
    after = "after"
    first_cell = _escape_cell(request.challenger)
    if request.baseline != request.challenger:
        before = f"before: {_escape_cell(request.baseline)}"
        after = f"after: {first_cell}"
        first_cell = ""
    difference = with_minus_sign(f"{verdict.mean_difference:+z.4f}")
    cells = (
        first_cell,
        f"{verdict.baseline_mean:.4f}",
        f"{verdict.challenger_mean:.4f}",
        difference,
    )
    queries = count_queries(verdict.n)
    return "\n".join(
        (
            f"| {measure}, {queries} | {before} | {after} | difference |",
            "| --- | ---: | ---: | ---: |",
            f"| {' | '.join(cells)} |",
        )
    )


def _escape_cell(name: str) -> str:
    r"""Return a retriever's name as text of a cell.

    >>> _escape_cell("a|b[2]")
    'a\\|b\\[2]'
    """
    return re.sub(r"([\\`*_\[|<])", r"\\\1", name)


def _escape_command(text: str) -> str:
    r"""A message of a workflow command on one line.

    >>> _escape_command("97 %\nof all")
    '97 %25%0Aof all'
    """
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _print_gates(
    gates: Mapping[str, Gate],
    *,
    fail_if: Literal["not-passed", "worse"],
    as_json: bool,
) -> None:
    """Print the gate of each data set.

    Raises:
        typer.Exit: the outcome on a data set is one that fails.
    """
    from harness.wording.verdicts import gate_cells, gate_sentence

    sentences = [
        f"{set_name}: {gate_sentence(gate)}" for set_name, gate in gates.items()
    ]
    if as_json:
        cells = {set_name: gate_cells(gate) for set_name, gate in gates.items()}
        passed = all(gate.passed for gate in gates.values())
        print_json(passed=passed, data_sets=cells)
    fails = any(_fails(gate, fail_if) for gate in gates.values())
    if not as_json:
        print_lines(*(["gate failed:"] if fails else []), *sentences)
    if fails:
        raise typer.Exit(NotConfirmed.exit_code)


def parse_margins(texts: Sequence[str]) -> dict[str, float]:
    """Read margins: a number for all data sets, or NAME=NUMBER for one.

    Returns:
        Data set -> its margin; "" for those that are not named. If one is given twice,
        the last counts.

    Raises:
        InputError: a margin is not a number; `gate_scores` checks its range.

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

"""The command on a folder without labels."""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

from harness.console import options as shared
from harness.console.messages import show_tracebacks
from harness.console.output import open_console, print_json, print_lines, print_warnings
from harness.console.run_commands import RUN_STOPPED_MESSAGE, Interrupted

if TYPE_CHECKING:
    from harness.running.options import RunOptions
    from harness.without_labels.trial import JudgedTrial, TitlesTrial, TrialInputs

DocumentsFolder = Annotated[
    Path,
    typer.Argument(metavar="FOLDER", help="Documents: a folder, an archive, a table."),
]
QuestionsFile = Annotated[
    Path | None,
    typer.Argument(metavar="QUESTIONS", help="Text with one on each line, or a table."),
]
QuestionTexts = Annotated[
    list[str] | None,
    typer.Option("--question", "-q", help="A question; may be repeated."),
]
ModelNames = Annotated[
    list[str] | None,
    typer.Option(
        "--model",
        metavar="NAME",
        help="One more model: of the hub, or KIND:NAME such as openai:NAME.",
    ),
]
ExportedLabels = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="The labels that the page exported."),
]


def try_(
    *,
    folder: DocumentsFolder,
    questions: QuestionsFile = None,
    texts: QuestionTexts = None,
    model: ModelNames = None,
    labels: ExportedLabels = None,
    max_cost: shared.MaxCost = None,
    debug: shared.DebugOption = False,
    quiet: shared.QuietOption = False,
    as_json: shared.JsonOutput = False,
) -> None:
    """From documents without labels to a verdict: rank, judge on a page, decide."""
    if debug:
        show_tracebacks()
    try:
        from harness.console.progress import Progress
        from harness.running.options import RunOptions
        from harness.without_labels.experiment import parse_model
        from harness.without_labels.questions import as_questions, read_questions
        from harness.without_labels.trial import TrialInputs

        new_questions = [] if questions is None else read_questions(questions)
        inputs = TrialInputs(
            [*new_questions, *as_questions(texts or ())],
            [parse_model(name) for name in model or ()],
            None if labels is None else labels.expanduser(),
        )
        with Progress(open_console(stderr=True), quiet=quiet) as progress:
            options = RunOptions(max_cost=max_cost, on_progress=progress.watch)
            trial = _run(folder, inputs, options)
    except KeyboardInterrupt:
        raise Interrupted(RUN_STOPPED_MESSAGE) from None
    _print_trial(trial, quiet=quiet, as_json=as_json)


def _run(
    folder: Path, inputs: TrialInputs, options: RunOptions
) -> JudgedTrial | TitlesTrial:
    from harness.without_labels.layout import try_folder
    from harness.without_labels.trial import run_trial

    command = f"harness try {quote(folder.as_posix())}"
    labels_command = f"{command} --labels ~/Downloads/judgments.jsonl"
    return run_trial(try_folder(folder), inputs, options, labels_command)


def _print_trial(
    trial: JudgedTrial | TitlesTrial, *, quiet: bool, as_json: bool
) -> None:
    """Print a trial.

    Raises:
        BackendError: a retriever failed; the others are printed before.
    """
    from harness.console import try_text
    from harness.console.results_text import print_results
    from harness.without_labels.trial import JudgedTrial
    from harness.wording.failures import failure_lines
    from retrievers.errors import BackendError

    if as_json:
        print_json(**try_text.trial_object(trial))
    elif not quiet:
        print_lines(*try_text.found_lines(trial))
        if isinstance(trial, JudgedTrial):
            if trial.results.scored:
                print_results(trial.results, quiet=False, as_json=False)
            print_lines(*try_text.judged_lines(trial))
        else:
            print_lines(*try_text.titles_lines(trial))
        print_warnings(*try_text.model_lines(trial))
    failed = trial.results.manifest.failed
    if failed:
        lines = failure_lines(failed)
        experiment = trial.folder.experiment.as_posix()
        lines.append(f"to go on without it, remove its block from {experiment}")
        raise BackendError("\n".join(lines))

"""The commands on answers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from harness.console import options as shared
from harness.console.answers_text import (
    answer_count_lines,
    judging_forecast_sentence,
)
from harness.console.output import print_result
from harness.console.results_text import print_scores

answers_app = shared.command_group(
    "Judge and score the answers of a generator: claims, verdicts, measures."
)

JUDGED_EXPERIMENT = typer.Argument(
    metavar="EXPERIMENT", help="An experiment file, for its data set and [judge]."
)
JudgedExperimentFile = Annotated[Path, JUDGED_EXPERIMENT]
ANSWERS_ARGUMENT = typer.Argument(
    metavar="ANSWERS",
    help="A folder with <system>.jsonl for each system, one answer a line.",
)
AnswersFolder = Annotated[Path, ANSWERS_ARGUMENT]
TOKENIZER_OPTION = typer.Option(
    "--tokenizer", help="Tokenizer of BLEU and ROUGE: 13a, char, ja-mecab, …"
)
TokenizerOption = Annotated[str | None, TOKENIZER_OPTION]
ANSWER_MEASURE_OPTION = typer.Option(
    "--measure", "-m", help="A measure; may be repeated, the first decides."
)
AnswerMeasureNames = Annotated[list[str] | None, ANSWER_MEASURE_OPTION]
BaselineSystem = Annotated[
    str | None,
    typer.Option(help="Compare every other system with this one; default: all pairs."),
]
ANSWERS_PAGE_OPTION = typer.Option(
    "--report",
    help="Write a page that shows where each claim was lost: retriever or generator.",
)
AnswersPage = Annotated[Path | None, ANSWERS_PAGE_OPTION]


@answers_app.command("check")
def check_answers_command(
    experiment: JudgedExperimentFile,
    folder: AnswersFolder,
    no_code: shared.NoCode = False,
    as_json: shared.JsonOutput = False,
) -> None:
    """List the problems in files of answers, and what will be counted."""
    from harness.answers.inputs import count_answers, read_answer_inputs

    inputs = read_answer_inputs(experiment, folder, allow_code=not no_code)
    systems = count_answers(inputs)
    print_result(
        answer_count_lines(inputs, systems),
        as_json=as_json,
        queries=len(inputs.queries),
        without_reference=inputs.ignored_queries,
        systems=systems,
    )


@answers_app.command("judge")
def judge_answers_command(
    *,
    experiment: JudgedExperimentFile,
    folder: AnswersFolder,
    max_cost: shared.MaxCost = None,
    plan: shared.PlanOnly = False,
    no_code: shared.NoCode = False,
    as_json: shared.JsonOutput = False,
) -> None:
    """Ask the judge for every verdict that the measures need;
    nothing is judged twice.
    """  # noqa: D205
    from harness.answers.forecast import forecast_judging
    from harness.answers.judge_folder import judge_answers_folder

    if plan:
        forecast = forecast_judging(experiment, folder, allow_code=not no_code)
        print_result(
            [judging_forecast_sentence(forecast)], as_json=as_json, plan=forecast
        )
        return
    judged = judge_answers_folder(
        experiment, folder, max_cost=max_cost, allow_code=not no_code
    )
    print_result(judged.lines(), as_json=as_json, **judged._asdict())


@answers_app.command("score")
def score_answers_command(
    *,
    experiment: JudgedExperimentFile,
    folder: AnswersFolder,
    measure: AnswerMeasureNames = None,
    baseline: BaselineSystem = None,
    tokenizer: TokenizerOption = None,
    report: AnswersPage = None,
    no_code: shared.NoCode = False,
    as_json: shared.JsonOutput = False,
) -> None:
    """Compute every measure from the verdicts, and compare the systems: scores.csv,
    summary.csv, comparisons.csv.
    """  # noqa: D205
    from harness.answers.score import AnswerScoringOptions, score_answers_folder

    options = AnswerScoringOptions(tuple(measure or ()), baseline, tokenizer)
    scored = score_answers_folder(experiment, folder, options, allow_code=not no_code)
    print_scores(scored.scores, scored.evaluation, scored.notes, as_json=as_json)
    if report is not None:
        from harness.answers.claim_fates import claims_section
        from harness.report.scores_page import write_scores_page

        section = claims_section(
            scored.traced_answers, scored.scores, scored.evaluation.settings.level
        )
        write_scores_page(
            report,
            folder.resolve().name,
            scored.evaluation,
            scored.notes,
            section=section,
        )

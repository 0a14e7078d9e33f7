"""The commands for answers: check, judge, score."""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import Annotated

import typer

from harness.console.printing import print_result, print_scores
from harness.console.shared_options import HelpGroup, Json, MaxCost, NoCode

app = typer.Typer(
    cls=HelpGroup,
    help="Judge and score the answers of a generator: claims, verdicts, measures.",
    rich_markup_mode=None,
)

ExperimentFile = Annotated[
    Path, typer.Argument(metavar="EXPERIMENT", help="An experiment file, for its data set and [judge].")
]
SystemFolder = Annotated[
    Path, typer.Argument(metavar="ANSWERS", help="A folder with <system>.jsonl for each system, one answer a line.")
]
Repeat = Annotated[
    int, typer.Option(min=1, max=2, help="2 asks for every verdict twice, to measure the judge's noise.")
]
PlanOnly = Annotated[bool, typer.Option("--plan", help="Only print what a chat model would be asked; nothing is sent.")]
TokenizerOption = Annotated[
    str | None, typer.Option("--tokenizer", help="Tokenizer of BLEU and ROUGE: 13a, char, ja-mecab, …")
]
AnswerMeasures = Annotated[
    list[str] | None, typer.Option("--measure", "-m", help="A measure; may be repeated, the first decides.")
]
Baseline = Annotated[str | None, typer.Option(help="Compare every other system with this one; default: all pairs.")]
Page = Annotated[
    Path | None,
    typer.Option("--report", help="Write a page that shows where each claim was lost: retriever or generator."),
]


@app.command("check")
def check_answers(
    experiment: ExperimentFile, folder: SystemFolder, no_code: NoCode = False, as_json: Json = False
) -> None:
    """List every problem in files of answers, and what will be counted."""
    from harness.answers.work import answer_counts, lines_of, read_inputs

    inputs = read_inputs(experiment, folder, code=not no_code)
    values = {"queries": len(inputs.queries), "without_reference": inputs.bare, "systems": answer_counts(inputs)}
    print_result(lines_of(inputs), as_json=as_json, **values)


@app.command("judge")
def judge_folder(
    experiment: ExperimentFile,
    folder: SystemFolder,
    repeat: Repeat = 1,
    max_cost: MaxCost = None,
    plan: PlanOnly = False,
    no_code: NoCode = False,
    as_json: Json = False,
) -> None:
    """Ask the judge for every verdict that the measures need; nothing is judged twice."""
    from harness.answers.work import forecast_judging, judge

    if plan:
        forecast = forecast_judging(experiment, folder, rounds=repeat, code=not no_code)
        print_result([forecast.sentence()], as_json=as_json, plan=forecast)
        return
    judged = judge(experiment, folder, rounds=repeat, max_cost=max_cost, code=not no_code)
    print_result(judged.lines(), as_json=as_json, **judged._asdict())


@app.command("sample")
def sample_verdicts(
    folder: Annotated[
        Path, typer.Argument(metavar="RESULTS|ANSWERS", help="A results folder, or a folder of answers.")
    ],
    sample: Annotated[
        int, typer.Option(min=1, help="Number of queries, drawn at random; all their pairs are judged.")
    ] = 30,
    seed: Annotated[int, typer.Option(help="Seed of the sample.")] = 0,
    experiment: Annotated[
        Path | None, typer.Option(help="The experiment file; needed for a folder of answers.")
    ] = None,
    output: Annotated[Path, typer.Option(help="Page to write.")] = Path("verdicts.html"),
    no_code: NoCode = False,
    as_json: Json = False,
) -> None:
    """Write a page on which a person judges what the judge has judged for some queries, without seeing its verdicts."""
    from harness.english import count
    from harness.labels.judging_page import twice_sentence, write_page
    from harness.labels.verdict_sample import CHOICES, pairs_of_answers, pairs_of_results, verdict_pool

    pairs = pairs_of_results(folder) if experiment is None else pairs_of_answers(experiment, folder, code=not no_code)
    pool = verdict_pool(pairs, sample, seed)
    write_page(output, pool, title="Judge claims", choices=CHOICES, asked="Claim")
    of = f"claims and passages of {sample:,} of {count(pool.drawn.population)}"
    lines = [
        f"{output}: {pool.pairs:,} {of}, {twice_sentence(pool)}",
        f"it exports judgments.jsonl; then: harness answers merge judgments.jsonl --into {quote(str(folder))}",
    ]
    print_result(lines, as_json=as_json, path=str(output), digest=pool.digest, pairs=pool.pairs,
                 **pool.drawn.model_dump())  # fmt: skip


@app.command("merge")
def merge_people(
    paths: Annotated[list[Path], typer.Argument(metavar="JUDGMENTS", help="Files that the page exported.")],
    into: Annotated[Path, typer.Option(metavar="RESULTS|ANSWERS", help="The folder that the sample was drawn from.")],
    as_json: Json = False,
) -> None:
    """Write people's verdicts beside the judge's; all or nothing. The report and `answers score` then compare them."""
    from harness.english import counted
    from harness.labels.verdict_sample import merge_verdicts
    from harness.records import FOLDER
    from retrievers.opening import locked, writing

    of_a_run = (into / "manifest.json").is_file()
    place, file = (into / FOLDER, into.resolve()) if of_a_run else (into, into / "verdicts.jsonl")
    with writing(file):
        file.parent.stat()  # a lock would make the folder
        # What a run puts in its place would not hold what is merged into the folder of before.
        alone = locked(file, "is written by another command", "wait for it, and merge again")
    with alone:
        people = merge_verdicts(paths, place)
    following = f"report {quote(str(into))}" if place != into else "answers score EXPERIMENT ANSWERS"
    lines = [f"{place}: {counted(number, 'verdict')} of {person}" for person, number in people.items()]
    print_result([*lines, f"next: harness {following}"], as_json=as_json, path=str(place), people=people)


@app.command("score")
def score_folder(
    experiment: ExperimentFile,
    folder: SystemFolder,
    measure: AnswerMeasures = None,
    baseline: Baseline = None,
    tokenizer: TokenizerOption = None,
    report: Page = None,
    no_code: NoCode = False,
    as_json: Json = False,
) -> None:
    """Compute every measure from the verdicts, and compare the systems: scores.csv, summary.csv, comparisons.csv."""
    from harness.answers.work import AnswerOptions, score

    options = AnswerOptions(tuple(measure or ()), baseline, tokenizer)
    scored = score(experiment, folder, options, code=not no_code)
    print_scores(scored.evaluation, scored.notes, as_json=as_json)
    if report is not None:
        from harness.report.other_pages import write_scores

        write_scores(report, folder.resolve().name, scored.evaluation, scored.notes, scored.traced)

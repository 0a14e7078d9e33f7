"""Arguments and options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from harness.console import completion

ExperimentFile = Annotated[Path, typer.Argument(metavar="EXPERIMENT", help="An experiment file (TOML).")]
Folder = Annotated[Path, typer.Argument(metavar="RESULTS", help="A results folder.")]
Qrels = Annotated[Path, typer.Argument(metavar="QRELS|RESULTS", help="TREC judgments, or a results folder alone.")]
QrelsOrFolders = Annotated[Path, typer.Argument(metavar="QRELS|RESULTS", help="TREC judgments, or a results folder.")]
Runs = Annotated[list[Path] | None, typer.Argument(metavar="RUN", help="TREC runs, plain or gzip.")]
RunsOrFolders = Annotated[
    list[Path] | None, typer.Argument(metavar="RUN|RESULTS", help="TREC runs, plain or gzip; or more results folders.")
]
MEASURE = typer.Option("--measure", "-m", help="A measure; may be given again.", autocompletion=completion.measures)
Measures = Annotated[list[str] | None, MEASURE]
GradeRule = Annotated[str | None, typer.Option(help="Another grade rule for a results folder: linear, binary, …")]
Queries = Annotated[Path | None, typer.Option(help="Only these queries: a file with one id a line.")]
SKIP_NO_RELEVANT = typer.Option(
    "--skip-no-relevant", help="Leave out queries without a relevant document; else they score 0."
)
NoRelevant = Annotated[bool, SKIP_NO_RELEVANT]
INTERSECTION = typer.Option("--intersection", help="Leave out queries that a run lacks; else they score 0.")
DOUBLE = typer.Option("--double", help="Tell scores apart as trec_eval 10.0, in 64 bits; else as 9.0.8, in 32.")
ONLY = typer.Option(
    help="Run this retriever, take the others' rankings; may be given again.",
    autocompletion=completion.retrievers_of_experiment,
)
Fresh = Annotated[bool, typer.Option("--fresh", help="Embed anew what the cache holds.")]
MaxCost = Annotated[float | None, typer.Option(min=0, metavar="USD", help="Dollars that may be spent.")]
Form = Annotated[Literal["table", "csv"], typer.Option("--format", help="How rows are printed.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
NO_CODE = typer.Option("--no-code", help="Refuse an experiment that names code: for files of others.")
NoCode = Annotated[bool, NO_CODE]
Quiet = Annotated[bool, typer.Option("--quiet", help="Print nothing but errors.")]

"""Options that commands share."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from typer.core import TyperGroup

from harness.console.completion import complete_experiment_retrievers, complete_measures
from retrievers.errors import InputError, Problem

if TYPE_CHECKING:
    from typer._click import Context as ClickContext
    from typer._click.formatting import HelpFormatter


ExperimentFile = Annotated[
    Path, typer.Argument(metavar="EXPERIMENT", help="An experiment file (TOML).")
]
ExperimentFiles = Annotated[
    list[Path],
    typer.Argument(
        metavar="EXPERIMENT", help="Experiment files (TOML), run one after another."
    ),
]
ResultsFolder = Annotated[
    Path, typer.Argument(metavar="RESULTS", help="A results folder.")
]
QrelsOrResults = Annotated[
    Path,
    typer.Argument(metavar="QRELS|RESULTS", help="TREC qrels, or a results folder."),
]
RunFiles = Annotated[
    list[Path] | None, typer.Argument(metavar="RUN", help="TREC runs, plain or gzip.")
]
RunsOrFolders = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="RUN|RESULTS", help="TREC runs, plain or gzip; or more results folders."
    ),
]
MEASURE_OPTION = typer.Option(
    "--measure",
    "-m",
    help="A measure; may be repeated.",
    autocompletion=complete_measures,
)
MeasureNames = Annotated[list[str] | None, MEASURE_OPTION]
GradeRuleOption = Annotated[
    str | None,
    typer.Option(
        help=(
            "Another grade rule for a results folder: linear, binary, reciprocal, "
            "explicit."
        )
    ),
]
QueryIdsFile = Annotated[
    Path | None,
    typer.Option(help="Score only these queries: a file with one id a line."),
]
SKIP_NO_RELEVANT_HELP = (
    "Leave out queries without a relevant document; by default they score 0."
)
SkipNoRelevant = Annotated[
    bool, typer.Option("--skip-no-relevant", help=SKIP_NO_RELEVANT_HELP)
]
INTERSECTION_OPTION = typer.Option(
    "--intersection",
    help="Leave out queries that a run lacks; by default they score 0.",
)
DOUBLE_OPTION = typer.Option(
    "--double",
    help="Compare scores in 64 bits, as trec_eval 10.0; by default in 32, as 9.0.8.",
)
ONLY_HELP = "Run only this retriever and keep the others' rankings; may be repeated."
ONLY_OPTION = typer.Option(
    help=ONLY_HELP, autocompletion=complete_experiment_retrievers
)
FreshOption = Annotated[
    bool, typer.Option("--fresh", help="Embed again what the cache holds.")
]
CORPUS_CHANGED_OPTION = typer.Option(
    "--corpus-changed", help="The two folders are over two states of one corpus."
)
CorpusChanged = Annotated[bool, CORPUS_CHANGED_OPTION]
MaxCost = Annotated[
    float | None,
    typer.Option(min=0, metavar="USD", help="Most dollars that may be spent."),
]
RowFormat = Annotated[
    Literal["table", "csv"], typer.Option("--format", help="How rows are printed.")
]
JsonOutput = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
ExplainOption = Annotated[
    bool,
    typer.Option(
        "--explain", help="Also print every measure, every pair, all that was found."
    ),
]
DebugOption = Annotated[
    bool, typer.Option("--debug", help="Show where in the code each failure arose.")
]
NO_CODE_OPTION = typer.Option(
    "--no-code",
    help="Refuse an experiment that names Python code, for files from others.",
)
NoCode = Annotated[bool, NO_CODE_OPTION]
QuietOption = Annotated[bool, typer.Option("--quiet", help="Print only errors.")]
PolicyFile = Annotated[
    Path | None,
    typer.Option(help="A text file that says which documents deserve which grade."),
]
TokenPrices = Annotated[
    str,
    typer.Option(
        metavar="IN,OUT", help="Dollars per million tokens of prompts and of replies."
    ),
]
BaseUrl = Annotated[
    str, typer.Option(help="The endpoint; default: OPENAI_BASE_URL, else OpenAI's.")
]
KeyName = Annotated[
    str,
    typer.Option(
        "--key", metavar="NAME", help="The environment variable that holds the key."
    ),
]
PlanOnly = Annotated[
    bool,
    typer.Option("--plan", help="Print calls, tokens and dollars, and send nothing."),
]


HELP_SENTENCE_LIMIT = 1_000
"""Characters of a command's first sentence of help: more than any has, so that none
is cut."""


def refuse_two_formats(form: str, *, as_json: bool) -> None:
    """Refuse --json with another --format than the default."""
    refuse_options(
        {"--json": as_json and form not in ("table", "text")},
        f"cannot go with --format {form}",
        "choose one of them",
    )


def refuse_options(
    options: Mapping[str, object], reason: str, remedy: str = "leave it out"
) -> None:
    """Refuse options that would change nothing.

    Args:
        options: option -> its value; false if it is not on the command line.
        reason: why it changes nothing, as the end of a sentence.
        remedy: what to do.

    Raises:
        InputError: names the first of them.
    """
    for option, value in options.items():
        if value:
            raise InputError(Problem(option, reason, remedy))


class HelpGroup(TyperGroup):
    """Lists commands by their panels, each with the first sentence of its help."""

    def format_commands(self, ctx: ClickContext, formatter: HelpFormatter) -> None:
        """Write the commands under the heading of their panel."""
        panels: dict[str, list[tuple[str, str]]] = {}
        for command_name in self.list_commands(ctx):
            command = self.get_command(ctx, command_name)
            if command is None or command.hidden:
                continue
            panel = getattr(command, "rich_help_panel", None)
            heading = panel if isinstance(panel, str) else "Commands"
            sentence = command.get_short_help_str(HELP_SENTENCE_LIMIT)
            panels.setdefault(heading, []).append((command_name, sentence))
        for heading, rows in panels.items():
            with formatter.section(heading):
                formatter.write_dl(rows)


def command_group(help_text: str) -> typer.Typer:
    """Return a command to which subcommands are added, with its own help."""
    return typer.Typer(cls=HelpGroup, help=help_text, rich_markup_mode=None)

"""Arguments and options that several commands share, what a shell completes, how a group of commands shows its help.

A shell that completes shows no message: a file that cannot be read ends in no suggestion.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple, get_args

import typer
from typer import Context
from typer.core import TyperGroup

from retrievers.errors import HarnessError, InputError, Problem

if TYPE_CHECKING:
    from typer._click import Context as ClickContext
    from typer._click.formatting import HelpFormatter

    from harness.dataset import DatasetReference


def beginning(names: Iterable[str], incomplete: str) -> list[str]:
    """The names that begin as what was typed, each once."""
    return list(dict.fromkeys(name for name in names if name.startswith(incomplete)))


def measures(incomplete: str) -> list[str]:
    """Measures."""
    from harness.measures.table import MEASURES

    return beginning(MEASURES, incomplete)


def tests(incomplete: str) -> list[str]:
    """Tests that may decide."""
    from harness.stats.settings import Test

    return beginning(get_args(Test), incomplete)


def corrections(incomplete: str) -> list[str]:
    """Corrections for several comparisons."""
    from harness.stats.settings import Correction

    return beginning(get_args(Correction), incomplete)


def fingerprints(incomplete: str) -> list[str]:
    """Models whose vectors are in the cache."""
    from retrievers.cache import Cache, default_path

    with suppress(HarnessError), Cache(default_path()) as cache:
        return beginning((one.fingerprint for one in cache.info()), incomplete)
    return []


def retrievers_of_experiment(ctx: Context, incomplete: str) -> list[str]:
    """Retrievers of the experiment file that was typed."""
    names: list[str] = []
    for path in _typed(ctx):
        with suppress(OSError, ValueError, AttributeError, TypeError, RecursionError):
            content = tomllib.loads(
                path.read_text(encoding="utf-8") if path.is_file() else ""
            )
            names += (str(block["name"]) for block in content["retrievers"])
    return beginning(names, incomplete)


def retrievers_of_results(ctx: Context, incomplete: str) -> list[str]:
    """Retrievers of the results folders that were typed."""
    from harness.records import read_manifest

    names: list[str] = []
    for path in _typed(ctx):
        with suppress(HarnessError):
            names += read_manifest(path).retrievers
    return beginning(names, incomplete)


def _typed(ctx: Context) -> Sequence[Path]:
    """The files and folders of a line that is not finished: while an option lacks its value, they are in `args`."""
    source = ctx.params.get("source")
    return [Path(path) for path in ([source] if source else ctx.args)]


ExperimentFile = Annotated[
    Path, typer.Argument(metavar="EXPERIMENT", help="An experiment file (TOML).")
]
ExperimentFiles = Annotated[
    list[Path],
    typer.Argument(
        metavar="EXPERIMENT", help="Experiment files (TOML), run one after another."
    ),
]
Folder = Annotated[Path, typer.Argument(metavar="RESULTS", help="A results folder.")]
Qrels = Annotated[
    Path,
    typer.Argument(metavar="QRELS|RESULTS", help="TREC qrels, or a results folder."),
]
Runs = Annotated[
    list[Path] | None, typer.Argument(metavar="RUN", help="TREC runs, plain or gzip.")
]
RunsOrFolders = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="RUN|RESULTS", help="TREC runs, plain or gzip; or more results folders."
    ),
]
MEASURE = typer.Option(
    "--measure", "-m", help="A measure; may be repeated.", autocompletion=measures
)
Measures = Annotated[list[str] | None, MEASURE]
GradeRule = Annotated[
    str | None,
    typer.Option(
        help="Another grade rule for a results folder: linear, binary, reciprocal, explicit."
    ),
]
Queries = Annotated[
    Path | None,
    typer.Option(help="Score only these queries: a file with one id a line."),
]
NO_RELEVANT = "Leave out queries without a relevant document; by default they score 0."
NoRelevant = Annotated[bool, typer.Option("--skip-no-relevant", help=NO_RELEVANT)]
INTERSECTION = typer.Option(
    "--intersection",
    help="Leave out queries that a run lacks; by default they score 0.",
)
DOUBLE = typer.Option(
    "--double",
    help="Compare scores in 64 bits, as trec_eval 10.0; by default in 32, as 9.0.8.",
)
ALONE = "Run only this retriever and keep the others' rankings; may be repeated."
ONLY = typer.Option(help=ALONE, autocompletion=retrievers_of_experiment)
Fresh = Annotated[
    bool, typer.Option("--fresh", help="Embed again what the cache holds.")
]
CORPUS_CHANGED = typer.Option(
    "--corpus-changed", help="The two folders are over two states of one corpus."
)
CorpusChanged = Annotated[bool, CORPUS_CHANGED]
MaxCost = Annotated[
    float | None,
    typer.Option(min=0, metavar="USD", help="Most dollars that may be spent."),
]
Form = Annotated[
    Literal["table", "csv"], typer.Option("--format", help="How rows are printed.")
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
Explain = Annotated[
    bool,
    typer.Option(
        "--explain", help="Also print every measure, every pair, all that was found."
    ),
]
Debug = Annotated[
    bool, typer.Option("--debug", help="Show where in the code each failure arose.")
]
NO_CODE = typer.Option(
    "--no-code",
    help="Refuse an experiment that names Python code, for files from others.",
)
NoCode = Annotated[bool, NO_CODE]
Quiet = Annotated[bool, typer.Option("--quiet", help="Print only errors.")]
Policy = Annotated[
    Path | None,
    typer.Option(help="A text file that says which documents deserve which grade."),
]
Prices = Annotated[
    str,
    typer.Option(
        metavar="IN,OUT", help="Dollars per million tokens of prompts and of replies."
    ),
]
BaseUrl = Annotated[str, typer.Option(help="The endpoint; default: OpenAI's own.")]
KeyName = Annotated[
    str,
    typer.Option(
        "--key", metavar="NAME", help="The environment variable that holds the key."
    ),
]
PlanOnly = Annotated[
    bool,
    typer.Option("--plan", help="Print calls, tokens and dollars, and ask nothing."),
]


COLUMNS = typer.Option(
    "--columns",
    metavar="KIND=NAME",
    help="What a column is called, such as query=search_term.",
)
Columns = Annotated[list[str] | None, COLUMNS]
Documents = Annotated[
    str | None, typer.Option(help="A table or a folder of documents.")
]
QueryFiles = Annotated[
    list[str] | None, typer.Option(help="A file of queries; may be repeated.")
]
LabelFile = Annotated[str | None, typer.Option(help="The table of labels.")]
DatasetForm = Annotated[
    str | None,
    typer.Option("--format", help="The format; by default it is recognised."),
]
SPLIT = typer.Option("--split", help="The split to use, where there are several.")
Split = Annotated[str | None, SPLIT]
HEADER = typer.Option(
    "--header/--no-header", help="Whether the first row names the columns."
)
Header = Annotated[bool | None, HEADER]
DANGLING = typer.Option(
    "--dangling",
    help="drop: leave out labels of documents or queries that do not exist.",
)
Dangling = Annotated[Literal["drop"] | None, DANGLING]
MATCH = typer.Option(
    "--match",
    metavar="FIELDS",
    help="Fields by which labels name documents, such as file,page.",
)
Match = Annotated[str | None, MATCH]
LONGEST = 1_000
"""Characters of a sentence: more than any has, so that none is cut."""


def columns_of(written: Sequence[str]) -> dict[str, str]:
    """Read columns as the command line names them.

    Raises:
        InputError: one is not a kind with a name behind it, or a kind is given twice.

    >>> columns_of(["query=search_term"])
    {'query': 'search_term'}
    """
    columns: dict[str, str] = {}
    for one in written:
        kind, _, name = (part.strip() for part in one.partition("="))
        if not name or kind in columns:
            what = (
                f"{one!r} names no column" if not name else f"{kind!r} is given twice"
            )
            raise InputError(
                Problem("--columns", what, "KIND=NAME, such as query=search_term")
            )
        columns[kind] = name
    return columns


class DatasetOptions(NamedTuple):
    """What the options of a command say of a data set, as the keys under `dataset` of an experiment would."""

    columns: Sequence[str] | None
    """What columns are called, each as KIND=NAME."""
    documents: str | None
    """A table or a folder of documents; like the next two below the data set, or where the command runs."""
    queries: Sequence[str] | None
    labels: str | None
    format: str | None
    split: str | None
    header: bool | None
    dangling: str | None
    match: str | None

    def options(self) -> dict[str, bool]:
        """The options, and whether each was given."""
        return {f"--{key}": value is not None for key, value in self._asdict().items()}


def data_set(path: str, given: DatasetOptions) -> DatasetReference:
    """The data set that a command line describes.

    Args:
        path: a folder, an archive or a file; or a name.
        given: what the options say.
    """
    from harness.dataset import reference_of

    reference = reference_of(path)

    def below(name: str) -> str:
        if reference.scheme:
            return name
        folder = (
            reference.folder.parent if reference.folder.is_file() else reference.folder
        )
        if (folder / name).exists() or not Path(name).exists():
            return name
        return Path(os.path.relpath(name, folder)).as_posix()

    documents, labels = (
        None if name is None else below(name)
        for name in (given.documents, given.labels)
    )
    found = replace(
        reference,
        documents=documents,
        labels=labels,
        queries=tuple(map(below, given.queries or ())),
    )
    return replace(
        found,
        columns=columns_of(given.columns or ()),
        format=given.format,
        split=given.split,
        header=given.header,
        drop_dangling=given.dangling is not None,
        match=tuple(filter(None, (given.match or "").split(","))),
    )


def refuse(
    given: Mapping[str, object], reason: str, remedy: str = "leave it out"
) -> None:
    """Refuse options that were given and would change nothing.

    Args:
        given: option -> whether, or what, was given.
        reason: why it changes nothing, as the end of a sentence.
        remedy: what to do.

    Raises:
        InputError: names the first of them.
    """
    if first := next((option for option, value in given.items() if value), None):
        raise InputError(Problem(first, reason, remedy))


class HelpGroup(TyperGroup):
    """Lists commands by their panels, each with the first sentence of its help."""

    def format_commands(self, ctx: ClickContext, formatter: HelpFormatter) -> None:
        """Write the commands under the heading of their panel."""
        panels: dict[str, list[tuple[str, str]]] = {}
        for name in self.list_commands(ctx):
            if (
                command := self.get_command(ctx, name)
            ) is not None and not command.hidden:
                panel = getattr(command, "rich_help_panel", None)
                heading = panel if isinstance(panel, str) else "Commands"
                panels.setdefault(heading, []).append(
                    (name, command.get_short_help_str(LONGEST))
                )
        for heading, rows in panels.items():
            with formatter.section(heading):
                formatter.write_dl(rows)


def group(words: str) -> typer.Typer:
    """Commands under one name; the words are their help."""
    return typer.Typer(cls=HelpGroup, help=words, rich_markup_mode=None)

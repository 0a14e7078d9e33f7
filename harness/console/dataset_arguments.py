"""Options of a data set."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial, wraps
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Literal,
    NamedTuple,
    get_type_hints,
)

import typer

from retrievers.errors import InputError, Problem

if TYPE_CHECKING:
    from harness.dataset import DatasetReference, DeclaredColumn

COLUMNS_OPTION = typer.Option(
    "--columns",
    metavar="KIND=NAME",
    help="What a column is called, such as query=search_term.",
)
SPLIT_OPTION = typer.Option(
    "--split", help="The split to use, where there are several."
)
HEADER_OPTION = typer.Option(
    "--header/--no-header", help="Whether the first row names the columns."
)
DANGLING_OPTION = typer.Option(
    "--dangling",
    help="drop: leave out labels of documents or queries that do not exist.",
)
MATCH_OPTION = typer.Option(
    "--match",
    metavar="FIELDS",
    help="Fields by which labels name documents, such as file,page.",
)
WHERE_OPTION = typer.Option(
    "--where",
    metavar="COLUMN=VALUE",
    help="Only rows with this value are labels, such as action_name=click.",
)


class DatasetOptions(NamedTuple):
    """The options of a data set, like the keys under `dataset` of an experiment.

    Files are below the data set, or where the command runs.
    """

    columns: Annotated[list[str] | None, COLUMNS_OPTION] = None
    documents: Annotated[
        str | None, typer.Option(help="A table or a folder of documents.")
    ] = None
    queries: Annotated[
        list[str] | None, typer.Option(help="A file of queries; may be repeated.")
    ] = None
    labels: Annotated[str | None, typer.Option(help="The table of labels.")] = None
    format: Annotated[
        str | None,
        typer.Option("--format", help="The format; by default it is recognised."),
    ] = None
    split: Annotated[str | None, SPLIT_OPTION] = None
    header: Annotated[bool | None, HEADER_OPTION] = None
    dangling: Annotated[Literal["drop"] | None, DANGLING_OPTION] = None
    match: Annotated[str | None, MATCH_OPTION] = None
    pages: Annotated[
        bool | None, typer.Option("--pages", help="Each page of a PDF is a document.")
    ] = None
    where: Annotated[list[str] | None, WHERE_OPTION] = None

    def given_options(self) -> dict[str, bool]:
        """The options, and whether each was given."""
        return {f"--{key}": value is not None for key, value in self._asdict().items()}


def takes_dataset_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command one option for each field of `DatasetOptions`.

    Typer reads the options of a command from its signature, so the command that is
    returned has a parameter for each field.

    Args:
        command: its parameter `dataset_options` gets the values of all of them. In its
            help they come where that parameter is.
    """
    signature = inspect.signature(command, eval_str=True)
    hints = get_type_hints(DatasetOptions, include_extras=True)
    option_parameters = [
        inspect.Parameter(
            option, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=hint
        )
        for option, hint in hints.items()
    ]
    parameters: list[inspect.Parameter] = []
    for parameter in signature.parameters.values():
        is_replaced = parameter.name == "dataset_options"
        parameters += option_parameters if is_replaced else [parameter]

    @wraps(command)
    def run_command(**arguments: Any) -> None:
        options = {option: arguments.pop(option) for option in hints}
        command(**arguments, dataset_options=DatasetOptions(**options))

    run_command.__annotations__ = {
        parameter.name: parameter.annotation for parameter in parameters
    }
    vars(run_command)["__signature__"] = signature.replace(parameters=parameters)
    return run_command


def parse_column_names(texts: Sequence[str]) -> tuple[DeclaredColumn, ...]:
    """Read columns as the command line names them.

    Raises:
        InputError: one is not a kind with a name behind it, or a kind is given twice.

    >>> parse_column_names(["query=search_term"])
    (DeclaredColumn(kind='query', column='search_term'),)
    """
    from harness.dataset import DeclaredColumn

    columns: list[DeclaredColumn] = []
    remedy = "KIND=NAME, such as query=search_term"
    for text in texts:
        kind, _, column = (part.strip() for part in text.partition("="))
        if not column:
            raise InputError(Problem("--columns", f"{text!r} names no column", remedy))
        if any(declared.kind == kind for declared in columns):
            problem = f"{kind!r} is given twice"
            raise InputError(Problem("--columns", problem, remedy))
        columns.append(DeclaredColumn(kind, column))
    return tuple(columns)


def parse_conditions(texts: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Read conditions as the command line writes them.

    Raises:
        InputError: one is not a column with a value behind it.

    >>> parse_conditions(["action=click", "action=buy"])
    {'action': ('click', 'buy')}
    """
    conditions: dict[str, tuple[str, ...]] = {}
    for text in texts:
        column, _, value = (part.strip() for part in text.partition("="))
        if not column or not value:
            remedy = "COLUMN=VALUE, such as action_name=click"
            raise InputError(Problem("--where", f"{text!r} has no value", remedy))
        conditions[column] = (*conditions.get(column, ()), value)
    return conditions


def dataset_reference(path: str, options: DatasetOptions) -> DatasetReference:
    """The data set that a command line describes; nothing is read.

    Args:
        path: a folder, an archive or a file; or a name such as hf:….
        options: the values of the options.

    Raises:
        InputError: an option has another form than its help shows.
    """
    from harness.dataset import parse_reference

    reference = parse_reference(path)
    name_in_dataset = partial(_name_in_dataset, reference)
    documents = options.documents
    labels = options.labels
    return replace(
        reference,
        documents=None if documents is None else name_in_dataset(documents),
        labels=None if labels is None else name_in_dataset(labels),
        queries=tuple(map(name_in_dataset, options.queries or ())),
        columns=parse_column_names(options.columns or ()),
        format=options.format,
        split=options.split,
        header=options.header,
        drop_dangling=options.dangling is not None,
        pages=bool(options.pages),
        where=parse_conditions(options.where or ()),
        match=tuple(filter(None, map(str.strip, (options.match or "").split(",")))),
    )


def _name_in_dataset(reference: DatasetReference, name: str) -> str:
    """Return the path of a file relative to the data set's folder.

    A name is looked for in that folder first, then where the command runs; a name that
    is in neither is returned as it is, and refused when the data set is read.
    """
    if reference.scheme:  # a data set of a hub has no folder here
        return name
    folder = reference.folder
    # A sheet of a workbook is named WORKBOOK#SHEET.
    workbook, _, _sheet = str(folder).rpartition("#")
    if folder.is_file() or Path(workbook).is_file():
        folder = folder.parent
    if (folder / name).exists() or not Path(name).exists():
        return name
    return Path(os.path.relpath(name, folder)).as_posix()

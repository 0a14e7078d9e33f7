"""`harness check`: what is known before anything is embedded."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness.console import shared_options as shared
from harness.console.printing import print_json, print_result
from retrievers.errors import InputError, Problem

RESULTS = Path("results")
"""Where runs write, unless they are told otherwise."""

if TYPE_CHECKING:
    from harness.experiment import Loaded


def check(
    target: Annotated[str, typer.Argument(metavar="EXPERIMENT|DATASET", help="An experiment file, or a data set.")],
    results: Annotated[Path, typer.Option(help="Folder of earlier runs, which show how fast models are.")] = RESULTS,
    online: Annotated[bool, typer.Option("--online", help="Send one text to every service.")] = False,
    no_code: shared.NoCode = False,
    columns: shared.Columns = None,
    documents: shared.Documents = None,
    queries: shared.QueryFiles = None,
    labels: shared.LabelFile = None,
    form: shared.DatasetForm = None,
    split: shared.Split = None,
    header: shared.Header = None,
    dangling: shared.Dangling = None,
    match: shared.Match = None,
    as_json: shared.Json = False,
) -> None:
    """List every problem, how the data were read, and what a run takes: texts, tokens, dollars, minutes. No network."""
    from retrievers.words import load_language_model

    load_language_model()  # on another core, while the rest is imported
    from harness.running.check import check as look

    given = shared.DatasetOptions(columns, documents, queries, labels, form, split, header, dangling, match)
    if not target.lower().endswith(".toml"):
        shared.refuse({"--results": results != RESULTS, "--online": online}, "is for an experiment file")
        described = shared.data_set(target, given)
    else:
        shared.refuse(given.options(), "is set in the experiment file, under dataset", "write it there")
        described = None
    try:
        sets = [described] if described else load_each(Path(target), code=not no_code)
        reports = [look(one, code=not no_code, results=results, online=online) for one in sets]
    except InputError as error:
        if not as_json:
            raise
        problems = error.problems or (Problem(target, str(error)),)
        print_json(problems=problems)
        raise typer.Exit(error.exit_code) from None
    tables = [report.as_json() for report in reports]
    found = tables[0] if len(tables) == 1 else {"data_sets": tables}
    print_result((line for report in reports for line in report.lines()), as_json=as_json, problems=[], **found)


def load_each(path: Path, *, code: bool) -> list[Path | Loaded]:
    """The path itself, which is checked with its data, or what was loaded of it for each of several data sets."""
    from harness.experiment import load_sets

    try:
        sets = load_sets(path, code=code)
    except InputError:
        return [path]
    return [*sets] if sets[0].within else [path]

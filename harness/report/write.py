"""Everything that a report consists of, written into the results folder."""

from __future__ import annotations

import shutil
from pathlib import Path

from harness.records import Results, create
from harness.report.exports import mteb, notebook, spreadsheet
from harness.report.figures import svg
from harness.report.latex import tables
from harness.report.markdown import markdown
from harness.report.page import page
from harness.report.sections import sections
from harness.report.unlabelled import unlabelled
from harness.report.view import view_of
from retrievers.errors import InputError, Problem


def write(results: Results) -> None:
    """Write report.html, report.md, tables and figures; what an earlier report left is removed.

    Raises:
        InputError: the folder cannot be written to.
    """
    files = _report(results) if results.scored else unlabelled(results)
    for part in ("figures", "tables"):
        shutil.rmtree(results.folder / part, ignore_errors=True)
    for name, content in files.items():
        _write(results.folder / name, content)


def _report(results: Results) -> dict[str, str]:
    """The files of a report with scores: file name -> content."""
    view = view_of(results)
    shown = [section for function in sections() if (section := function(view)) is not None]
    drawn = {figure.name: svg(figure) for section in shown for figure in section.figures}
    files = {f"figures/{name}.svg": image for name, image in drawn.items()}
    files |= {f"tables/{name}.tex": table for name, table in tables(view).items()}
    files |= {f"tables/{name}.mteb.json": result for name, result in mteb(view).items()}
    files["tables/queries.csv"] = spreadsheet(view)
    files["tables/leaderboard.html"] = notebook(view, shown[0])
    files["report.md"] = markdown(view, shown)
    files["report.html"] = page(view, shown, drawn)
    return files


def _write(path: Path, content: str) -> None:
    try:
        with create(path) as file:
            file.write(content)
    except OSError as error:
        remedy = "make room, or copy the results to where you may write"
        raise InputError(Problem(str(path), f"cannot be written: {error.strerror}", remedy)) from None

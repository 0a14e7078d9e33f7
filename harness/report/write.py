"""Every file of a report, written."""

import shutil
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from markupsafe import Markup

from harness.evaluation.costs import retriever_costs
from harness.evaluation.judging_effort import judging_effort, pool_command
from harness.evaluation.pair_diagnostics import ranking_overlaps
from harness.records import Results, new_text_file
from harness.report.charts.figure import Figure, svg_file
from harness.report.escape import escape_markdown
from harness.report.interchange import mteb_results, spreadsheet_csv
from harness.report.page import report_page
from harness.report.paper import latex_tables
from harness.report.sections import SECTIONS
from harness.report.sections.queries import REMAINING_PAGE, remaining_queries
from harness.report.templates import (
    Section,
    render_page,
    render_section,
    text_environment,
)
from harness.report.view import View, build_view

MAX_TABLE_QUERIES = 200
"""Queries that a table lists."""


def markdown_report(view: View, sections: Sequence[Section]) -> str:
    """Return report.md, from the same contexts as the page; images are the files under figures/."""
    env = text_environment(escape_markdown_value)
    env.globals |= {"image": _image, "most": MAX_TABLE_QUERIES}
    return "\n".join(
        render_section(env, section, "markdown", view=view).strip("\n") + "\n"
        for section in sections
    )


def _image(figure: Figure) -> Markup:
    words = escape_markdown(f"{figure.title}: {figure.description}")
    return Markup(f"![{words}](figures/{quote(figure.name, safe='@')}.svg)")  # noqa: S704 - escaped above


def escape_markdown_value(value: Any) -> Any:
    """A value for Markdown: text is escaped."""
    return (
        escape_markdown(value)
        if isinstance(value, str) and not isinstance(value, Markup)
        else value
    )


def unlabelled_report(results: Results) -> dict[str, str]:
    """Return the files of the report: file name -> content."""
    variables = {
        "manifest": results.manifest,
        "queries": len(results.queries),
        "next_step": pool_command(results),
        "overlaps": list(ranking_overlaps(results)),
        "judging": judging_effort(results),
        "text_of": lambda query: results.queries[query].query.text,
        "costs": retriever_costs(results),
    }
    text = (
        text_environment(escape_markdown_value)
        .get_template("unlabelled.md")
        .render(**variables)
    )
    return {"report.html": render_page("unlabelled.html", variables), "report.md": text}


def write_report(results: Results) -> None:
    """Write report.html, report.md, tables and figures, and remove those of an earlier report.

    Raises:
        InputError: the folder cannot be written to.
    """
    files = _report(results) if results.scored else unlabelled_report(results)
    for part in ("figures", "tables"):
        shutil.rmtree(results.folder / part, ignore_errors=True)
    if REMAINING_PAGE not in files:
        (results.folder / REMAINING_PAGE).unlink(missing_ok=True)
    for name, content in files.items():
        with new_text_file(results.folder / name) as file:
            file.write(content)


def _report(results: Results) -> dict[str, str]:
    """The files of a report with scores: file name -> content."""
    view = build_view(results)
    shown = [
        section for function in SECTIONS if (section := function(view)) is not None
    ]
    files = {
        f"figures/{figure.name}.svg": svg_file(figure)
        for section in shown
        for figure in section.figures
    }
    files |= {f"tables/{name}.tex": table for name, table in latex_tables(view).items()}
    files |= {
        f"tables/{name}.mteb.json": result
        for name, result in mteb_results(view).items()
    }
    files["tables/queries.csv"] = spreadsheet_csv(view)
    files["report.md"] = markdown_report(view, shown)
    beside = {
        file.relative_to(results.folder).as_posix()
        for file in results.folder.rglob("*")
        if file.is_file()
    }
    (queries_section,) = (section for section in shown if section.id == "queries")
    if more := remaining_queries(view, queries_section):
        others, section = more
        files[REMAINING_PAGE] = report_page(others, [shown[0], section])
    kept = {
        name
        for name in beside
        if not name.startswith(("figures/", "tables/", REMAINING_PAGE))
    }
    files["report.html"] = report_page(
        view, shown, (kept | files.keys() | {"manifest.json"}) - {"report.html"}
    )
    return files

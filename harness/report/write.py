"""Every file of a report, written."""

import shutil
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from markupsafe import Markup

from harness.evaluation.costs import retriever_costs
from harness.evaluation.judging_effort import (
    judging_effort,
    pool_command,
    sampled_effort,
)
from harness.evaluation.pair_diagnostics import ranking_overlaps
from harness.records import Results, new_text_file
from harness.report.charts.figure import Figure, svg_file
from harness.report.escape import escape_markdown
from harness.report.interchange import mteb_results, spreadsheet_csv
from harness.report.page import report_page
from harness.report.paper import latex_tables
from harness.report.report_file import ReportFile
from harness.report.sections import SECTIONS
from harness.report.sections.fails import (
    REMAINING_PAGE,
    FailsContext,
    remaining_queries,
)
from harness.report.templates import (
    AnySection,
    render_section,
    text_environment,
)
from harness.report.unlabelled_page import unlabelled_page
from harness.report.view import View, build_view
from harness.wording.labelling import effort_sentence


def markdown_report(view: View, sections: Sequence[AnySection]) -> str:
    """Return report.md, from the same contexts as the page.

    Images are the files under figures/.
    """
    environment = text_environment(escape_markdown_value)
    environment.globals |= {"image": _markdown_image}
    texts = (
        render_section(environment, section, "markdown", view=view)
        for section in sections
    )
    return "\n".join(text.strip("\n") + "\n" for text in texts)


def _markdown_image(figure: Figure) -> Markup:
    description = escape_markdown(f"{figure.title}: {figure.description}")
    file_name = quote(figure.name, safe="@")
    return Markup(f"![{description}](figures/{file_name}.svg)")  # noqa: S704 - escaped


def escape_markdown_value(value: Any) -> Any:
    """A value for Markdown: text is escaped."""
    if isinstance(value, str) and not isinstance(value, Markup):
        return escape_markdown(value)
    return value


def unlabelled_report(
    results: Results, *, shows_texts: bool = True
) -> list[ReportFile]:
    """Return report.html and report.md of rankings without labels.

    Args:
        results: of a run without labels.
        shows_texts: whether texts of queries and documents are shown, or their ids.
    """

    def text_of(query_id: str) -> str:
        return results.queries[query_id].query.text if shows_texts else ""

    variables = {
        "manifest": results.manifest,
        "effort": effort_sentence(sampled_effort(results)),
        "next_step": pool_command(results),
        "overlaps": list(ranking_overlaps(results)),
        "judging": judging_effort(results),
        "text_of": text_of,
        "costs": retriever_costs(results),
    }
    environment = text_environment(escape_markdown_value)
    markdown = environment.get_template("unlabelled.md").render(**variables)
    page = unlabelled_page(results, shows_texts=shows_texts)
    return [ReportFile("report.html", page), ReportFile("report.md", markdown)]


def write_report(results: Results, *, shows_texts: bool = True) -> None:
    """Write report.html, report.md, tables and figures.

    Those of an earlier report are removed.

    Args:
        results: of one run.
        shows_texts: whether texts of queries and documents are shown, or their ids.

    Raises:
        InputError: the folder cannot be written to.
    """
    write = _scored_report if results.scored else unlabelled_report
    files = write(results, shows_texts=shows_texts)
    for folder in ("figures", "tables"):
        shutil.rmtree(results.folder / folder, ignore_errors=True)
    if REMAINING_PAGE not in [file.path for file in files]:
        (results.folder / REMAINING_PAGE).unlink(missing_ok=True)
    for report_file in files:
        with new_text_file(results.folder / report_file.path) as file:
            file.write(report_file.content)


def _scored_report(results: Results, *, shows_texts: bool) -> list[ReportFile]:
    """The files of a report with scores."""
    view = build_view(results, shows_texts=shows_texts)
    sections: list[AnySection] = []
    for build_section in SECTIONS:
        section = build_section(view)
        if section is not None:
            sections.append(section)
    files: list[ReportFile] = []
    for section in sections:
        files += [
            ReportFile(f"figures/{figure.name}.svg", svg_file(figure))
            for figure in section.figures
        ]
    files += latex_tables(view)
    files += mteb_results(view)
    files.append(ReportFile("tables/queries.csv", spreadsheet_csv(view)))
    files.append(ReportFile("report.md", markdown_report(view, sections)))
    (fails,) = (
        section.context
        for section in sections
        if isinstance(section.context, FailsContext)
    )
    remaining = remaining_queries(view, fails)
    if remaining is not None:
        remaining_sections = [sections[0], remaining.section]
        page = report_page(remaining.view, remaining_sections)
        files.append(ReportFile(REMAINING_PAGE, page))
    paths = [file.path for file in files]
    linked_files = {*_other_files(results), *paths} - {"report.html"}
    page = report_page(view, sections, linked_files)
    return [*files, ReportFile("report.html", page)]


def _other_files(results: Results) -> list[str]:
    """The files of the folder outside figures/ and tables/, without queries.html."""
    paths: list[str] = []
    for file in results.folder.rglob("*"):
        path = file.relative_to(results.folder).as_posix()
        is_report = path.startswith(("figures/", "tables/", REMAINING_PAGE))
        if file.is_file() and not is_report:
            paths.append(path)
    return paths

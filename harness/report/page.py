"""The report as HTML."""

from collections.abc import Iterable, Sequence

from markupsafe import Markup

from harness.evaluation.judging_effort import pool_command
from harness.pages import visible_text
from harness.records import Results
from harness.report.palette import declared_shades
from harness.report.paper import citation_texts
from harness.report.sections.decision import first_screen
from harness.report.sections.page_budget import pack_json
from harness.report.sections.queries import filter_data
from harness.report.templates import (
    Section,
    html_environment,
    render_page,
    render_section,
    template_text,
    trusted_markup,
)
from harness.report.view import View, build_view

PAGE_SCRIPTS = ("start", "copy", "client_filter", "sort", "charts", "texts", "look")
"""The scripts of the page, in this order, all in one scope."""


def report_page(
    view: View, sections: Sequence[Section], files: Iterable[str] = ()
) -> str:
    """Return the report as one HTML file.

    Args:
        view: the results.
        sections: in the order of the page.
        files: the files in the same folder, to link to.
    """
    environment = html_environment()
    scores = filter_data(view)
    language = view.language
    lang: Markup | str = ""
    if language not in ("", "en"):
        lang = Markup(' lang="{}"').format(language)
    bodies = {
        section.id: trusted_markup(
            render_section(environment, section, "html", view=view, lang=lang)
        )
        for section in sections
    }
    variables = {
        "view": view,
        "sections": sections,
        "bodies": bodies,
        "scores": scores,
        "packed": pack_json(scores),
        "quote": citation_texts(view),
        "files": sorted(files),
    }
    return render_page(
        "page.html", variables, PAGE_SCRIPTS, shades=declared_shades(view.colors)
    )


def first_screen_html(results: Results) -> str:
    """Return the first screen as self-contained HTML; without labels, the next step."""
    if not results.scored:
        command = visible_text(pool_command(results))
        return str(Markup("<p>No query has labels. Next: {}</p>").format(command))
    view = build_view(results)
    template = html_environment().get_template("first_screen.html")
    return template.render(
        view=view,
        style=trusted_markup(template_text("board.css")),
        screen=first_screen(view),
    )

"""The report as HTML."""

from collections.abc import Iterable, Sequence

from markupsafe import Markup

from harness.evaluation.judging_effort import pool_command
from harness.pages import visible_text
from harness.records import Results
from harness.records.staging import is_temporary
from harness.report.language import language_attribute
from harness.report.sections.decision import DecisionContext, first_screen
from harness.report.templates import (
    AnySection,
    html_environment,
    render_page,
    render_section,
    template_text,
    trusted_markup,
)
from harness.report.view import View, build_view

PAGE_SCRIPTS = ("start", "sort", "leads", "card", "picture", "queries")
"""The scripts of the page, in this order, all in one scope."""
LINKED_SECTIONS = ("fails", "slices", "cost", "measures", "pairs", "sweep", "data")
"""The sections that the top of the page links to."""


def report_page(
    view: View, sections: Sequence[AnySection], files: Iterable[str] = ()
) -> str:
    """Return the report as one HTML file.

    Args:
        view: the results.
        sections: in the order of the page; the first two are the decision and the
            queries of *Where it fails*.
        files: paths of the files in the same folder, to link to.
    """
    environment = html_environment()
    lang = language_attribute(view.language)
    bodies = {
        section.id: trusted_markup(
            render_section(
                environment, section, "html", view=view, lang=lang, files=sorted(files)
            )
        )
        for section in sections
    }
    screen = next(
        section.context.screen
        for section in sections
        if isinstance(section.context, DecisionContext)
    )
    variables = {
        "view": view,
        "title": f"{view.manifest.name}: {screen.headline}",
        "facts": screen.facts,
        "linked": [section for section in sections if section.id in LINKED_SECTIONS],
        "others": sections[2:],  # the template places the first two itself
        "bodies": bodies,
    }
    return render_page("page.html", variables, PAGE_SCRIPTS)


def first_screen_html(results: Results) -> str:
    """Return the first screen as self-contained HTML; without labels, the next step."""
    if not results.scored:
        command = visible_text(pool_command(results))
        save = "results.save(FOLDER), then " if is_temporary(results.folder) else ""
        text = Markup("<p>No query has labels. Next: {}{}</p>")
        return str(text.format(save, command))
    view = build_view(results)
    template = html_environment().get_template("first_screen.html")
    return template.render(
        view=view,
        style=trusted_markup(template_text("board.css")),
        screen=first_screen(view),
    )

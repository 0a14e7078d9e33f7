"""Templates filled in, with their text escaped."""

from collections.abc import Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import jinja2
from markupsafe import Markup, escape

from harness.english import count_of, join_names, short_p_text
from harness.pages import content_security_policy, page_head, visible_text
from harness.report import palette
from harness.report.charts.figure import Figure, inline_svg
from harness.report.escape import shorten_text
from harness.report.numbers import (
    byte_size_text,
    difference_interval_text,
    difference_text,
    dollars_text,
    interval_text,
    milliseconds_text,
    number_text,
    power_p_text,
    score_text,
    seconds_text,
    whole_number_text,
)


class Section(NamedTuple):
    """One section: its template is `<id>.html`, with a block for the page and one for Markdown."""

    id: str
    title: str
    context: Mapping[str, Any]
    """The variables of the template."""
    figures: tuple[Figure, ...] = ()


TEMPLATE_FILTERS = {
    "score": score_text,
    "signed": difference_text,
    "between": interval_text,
    "between_signed": difference_interval_text,
    "p_value": power_p_text,
    "plain": number_text,
    "dollars": dollars_text,
    "milliseconds": milliseconds_text,
    "seconds": seconds_text,
    "size": byte_size_text,
    "count": whole_number_text,
    "short_p": short_p_text,
    "counted": count_of,
    "shortened": shorten_text,
}
"""Name in the templates -> function."""
TEMPLATES_FOLDER = Path(__file__).with_name("templates")
SHARED_MACROS = ("dot", "retriever", "measure", "grade_chip", "chart", "fixed")
"""What all templates use of `parts.html`."""


def render_section(
    env: jinja2.Environment, section: Section, block: str, **variables: Any
) -> str:
    """Render one of the two blocks of a section's template, "html" or "markdown", from the section's context."""
    template = env.get_template(f"{section.id}.html")
    context = template.new_context(
        {"section": section, "context": section.context, **variables}
    )
    return "".join(template.blocks[block](context))


def render_page(
    template: str,
    variables: Mapping[str, Any],
    scripts: Sequence[str] = (),
    *,
    shades: Sequence[palette.Shade] = (),
    styles: Sequence[str] = ("board.css",),
) -> str:
    """Fill in the template of a page, with its scripts, its style sheet, and the policy that allows no others.

    Args:
        template: its file.
        variables: of it.
        scripts: names of scripts, which share one scope.
        shades: the colours that an experiment declares.
        styles: further style sheets.
    """
    env, code = (
        html_environment(),
        "".join(template_text(f"scripts/{name}.js") for name in scripts),
    )
    own = {
        "paper": palette.PAPER_SHADE,
        "ink": palette.INK_SHADE,
        "muted": palette.MUTED_SHADE,
        "rule": palette.RULE_SHADE,
        "font": trusted_markup(palette.PAGE_FONT),
    }
    style = env.get_template("style.css").render(
        own, shades=(*palette.PAGE_SHADES, *shades)
    ) + "".join(map(template_text, styles))
    script = f'"use strict";\n(() => {{\n{code}}})();\n'
    beside = {
        "style": trusted_markup(style),
        "script": trusted_markup(script),
        "policy": content_security_policy([script] if code else [], style),
    }
    return env.get_template(template).render(variables, **beside)


@cache
def html_environment() -> jinja2.Environment:
    """The templates, autoescaped; invisible characters are made visible."""
    env = _environment(autoescape=True, finalize=_visible)
    env.filters |= {**TEMPLATE_FILTERS, "inline": inline_svg}
    parts = env.get_template("parts.html").module
    env.globals |= {
        "head": page_head,
        **{name: getattr(parts, name) for name in SHARED_MACROS},
    }
    return env


@cache
def text_environment(escape: Any) -> jinja2.Environment:
    """The same for a text format: every string is escaped, except our numbers."""
    env = _environment(autoescape=False, finalize=escape)
    env.filters |= {
        name: partial(_trusted, function) for name, function in TEMPLATE_FILTERS.items()
    }
    env.filters["shortened"] = shorten_text
    return env


@cache
def template_text(name: str) -> str:
    """The text of a template; scripts and styles without indents and comment lines, a tenth of their size."""
    content = TEMPLATES_FOLDER.joinpath(name).read_text(encoding="utf-8")
    if not name.endswith((".js", ".css")):
        return content
    lines = (line.lstrip() for line in content.splitlines(keepends=True))
    return "".join(line for line in lines if not line.startswith(("//", "/*")))


def _environment(autoescape: bool, finalize: Any) -> jinja2.Environment:
    env = jinja2.Environment(
        loader=jinja2.FunctionLoader(template_text),
        autoescape=autoescape,  # noqa: S701 - off only where `finalize` escapes for a text format
        finalize=finalize,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        optimized=False,  # each template is rendered once: searching for constants costs more than it saves
    )
    # A summary in Markdown is HTML; only digests and checked names are trusted.
    env.filters |= {"html": escape, "trusted": Markup, "listed": join_names}
    return env


def _visible(value: Any) -> Any:
    return (
        visible_text(value)
        if isinstance(value, str) and not isinstance(value, Markup)
        else value
    )


def trusted_markup(code: str) -> Markup:
    """Our own text, or a drawing whose text is escaped: not escaped again."""
    return Markup(code)  # noqa: S704


def _trusted(function: Any, *given: Any) -> Markup:
    return trusted_markup(function(*given).replace("<", "&lt;"))


TemplateRow = Mapping[str, Any]
"""A row of a table, by what the template calls it."""

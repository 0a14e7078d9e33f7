"""Templates filled in, with their text escaped."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any, Generic, TypeVar

import jinja2
from markupsafe import Markup, escape

from harness.english import count_of, join_names, percent_text, short_p_text
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
    milliseconds_number,
    milliseconds_text,
    number_text,
    power_p_text,
    score_text,
    seconds_text,
    sort_key,
    whole_number_text,
)
from harness.wording.dates import short_date_text

ContextT_co = TypeVar("ContextT_co", covariant=True)


def isolate_direction(text: str) -> Markup:
    """Return a text whose direction changes nothing around it.

    One of ASCII letters runs from left to right like the page, and needs no element.

    >>> isolate_direction("bm25"), isolate_direction("עברית")
    (Markup('bm25'), Markup('<bdi>עברית</bdi>'))
    """
    shown = escape(visible_text(text))
    return shown if text.isascii() else Markup("<bdi>{}</bdi>").format(shown)


@dataclass(frozen=True, slots=True)
class Section(Generic[ContextT_co]):
    """One section.

    Its template is `<id>.html`, with a block for the page and one for Markdown.
    """

    id: str
    title: str
    context: ContextT_co
    """A frozen dataclass of the section, which the template reads as `context`."""
    figures: tuple[Figure, ...] = ()


AnySection = Section[object]


TEMPLATE_FILTERS = {
    "score": score_text,
    "signed": difference_text,
    "between": interval_text,
    "between_signed": difference_interval_text,
    "p_value": power_p_text,
    "sort_key": sort_key,
    "plain": number_text,
    "dollars": dollars_text,
    "milliseconds": milliseconds_text,
    "seconds": seconds_text,
    "size": byte_size_text,
    "count": whole_number_text,
    "short_p": short_p_text,
    "milliseconds_number": milliseconds_number,
    "percent": percent_text,
    "counted": count_of,
    "shortened": shorten_text,
    "short_date": short_date_text,
    "isolated": isolate_direction,
}
"""Name in the templates -> function."""
TEMPLATES_FOLDER = Path(__file__).with_name("templates")
SHARED_MACROS = (
    "measure",
    "strip",
    "shared_scale",
    "ruler",
    "chart",
    "query_section",
    "costs_head",
    "costs_cells",
)
"""The macros of `parts.html` that all templates use."""


def render_section(
    environment: jinja2.Environment, section: AnySection, block: str, **variables: Any
) -> str:
    """Render one of the two blocks of a section's template, from its context.

    The block is "html" or "markdown".
    """
    template = environment.get_template(f"{section.id}.html")
    context = template.new_context(
        {"section": section, "context": section.context, **variables}
    )
    return "".join(template.blocks[block](context))


def render_page(
    template: str,
    variables: Mapping[str, Any],
    scripts: Sequence[str] = (),
    styles: Sequence[str] = (),
) -> str:
    """Fill in the template of a page.

    The page gets its scripts, its style sheet, and the policy that allows no others.

    Args:
        template: its file.
        variables: of it.
        scripts: names of scripts, which share one scope.
        styles: further style sheets.
    """
    environment = html_environment()
    base_style = environment.get_template("style.css").render(
        font=trusted_markup(palette.PAGE_FONT), shades=palette.PAGE_SHADES
    )
    style = base_style + "".join(map(template_text, ("board.css", *styles)))
    code = "".join(template_text(f"scripts/{script}.js") for script in scripts)
    script = f'"use strict";\n(async () => {{\n{code}}})();\n'
    return environment.get_template(template).render(
        variables,
        style=trusted_markup(style),
        script=trusted_markup(script),
        policy=content_security_policy([script] if code else [], style),
    )


@cache
def html_environment() -> jinja2.Environment:
    """The templates, autoescaped; invisible characters are made visible."""
    environment = _environment(autoescape=True, finalize=_show_invisible)
    environment.filters |= {**TEMPLATE_FILTERS, "inline": inline_svg}
    parts = environment.get_template("parts.html").module
    environment.globals["head"] = page_head
    for macro in SHARED_MACROS:
        environment.globals[macro] = getattr(parts, macro)
    return environment


@cache
def text_environment(escape_value: Any) -> jinja2.Environment:
    """An environment for a text format: every string is escaped, except our numbers."""
    environment = _environment(autoescape=False, finalize=escape_value)
    environment.filters |= {
        filter_name: partial(_call_trusted, function)
        for filter_name, function in TEMPLATE_FILTERS.items()
    }
    environment.filters["shortened"] = shorten_text
    environment.filters["code"] = _code_line
    return environment


@cache
def template_text(file_name: str) -> str:
    """The text of a template.

    Scripts and styles are without indents and comment lines, a tenth of their size.
    """
    content = TEMPLATES_FOLDER.joinpath(file_name).read_text(encoding="utf-8")
    if not file_name.endswith((".js", ".css")):
        return content
    lines = (line.lstrip() for line in content.splitlines(keepends=True))
    return "".join(line for line in lines if not line.startswith(("//", "/*")))


def _environment(autoescape: bool, finalize: Any) -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(template_text),
        autoescape=autoescape,  # noqa: S701 - off only if `finalize` escapes
        finalize=finalize,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        # Each template is rendered once: a search for constants would not pay.
        optimized=False,
    )
    # A summary in Markdown is HTML; only digests and checked names are trusted.
    environment.filters |= {"html": escape, "trusted": Markup, "listed": join_names}
    return environment


def _show_invisible(value: Any) -> Any:
    if isinstance(value, str) and not isinstance(value, Markup):
        return visible_text(value)
    return value


def trusted_markup(code: str) -> Markup:
    """Our own text, or a drawing whose text is escaped: not escaped again."""
    return Markup(code)  # noqa: S704


def _code_line(text: str) -> Markup:
    """Return a text for an indented block of Markdown, where an escape would be read.

    It is one line: in the next, the block would be over.
    """
    return trusted_markup(visible_text(text).replace("\n", " "))


def _call_trusted(function: Any, *arguments: Any) -> Markup:
    """Return what a filter makes of a number, which no escape for text changes.

    Only the "<" of a bound, such as "< 0.001", would start HTML in Markdown.
    """
    return trusted_markup(function(*arguments).replace("<", "&lt;"))

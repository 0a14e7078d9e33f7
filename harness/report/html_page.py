"""The page: one file that needs no network; all texts are escaped."""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup, escape

from harness.english import counted, join, short_p
from harness.pages import head, policy
from harness.report import elements, text, theme
from harness.report.elements import Figure, Section
from harness.report.latex import citation
from harness.report.sections.queries import client_filter, packed
from harness.report.view import MeasureName, View

NUMBERS = (text.score, text.signed, text.between, text.between_signed, text.p_value, text.plain, text.dollars,
           text.milliseconds, text.seconds, text.size, text.count)  # fmt: skip
FILTERS = {one.__name__: one for one in (*NUMBERS, short_p, counted, text.shortened)}
TEMPLATES = Path(__file__).with_name("templates")
FIXED = Markup(
    '<p class="note fixed">The filter does not change this part: it covers all queries, as they were measured '
    "and tested.</p>"
)
"""The note in parts of the page that the filter does not change."""
SCRIPTS = ("start", "copy", "client_filter", "sort", "charts", "texts", "look")
"""The scripts of the page, in this order, all in one scope."""


def page(view: View, sections: Sequence[Section], files: Iterable[str] = ()) -> str:
    """Return the report as one HTML file.

    Args:
        view: the results.
        sections: in the order of the page.
        files: the files in the same folder, to link to.
    """
    env, scores = environment(), client_filter(view)
    style = styled(env, theme.declared_shades(view.colors))
    script = "".join(['"use strict";\n(() => {\n', *(source(f"scripts/{name}.js") for name in SCRIPTS), "})();\n"])
    lang = Markup(' lang="{}"').format(view.language) if view.language not in ("", "en") else ""
    bodies = {one.id: _ours(rendered(env, one, "html", view=view, lang=lang)) for one in sections}
    parts = {"view": view, "sections": sections, "bodies": bodies, "style": style, "scores": scores}
    return env.get_template("page.html").render(
        parts, script=_ours(script), policy=policy([script], str(style)), packed=packed(scores), quote=citation(view),
        files=sorted(files),
    )  # fmt: skip


def rendered(env: jinja2.Environment, section: Section, block: str, **variables: Any) -> str:
    """Render one of the two blocks of a section's template, "html" or "markdown", from the section's context."""
    template = env.get_template(f"{section.id}.html")
    context = template.new_context({"section": section, "context": section.context, **variables})
    return "".join(template.blocks[block](context))


def retriever(colors: Mapping[str, str], name: str) -> Markup:
    """A retriever's name after its dot."""
    return Markup('<span class="name">{}{}</span>').format(dot(colors, name), text.visible(name))


def dot(colors: Mapping[str, str], name: str) -> Markup:
    """A retriever's colour."""
    form = Markup('<svg class="mark" aria-hidden="true"><circle cx="6" cy="6" r="6" fill="{}"/></svg>')
    return form.format(colors[name])


def measure(name: MeasureName) -> Markup:
    """A measure with its parameters."""
    return Markup("{} <small>{}</small>").format(name.short, name.gloss) if name.gloss else Markup.escape(name.short)


def chart(figure: Figure, kind: str = "") -> Markup:
    """A figure with its title."""
    title = text.visible(figure.title)
    return Markup(
        '<figure class="chart {}" data-figure="{}">\n<figcaption>{}</figcaption>\n'
        '<div class="scroll" role="group" aria-label="{}"><div class="plot" role="img" aria-label="{}">{}</div></div>\n'
        '<details class="copies"><summary>Copy or save</summary><button class="look">Data as TSV</button>'
        '<button class="look">SVG</button><button class="look">PNG</button></details>\n</figure>\n'
    ).format(
        kind, figure.name, title, title, text.visible(figure.description),
        _ours(elements.inline(figure)),
    )  # fmt: skip


def styled(env: jinja2.Environment, declared: Sequence[theme.Shade] = ()) -> Markup:
    """The style sheet of every page, with our colours and those that an experiment declares."""
    own = {"paper": theme.PAPER, "ink": theme.INK, "muted": theme.MUTED, "rule": theme.RULE, "font": _ours(theme.FONT)}
    return _ours(env.get_template("style.css").render(own, shades=(*theme.SHADES, *declared)) + source("board.css"))


@cache
def environment() -> jinja2.Environment:
    """The templates, autoescaped; invisible characters are made visible."""
    env = _environment(without="markdown", autoescape=True, finalize=_visible)
    env.filters |= FILTERS
    env.globals |= {"head": head, "grade_chip": grade_chip, "retriever": retriever, "dot": dot, "measure": measure}
    env.globals |= {"chart": chart, "fixed": FIXED}
    return env


@cache
def plain_environment(escape: Any) -> jinja2.Environment:
    """The same for a text format: every string is escaped, except our numbers."""
    env = _environment(without="html", autoescape=False, finalize=escape)
    env.filters |= {name: partial(_trusted, function) for name, function in FILTERS.items()}
    env.filters["shortened"] = text.shortened
    return env


@cache
def source(name: str) -> str:
    """The text of a template; scripts and styles without indents and comment lines, a tenth of their size."""
    lines = TEMPLATES.joinpath(name).read_text(encoding="utf-8").splitlines(keepends=True)
    if not name.endswith((".js", ".css")):
        return "".join(lines)
    return "".join(line.lstrip() for line in lines if not line.lstrip().startswith(("//", "/*")))


def _source_without(block: str, name: str) -> str:
    """A template without one of its two blocks, which is not needed; line numbers stay the same."""
    block_of = re.compile(rf"{{% block {block} %}}.*?{{% endblock %}}", re.DOTALL)
    return block_of.sub(lambda match: "\n" * match[0].count("\n"), source(name))


def grade_chip(grade: int | None) -> Markup:
    """A grade as the lists show it; a dash for a document without a label."""
    kind = " hit" if grade and grade > 0 else ""
    return Markup('<span class="grade{}">{}</span>').format(kind, "–" if grade is None else grade)


def _environment(without: str, autoescape: bool, finalize: Any) -> jinja2.Environment:
    env = jinja2.Environment(
        loader=jinja2.FunctionLoader(partial(_source_without, without)),
        autoescape=autoescape,  # noqa: S701 - off only where `finalize` escapes for a text format
        finalize=finalize,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        optimized=False,  # each template is rendered once: searching for constants costs more than it saves
    )
    # A summary in Markdown is HTML; only digests and checked names are trusted.
    env.filters |= {"html": escape, "trusted": Markup, "listed": join}
    return env


def _visible(value: Any) -> Any:
    return text.visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _ours(code: str) -> Markup:
    """Our own text, or a drawing whose text is escaped: not escaped again."""
    return Markup(code)  # noqa: S704


def _trusted(function: Any, *given: Any) -> Markup:
    return _ours(function(*given).replace("<", "&lt;"))

"""The pages, each one file that needs no network; all texts are escaped; and the tables of a paper."""

import csv
import io
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import jinja2
from markupsafe import Markup, escape

from harness.english import asked, counted, format_p, join, short_p
from harness.evaluation.across_sets import (
    COLUMNS,
    ON,
    SETS,
    SetsTogether,
    results_together,
)
from harness.evaluation.conclusions import FEW_SETS, first_lines, sets_sentences
from harness.evaluation.csv_views import comparison_rows, summary_rows
from harness.evaluation.evaluation import Evaluation
from harness.evaluation.wording import (
    SIGNS,
    pair_sentence,
    settings_sentence,
    verdict_cell,
)
from harness.pages import head, policy
from harness.records import Results, create
from harness.report import charts, text
from harness.report.charts import Section
from harness.report.sections.queries import client_filter, packed
from harness.report.text import declared_shades, latex
from harness.report.view import View, letters_of, retriever_colors, second, superscripts

NUMBERS = (
    text.score,
    text.signed,
    text.between,
    text.between_signed,
    text.p_value,
    text.plain,
    text.dollars,
    text.milliseconds,
    text.seconds,
    text.size,
    text.count,
)
FILTERS = {one.__name__: one for one in (*NUMBERS, short_p, counted, text.shortened)}
TEMPLATES = Path(__file__).with_name("templates")
PARTS = ("dot", "retriever", "measure", "grade_chip", "chart", "fixed")
"""What all templates use of `parts.html`."""
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
    lang = (
        Markup(' lang="{}"').format(view.language)
        if view.language not in ("", "en")
        else ""
    )
    bodies = {
        one.id: _ours(rendered(env, one, "html", view=view, lang=lang))
        for one in sections
    }
    parts = {
        "view": view,
        "sections": sections,
        "bodies": bodies,
        "scores": scores,
        "packed": packed(scores),
    }
    parts |= {"quote": citation(view), "files": sorted(files)}
    return filled("page.html", parts, SCRIPTS, shades=declared_shades(view.colors))


def rendered(
    env: jinja2.Environment, section: Section, block: str, **variables: Any
) -> str:
    """Render one of the two blocks of a section's template, "html" or "markdown", from the section's context."""
    template = env.get_template(f"{section.id}.html")
    context = template.new_context(
        {"section": section, "context": section.context, **variables}
    )
    return "".join(template.blocks[block](context))


def filled(
    template: str,
    variables: Mapping[str, Any],
    scripts: Sequence[str] = (),
    *,
    shades: Sequence[text.Shade] = (),
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
    env, code = environment(), "".join(source(f"scripts/{name}.js") for name in scripts)
    own = {
        "paper": text.PAPER,
        "ink": text.INK,
        "muted": text.MUTED,
        "rule": text.RULE,
        "font": _ours(text.FONT),
    }
    style = env.get_template("style.css").render(
        own, shades=(*text.SHADES, *shades)
    ) + "".join(map(source, styles))
    script = f'"use strict";\n(() => {{\n{code}}})();\n'
    beside = {
        "style": _ours(style),
        "script": _ours(script),
        "policy": policy([script] if code else [], style),
    }
    return env.get_template(template).render(variables, **beside)


@cache
def environment() -> jinja2.Environment:
    """The templates, autoescaped; invisible characters are made visible."""
    env = _environment(autoescape=True, finalize=_visible)
    env.filters |= {**FILTERS, "inline": charts.inline}
    parts = env.get_template("parts.html").module
    env.globals |= {"head": head, **{name: getattr(parts, name) for name in PARTS}}
    return env


@cache
def plain_environment(escape: Any) -> jinja2.Environment:
    """The same for a text format: every string is escaped, except our numbers."""
    env = _environment(autoescape=False, finalize=escape)
    env.filters |= {
        name: partial(_trusted, function) for name, function in FILTERS.items()
    }
    env.filters["shortened"] = text.shortened
    return env


@cache
def source(name: str) -> str:
    """The text of a template; scripts and styles without indents and comment lines, a tenth of their size."""
    content = TEMPLATES.joinpath(name).read_text(encoding="utf-8")
    if not name.endswith((".js", ".css")):
        return content
    lines = (line.lstrip() for line in content.splitlines(keepends=True))
    return "".join(line for line in lines if not line.startswith(("//", "/*")))


def _environment(autoescape: bool, finalize: Any) -> jinja2.Environment:
    env = jinja2.Environment(
        loader=jinja2.FunctionLoader(source),
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
    return (
        text.visible(value)
        if isinstance(value, str) and not isinstance(value, Markup)
        else value
    )


def _ours(code: str) -> Markup:
    """Our own text, or a drawing whose text is escaped: not escaped again."""
    return Markup(code)  # noqa: S704


def _trusted(function: Any, *given: Any) -> Markup:
    return _ours(function(*given).replace("<", "&lt;"))


ClaimsSection = Mapping[str, Any]
"""Variables of a template."""
MOST = 20
"""Pairs with a sentence; the CSV file has all."""


def write_scores(
    path: Path,
    title: str,
    evaluation: Evaluation,
    notes: Sequence[str] = (),
    section: ClaimsSection = MappingProxyType({}),
) -> None:
    """Write the page as one HTML file without scripts.

    Args:
        path: the file.
        title: of the page.
        evaluation: its content.
        notes: warnings about the numbers.
        section: for answers, the fate of their claims: see `harness.answers.cases`.

    Raises:
        InputError: the file cannot be written.
    """
    summary, rows = summary_rows(evaluation.summary), comparison_rows(evaluation)
    measures = list(dict.fromkeys(row["measure"] for row in summary))
    shown = {
        "title": title,
        "said": first_lines(evaluation),
        "evaluation": evaluation,
        "asked": asked(evaluation.n, evaluation.clusters),
        "measures": measures,
        "names": list(dict.fromkeys(row["retriever"] for row in summary)),
        "means": {(row["retriever"], row["measure"]): row for row in summary},
        "families": {
            measure: [row for row in rows if row["measure"] == measure]
            for measure in measures
        },
        "notes": notes,
        "section": section,
    }
    with create(path) as file:
        file.write(filled("scores.html", shown))


def write_sets(place: Path, sets: Sequence[Results], *, report: bool = True) -> None:
    """Write data_sets.csv next to the folders of the sets, and report.html and report.md if `report` is set.

    Raises:
        InputError: the sets have nothing in common, or a file cannot be written.
    """
    found = results_together(sets)
    out = io.StringIO()
    writer = csv.DictWriter(
        out, [*COLUMNS, *(f"{ON}{name}" for name in found.sets)], lineterminator="\n"
    )
    writer.writeheader()
    writer.writerows(found.rows())
    files = {}
    if report:
        shown = {
            "title": place.name,
            "found": found,
            "sentences": sets_sentences(found, MOST),
        }
        more = _besides(found, sets)
        page = filled(
            "data_sets.html", shown | more, shades=declared_shades(more["colors"])
        )
        files = {
            "report.md": environment().get_template("data_sets.md").render(**shown),
            "report.html": page,
        }
    for name, content in {
        **files,
        SETS: out.getvalue(),
    }.items():  # the table last: it marks the folder as complete
        with create(place / name) as file:
            file.write(content)


def _besides(found: SetsTogether, sets: Sequence[Results]) -> dict[str, Any]:
    """The other variables of the page: the pairs, and the sets that have a report."""
    of = [{pair.a, pair.b} for pair in found.pairs]
    leads = sum(found.ranked[0] in names for names in of) == len(found.ranked) - 1
    reference = found.ranked[0] if leads else found.pairs[0].b
    turned = [
        pair if pair.b == reference else pair.swapped
        for pair in found.pairs
        if reference in (pair.a, pair.b)
    ]
    return {
        "colors": retriever_colors(sets[0]),
        "reported": {
            one.manifest.name: (one.folder / "report.html").is_file() for one in sets
        },
        "best": {
            name: max(found.mean(name, one) for one in found.ranked)
            for name in found.sets
        },
        "pairs": sorted(
            (pair.leading for pair in found.pairs),
            key=lambda pair: -abs(pair.mean_difference),
        ),
        "rows": {pair.a: pair for pair in turned},
        "reference": reference,
        "few": FEW_SETS,
        "beyond": all(pair.like is not None for pair in found.pairs),
        "signs": SIGNS,
    }


def citation(view: View) -> Mapping[str, str]:
    """The texts to copy, by name: the leader against the next, with n, test, interval and adjusted p."""
    leader, other, manifest = view.evaluation.leader, second(view), view.manifest
    queries = asked(view.n, view.evaluation.clusters)
    if other == leader:
        own = next(
            one
            for one in summary_rows(view.evaluation.summary)
            if one["measure"] == view.primary
        )
        ends = f"{100 * view.settings.level:g} % interval {text.between((own['ci_low'], own['ci_high']))}"
        sentence = f"On {queries}, {leader} has a mean {view.primary} of {text.score(own['mean'])} ({ends})."
    else:
        row = view.evaluation.against[other]
        sentence = f"On {queries}: {pair_sentence(row, view.settings)} {settings_sentence(view.settings)}"
    digest, version = manifest.dataset.digest, manifest.versions["retriever-harness"]
    key = re.sub(r"[^A-Za-z0-9]+", "", manifest.name) or "results"
    bibtex = (
        f"@misc{{{key}{manifest.started[:4]},\n"
        f"  title = {{{latex(manifest.name)}: {latex(view.primary)} of {counted(len(view.retrievers), 'retriever')} "
        f"over {queries}}},\n"
        f"  year = {{{manifest.started[:4]}}},\n"
        f"  note = {{retriever-harness {latex(version)}, data {latex(digest)}}}\n}}"
    )
    return {
        "Sentence": sentence,
        "LaTeX": f"{latex(sentence)}\n\\input{{tables/leaderboard.tex}}",
        "BibTeX": bibtex,
        "Data": digest,
    }


def tables(view: View) -> dict[str, str]:
    """Return the LaTeX tables by name: leaderboard, comparisons, describe."""
    env = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).with_name("templates")),
        block_start_string="<%",
        block_end_string="%>",
        variable_start_string="<<",
        variable_end_string=">>",
        comment_start_string="<#",
        comment_end_string="#>",
        trim_blocks=True,
        keep_trailing_newline=True,
        finalize=_escaped,
        undefined=jinja2.StrictUndefined,
        autoescape=False,  # noqa: S701 - `finalize` escapes
    )
    env.filters |= {
        "counted": counted,
        "score": text.score,
        "number": _number,
        "p": _p,
        "verdict": verdict_cell,
    }
    shown = {
        "view": view,
        "settings": settings_sentence(view.settings),
        "glosses": [
            f"{name.short}: {name.gloss}" for name in view.names.values() if name.gloss
        ],
        "letters": letters_of(view),
        "marks": {measure: superscripts(view, measure) for measure in view.measures},
        "best": {
            one: text.score(max(view.mean(one, name) for name in view.ranked))
            for one in view.measures
        },
    }
    names = (
        "leaderboard",
        "describe",
        *(("comparisons",) if len(view.retrievers) > 1 else ()),
    )
    return {
        name: env.get_template("table.tex").render(which=name, **shown)
        for name in names
    }


def _escaped(value: object) -> object:
    return (
        latex(value)
        if isinstance(value, str) and not isinstance(value, Markup)
        else value
    )


def _number(value: float | None, form: str) -> Markup:
    if value is None or math.isnan(value):
        return Markup("--")
    digits = f"{value:{form}}"
    return Markup(f"${digits if float(digits) else digits.lstrip('+-')}$")  # noqa: S704 - a number


def _p(p: float | None) -> Markup:
    digits, _, power = ("--" if p is None else format_p(p)).partition("e")
    start = "<" if digits == "< 1" else rf"{digits}\times"
    shown = (
        f"${start}10^{{{int(power)}}}$"
        if power
        else digits
        if p is None
        else f"${digits}$"
    )
    return Markup(shown)  # noqa: S704 - a number

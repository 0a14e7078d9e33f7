"""What a paper quotes of a report."""

import math
import re
from collections.abc import Mapping
from pathlib import Path

import jinja2
from markupsafe import Markup

from harness.english import count_of, count_units, p_text
from harness.report.escape import escape_latex
from harness.report.numbers import interval_text, score_text
from harness.report.view import View, beaten_letters, retriever_letters, runner_up
from harness.wording.verdicts import pair_sentence, settings_sentence, verdict_cell
from harness.writing.evaluation_tables import summary_rows


def citation_texts(view: View) -> Mapping[str, str]:
    """The texts to copy, by name: the leader against the next, with n, test, interval and adjusted p."""
    leader, other, manifest = view.evaluation.leader, runner_up(view), view.manifest
    queries = count_units(view.n, view.evaluation.clusters)
    if other == leader:
        own = next(
            one
            for one in summary_rows(view.evaluation.summary)
            if one["measure"] == view.primary
        )
        ends = f"{100 * view.settings.level:g} % interval {interval_text((own['ci_low'], own['ci_high']))}"
        sentence = f"On {queries}, {leader} has a mean {view.primary} of {score_text(own['mean'])} ({ends})."
    else:
        row = view.evaluation.leader_comparisons[other]
        sentence = f"On {queries}: {pair_sentence(row, view.settings)} {settings_sentence(view.settings)}"
    digest, version = manifest.dataset.digest, manifest.versions["retriever-harness"]
    key = re.sub(r"[^A-Za-z0-9]+", "", manifest.name) or "results"
    bibtex = (
        f"@misc{{{key}{manifest.started[:4]},\n"
        f"  title = {{{escape_latex(manifest.name)}: {escape_latex(view.primary)} of {count_of(len(view.retrievers), 'retriever')} "
        f"over {queries}}},\n"
        f"  year = {{{manifest.started[:4]}}},\n"
        f"  note = {{retriever-harness {escape_latex(version)}, data {escape_latex(digest)}}}\n}}"
    )
    return {
        "Sentence": sentence,
        "LaTeX": f"{escape_latex(sentence)}\n\\input{{tables/leaderboard.tex}}",
        "BibTeX": bibtex,
        "Data": digest,
    }


def latex_tables(view: View) -> dict[str, str]:
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
        "counted": count_of,
        "score": score_text,
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
        "letters": retriever_letters(view),
        "marks": {measure: beaten_letters(view, measure) for measure in view.measures},
        "best": {
            one: score_text(max(view.mean(one, name) for name in view.ranked))
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
        escape_latex(value)
        if isinstance(value, str) and not isinstance(value, Markup)
        else value
    )


def _number(value: float | None, form: str) -> Markup:
    if value is None or math.isnan(value):
        return Markup("--")
    digits = f"{value:{form}}"
    return Markup(f"${digits if float(digits) else digits.lstrip('+-')}$")  # noqa: S704 - a number


def _p(p: float | None) -> Markup:
    digits, _, power = ("--" if p is None else p_text(p)).partition("e")
    start = "<" if digits == "< 1" else rf"{digits}\times"
    shown = (
        f"${start}10^{{{int(power)}}}$"
        if power
        else digits
        if p is None
        else f"${digits}$"
    )
    return Markup(shown)  # noqa: S704 - a number

"""What a paper quotes of a report."""

import math
import re
from pathlib import Path
from typing import NamedTuple

import jinja2
from markupsafe import Markup

from harness.english import count_of, count_units, p_digits, percent_text
from harness.report.escape import escape_latex
from harness.report.numbers import interval_text, score_text
from harness.report.report_file import ReportFile
from harness.report.view import View, beaten_letters, main_rival, retriever_letters
from harness.wording.verdicts import (
    choice_sentence,
    pair_sentence,
    settings_sentence,
    verdict_cell,
)


class Citation(NamedTuple):
    """A text to copy."""

    title: str
    text: str


def citation_texts(view: View) -> list[Citation]:
    """The texts to copy.

    The sentence compares the leader with the baseline, else with the next by mean: with
    n, test, interval and adjusted p.
    """
    manifest = view.manifest
    queries = count_units(view.n, view.evaluation.clusters)
    sentence = _citation_sentence(view, queries)
    digest = manifest.dataset.digest
    version = manifest.version_of("retriever-harness")
    key = re.sub(r"[^A-Za-z0-9]+", "", manifest.name) or "results"
    retrievers = count_of(len(view.retrievers), "retriever")
    bibtex = (
        f"@misc{{{key}{manifest.started[:4]},\n"
        f"  title = {{{escape_latex(manifest.name)}: {escape_latex(view.primary)} "
        f"of {retrievers} over {queries}}},\n"
        f"  year = {{{manifest.started[:4]}}},\n"
        f"  note = {{retriever-harness {escape_latex(version)}, "
        f"data {escape_latex(digest)}}}\n}}"
    )
    latex = f"{escape_latex(sentence)}\n\\input{{tables/leaderboard.tex}}"
    return [
        Citation("Sentence", sentence),
        Citation("LaTeX", latex),
        Citation("BibTeX", bibtex),
        Citation("Data", digest),
    ]


def _citation_sentence(view: View, queries: str) -> str:
    """Return the leader's comparison with its main rival; without one, its mean."""
    leader = view.evaluation.leader
    other = main_rival(view)
    if other != leader:
        row = view.evaluation.leader_comparisons[other]
        comparison = pair_sentence(row, view.settings)
        sentence = f"On {queries}: {comparison} {settings_sentence(view.settings)}"
        choice = choice_sentence(leader, view.evaluation.board)
        return f"{sentence} {choice}".rstrip()
    summary = view.evaluation.summary[view.primary][leader]
    interval = interval_text((summary.ci_low, summary.ci_high))
    return (
        f"On {queries}, {leader} has a mean {view.primary} of "
        f"{score_text(summary.mean)} ({percent_text(view.settings.level)} % interval "
        f"{interval})."
    )


def latex_tables(view: View) -> list[ReportFile]:
    """Return the LaTeX tables: leaderboard, describe, comparisons."""
    measures = view.measures
    variables = {
        "view": view,
        "settings": settings_sentence(view.settings),
        "glosses": [
            f"{name.short}: {name.gloss}" for name in view.names.values() if name.gloss
        ],
        "letters": retriever_letters(view),
        "marks": {measure: beaten_letters(view, measure) for measure in measures},
        "best": {measure: view.best_retrievers(measure) for measure in measures},
        "other_counts": _other_counts(view),
    }
    tables = ["leaderboard", "describe"]
    if len(view.retrievers) > 1:
        tables.append("comparisons")
    template = _latex_environment().get_template("table.tex")
    return [
        ReportFile(f"tables/{table}.tex", template.render(which=table, **variables))
        for table in tables
    ]


def _latex_environment() -> jinja2.Environment:
    """Return the templates of LaTeX, whose own marks do not collide with it."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).with_name("templates")),
        block_start_string="<%",
        block_end_string="%>",
        variable_start_string="<<",
        variable_end_string=">>",
        comment_start_string="<#",
        comment_end_string="#>",
        trim_blocks=True,
        keep_trailing_newline=True,
        finalize=_escape_value,
        undefined=jinja2.StrictUndefined,
        autoescape=False,  # noqa: S701 - `finalize` escapes
    )
    environment.filters |= {
        "counted": count_of,
        "number": _latex_number,
        "p": _latex_p,
        "verdict": verdict_cell,
    }
    return environment


def _other_counts(view: View) -> list[str]:
    """Return "measure: count" for measures averaged over another number of queries."""
    leader = view.evaluation.leader
    counts: list[str] = []
    for measure in view.measures:
        row = view.evaluation.summary[measure].get(leader)
        if row is not None and row.count != view.n:
            counts.append(f"{view.names[measure].short}: {row.count:,}")
    return counts


def _escape_value(value: object) -> object:
    if isinstance(value, str) and not isinstance(value, Markup):
        return escape_latex(value)
    return value


def _latex_number(value: float | None, form: str) -> Markup:
    if value is None or math.isnan(value):
        return Markup("--")
    digits = f"{value:{form}}"
    if not float(digits):
        digits = digits.lstrip("+-")
    return Markup(f"${digits}$")  # noqa: S704 - a number


def _latex_p(p: float | None) -> Markup:
    if p is None:
        return Markup("--")
    digits, power = p_digits(p)
    if not power:
        return Markup(f"${digits}$")  # noqa: S704 - a number
    factor = digits if digits == "<" else rf"{digits}\times"
    return Markup(f"${factor}10^{{{power}}}$")  # noqa: S704 - a number

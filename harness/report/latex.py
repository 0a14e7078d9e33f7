"""For a paper: a citation, and tables with the best value in bold and superscript letters for significant pairs."""

import math
import re
from collections.abc import Mapping
from pathlib import Path
from string import ascii_lowercase

import jinja2
from markupsafe import Markup

from harness.english import asked, counted, format_p
from harness.evaluation.csv_views import summary_rows
from harness.evaluation.verdict import Verdict
from harness.evaluation.wording import pair_sentence, settings_sentence, verdict_cell
from harness.report import text
from harness.report.text import latex
from harness.report.view import View, second


def citation(view: View) -> Mapping[str, str]:
    """The texts to copy, by name: the leader against the next, with n, test, interval and adjusted p."""
    leader, other, manifest = view.evaluation.leader, second(view), view.manifest
    queries = asked(view.n, view.evaluation.clusters)
    if other == leader:
        own = next(one for one in summary_rows(view.evaluation.summary) if one["measure"] == view.primary)
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
        block_start_string="<%", block_end_string="%>", variable_start_string="<<", variable_end_string=">>",
        comment_start_string="<#", comment_end_string="#>", trim_blocks=True, keep_trailing_newline=True,
        finalize=_escaped, undefined=jinja2.StrictUndefined, autoescape=False,  # noqa: S701 - `finalize` escapes
    )  # fmt: skip
    env.filters |= {"counted": counted, "score": text.score, "number": _number, "p": _p, "verdict": verdict_cell}
    shown = {
        "view": view,
        "settings": settings_sentence(view.settings),
        "glosses": [f"{name.short}: {name.gloss}" for name in view.names.values() if name.gloss],
        "letters": letters_of(view),
        "marks": {measure: superscripts(view, measure) for measure in view.measures},
        "best": {one: text.score(max(view.mean(one, name) for name in view.ranked)) for one in view.measures},
    }
    names = ("leaderboard", "describe", *(("comparisons",) if len(view.retrievers) > 1 else ()))
    return {name: env.get_template("table.tex").render(which=name, **shown) for name in names}


def _escaped(value: object) -> object:
    return latex(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def superscripts(view: View, measure: str) -> dict[str, str]:
    """Return, for each retriever, the letters of the retrievers that it was shown to beat on a measure."""
    letters = letters_of(view)
    beaten: dict[str, set[str]] = {name: set() for name in view.ranked}
    for row in view.comparisons[measure]:
        if row.verdict is Verdict.BETTER:
            beaten[row.a].add(letters[row.b])
        elif row.verdict is Verdict.WORSE:
            beaten[row.b].add(letters[row.a])
    return {name: "".join(sorted(worse)) for name, worse in beaten.items()}


def letters_of(view: View) -> dict[str, str]:
    """Name each retriever by a letter, in the order of the table; by a number if there are too many."""
    few = len(view.ranked) <= len(ascii_lowercase)
    return {name: ascii_lowercase[i] if few else f"{i + 1} " for i, name in enumerate(view.ranked)}


def _number(value: float | None, form: str) -> Markup:
    if value is None or math.isnan(value):
        return Markup("--")
    digits = f"{value:{form}}"
    return Markup(f"${digits if float(digits) else digits.lstrip('+-')}$")  # noqa: S704 - a number


def _p(p: float | None) -> Markup:
    digits, _, power = ("--" if p is None else format_p(p)).partition("e")
    start = "<" if digits == "< 1" else rf"{digits}\times"
    shown = f"${start}10^{{{int(power)}}}$" if power else digits if p is None else f"${digits}$"
    return Markup(shown)  # noqa: S704 - a number

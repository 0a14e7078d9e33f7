"""For a paper: a citation; tables, the best value bold, superscript letters for what the tests showed."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from string import ascii_lowercase

from harness.english import asked, count, counted, format_p
from harness.evaluation.csv_views import summary_rows
from harness.evaluation.verdict import Verdict
from harness.evaluation.wording import pair_sentence, settings_sentence, verdict_cell
from harness.report import text
from harness.report.text import latex
from harness.report.view import View, second


def citation(view: View) -> Mapping[str, str]:
    """What is copied, by its name: the leader against the next, with n, test, interval and adjusted p."""
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
    files = {"leaderboard": _leaderboard(view), "describe": _describe(view)}
    return files | ({"comparisons": _comparisons(view)} if len(view.retrievers) > 1 else {})


def superscripts(view: View, measure: str) -> dict[str, str]:
    """Return, for each retriever, the letters of those that it was shown to be better than on a measure."""
    letters = letters_of(view)
    beaten: dict[str, set[str]] = {name: set() for name in view.ranked}
    for row in view.comparisons[measure]:
        if row.verdict is Verdict.BETTER:
            beaten[row.a].add(letters[row.b])
        elif row.verdict is Verdict.WORSE:
            beaten[row.b].add(letters[row.a])
    return {name: "".join(sorted(worse)) for name, worse in beaten.items()}


def letters_of(view: View) -> dict[str, str]:
    """Name each retriever by a letter, in the order of the table; numbers where there are too many."""
    few = len(view.ranked) <= len(ascii_lowercase)
    return {name: ascii_lowercase[i] if few else f"{i + 1} " for i, name in enumerate(view.ranked)}


def _leaderboard(view: View) -> str:
    letters = letters_of(view)
    marks = {measure: superscripts(view, measure) for measure in view.measures}
    means = {measure: {name: view.mean(measure, name) for name in view.scores[measure]} for measure in view.measures}
    rows = []
    for name in view.ranked:
        cells = []
        for measure in view.measures:
            best = text.score(means[measure][name]) == text.score(max(means[measure].values()))
            value = f"{means[measure][name]:.3f}"
            raised = marks[measure][name]
            cells.append(
                (rf"\textbf{{{value}}}" if best else value) + (rf"\textsuperscript{{{raised}}}" if raised else "")
            )
        rows.append([letters[name], latex(name), *cells])
    glosses = [f"{n.short}: {n.gloss}" for n in view.names.values() if n.gloss]
    return _table(
        ["", "Retriever", *(latex(view.names[measure].short) for measure in view.measures)],
        rows,
        "ll" + "r" * len(view.measures),
        f"Means over {count(view.n)}. A superscript names the retrievers shown to be worse on that measure. "
        f"{settings_sentence(view.settings)} {'; '.join(glosses)}{'.' if glosses else ''}",
    )


def _comparisons(view: View) -> str:
    rows = [
        [latex(row.a), latex(row.b), _number(row.mean_difference, "+.3f"),
         f"[{_number(row.ci_low, '+.3f')}, {_number(row.ci_high, '+.3f')}]",
         f"{row.wins}/{row.ties}/{row.losses}", _p(row.p_value), _p(row.p_adjusted),
         "--" if row.p_wilcoxon_adjusted is None else _p(row.p_wilcoxon_adjusted), latex(verdict_cell(row.finding))]
        for row in view.comparisons[view.primary]
    ]  # fmt: skip
    head = ["$a$", "$b$", "$a-b$", "Interval", "W/T/L", "$p$", r"$p_\mathrm{adj}$", r"$p_\mathrm{Wilcoxon}$", "$a$ is"]
    return _table(head, rows, "llrrrrrrl", f"{view.names[view.primary].short}. {settings_sentence(view.settings)}")


def _describe(view: View) -> str:
    columns = ("mean", "std", "min", "q25", "median", "q75", "max")
    summary = summary_rows(view.evaluation.summary)
    rows = [
        [latex(view.names[measure].short), latex(row["retriever"]), str(row["count"]),
         *(_number(row[column], ".3f") for column in columns)]
        for measure in view.measures for name in view.retrievers for row in summary
        if row["measure"] == measure and row["retriever"] == name
    ]  # fmt: skip
    head = ["Measure", "Retriever", "$n$", "mean", "std", "min", r"25\,\%", r"50\,\%", r"75\,\%", "max"]
    return _table(head, rows, "ll" + "r" * 8, "Statistics of each measure over the queries.")


def _table(head: Sequence[str], rows: Sequence[Sequence[str]], columns: str, caption: str) -> str:
    lines = [" & ".join(row) + r" \\" for row in (head, *rows)]
    return "\n".join([
        r"% Needs \usepackage{booktabs,textcomp}", r"\begin{table}", r"\centering",
        rf"\caption{{{latex(caption.strip())}}}",
        rf"\begin{{tabular}}{{{columns}}}", r"\toprule", lines[0], r"\midrule", *lines[1:], r"\bottomrule",
        r"\end{tabular}", r"\end{table}", "",
    ])  # fmt: skip


def _number(value: float | None, form: str) -> str:
    if value is None or math.isnan(value):
        return "--"
    digits = f"{value:{form}}"
    return f"${digits if float(digits) else digits.lstrip('+-')}$"


def _p(p: float) -> str:
    digits, _, power = format_p(p).partition("e")
    if not power:
        return f"${digits}$"
    start = "<" if digits == "< 1" else rf"{digits}\times"
    return f"${start}10^{{{int(power)}}}$"

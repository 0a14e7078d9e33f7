"""The pages without scripts: per-query scores of any tool, with where answers lost their claims; several data sets."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from markupsafe import Markup

from harness.english import asked
from harness.evaluation.across_sets import COLUMNS, ON, SetsTogether
from harness.evaluation.conclusions import first_lines, sets_sentences
from harness.evaluation.csv_views import comparison_rows, summary_rows
from harness.evaluation.evaluation import Evaluation
from harness.evaluation.set_folders import SETS, results_together
from harness.pages import policy
from harness.records import Results, create
from harness.report import charts
from harness.report.elements import figure, inline
from harness.report.html_page import environment, styled
from harness.report.theme import marks
from harness.stats.intervals import mean_interval
from retrievers.opening import text_file, writing

ClaimsSection = Mapping[str, Any]
"""Names of a template -> what stands there."""
MOST = 20
"""Pairs whose sentence stands on the page; the CSV file has all."""


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
        evaluation: what it shows.
        notes: what a reader of the numbers must know.
        section: of answers, what became of their claims: see `harness.answers.claims_section`.

    Raises:
        InputError: the file cannot be written.
    """
    page = scores_page(title, evaluation, notes, section)
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with text_file(path, "w") as file:
            file.write(page)


def scores_page(title: str, evaluation: Evaluation, notes: Sequence[str], section: ClaimsSection) -> str:
    """The page: the verdict, every mean, every comparison, and for answers every claim."""
    env, summary, rows = environment(), summary_rows(evaluation.summary), comparison_rows(evaluation)
    style = styled(env)
    measures = list(dict.fromkeys(row["measure"] for row in summary))
    return env.get_template("scores.html").render(
        title=title,
        said=first_lines(evaluation),
        primary=evaluation.measure,
        asked=asked(evaluation.n, evaluation.clusters),
        measures=measures,
        names=list(dict.fromkeys(row["retriever"] for row in summary)),
        means={(row["retriever"], row["measure"]): row for row in summary},
        low_is_good=evaluation.low_is_good,
        families={measure: [row for row in rows if row["measure"] == measure] for measure in measures},
        notes=notes,
        section=section,
        style=style,
        policy=policy([], str(style)),
    )


def write_sets(place: Path, sets: Sequence[Results], *, report: bool) -> None:
    """Write data_sets.csv beside the folders of the sets, and if asked report.html and report.md.

    Raises:
        InputError: the sets have nothing in common, or a file cannot be written.
    """
    found = results_together(sets)
    out = io.StringIO()
    writer = csv.DictWriter(out, [*COLUMNS, *(f"{ON}{name}" for name in found.sets)], lineterminator="\n")
    writer.writeheader()
    writer.writerows(found.rows())
    files = {}
    if report:
        matrix = ["| | " + " | ".join(found.sets) + " |", "| --- |" + " ---: |" * len(found.sets)]
        matrix += [
            f"| {one} | " + " | ".join(f"{found.mean(name, one):.4f}" for name in found.sets) + " |"
            for one in found.ranked
        ]
        lines = [f"# {place.name}: {found.measure}", "", *sets_sentences(found, MOST), "", *matrix, ""]
        files = {"report.md": "\n".join(lines), "report.html": sets_page(place.name, found, sets)}
    for name, content in {**files, SETS: out.getvalue()}.items():  # last the table: by it the folder is known
        with create(place / name) as file:
            file.write(content)


def sets_page(title: str, found: SetsTogether, sets: Sequence[Results]) -> str:
    """The page as one HTML file without scripts.

    Args:
        title: the experiment's name.
        found: the sets together.
        sets: their results, whose folders lie beside the page.
    """
    env, order, first = environment(), found.ranked, sets[0]
    drawn = marks({name: first.manifest.identity(name) for name in order})
    panels: dict[str, list[charts.Dot]] = {}
    for name, scores in found.sets.items():
        for one in order:
            values = scores.values[found.measure][one]
            middle = found.mean(name, one)
            low, high, _ = mean_interval(
                values, found.settings.level, binary=found.measure in scores.binary,
                bounds=scores.range_of(found.measure), units=scores.units,
            )  # fmt: skip
            ends = (middle if low is None else low, middle if high is None else high)
            panels.setdefault(name, []).append(charts.Dot(one, middle, *ends))
    multiples = figure(
        "data-sets",
        f"{found.measure} on each data set, with {100 * found.settings.level:g} % intervals",
        "; ".join(f"{name}: {dot.retriever} {dot.mean:.3f}" for name, dots in panels.items() for dot in dots),
        lambda width: charts.dots(order, panels, drawn, width),
    )
    style = styled(env)
    return env.get_template("data_sets.html").render(
        title=title,
        found=found,
        sentences=sets_sentences(found, MOST),
        reported={one.manifest.name: (one.folder / "report.html").is_file() for one in sets},
        best={name: max(found.mean(name, one) for one in order) for name in found.sets},
        pairs=sorted((pair.leading for pair in found.pairs), key=lambda pair: -abs(pair.mean_difference)),
        beyond=all(pair.like is not None for pair in found.pairs),
        multiples=multiples,
        drawn=Markup(inline(multiples)),  # noqa: S704 - ours
        style=style,
        policy=policy([], str(style)),
    )

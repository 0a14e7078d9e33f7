"""The page of several data sets: small multiples, a matrix of retriever and set, and what they say together."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path

from markupsafe import Markup

from harness.evaluation.across_sets import COLUMNS, ON, SetsTogether
from harness.evaluation.set_folders import SETS, results_together
from harness.evaluation.statements import sets_sentences
from harness.pages import policy
from harness.records import Results, create
from harness.report import charts, figures
from harness.report.figures import figure
from harness.report.html_page import environment, styled
from harness.report.theme import marks
from harness.report.view import identity
from harness.stats.intervals import mean_interval

MOST = 20
"""Pairs whose sentence stands on the page; the CSV file has all."""


def write(place: Path, sets: Sequence[Results], *, report: bool) -> None:
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
        files = {"report.md": "\n".join(lines), "report.html": page(place.name, found, sets)}
    for name, content in {**files, SETS: out.getvalue()}.items():  # last the table: by it the folder is known
        with create(place / name) as file:
            file.write(content)


def page(title: str, found: SetsTogether, sets: Sequence[Results]) -> str:
    """The page as one HTML file without scripts.

    Args:
        title: the experiment's name.
        found: the sets together.
        sets: their results, whose folders lie beside the page.
    """
    env, order, first = environment(), found.ranked, sets[0]
    drawn = marks({name: identity(first.manifest, name) for name in order})
    panels: dict[str, list[charts.Dot]] = {}
    for name, scores in found.sets.items():
        for one in order:
            values = scores.values[found.measure][one]
            middle = found.mean(name, one)
            low, high, _ = mean_interval(
                values, found.settings.level, bounds=scores.range_of(found.measure), units=scores.units
            )
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
        sentences=[
            one.replace("(p = ", "(p\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}") for one in sets_sentences(found, MOST)
        ],
        reported={one.manifest.name: (one.folder / "report.html").is_file() for one in sets},
        best={name: max(found.mean(name, one) for one in order) for name in found.sets},
        pairs=sorted((pair.leading for pair in found.pairs), key=lambda pair: -abs(pair.mean_difference)),
        beyond=all(pair.like is not None for pair in found.pairs),
        multiples=multiples,
        drawn=Markup(figures.inline(multiples)),  # noqa: S704 - ours
        style=style,
        policy=policy([], str(style)),
    )

"""Charts as SVG, and what a section is made of: one specification serves page, files under figures/ and Markdown."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any, NamedTuple

from harness.report import charts
from harness.report.theme import config

ChartRows = Sequence[Mapping[str, Any]]
BACKGROUND = re.compile(r'<rect width="[\d.]+" height="[\d.]+" fill="white"\s*/?>(</rect>)?')
ROLES = re.compile(r' (?:role|aria-[a-z]+|pointer-events)="[^"]*"')


class Figure(NamedTuple):
    """One chart."""

    name: str
    """Of its file."""
    title: str
    """What it shows, in a few words."""
    description: str
    """What is to be seen, for those who do not see it."""
    spec: dict[str, Any]
    """Vega-Lite, data included."""
    follows: str = ""
    """How the page's filter changes it, a kind of `templates/scripts/charts.js`; "" where it does not."""
    pair: tuple[str, ...] = ()
    """The retrievers that it compares."""


def figure(name: str, title: str, description: str, chart: Mapping[str, Any], **data: ChartRows) -> Figure:
    """Put a chart into the common look, and its data into the chart.

    Args:
        name: of its file; what a file name cannot hold becomes a dash.
        title: what it shows.
        description: what is to be seen.
        chart: Vega-Lite with named data.
        data: name -> rows.
    """
    datasets = {key: list(rows) for key, rows in data.items()}
    spec = {"config": config(), **chart, "datasets": datasets, "background": "white"}
    return Figure(re.sub(r"[^A-Za-z0-9.@_-]+", "-", name).strip("-"), title, description, spec)


def svg(figure: Figure) -> str:
    """Draw a figure as an SVG file that stands alone, described for screen readers."""
    import vl_convert

    drawn = ROLES.sub("", vl_convert.vegalite_to_svg(figure.spec))
    start, body = drawn.split(">", 1)
    description = f"<title>{escape(figure.title)}</title><desc>{escape(figure.description)}</desc>"
    return f'{start} role="img">{description}{body}\n'


def inline(drawn: str, name: str) -> str:
    """The same for a page: transparent, its inner ids its own, named by the figure that holds it."""
    body = BACKGROUND.sub("", drawn, count=1).replace(' role="img">', ' aria-hidden="true" focusable="false">', 1)
    body = re.sub(r"<title>.*?</title><desc>.*?</desc>", "", body, count=1, flags=re.DOTALL)
    body = re.sub(r'id="(\w+)"', rf'id="{name}-\1"', body)
    return re.sub(r"url\(#(\w+)\)", rf"url(#{name}-\1)", body)


class Section(NamedTuple):
    """One section: its template is `<id>.html`, with a block for the page and one for Markdown."""

    id: str
    title: str
    context: Mapping[str, Any]
    """What the template reads."""
    figures: tuple[Figure, ...] = ()


class ForestRow(NamedTuple):
    """One difference of a forest plot."""

    label: str
    """What stands beside it."""
    slice: str
    """What it is a difference of: a slice, or the other retriever."""
    difference: float
    low: float | None
    """None where no interval can be estimated: the point stands alone."""
    high: float | None
    queries: int
    record: str
    """Wins, ties and losses."""
    whole: bool = False
    """Whether it is the difference over all queries."""
    beside: str = ""


class ForestWords(NamedTuple):
    """What a forest plot is called, and what its axis says."""

    name: str
    title: str
    description: str
    axis: str


def forest(words: ForestWords, rows: Sequence[ForestRow], margin: float | None) -> Figure:
    """Draw differences in the order given; the margin is a band around zero, None or 0 for none."""
    return figure(
        words.name,
        words.title,
        words.description,
        charts.forest([row.label for row in rows], measure=words.axis, band=bool(margin)),
        rows=[
            {
                **row._asdict(),
                "place": place,
                "low": row.difference if row.low is None else row.low,
                "high": row.difference if row.high is None else row.high,
            }
            for place, row in enumerate(rows)
        ],
        zero=[{"zero": 0}],
        **({"margin": [{"low": -margin, "high": margin}]} if margin else {}),
    )

"""Writes a report into the results folder: page, Markdown, tables for other programs."""

import csv
import io
import json
import math
import shutil
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from markupsafe import Markup

from harness.evaluation.csv_views import costs_of
from harness.evaluation.evidence import next_step, overlaps, to_judge
from harness.measures import parse
from harness.records import Results, create
from harness.report import text
from harness.report.charts import Figure, Section, svg
from harness.report.html_page import (
    environment,
    filled,
    page,
    plain_environment,
    rendered,
    source,
    tables,
)
from harness.report.sections import sections
from harness.report.sections.decision import screen_of
from harness.report.sections.queries import REST, rest
from harness.report.text import cell
from harness.report.view import View, view_of

MOST = 200
"""Queries that a table lists."""


def markdown(view: View, sections: Sequence[Section]) -> str:
    """Return report.md, from the same contexts as the page; images are the files under figures/."""
    env = plain_environment(escaped)
    env.globals |= {"image": _image, "most": MOST}
    return "\n".join(
        rendered(env, section, "markdown", view=view).strip("\n") + "\n"
        for section in sections
    )


def _image(figure: Figure) -> Markup:
    words = text.markdown(f"{figure.title}: {figure.description}")
    return Markup(f"![{words}](figures/{quote(figure.name, safe='@')}.svg)")  # noqa: S704 - escaped above


def escaped(value: Any) -> Any:
    """A value for Markdown: text is escaped."""
    return (
        text.markdown(value)
        if isinstance(value, str) and not isinstance(value, Markup)
        else value
    )


MTEB = {
    "nDCG": "ndcg",
    "AP": "map",
    "R": "recall",
    "P": "precision",
    "RR": "mrr",
    "Success": "hit_rate",
}
"""Measures that MTEB computes in the same way, with its names."""


def mteb(view: View) -> dict[str, str]:
    """Return a result for each retriever in MTEB's format, without measures that MTEB defines differently.

    `main_score` is the primary measure.
    """
    manifest = view.manifest
    files = {}
    for name in view.retrievers:
        means = {full: view.mean(full, name) for full in view.measures}
        scores = {
            key: means[full]
            for full in view.measures
            if (key := _called(full)) is not None
        }
        result: dict[str, Any] = {
            "dataset_revision": manifest.dataset.digest,
            "task_name": manifest.name,
            "mteb_version": None,
            "scores": {
                "test": [
                    {
                        **scores,
                        "main_score": means[view.primary],
                        "hf_subset": "default",
                        "languages": ["und"],
                    }
                ]
            },
            "evaluation_time": None,
            "kg_co2_emissions": None,
        }
        files[name] = json.dumps(result, ensure_ascii=False, indent=2) + "\n"
    return files


def spreadsheet(view: View) -> str:
    """Return the scores of every query as CSV for spreadsheets, in which no cell is run as a formula."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    columns = [(measure, name) for measure in view.measures for name in view.retrievers]
    writer.writerow(
        [
            "query",
            "text",
            *(cell(f"{view.names[measure].short} {name}") for measure, name in columns),
        ]
    )
    scored = [view.scores[measure][name].tolist() for measure, name in columns]
    for i in view.order:
        values = ("" if math.isnan(values[i]) else repr(values[i]) for values in scored)
        writer.writerow([cell(view.ids[i]), cell(view.query(i).query.text), *values])
    # Spreadsheets detect UTF-8 by its byte order mark.
    return "\ufeff" + out.getvalue()


def first_screen(results: Results) -> str:
    """Return the first screen as self-contained HTML; without labels, the next step."""
    if not results.scored:
        return str(
            Markup("<p>No query has labels. Next: {}</p>").format(
                text.visible(next_step(results))
            )
        )
    view, style = view_of(results), Markup(source("board.css"))  # noqa: S704 - ours
    return (
        environment()
        .get_template("first_screen.html")
        .render(view=view, style=style, screen=screen_of(view))
    )


def _called(full: str) -> str | None:
    measure = parse(full)
    if measure.params or measure.cutoff is None or measure.name not in MTEB:
        return None
    return f"{MTEB[measure.name]}_at_{measure.cutoff}"


def unlabelled(results: Results) -> dict[str, str]:
    """Return the files of the report: file name -> content."""
    variables = {
        "manifest": results.manifest,
        "queries": len(results.queries),
        "next_step": next_step(results),
        "overlaps": list(overlaps(results)),
        "judging": to_judge(results),
        "text_of": lambda query: results.queries[query].query.text,
        "costs": costs_of(results),
    }
    text = plain_environment(escaped).get_template("unlabelled.md").render(**variables)
    return {"report.html": filled("unlabelled.html", variables), "report.md": text}


def write_report(results: Results) -> None:
    """Write report.html, report.md, tables and figures, and remove those of an earlier report.

    Raises:
        InputError: the folder cannot be written to.
    """
    files = _report(results) if results.scored else unlabelled(results)
    for part in ("figures", "tables"):
        shutil.rmtree(results.folder / part, ignore_errors=True)
    if REST not in files:
        (results.folder / REST).unlink(missing_ok=True)
    for name, content in files.items():
        with create(results.folder / name) as file:
            file.write(content)


def _report(results: Results) -> dict[str, str]:
    """The files of a report with scores: file name -> content."""
    view = view_of(results)
    shown = [
        section for function in sections() if (section := function(view)) is not None
    ]
    files = {
        f"figures/{figure.name}.svg": svg(figure)
        for section in shown
        for figure in section.figures
    }
    files |= {f"tables/{name}.tex": table for name, table in tables(view).items()}
    files |= {f"tables/{name}.mteb.json": result for name, result in mteb(view).items()}
    files["tables/queries.csv"] = spreadsheet(view)
    files["report.md"] = markdown(view, shown)
    beside = {
        file.relative_to(results.folder).as_posix()
        for file in results.folder.rglob("*")
        if file.is_file()
    }
    (queries_section,) = (section for section in shown if section.id == "queries")
    if more := rest(view, queries_section):
        others, section = more
        files[REST] = page(others, [shown[0], section])
    kept = {
        name for name in beside if not name.startswith(("figures/", "tables/", REST))
    }
    files["report.html"] = page(
        view, shown, (kept | files.keys() | {"manifest.json"}) - {"report.html"}
    )
    return files

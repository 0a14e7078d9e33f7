"""Pages without scripts: per-query scores of any tool, the claims of answers, several data sets."""

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from harness.english import asked
from harness.evaluation.across_sets import COLUMNS, ON, SetsTogether
from harness.evaluation.conclusions import FEW_SETS, first_lines, sets_sentences
from harness.evaluation.csv_views import comparison_rows, summary_rows
from harness.evaluation.evaluation import Evaluation
from harness.evaluation.set_folders import SETS, results_together
from harness.evaluation.wording import SIGNS
from harness.pages import policy
from harness.records import Results, create
from harness.report.html_page import environment, styled
from harness.report.theme import declared_shades
from harness.report.view import retriever_colors

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
        section: for answers, the fate of their claims: see `harness.answers.claims_section`.

    Raises:
        InputError: the file cannot be written.
    """
    env, summary, rows = environment(), summary_rows(evaluation.summary), comparison_rows(evaluation)
    style = styled(env)
    measures = list(dict.fromkeys(row["measure"] for row in summary))
    page = env.get_template("scores.html").render(
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
    with create(path) as file:
        file.write(page)


def write_sets(place: Path, sets: Sequence[Results], *, report: bool) -> None:
    """Write data_sets.csv next to the folders of the sets, and report.html and report.md if `report` is set.

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
        shown = {"title": place.name, "found": found, "sentences": sets_sentences(found, MOST)}
        page = environment().get_template("data_sets.html").render(**shown, **_besides(found, sets))
        files = {"report.md": environment().get_template("data_sets.md").render(**shown), "report.html": page}
    for name, content in {**files, SETS: out.getvalue()}.items():  # the table last: it marks the folder as complete
        with create(place / name) as file:
            file.write(content)


def _besides(found: SetsTogether, sets: Sequence[Results]) -> dict[str, Any]:
    """The other variables of the page: the pairs, and the sets that have a report."""
    colors = retriever_colors(sets[0])
    style = styled(environment(), declared_shades(colors))
    of = [{pair.a, pair.b} for pair in found.pairs]
    leads = sum(found.ranked[0] in names for names in of) == len(found.ranked) - 1
    reference = found.ranked[0] if leads else found.pairs[0].b
    turned = [pair if pair.b == reference else pair.swapped for pair in found.pairs if reference in (pair.a, pair.b)]
    return {
        "colors": colors,
        "reported": {one.manifest.name: (one.folder / "report.html").is_file() for one in sets},
        "best": {name: max(found.mean(name, one) for one in found.ranked) for name in found.sets},
        "pairs": sorted((pair.leading for pair in found.pairs), key=lambda pair: -abs(pair.mean_difference)),
        "rows": {pair.a: pair for pair in turned},
        "reference": reference,
        "few": FEW_SETS,
        "beyond": all(pair.like is not None for pair in found.pairs),
        "signs": SIGNS,
        "style": style,
        "policy": policy([], str(style)),
    }

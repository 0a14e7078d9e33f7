"""A page of several data sets.

It shows the comparison over the sets (`evaluation.sets`), and the queries of each set
by the sections of a single report.
"""

import csv
import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from harness.english import count_of, count_queries
from harness.evaluation.compare_sets import compare_sets_of_folder
from harness.evaluation.costs import RetrieverCost, retriever_costs
from harness.evaluation.sets import PairOnSets, SetsComparison
from harness.records import Results, new_text_file
from harness.records.data_sets_csv import SET_COLUMN_PREFIX, SETS_COLUMNS, SETS_FILE
from harness.report.charts.strip import StripAxis, fit_strip_axis
from harness.report.language import language_attribute
from harness.report.query_browser import QueryBrowser, build_query_browser
from harness.report.report_file import ReportFile
from harness.report.sections.failing_slices import failing_slices
from harness.report.sections.fails import (
    MAX_PAGE_BYTES,
    build_evidence,
    loss_sentence,
)
from harness.report.sections.pairs import STATE_BY_VERDICT
from harness.report.sections.provenance import repetition_sentence, results_path
from harness.report.templates import html_environment, render_page
from harness.report.view import View, build_view
from harness.stats.differences import paired_differences
from harness.stats.intervals import mean, student_interval
from harness.stats.over_sets import MIN_SETS
from harness.wording.dates import date_text
from harness.wording.sets import (
    few_sets_note,
    sets_sentences,
    sets_verdict,
)
from harness.wording.verdicts import VERDICT_SIGNS

MAX_PAIR_SENTENCES = 20
"""Pairs with a sentence; the CSV file has all."""
MAX_DRAWN_SETS = 4
"""Sets up to which each has a column of dots."""
SCRIPTS = ("start", "sort", "card", "picture", "queries", "sets")


class SetGap(NamedTuple):
    """One retriever on one set, against the reference."""

    data_set: str
    difference: float
    """Points of the measure behind the leader, or ahead of the baseline."""
    low: float | None
    """Both ends are None if no interval can be estimated."""
    high: float | None
    state: str
    """Its class in the style sheet, without "is-"; it follows the interval."""


class SetsRow(NamedTuple):
    """One retriever of the board."""

    retriever: str
    state: str
    sign: str
    word: str
    mean: float
    """Mean of its means on the sets."""
    gap: float | None
    """The mean gap to the reference; None for the reference itself."""
    p: float | None
    """Adjusted p of its pair with the reference; None for the reference itself."""
    sets_won: int
    """How many sets have no higher mean than its own."""
    gaps: tuple[SetGap | None, ...]
    """The gap on each set; None for the reference."""


def write_sets_page(
    folder: Path,
    sets: Sequence[Results],
    *,
    report: bool = True,
    shows_texts: bool = True,
) -> None:
    """Write data_sets.csv, and the report, next to the folders of the sets.

    Args:
        folder: of all sets.
        sets: the results of each.
        report: whether report.html and report.md are written, too.
        shows_texts: whether they show texts of queries and documents, or ids.

    Raises:
        InputError: the sets have nothing in common, or a file cannot be written.
    """
    comparison = compare_sets_of_folder(sets)
    files: list[ReportFile] = []
    if report:
        views = [build_view(results, shows_texts=shows_texts) for results in sets]
        files = _report_files(folder.name, comparison, views)
    # The table is last: it marks the folder as complete.
    files.append(ReportFile(SETS_FILE, _sets_table(comparison)))
    for report_file in files:
        with new_text_file(folder / report_file.path) as file:
            file.write(report_file.content)


def _sets_table(comparison: SetsComparison) -> str:
    """Return data_sets.csv."""
    out = io.StringIO()
    set_columns = [f"{SET_COLUMN_PREFIX}{name}" for name in comparison.sets]
    writer = csv.DictWriter(out, [*SETS_COLUMNS, *set_columns], lineterminator="\n")
    writer.writeheader()
    writer.writerows(comparison.rows())
    return out.getvalue()


def _report_files(
    title: str, comparison: SetsComparison, views: Sequence[View]
) -> list[ReportFile]:
    """Return the files of the report."""
    sentences = sets_sentences(comparison, MAX_PAIR_SENTENCES)
    markdown = (
        html_environment()
        .get_template("data_sets.md")
        .render(title=title, comparison=comparison, sentences=sentences)
    )
    return [
        ReportFile("report.md", markdown),
        ReportFile("report.html", _sets_html(title, comparison, views)),
    ]


def _sets_html(title: str, comparison: SetsComparison, views: Sequence[View]) -> str:
    """Return the page as one HTML file."""
    sets = [view.results for view in views]
    reference = _reference(comparison)
    is_leader = reference == comparison.ranked_retrievers[0]
    rows = list(_board_rows(comparison, reference))
    verdict = sets_verdict(comparison)
    variables = {
        "title": title,
        "facts": _facts(comparison, sets, views[0]),
        "headline": verdict.headline,
        "reason": verdict.reason,
        "warnings": _warnings(comparison),
        "comparison": comparison,
        "rows": rows,
        "is_drawn": len(sets) <= MAX_DRAWN_SETS,
        "reference": reference,
        "is_leader": is_leader,
        "axis": _strip_axis(comparison, rows, is_signed=not is_leader),
        "reported": {
            results.manifest.name: (results.folder / "report.html").is_file()
            for results in sets
        },
        "pairs": _ordered_pairs(comparison),
        "signs": VERDICT_SIGNS,
        "states": STATE_BY_VERDICT,
        "beyond": len(sets) >= MIN_SETS,
        "costs": _costs_by_set(sets),
        "repetition": repetition_sentence(sets[0].manifest),
        "folders": [results_path(results) for results in sets],
        "version": sets[0].manifest.version_of("retriever-harness"),
        "lang": language_attribute(views[0].language),
        "browser": _query_browser(list(comparison.sets), views),
    }
    return render_page("data_sets.html", variables, SCRIPTS)


def _query_browser(set_names: Sequence[str], views: Sequence[View]) -> QueryBrowser:
    """The queries of every set; those of the first are shown first."""
    max_bytes = MAX_PAGE_BYTES // len(views)
    evidences = [
        build_evidence(view, failing_slices(view).groups, max_bytes) for view in views
    ]
    choices: list[dict[str, object]] = []
    for set_name, view, evidence in zip(set_names, views, evidences, strict=True):
        sentence = loss_sentence(view, evidence)
        choices.append({"set": set_name, "sentence": sentence, **evidence.as_record()})
    first_sentence = loss_sentence(views[0], evidences[0])
    return build_query_browser(evidences[0], first_sentence, {"sets": choices})


def _facts(
    comparison: SetsComparison, sets: Sequence[Results], view: View
) -> tuple[str, ...]:
    queries = sum(scores.n for scores in comparison.sets.values())
    documents = sum(results.manifest.dataset.documents for results in sets)
    return (
        count_of(len(comparison.sets), "data set"),
        count_queries(queries),
        count_of(documents, "document"),
        view.names[view.primary].short,
        date_text(max(results.manifest.started for results in sets)),
    )


def _warnings(comparison: SetsComparison) -> list[str]:
    if len(comparison.sets) < MIN_SETS:
        return [few_sets_note(len(comparison.sets))]
    return []


def _board_rows(comparison: SetsComparison, reference: str) -> Iterator[SetsRow]:
    """The retrievers by their mean over the sets."""
    is_leader = reference == comparison.ranked_retrievers[0]
    pairs = _pairs_with_reference(comparison, reference)
    for name in comparison.ranked_retrievers:
        set_means = [comparison.mean(set_name, name) for set_name in comparison.sets]
        overall = sum(set_means) / len(set_means)
        won = sum(name in comparison.best_on(set_name) for set_name in comparison.sets)
        pair = pairs.get(name)
        if pair is None:  # the reference, with which every other has a pair
            word = "leader" if is_leader else "baseline"
            sign = "●" if is_leader else ""
            no_gaps = (None,) * len(comparison.sets)
            yield SetsRow(name, word, sign, word, overall, None, None, won, no_gaps)
            continue
        state = STATE_BY_VERDICT[pair.verdict]
        gap = -pair.mean_difference if is_leader else pair.mean_difference
        yield SetsRow(
            name,
            state,
            VERDICT_SIGNS[pair.verdict],
            pair.verdict.value,
            overall,
            gap,
            pair.p_adjusted,
            won,
            tuple(
                _set_gap(comparison, set_name, (reference, name), behind=is_leader)
                for set_name in comparison.sets
            ),
        )


def _set_gap(
    comparison: SetsComparison, set_name: str, pair: tuple[str, str], *, behind: bool
) -> SetGap:
    """The difference of a retriever from the reference on one set."""
    reference, name = pair
    scores = comparison.sets[set_name]
    columns = scores.values[comparison.measure]
    first, second = (reference, name) if behind else (name, reference)
    differences = paired_differences(columns[first], columns[second])
    units = scores.units
    interval = student_interval(
        differences.values,
        comparison.settings.level,
        bounds=scores.difference_range(scores.primary),
        units=units,
    )
    state = "undecided"
    if interval.low is not None and interval.high is not None:
        if interval.low > 0:
            state = "worse" if behind else "better"
        elif interval.high < 0:
            state = "better" if behind else "worse"
    difference = mean(differences.values, units.weights)
    return SetGap(set_name, difference, interval.low, interval.high, state)


def _strip_axis(
    comparison: SetsComparison, rows: Sequence[SetsRow], *, is_signed: bool
) -> StripAxis:
    ends = [0.0]
    for row in rows:
        for gap in row.gaps:
            if gap is not None:
                numbers = (gap.difference, gap.low, gap.high)
                ends += [number for number in numbers if number is not None]
    margin = comparison.settings.margin
    return fit_strip_axis(ends, margin, is_signed=is_signed, max_ticks=3)


def _pairs_with_reference(
    comparison: SetsComparison, reference: str
) -> dict[str, PairOnSets]:
    """Retriever -> its pair with the reference."""
    pairs: dict[str, PairOnSets] = {}
    for pair in comparison.pairs:
        if reference in (pair.a, pair.b):
            reference_pair = pair if pair.b == reference else pair.swapped
            pairs[reference_pair.a] = reference_pair
    return pairs


def _ordered_pairs(comparison: SetsComparison) -> list[PairOnSets]:
    return sorted(
        (pair.leader_first for pair in comparison.pairs),
        key=lambda pair: -abs(pair.mean_difference),
    )


def _costs_by_set(sets: Sequence[Results]) -> dict[str, dict[str, RetrieverCost]]:
    return {results.manifest.name: retriever_costs(results) for results in sets}


def _reference(comparison: SetsComparison) -> str:
    """Return the retriever that the others are compared with.

    It is the leader if it was compared with all others, else the baseline.
    """
    leader = comparison.ranked_retrievers[0]
    leader_pairs = sum(leader in (pair.a, pair.b) for pair in comparison.pairs)
    if leader_pairs == len(comparison.ranked_retrievers) - 1:
        return leader
    return comparison.pairs[0].b

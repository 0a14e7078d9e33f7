"""Results as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

from harness.console.columns import text_line
from harness.console.forest import leaderboard_in_letters
from harness.console.output import print_json, print_lines, print_to_fit, print_warnings
from harness.console.result_tables import comparisons_table, leaderboard_table
from harness.console.score_tables import folders_table, means_table
from harness.english import common_prefix, count_queries, count_units, join_names

if TYPE_CHECKING:
    from rich.console import RenderableType

    from harness.evaluation.evaluation import Evaluation
    from harness.records import Results
    from harness.report.index import ResultsListing
    from harness.scoring.scores import Scores


def print_results(
    results: Results, *, quiet: bool, as_json: bool, explain: bool = False
) -> None:
    """The verdict in words, what may change it, the paired leaderboard, and where to read on."""
    if as_json:
        from harness.evaluation.evaluation_file import read_or_evaluate
        from harness.wording.conclusion import conclusion_headline

        failed = [
            {"retriever": name, "error": error}
            for name, error in results.manifest.failed.items()
        ]
        rows = {
            name: [*results.rows(name)] for name in ("scores", "summary", "comparisons")
        }
        evaluation = read_or_evaluate(results) if results.scored else None
        choice = None if evaluation is None else evaluation.sweep
        sweep = {} if choice is None else {"sweep": asdict(choice)}
        incomplete = (
            "" if evaluation is None or not failed else conclusion_headline(evaluation)
        )
        print_json(**rows, failed=failed, incomplete=incomplete, **sweep)
    elif not quiet:
        print_to_fit(results_lines, results, explain)
        print_warnings(
            *(f"warning: {warning}" for warning in results.manifest.warnings)
        )
        page = results.folder / "report.html"
        print_lines(
            f"report: {page}" if page.is_file() else f"results: {results.folder}"
        )


def print_listing(
    listing: ResultsListing, folder: Path, *, quiet: bool, as_json: bool
) -> None:
    """The runs of a folder of results, newest first, what is not listed, and where the page is."""
    if as_json:
        runs = [
            {
                "folder": entry.folder,
                "started": entry.manifest.started,
                "experiment": entry.manifest.name,
                "dataset": entry.manifest.dataset.path,
                "digest": entry.manifest.dataset.digest,
                "measure": entry.primary,
                "means": dict(entry.means),
                "failed": list(entry.manifest.failed),
            }
            for entry in listing.entries
        ]
        print_json(runs=runs, not_listed=[one._asdict() for one in listing.skipped])
    elif not quiet:
        print_to_fit(folders_table, listing.entries)
        print_warnings(
            *(f"not listed: {one.folder}: {one.reason}" for one in listing.skipped)
        )
        print_lines("", f"index: {folder / 'index.html'}")


def print_scores(
    scores: Scores,
    evaluation: Evaluation,
    notes: Sequence[str],
    *,
    as_json: bool,
    explain: bool = False,
) -> None:
    """Per-query scores of any tool: means, comparisons, the verdict in words, what to know about the numbers."""
    from harness.writing.evaluation_tables import comparison_rows, summary_rows

    summary = summary_rows(evaluation.summary)
    if as_json:
        rows = [row._asdict() for row in scores.rows()]
        print_json(
            scores=rows,
            summary=summary,
            comparisons=comparison_rows(evaluation),
            notes=list(notes),
        )
        return
    print_to_fit(means_table, summary)
    print_lines("")
    print_to_fit(verdict_text, evaluation, explain=explain)
    print_lines(*notes)


MAX_PRINTED_WARNINGS = 2
"""Warnings that are told unasked: --explain tells them all."""
MAX_PRINTED_CONFIGURATIONS = 2
"""Configurations of a sweep that are told unasked, beside its default."""


def results_lines(
    results: Results, explain: bool, *, width: int
) -> Iterator[RenderableType]:
    """All that a run has to say: the verdict, what may change it, the paired leaderboard."""
    from harness.evaluation.evaluation_file import read_or_evaluate
    from harness.evaluation.warnings import warning_sentences
    from harness.wording.verdicts import abstention_sentence

    if not results.scored:
        yield from _unlabelled(results)
        return
    evaluation = read_or_evaluate(results)
    head = f"{results.manifest.name} · {evaluation.measure} · {count_queries(evaluation.n)}"
    notes = warning_sentences(evaluation.warnings)
    yield from verdict_text(
        evaluation, width=width, explain=explain, notes=notes, head=head
    )
    if evaluation.abstention is not None:
        yield text_line(abstention_sentence(evaluation.abstention))
    if explain:
        yield from _stems(results)


def _unlabelled(record: Results) -> Iterator[RenderableType]:
    """What rankings without labels show, and the next step."""
    from harness.evaluation.judging_effort import (
        SECONDS_PER_JUDGMENT,
        judging_effort,
        pool_command,
    )
    from harness.evaluation.pair_diagnostics import ranking_overlaps

    judging = judging_effort(record)
    yield text_line("No query has labels: there are rankings to judge, and no scores.")
    yield text_line(
        f"The first ten hits of each retriever make {judging.pairs:,} pairs of query and document: about "
        f"{judging.time} at {SECONDS_PER_JUDGMENT} seconds a label."
    )
    for row in ranking_overlaps(record):
        common = f"{row.common:.1f} of the first 10 in common"
        yield text_line(
            f"{row.a} and {row.b}: {common}, rank-biased overlap {row.rbo:.3f}"
        )
    yield from _stems(record)
    yield text_line(f"next: {pool_command(record)}")


def _stems(record: Results) -> Iterator[RenderableType]:
    """How the retrievers that compare words take them: "bm25: words stemmed as English"."""
    named: dict[str, list[str]] = {}
    for name, facts in record.manifest.retrievers.items():
        if how := facts.provenance.get("words"):
            named.setdefault(how, []).append(name)
    yield from (
        text_line(f"{join_names(names)}: words {how}") for how, names in named.items()
    )


def verdict_text(
    evaluation: Evaluation,
    *,
    width: int,
    explain: bool = False,
    notes: Sequence[str] = (),
    complete: bool = True,
    head: str = "",
) -> Iterator[RenderableType]:
    """The verdict in words, what may change it, the paired leaderboard; then what was asked for besides.

    Args:
        evaluation: what was found.
        width: cells of the terminal.
        explain: whether all that was found is printed.
        notes: what may change the verdict.
        complete: whether no retriever is missing; else nothing is recommended.
        head: on what; the measure and the number of queries if left out.
    """
    from harness.wording.conclusion import verdict_lines
    from harness.writing.evaluation_tables import summary_rows

    said, board = verdict_lines(evaluation, complete=complete), evaluation.board
    beginning = common_prefix([row.retriever for row in board.rows])

    def short(sentence: str) -> str:
        # The head of the table says once what all names begin with.
        return sentence.replace(beginning, "…") if beginning else sentence

    yield text_line(
        head
        or f"{evaluation.measure} over {count_units(evaluation.n, evaluation.clusters)}",
        "dim",
    )
    yield text_line(short(f"{said.headline}. {said.reason}".rstrip()), "bold")
    for sentence in said.details if explain else ():
        yield text_line(short(sentence))
    few = [
        *board.rows[:MAX_PRINTED_CONFIGURATIONS],
        *(
            row
            for row in board.rows[MAX_PRINTED_CONFIGURATIONS:]
            if row.standing in ("baseline", "failed")
        ),
    ]
    shown = board.rows if explain or evaluation.sweep is None else few
    yield from leaderboard_in_letters(replace(board, rows=tuple(shown)), width=width)
    if left := len(board.rows) - len(shown):
        yield text_line(f"{left} more: --explain", "dim")
    notes = [*said.alerts, *notes]
    for note in notes if explain else notes[:MAX_PRINTED_WARNINGS]:
        yield text_line(f"! {short(note)}")
    if said.next_step:
        yield text_line(short(said.next_step))
    if not explain:
        return
    yield ""
    yield from leaderboard_table(
        summary_rows(evaluation.summary),
        evaluation.measure,
        width=width,
        level=evaluation.settings.level,
        clusters=evaluation.clusters,
        low_is_good=evaluation.low_is_good,
    )
    yield ""
    if rows := evaluation.comparisons[evaluation.measure]:
        yield from comparisons_table(
            rows, width=width, settings=evaluation.settings, leader=evaluation.leader
        )

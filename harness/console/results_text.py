"""Results as text.

`print_results` prints one run, `print_listing` a folder of runs, `print_scores` the
scores of any tool, each for people or as JSON. `verdict_text` is the part that all
comparisons share: the verdict, the leaderboard, its notes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

from harness.console.columns import command_line, text_line
from harness.console.forest import leaderboard_in_letters
from harness.console.output import print_json, print_lines, print_to_fit, print_warnings
from harness.console.result_tables import comparisons_table, leaderboard_table
from harness.console.score_tables import means_table
from harness.english import (
    common_prefix,
    count_queries,
    count_units,
    join_names,
)

if TYPE_CHECKING:
    from rich.console import RenderableType

    from harness.evaluation.board import Board
    from harness.evaluation.costs import RetrieverCost
    from harness.evaluation.evaluation import Evaluation
    from harness.records import Results
    from harness.scoring.scores import Scores
    from harness.wording.conclusion import VerdictLines


MAX_PRINTED_WARNINGS = 2
"""Warnings that are printed without --explain."""


def print_results(
    results: Results, *, quiet: bool, as_json: bool, explain: bool = False
) -> None:
    """Print the verdict, its warnings, the leaderboard, and the report's path."""
    if as_json:
        _print_results_json(results)
        return
    if quiet:
        return
    print_to_fit(results_lines, results, explain)
    print_warnings(*(f"warning: {warning}" for warning in results.manifest.warnings))
    page = results.folder / "report.html"
    print_lines(f"report: {page}" if page.is_file() else f"results: {results.folder}")


def _print_results_json(results: Results) -> None:
    """Print the tables of a run, what failed, the verdict with its leaderboard, and the
    choice of a sweep.
    """  # noqa: D205
    from harness.evaluation.evaluation_file import read_or_evaluate
    from harness.records.staging import quoted_folder
    from harness.wording.conclusion import verdict_lines

    failed = [
        {"retriever": failure.retriever, "error": failure.reason}
        for failure in results.manifest.failed
    ]
    tables: dict[str, object] = {
        table: [*results.rows(table)] for table in ("scores", "summary", "comparisons")
    }
    tables["failed"] = failed
    tables["incomplete"] = ""
    tables["verdict"] = None  # without labels there is none
    tables["board"] = []
    if results.scored:
        evaluation = read_or_evaluate(results)
        verdict = verdict_lines(evaluation, folder=quoted_folder(results.folder))
        if failed:
            tables["incomplete"] = verdict.headline
        tables["verdict"] = _verdict_object(verdict)
        tables["board"] = [asdict(row) for row in evaluation.board.rows]
        if evaluation.sweep is not None:
            tables["sweep"] = asdict(evaluation.sweep)
    print_json(**tables)


def _verdict_object(verdict: VerdictLines) -> dict[str, str]:
    """Return the lines above the leaderboard as the object that `--json` prints."""
    next_lines = filter(None, (verdict.next_step, verdict.command))
    return {
        "headline": verdict.headline,
        "reason": verdict.reason,
        "next": " ".join(next_lines),
    }


def print_scores(
    scores: Scores,
    evaluation: Evaluation,
    notes: Sequence[str],
    *,
    as_json: bool,
    explain: bool = False,
) -> None:
    """Print per-query scores of any tool: means, comparisons, the verdict, notes."""
    from harness.writing.evaluation_tables import comparison_rows, summary_rows

    if as_json:
        rows = [row._asdict() for row in scores.rows()]
        print_json(
            scores=rows,
            summary=summary_rows(evaluation.summary),
            comparisons=comparison_rows(evaluation),
            notes=list(notes),
        )
        return
    print_to_fit(means_table, evaluation.summary)
    print_lines("")
    print_to_fit(verdict_text, evaluation, explain=explain)
    print_lines(*notes)


def results_lines(
    results: Results, explain: bool, *, width: int
) -> Iterator[RenderableType]:
    """The text of a run: the verdict, its warnings, the paired leaderboard."""
    from harness.evaluation.costs import retriever_costs
    from harness.evaluation.evaluation_file import read_or_evaluate
    from harness.evaluation.warning_sentences import warning_sentences
    from harness.records.staging import quoted_folder
    from harness.wording.looks import look_sentences
    from harness.wording.verdicts import abstention_sentence

    if not results.scored:
        yield from _unlabelled_lines(results)
        return
    evaluation = read_or_evaluate(results)
    queries = count_queries(evaluation.n)
    yield from verdict_text(
        evaluation,
        width=width,
        explain=explain,
        notes=[*look_sentences(evaluation), *warning_sentences(evaluation.warnings)],
        head=f"{results.manifest.name} · {evaluation.measure} · {queries}",
        folder=quoted_folder(results.folder),
        costs=retriever_costs(results),
    )
    if evaluation.abstention is not None:
        yield text_line(abstention_sentence(evaluation.abstention))
    yield from _equal_settings_lines(results)
    if explain:
        yield from _stemming_lines(results)


def _equal_settings_lines(results: Results) -> Iterator[RenderableType]:
    """Which retrievers are the same one under several names."""
    for names in results.manifest.resolved.retrievers_of_equal_settings():
        same = f"{join_names(names)} have the same settings"
        yield text_line(f"{same}: one retriever under several names.", "dim")


def _unlabelled_lines(results: Results) -> Iterator[RenderableType]:
    """The overlap of rankings without labels, and the next step."""
    from harness.evaluation.judging_effort import pool_command, sampled_effort
    from harness.evaluation.pair_diagnostics import ranking_overlaps
    from harness.records.staging import is_temporary
    from harness.wording.labelling import effort_sentence

    yield text_line(
        f"No winner yet. {effort_sentence(sampled_effort(results))}", "bold"
    )
    for row in ranking_overlaps(results):
        yield text_line(
            f"{row.a} and {row.b}: {row.common:.1f} of the first 10 in common, "
            f"rank-biased overlap {row.rbo:.3f}"
        )
    yield from _stemming_lines(results)
    if is_temporary(results.folder):
        yield text_line("next: results.save(FOLDER), then in a shell:")
        yield command_line(pool_command(results))
    else:
        yield command_line(f"next: {pool_command(results)}")


def _stemming_lines(results: Results) -> Iterator[RenderableType]:
    """How the retrievers that compare words stem: "bm25: words stemmed as English"."""
    names_by_stemming: dict[str, list[str]] = {}
    for retriever, outcome in results.manifest.retrievers.items():
        stemming = outcome.provenance.model.word_stemming
        if stemming:
            names_by_stemming.setdefault(stemming, []).append(retriever)
    for stemming, names in names_by_stemming.items():
        yield text_line(f"{join_names(names)}: words {stemming}")


def verdict_text(
    evaluation: Evaluation,
    *,
    width: int,
    explain: bool = False,
    notes: Sequence[str] = (),
    complete: bool = True,
    head: str = "",
    folder: str = "RESULTS",
    costs: Mapping[str, RetrieverCost] | None = None,
) -> Iterator[RenderableType]:
    """The verdict in words, its warnings, the paired leaderboard, then explanations.

    Args:
        evaluation: of the run.
        width: cells of the terminal.
        explain: whether everything is printed.
        notes: warnings that may change the verdict.
        complete: whether all retrievers are compared; else none is chosen by cost.
        head: the first line; by default the measure and the number of queries.
        folder: the results folder, quoted for a command.
        costs: of the retrievers that finished; None if unknown.
    """
    from harness.wording.conclusion import verdict_lines

    verdict = verdict_lines(evaluation, complete=complete, folder=folder)
    shown_board = _shown_board(evaluation.board, explain=explain)
    prefix = common_prefix([row.retriever for row in shown_board.rows])

    def shorten(sentence: str) -> str:
        # The head of the table shows the shared start of all names once.
        return sentence.replace(prefix, "…") if prefix else sentence

    queries = count_units(evaluation.n, evaluation.clusters)
    yield text_line(head or f"{evaluation.measure} over {queries}", "dim")
    yield text_line(shorten(f"{verdict.headline}. {verdict.reason}".rstrip()), "bold")
    if explain:
        for sentence in verdict.details:
            yield text_line(shorten(sentence))
    tables = leaderboard_in_letters(shown_board, width=width, costs=costs)
    yield next(tables)  # the leaderboard
    yield from _leaderboard_notes(evaluation, shown_board)
    warnings = [*verdict.alerts, *notes]
    for warning in warnings if explain else warnings[:MAX_PRINTED_WARNINGS]:
        yield text_line(f"! {shorten(warning)}")
    # Costs that have no room in the leaderboard come after the verdict.
    yield from tables
    yield from _missing_cost_lines(costs or {})
    if verdict.next_step:
        yield text_line(shorten(verdict.next_step))
    if verdict.command:
        yield command_line(verdict.command)
    if explain:
        yield from _explanation_tables(evaluation, width=width)


def _missing_cost_lines(
    costs: Mapping[str, RetrieverCost],
) -> Iterator[RenderableType]:
    """Why a price is "?" or a latency is "–", if that is known."""
    from harness.wording.missing_costs import (
        unknown_price_sentences,
        unmeasured_latency_sentences,
    )

    # Of the others only the page says that their latency was not measured.
    cached = {name: cost for name, cost in costs.items() if cost.is_cached}
    sentences = [
        *unmeasured_latency_sentences(cached),
        *unknown_price_sentences(costs),
    ]
    for sentence in sentences:
        yield text_line(sentence.replace("`", ""), "dim")


def _shown_board(board: Board, *, explain: bool) -> Board:
    """The paired leaderboard; of many rows, those that are not shown to be worse."""
    folded = frozenset[str]() if explain else board.folded
    rows = tuple(row for row in board.rows if row.retriever not in folded)
    return replace(board, rows=rows)


def _leaderboard_notes(
    evaluation: Evaluation, shown_board: Board
) -> Iterator[RenderableType]:
    """The lines below the leaderboard: hidden rows, what a star means, notes."""
    from harness.evaluation.warning_sentences import note_sentences
    from harness.wording.verdicts import single_p_note, trials_sentence

    board = evaluation.board
    hidden_rows = len(board.rows) - len(shown_board.rows)
    if hidden_rows:
        verdict = "all worse" if hidden_rows > 1 else "worse"
        yield text_line(f"{hidden_rows} more, {verdict}", "dim")
    star_note = single_p_note(board)
    if star_note:
        yield text_line(star_note, "dim")
    trials_note = trials_sentence(evaluation.trial_means)
    notes = note_sentences(evaluation.warnings)
    for note in [trials_note, *notes] if trials_note else notes:
        yield text_line(note, "dim")


def _explanation_tables(
    evaluation: Evaluation, *, width: int
) -> Iterator[RenderableType]:
    """Every measure, and every pair."""
    yield ""
    yield from leaderboard_table(
        evaluation.summary,
        evaluation.measure,
        width=width,
        level=evaluation.settings.level,
        clusters=evaluation.clusters,
        low_is_good=evaluation.low_is_good,
    )
    yield ""
    rows = evaluation.comparisons[evaluation.measure]
    if rows:
        yield from comparisons_table(
            rows, width=width, settings=evaluation.settings, leader=evaluation.leader
        )

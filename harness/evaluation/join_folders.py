"""One table of scores from several folders.

Their rankings are scored again, on the queries that all of them have with the same
text and the same grades. A retriever with the same results in two folders occurs once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from harness import records
from harness.english import join_names
from harness.evaluation.join_scores import FolderScores, join_scores
from harness.evaluation.run_warnings import judged_warnings
from harness.evaluation.warning_sentences import warning_sentences
from harness.measures import Measure, parse_measure, parse_measure_list
from harness.records import NO_SCORES, Results
from harness.scoring.rescore import recomputable_measures, relevance_by_rule, rescore
from harness.scoring.run_names import unique_folder_names
from harness.scoring.scores import Scores, order_by_mean
from harness.scoring.shared_queries import find_shared_queries
from retrievers.errors import InputError, Problem


def score_folders(
    folders: Sequence[Path],
    measure_names: Sequence[str],
    *,
    grade_rule: str | None = None,
    queries: Sequence[str] | None = None,
    folder_names: Sequence[str] | None = None,
) -> Scores:
    """Score the rankings of several results folders on the queries that they share.

    Args:
        folders: one or more.
        measure_names: measures; empty for those of the first folder's experiment that
            all experiments have, its primary measure first.
        grade_rule: another grade rule, for all of them.
        queries: only these.
        folder_names: names of the folders, whose retrievers are then recognised by
            their names only; None: the end of their paths.

    Raises:
        InputError: a folder cannot be read or has no scores, the folders share no
            query, or a measure cannot be computed.
    """
    results = [records.read_results(folder) for folder in folders]
    refuse_unscored(results)
    shared = find_shared_queries(results, grade_rule)
    ids = _select_shared(shared.ids, queries)
    if not ids:
        where = ", ".join(map(str, folders))
        problem = "share no query with the same text and the same grades"
        raise InputError(Problem(where, problem))
    measures = parse_measure_list(measure_names) or _common_measures(results)
    rescored = [
        rescore(
            folder,
            measures,
            relevance=relevance_by_rule(folder, grade_rule),
            queries=None if queries is None else ids,
        )
        for folder in results
    ]
    # Of the stored queries, only claims, or Abstain, may score some.
    scored_ids = set(ids).intersection(*(scores.ids for scores in rescored))
    shared = shared._replace(ids=tuple(filter(scored_ids.__contains__, shared.ids)))
    unique_names = folder_names or unique_folder_names(
        [folder.folder for folder in results]
    )
    scored_folders: list[FolderScores] = []
    for folder_name, folder, scores in zip(
        unique_names, results, rescored, strict=True
    ):
        # Only `compare_sets` gives names. It joins the folders for each data set, and
        # needs the same names for all: what is one retriever on this set may be two on
        # the next.
        manifest = None if folder_names else folder.manifest
        selected = scores.select_ids(scored_ids)
        scored_folders.append(FolderScores(folder_name, selected, manifest))
    joined = join_scores(scored_folders, measures[0].cutoff)
    notes = (
        shared.sentence(),
        *joined.notes,
        *judged_notes(joined, results),
        *_difference_notes(results, measures[0], measure_names),
    )
    return replace(joined, notes=notes)


def refuse_unscored(results: Sequence[Results]) -> None:
    """Refuse folders without scores.

    Raises:
        InputError: there are any.
    """
    problems = [
        Problem(str(folder.folder), *NO_SCORES)
        for folder in results
        if not folder.scored
    ]
    if problems:
        raise InputError(problems)


def _select_shared(
    shared_ids: tuple[str, ...], queries: Sequence[str] | None
) -> tuple[str, ...]:
    """Return the queries that all folders share, only those named if any are.

    Raises:
        InputError: a query that is named is not shared.
    """
    if queries is None:
        return shared_ids
    problem = "is not a query that all folders share"
    problems = [
        Problem(f"query {query_id!r}", problem)
        for query_id in queries
        if query_id not in shared_ids
    ]
    if problems:
        raise InputError(problems)
    return tuple(query_id for query_id in shared_ids if query_id in queries)


def _common_measures(results: Sequence[Results]) -> tuple[Measure, ...]:
    """Return the first experiment's measures that all have, its primary one first."""
    primary = results[0].manifest.resolved.primary
    stored = [set(folder.score_columns["measure"]) for folder in results]
    common = [
        name
        for name in results[0].manifest.resolved.measures
        if all(name in measures for measures in stored)
    ]
    names = dict.fromkeys([primary, *recomputable_measures(common)])
    return parse_measure_list(list(names))


def _difference_notes(
    results: Sequence[Results], primary: Measure, measure_names: Sequence[str]
) -> list[str]:
    """Return the notes on experiments with other measures or documents."""
    notes: list[str] = []
    folder_by_primary = {
        folder.manifest.resolved.primary: folder.folder for folder in results
    }
    if len(folder_by_primary) > 1 and not measure_names:
        differences = join_names(
            [f"{path} by {name}" for name, path in folder_by_primary.items()]
        )
        problem = f"The experiments decide by different measures ({differences})"
        notes.append(f"{problem}: {primary} decides here.")
    if len({folder.manifest.dataset.corpus_digest for folder in results}) > 1:
        sizes = join_names(
            [
                f"{folder.manifest.dataset.documents:,} in {folder.folder}"
                for folder in results
            ]
        )
        problem = f"The documents are not the same ({sizes})"
        notes.append(f"{problem}: a difference may come from them.")
    return notes


def judged_notes(scores: Scores, results: Sequence[Results]) -> tuple[str, ...]:
    """Return the notes on the judged shares of the first hits.

    Empty if labels name relevant documents only: then a hit without one may just be
    irrelevant.
    """
    if not scores.retrievers or not scores.has_irrelevant_labels:
        return ()
    depth = min(folder.manifest.resolved.depth for folder in results)
    cutoff = min(parse_measure(scores.primary).cutoff or depth, depth)
    means = {name: scores.mean(scores.primary, name) for name in scores.retrievers}
    shares = {
        name: scores.judged_shares[name]
        for name in order_by_mean(means)
        if name in scores.judged_shares
    }
    return tuple(warning_sentences(list(judged_warnings(shares, cutoff))))

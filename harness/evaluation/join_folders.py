"""One table of scores from several folders.

Their rankings are scored again, on the queries that all of them have with the same
text and the same grades. A retriever with the same results in two folders occurs once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np

from harness import records
from harness.english import join_names
from harness.evaluation.run_warnings import judged_warnings
from harness.evaluation.warning_sentences import warning_sentences
from harness.measures import Measure, parse_measure, parse_measure_list
from harness.records import NO_SCORES, Manifest, Results
from harness.scoring.rescore import recomputable_measures, relevance_by_rule, rescore
from harness.scoring.run_names import unique_folder_names
from harness.scoring.score_table import identical_ranking_pairs, rankings_digest
from harness.scoring.scores import Scores, order_by_mean, widest_range
from harness.scoring.shared_queries import find_shared_queries
from harness.stats.differences import ScoreTable
from retrievers.errors import InputError, Problem

Content = TypeVar("Content")


class FolderScores(NamedTuple):
    """The scores of one folder, with its name."""

    folder_name: str
    scores: Scores
    manifest: Manifest | None
    """The configurations by which a retriever is recognised under another name.

    None: it is recognised only by its name.
    """

    @property
    def retrievers(self) -> list[FolderRetriever]:
        """Its retrievers, each with its identity."""
        retrievers: list[FolderRetriever] = []
        for name in self.scores.retrievers:
            identity = name
            if self.manifest is not None:
                identity = self.manifest.retriever_identity(name)
            retrievers.append(FolderRetriever(self, name, identity))
        return retrievers


class FolderRetriever(NamedTuple):
    """One retriever in one of several folders."""

    folder: FolderScores
    name: str
    identity: str
    """A text that is equal for one configuration; without a manifest, its name."""


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


def join_scores(folders: Sequence[FolderScores], cutoff: int | None) -> Scores:
    """Join the retrievers of several folders into one table, each with its own name.

    If two have the same name, the folder's name comes before it. Retrievers of one
    identity with the same first hits and the same scores are one retriever, queried
    twice: it occurs once, by its first name, since every further pair makes all tests
    weaker. (Unless nothing would be left to compare.)

    Args:
        folders: the scores of each, on the same queries and measures.
        cutoff: of the primary measure.
    """
    retrievers: list[FolderRetriever] = []
    repeated: dict[str, list[str]] = {}
    for folder in folders:
        earlier = list(retrievers)  # two of one folder are two retrievers
        for retriever in folder.retrievers:
            twin = _find_twin(retriever, earlier, cutoff)
            if twin is None:
                retrievers.append(retriever)
                continue
            other_names = repeated.setdefault(twin, [])
            if retriever.name != twin:
                other_names.append(f"{retriever.name} in {folder.folder_name}")
    if len(retrievers) < 2:
        repeated = {}
        retrievers = []
        for folder in folders:
            retrievers += folder.retrievers
    joined = _join_columns(folders, _unique_names(retrievers), cutoff)
    return replace(joined, notes=_repeated_notes(repeated))


def _find_twin(
    retriever: FolderRetriever, earlier: Sequence[FolderRetriever], cutoff: int | None
) -> str | None:
    """Return the name of the same retriever in an earlier folder; None if it is new."""
    for other in earlier:
        may_be_same = other.identity == retriever.identity
        if may_be_same and _has_same_results(other, retriever, cutoff):
            return other.name
    return None


def _has_same_results(
    first: FolderRetriever, second: FolderRetriever, cutoff: int | None
) -> bool:
    """Whether two retrievers have the same scores and the same first hits."""
    first_scores = first.folder.scores
    second_scores = second.folder.scores
    for measure in first_scores.values:
        first_column = first_scores.values[measure][first.name]
        second_column = second_scores.values[measure][second.name]
        if not np.array_equal(first_column, second_column, equal_nan=True):
            return False
    return _top_digest(first, cutoff) == _top_digest(second, cutoff)


def _top_digest(retriever: FolderRetriever, cutoff: int | None) -> str:
    scores = retriever.folder.scores
    return rankings_digest(scores.rankings[retriever.name](), scores.ids, cutoff)


def _unique_names(retrievers: Sequence[FolderRetriever]) -> dict[str, FolderRetriever]:
    """Return the retrievers by their names, with the folder's name if needed."""
    counts = Counter(retriever.name for retriever in retrievers)
    by_name: dict[str, FolderRetriever] = {}
    for retriever in retrievers:
        name = retriever.name
        if counts[name] > 1:
            name = f"{retriever.folder.folder_name}/{name}"
        by_name[name] = retriever
    return by_name


def _join_columns(
    folders: Sequence[FolderScores],
    retrievers: Mapping[str, FolderRetriever],
    cutoff: int | None,
) -> Scores:
    """Return the table of these retrievers, by their new names."""
    first = folders[0].scores
    values: dict[str, ScoreTable] = {}
    for measure in first.values:
        values[measure] = {
            name: retriever.folder.scores.values[measure][retriever.name]
            for name, retriever in retrievers.items()
        }
    folder_scores = [folder.scores for folder in folders]
    ranges = {measure: widest_range(folder_scores, measure) for measure in first.ranges}
    compared = _rename(retrievers, lambda scores: scores.compared)
    return replace(
        first,
        values=values,
        ranges=ranges,
        # In a folder with averages of trials no measure is 0 or 1.
        binary=first.binary.intersection(*(folder.scores.binary for folder in folders)),
        identical=identical_ranking_pairs(
            values[first.primary], compared, queries=first.ids, cutoff=cutoff
        ),
        judged_by_people=all(folder.scores.judged_by_people for folder in folders),
        rankings=_rename(retrievers, lambda scores: scores.rankings),
        compared=compared,
        judged_shares=_rename(retrievers, lambda scores: scores.judged_shares),
        trial_means=_rename(retrievers, lambda scores: scores.trial_means),
    )


def _rename(
    retrievers: Mapping[str, FolderRetriever],
    table_of: Callable[[Scores], Mapping[str, Content]],
) -> dict[str, Content]:
    """Return what the folders' tables have of these retrievers, by their new names."""
    renamed: dict[str, Content] = {}
    for name, retriever in retrievers.items():
        table = table_of(retriever.folder.scores)
        if retriever.name in table:
            renamed[name] = table[retriever.name]
    return renamed


def _repeated_notes(repeated: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Return the note on retrievers that several folders have.

    Args:
        repeated: retriever -> its other names.
    """
    if not repeated:
        return ()
    retrievers: list[str] = []
    for name, other_names in repeated.items():
        called = f" (called {join_names(other_names)})" if other_names else ""
        retrievers.append(name + called)
    reason = "Found the same in more than one folder, and compared once"
    return (f"{reason}: {join_names(retrievers)}.",)


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

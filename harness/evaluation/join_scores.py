"""Scores of several folders in one table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, TypeVar

import numpy as np

from harness.english import join_names
from harness.records import Manifest
from harness.scoring.score_table import identical_ranking_pairs, rankings_digest
from harness.scoring.scores import Scores, widest_range
from harness.stats.differences import ScoreTable

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

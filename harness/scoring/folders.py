"""Several results folders side by side: the queries that they share, and names that tell their retrievers apart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from harness import records
from harness.measures import Measure, parse_all
from harness.records import Results
from harness.scoring.grading import GradedLabels, grade_labels
from harness.scoring.outcome import primary_of
from harness.scoring.saved import refuse_conventions, relevance_of, score_saved
from harness.scoring.trec_runs import Conventions, ScoredRun
from harness.stats.words import counted, join
from retrievers.errors import InputError, Problem


class SharedQueries(NamedTuple):
    """Which queries several folders have in common, and why the others are none of these."""

    ids: tuple[str, ...]
    """Scored in every folder, with the same text and the same grades; in the order of the first folder."""
    absent: int
    """Scored in some folders and not in others."""
    reworded: int
    """Another text under the same id."""
    relabelled: int
    """Other grades of the same text."""

    def sentence(self) -> str:
        """On how many queries the folders are compared, and what was left out.

        >>> SharedQueries(("q1", "q2"), 3, 0, 1).sentence()
        'Compared on the 2 queries that all folders share. Left out: 3 that not every folder has, 1 graded otherwise.'
        """
        reasons = {
            "that not every folder has": self.absent,
            "with another text": self.reworded,
            "graded otherwise": self.relabelled,
        }
        left_out = ", ".join(f"{number:,} {reason}" for reason, number in reasons.items() if number)
        if not left_out:
            return f"Compared on all {counted(len(self.ids), 'query')}, the same in every folder."
        return f"Compared on the {counted(len(self.ids), 'query')} that all folders share. Left out: {left_out}."


class Joined(NamedTuple):
    """The retrievers of several folders, scored on the same queries."""

    runs: list[ScoredRun]
    notes: list[str]
    """What a reader of the comparison has to know, the queries first."""


def score_folders(
    folders: Sequence[Path],
    named: Sequence[str],
    *,
    rule: str | None = None,
    conventions: Conventions = Conventions(),  # noqa: B008 - frozen
) -> Joined:
    """Score the rankings of several results folders on the queries that they share.

    Args:
        folders: two or more.
        named: measures; none stands for those of the first folder's experiment that all experiments name, its primary
            measure first.
        rule: another grade rule, for all of them.
        conventions: only `queries`, the others are refused.

    Raises:
        InputError: a folder cannot be read or was scored by nobody, the folders share no query, or a measure cannot be
            computed.
    """
    refuse_conventions(conventions)
    results = [records.read(folder) for folder in folders]
    if unscored := [one for one in results if not one.scored]:
        what, remedy = "holds no scores: no query has labels", "harness pool draws what people are to judge"
        raise InputError([Problem(str(one.folder), what, remedy) for one in unscored])
    shared = shared_queries(results, rule)
    ids = shared.ids
    if conventions.queries is not None:
        if strangers := [query for query in conventions.queries if query not in ids]:
            raise InputError([Problem(f"query {query!r}", "is no query that all folders share") for query in strangers])
        ids = tuple(query for query in ids if query in conventions.queries)
    if not ids:
        raise InputError(Problem(", ".join(map(str, folders)), "share no query with the same text and the same grades"))
    measures = parse_all(named) if named else _measures(results)
    scored = [score_saved(one, measures, relevance=relevance_of(one, rule), queries=ids) for one in results]
    runs, repeated = distinctly_named(scored, _folders_apart([one.folder for one in results]))
    return Joined(runs, [shared.sentence(), *repeated, *_notes(results, measures[0], named)])


def shared_queries(results: Sequence[Results], rule: str | None = None) -> SharedQueries:
    """Return which queries were scored in every folder, with the same text and the same grades.

    Args:
        results: the folders.
        rule: the grade rule; left out, each experiment's own.
    """
    graded = [
        grade_labels({query: given.labels for query, given in one.queries.items()}, relevance_of(one, rule))
        for one in results
    ]
    every = Counter(query for one in results for query in one.scores["query_id"].unique())
    common = [query for query in results[0].queries if every[query] == len(results)]
    worded = [query for query in common if len({one.queries[query].query.text for one in results}) == 1]
    sides = list(zip(results, graded, strict=True))
    ids = [query for query in worded if all(_judged(*side, query) == _judged(*sides[0], query) for side in sides)]
    return SharedQueries(tuple(ids), len(every) - len(common), len(common) - len(worded), len(worded) - len(ids))


def distinctly_named(
    folders: Sequence[Sequence[ScoredRun]], called: Sequence[str]
) -> tuple[list[ScoredRun], list[str]]:
    """Give every run a name of its own: where two have the same, its folder's name stands before it.

    Runs of one name with the same first hits and the same scores are one retriever, asked twice: it stands once, since
    every further pair makes all tests weaker. (Unless nothing would be left to compare.)

    Args:
        folders: the runs of each folder, scored on the same queries.
        called: the folders' names.

    Returns:
        The runs, and a note on those that stand once.
    """
    runs: list[tuple[str, ScoredRun]] = []
    repeated: list[str] = []
    for folder, scored in zip(called, folders, strict=True):
        for run in scored:
            if any(run.name == other.name and _same(run, other) for _, other in runs):
                repeated.append(run.name)
            else:
                runs.append((folder, run))
    if len(runs) < 2:
        repeated, runs = [], [(folder, run) for folder, of in zip(called, folders, strict=True) for run in of]
    number = Counter(run.name for _, run in runs)
    named = [replace(run, name=f"{folder}/{run.name}") if number[run.name] > 1 else run for folder, run in runs]
    if not repeated:
        return named, []
    which = join(list(dict.fromkeys(repeated)))
    return named, [f"Found the same in more than one folder, and compared once: {which}."]


def _same(a: ScoredRun, b: ScoredRun) -> bool:
    """Whether two runs over the same queries have the same first hits and the same scores."""
    place = {query: i for i, query in enumerate(b.scores.query_ids)}
    places = [place[query] for query in a.scores.query_ids]
    return a.head == b.head and np.array_equal(a.scores.values, b.scores.values[:, places], equal_nan=True)


def _folders_apart(folders: Sequence[Path]) -> list[str]:
    """The last part of each path, with as many before it as tell all of them apart.

    >>> _folders_apart([Path("/old/quickstart"), Path("/new/quickstart")])
    ['old/quickstart', 'new/quickstart']
    """
    parts = [folder.resolve().parts for folder in folders]
    if len(set(parts)) < len(parts):
        raise InputError(Problem(str(folders[0]), "is named twice", "give different folders"))
    length = next(n for n in range(1, 1 + max(map(len, parts))) if len({one[-n:] for one in parts}) == len(parts))
    return ["/".join(one[-length:]) for one in parts]


def _judged(results: Results, graded: GradedLabels, query: str) -> tuple[object, ...]:
    """All that a query's scores rest on beside the rankings."""
    return graded.grades.get(query), graded.groups.get(query), results.queries[query].query.reference


def _measures(results: Sequence[Results]) -> tuple[Measure, ...]:
    """The first experiment's measures that every experiment has, its primary one first."""
    primary = primary_of(results[0].manifest.resolved)
    scored = [set(one.scores["measure"]) for one in results]
    named = [name for name in results[0].manifest.resolved.measures if all(name in names for names in scored)]
    return parse_all(list(dict.fromkeys([primary, *named])))


def _notes(results: Sequence[Results], primary: Measure, named: Sequence[str]) -> list[str]:
    notes = []
    declared = {primary_of(one.manifest.resolved): one.folder for one in results}
    if len(declared) > 1 and not named:
        which = join([f"{folder} by {name}" for name, folder in declared.items()])
        notes.append(f"The experiments decide by different measures ({which}): {primary} decides here.")
    if len({one.manifest.dataset.corpus_digest for one in results}) > 1:
        sizes = join([f"{one.manifest.dataset.documents:,} in {one.folder}" for one in results])
        notes.append(f"The documents are not the same ({sizes}): a difference may come from them.")
    return notes


def declared_margin(paths: Iterable[Path]) -> float | None:
    """Return the margin that the experiments of all results folders declare; None where they declare none, or several.

    Args:
        paths: results folders; with anything else among them nothing is declared.
    """
    margins = {
        records.read_manifest(path).resolved.statistics.get("margin") if (path / "manifest.json").is_file() else None
        for path in paths
    }
    return margins.pop() if len(margins) == 1 else None


def missing_retrievers(paths: Iterable[Path]) -> list[str]:
    """Say which retrievers of results folders failed, or had not answered: the best may be among them.

    Args:
        paths: results folders; anything else is passed over.
    """
    notes = []
    for path in paths:
        if (path / "manifest.json").is_file():
            manifest = records.read_manifest(path)
            if missing := [*manifest.failed, *manifest.waiting]:
                notes.append(f"{path}: Incomplete: without {join(missing)}; who leads here leads among those that ran.")
    return notes

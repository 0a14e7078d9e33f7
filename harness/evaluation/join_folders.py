"""One table of scores from several folders."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from harness import records
from harness.english import join_names
from harness.evaluation.run_warnings import judged_warnings
from harness.evaluation.warnings import warning_sentences
from harness.measures import Measure, parse_measure, parse_measure_list
from harness.records import NO_SCORES, Results
from harness.scoring.rescore import recomputable_measures, relevance_by_rule, rescore
from harness.scoring.run_names import unique_labels
from harness.scoring.score_table import identical_ranking_pairs, rankings_digest
from harness.scoring.scores import Scores, order_by_mean
from harness.scoring.shared_queries import find_shared_queries
from harness.scoring.stored_scores import primary_measure
from harness.stats.differences import ValueRange
from retrievers.errors import InputError, Problem


def score_folders(
    folders: Sequence[Path],
    measure_names: Sequence[str],
    *,
    grade_rule: str | None = None,
    queries: Sequence[str] | None = None,
    folder_labels: Sequence[str] | None = None,
) -> Scores:
    """Score the rankings of several results folders on the queries that they share.

    Args:
        folders: two or more.
        measure_names: measures; none means those of the first folder's experiment that all experiments name, its primary
            measure first.
        grade_rule: another grade rule, for all of them.
        queries: only these.
        folder_labels: what the folders are called; left out, the end of their paths.

    Raises:
        InputError: a folder cannot be read or has no scores, the folders share no query, or a measure cannot be
            computed.
    """
    results = [records.read_results(folder) for folder in folders]
    if unscored := [one for one in results if not one.scored]:
        raise InputError([Problem(str(one.folder), *NO_SCORES) for one in unscored])
    shared = find_shared_queries(results, grade_rule)
    ids = shared.ids
    if queries is not None:
        if strangers := [query for query in queries if query not in ids]:
            raise InputError(
                [
                    Problem(f"query {one!r}", "is not a query that all folders share")
                    for one in strangers
                ]
            )
        ids = tuple(query for query in ids if query in queries)
    if not ids:
        raise InputError(
            Problem(
                ", ".join(map(str, folders)),
                "share no query with the same text and the same grades",
            )
        )
    measures = (
        parse_measure_list(measure_names) if measure_names else _measures(results)
    )
    scored = [
        rescore(
            one, measures, relevance=relevance_by_rule(one, grade_rule), queries=ids
        )
        for one in results
    ]
    apart = folder_labels or unique_labels([one.folder for one in results])
    # Sets of one folder each keep their names: what is one retriever on this set may be two on the next.
    known = [
        {}
        if folder_labels
        else {name: one.manifest.retriever_identity(name) for name in scores.retrievers}
        for one, scores in zip(results, scored, strict=True)
    ]
    joined = join_scores(scored, apart, measures[0].cutoff, known)
    notes = (
        shared.sentence(),
        *joined.notes,
        *judged_notes(joined, results),
        *_notes(results, measures[0], measure_names),
    )
    return replace(joined, notes=notes)


def join_scores(
    folders: Sequence[Scores],
    folder_labels: Sequence[str],
    cutoff: int | None,
    identities: Sequence[Mapping[str, str]],
) -> Scores:
    """Put the retrievers of several folders into one table, each under a name of its own.

    Where two have the same name, the folder's comes before it. Retrievers of one name, or of one configuration, with
    the same first hits and the same scores are one retriever, queried twice: it occurs once, by its first name, since
    every further pair makes all tests weaker. (Unless nothing would be left to compare.)

    Args:
        folders: the scores of each, on the same queries and measures.
        folder_labels: the folders' names.
        cutoff: of the primary measure.
        identities: of each folder, retriever -> what it is, whatever it is called.
    """
    kept: list[tuple[int, str]] = []
    repeated: dict[str, list[str]] = {}
    for i, scores in enumerate(folders):
        earlier = [one for one in kept if one[0] < i]
        for name in scores.retrievers:
            what = identities[i].get(name)
            twins = (
                other
                for j, other in earlier
                if (name == other if what is None else identities[j].get(other) == what)
                and _same(folders[j], other, scores, name, cutoff)
            )
            if (twin := next(twins, None)) is None:
                kept.append((i, name))
            else:
                repeated.setdefault(twin, []).extend(
                    [f"{name} in {folder_labels[i]}"] if name != twin else []
                )
    if len(kept) < 2:
        repeated, kept = (
            {},
            [
                (i, name)
                for i, scores in enumerate(folders)
                for name in scores.retrievers
            ],
        )
    number = Counter(name for _, name in kept)
    names = {
        one: f"{folder_labels[one[0]]}/{one[1]}" if number[one[1]] > 1 else one[1]
        for one in kept
    }
    first = folders[0]
    once = [
        f"{name} (called {join_names(others)})" if others else name
        for name, others in repeated.items()
    ]
    lists = {names[i, name]: folders[i].rankings[name] for i, name in kept}
    values = {
        m: {names[i, name]: folders[i].values[m][name] for i, name in kept}
        for m in first.values
    }
    return replace(
        first,
        values=values,
        ranges={
            m: max((one.ranges[m] for one in folders), key=_span) for m in first.ranges
        },
        identical=identical_ranking_pairs(
            values[first.primary], lists, queries=first.ids, cutoff=cutoff
        ),
        judged_by_people=all(scores.judged_by_people for scores in folders),
        notes=(
            f"Found the same in more than one folder, and compared once: {join_names(once)}.",
        )
        if once
        else (),
        rankings=lists,
        judged_shares={
            names[i, name]: folders[i].judged_shares[name]
            for i, name in kept
            if name in folders[i].judged_shares
        },
    )


def _span(bounds: ValueRange | None) -> float:
    return 0.0 if bounds is None else bounds.span


def _same(a: Scores, first: str, b: Scores, second: str, cutoff: int | None) -> bool:
    """Whether two retrievers have the same scores and the same first hits."""
    same = all(
        np.array_equal(a.values[m][first], b.values[m][second], equal_nan=True)
        for m in a.values
    )
    sides = ((a, first), (b, second))
    return (
        same
        and len(
            {
                rankings_digest(one.rankings[name](), one.ids, cutoff)
                for one, name in sides
            }
        )
        == 1
    )


def _measures(results: Sequence[Results]) -> tuple[Measure, ...]:
    """The first experiment's measures that every experiment has, its primary one first."""
    primary = primary_measure(results[0].manifest.resolved)
    scored = [set(one.score_columns["measure"]) for one in results]
    named = [
        name
        for name in results[0].manifest.resolved.measures
        if all(name in names for names in scored)
    ]
    return parse_measure_list(
        list(dict.fromkeys([primary, *recomputable_measures(named)]))
    )


def _notes(
    results: Sequence[Results], primary: Measure, named: Sequence[str]
) -> list[str]:
    notes = []
    declared = {primary_measure(one.manifest.resolved): one.folder for one in results}
    if len(declared) > 1 and not named:
        which = join_names([f"{folder} by {name}" for name, folder in declared.items()])
        notes.append(
            f"The experiments decide by different measures ({which}): {primary} decides here."
        )
    if len({one.manifest.dataset.corpus_digest for one in results}) > 1:
        sizes = join_names(
            [f"{one.manifest.dataset.documents:,} in {one.folder}" for one in results]
        )
        notes.append(
            f"The documents are not the same ({sizes}): a difference may come from them."
        )
    return notes


def judged_notes(scores: Scores, results: Sequence[Results]) -> tuple[str, ...]:
    """What is to be known of the judged shares of the first hits; nothing where labels name relevant documents only."""
    if not scores.retrievers or not scores.has_irrelevant_labels:
        return ()
    depth = min(one.manifest.resolved.depth for one in results)
    cutoff = min(parse_measure(scores.primary).cutoff or depth, depth)
    means = order_by_mean(
        {name: scores.mean(scores.primary, name) for name in scores.retrievers}
    )
    found = judged_warnings(
        {
            name: scores.judged_shares[name]
            for name in means
            if name in scores.judged_shares
        },
        cutoff,
    )
    return tuple(warning_sentences(list(found)))

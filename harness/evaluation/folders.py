"""Several results folders side by side: the queries that they share, and names that tell their retrievers apart."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import fields, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from harness import records
from harness.english import counted, join
from harness.evaluation.evaluate import settings_of
from harness.evaluation.evidence import judged_warnings
from harness.evaluation.grading import GradedLabels, grade_labels
from harness.evaluation.readers import (
    computable,
    primary_of,
    relevance_of,
    score_folder,
)
from harness.evaluation.runs import Conventions, score_runs
from harness.evaluation.scores import Scores, by_mean, identical_pairs, rankings_digest
from harness.evaluation.wording import warning_sentences
from harness.measures import Measure, parse, parse_all
from harness.records import UNSCORED, Results
from harness.stats.differences import Range
from harness.stats.settings import Settings
from retrievers.errors import InputError, Problem

USUAL = ("nDCG@10", "AP", "RR", "P@10", "R@100")
"""What is measured on TREC files where no measure is named."""


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
    gone: tuple[str, ...] = ()
    """A relevant document is no longer in the corpus."""

    def sentence(self) -> str:
        """On how many queries the folders are compared, and what was left out.

        >>> SharedQueries(("q1", "q2"), 3, 0, 1).sentence()
        'Compared on the 2 queries that all folders share. Left out: 3 that not every folder has, 1 graded otherwise.'
        """
        reasons = {
            "that not every folder has": self.absent,
            "with another text": self.reworded,
            "graded otherwise": self.relabelled,
            "that lost a relevant document": len(self.gone),
        }
        left_out = ", ".join(
            f"{number:,} {reason}" for reason, number in reasons.items() if number
        )
        if not left_out:
            return f"Compared on all {counted(len(self.ids), 'query')}, the same in every folder."
        return f"Compared on the {counted(len(self.ids), 'query')} that all folders share. Left out: {left_out}."


def score_folders(
    folders: Sequence[Path],
    named: Sequence[str],
    *,
    rule: str | None = None,
    queries: Sequence[str] | None = None,
    called: Sequence[str] | None = None,
) -> Scores:
    """Score the rankings of several results folders on the queries that they share.

    Args:
        folders: two or more.
        named: measures; none means those of the first folder's experiment that all experiments name, its primary
            measure first.
        rule: another grade rule, for all of them.
        queries: only these.
        called: what the folders are called; left out, the end of their paths.

    Raises:
        InputError: a folder cannot be read or has no scores, the folders share no query, or a measure cannot be
            computed.
    """
    results = [records.read(folder) for folder in folders]
    if unscored := [one for one in results if not one.scored]:
        raise InputError([Problem(str(one.folder), *UNSCORED) for one in unscored])
    shared = shared_queries(results, rule)
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
    measures = parse_all(named) if named else _measures(results)
    scored = [
        score_folder(one, measures, relevance=relevance_of(one, rule), queries=ids)
        for one in results
    ]
    apart = called or folders_apart([one.folder for one in results])
    # Sets of one folder each keep their names: what is one retriever on this set may be two on the next.
    known = [
        {}
        if called
        else {name: one.manifest.identity(name) for name in scores.retrievers}
        for one, scores in zip(results, scored, strict=True)
    ]
    joined = joined_scores(scored, apart, measures[0].cutoff, known)
    notes = (
        shared.sentence(),
        *joined.notes,
        *judged_notes(joined, results),
        *_notes(results, measures[0], named),
    )
    return replace(joined, notes=notes)


def shared_queries(
    results: Sequence[Results],
    rule: str | None = None,
    removed: AbstractSet[str] | None = None,
) -> SharedQueries:
    """Return which queries were scored in every folder, with the same text and the same grades.

    Args:
        results: the folders.
        rule: the grade rule; left out, each experiment's own.
        removed: documents that only an earlier state of the corpus has: queries with such a relevant document are left
            out, and of the others the grades of the relevant documents must be the same. None: one state.
    """
    gone: dict[str, None] = {}
    graded = [
        grade_labels(
            {query: given.labels for query, given in one.queries.items()},
            relevance_of(one, rule),
        )
        for one in results
    ]
    if removed is not None:
        graded = [
            one._replace(
                grades={
                    q: {d: g for d, g in of.items() if g > 0}
                    for q, of in one.grades.items()
                }
            )
            for one in graded
        ]
        gone = {
            query: None
            for one in graded
            for query, grades in one.grades.items()
            if removed & grades.keys()
        }
    every = Counter(
        query
        for one in results
        for query in set(one.score_columns["query_id"]) - gone.keys()
    )
    common = [query for query in results[0].queries if every[query] == len(results)]
    worded = [
        query
        for query in common
        if len({one.queries[query].query.text for one in results}) == 1
    ]
    sides = list(zip(results, graded, strict=True))
    ids = [
        query
        for query in worded
        if all(_judged(*side, query) == _judged(*sides[0], query) for side in sides)
    ]
    absent, reworded = len(every) - len(common), len(common) - len(worded)
    return SharedQueries(
        tuple(ids), absent, reworded, len(worded) - len(ids), tuple(gone)
    )


def joined_scores(
    folders: Sequence[Scores],
    called: Sequence[str],
    cutoff: int | None,
    known: Sequence[Mapping[str, str]],
) -> Scores:
    """Put the retrievers of several folders into one table, each under a name of its own.

    Where two have the same name, the folder's comes before it. Retrievers of one name, or of one configuration, with
    the same first hits and the same scores are one retriever, queried twice: it occurs once, by its first name, since
    every further pair makes all tests weaker. (Unless nothing would be left to compare.)

    Args:
        folders: the scores of each, on the same queries and measures.
        called: the folders' names.
        cutoff: of the primary measure.
        known: of each folder, retriever -> what it is, whatever it is called.
    """
    kept: list[tuple[int, str]] = []
    repeated: dict[str, list[str]] = {}
    for i, scores in enumerate(folders):
        earlier = [one for one in kept if one[0] < i]
        for name in scores.retrievers:
            what = known[i].get(name)
            twins = (
                other
                for j, other in earlier
                if (name == other if what is None else known[j].get(other) == what)
                and _same(folders[j], other, scores, name, cutoff)
            )
            if (twin := next(twins, None)) is None:
                kept.append((i, name))
            else:
                repeated.setdefault(twin, []).extend(
                    [f"{name} in {called[i]}"] if name != twin else []
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
        one: f"{called[one[0]]}/{one[1]}" if number[one[1]] > 1 else one[1]
        for one in kept
    }
    first = folders[0]
    once = [
        f"{name} (called {join(others)})" if others else name
        for name, others in repeated.items()
    ]
    lists = {names[i, name]: folders[i].lists[name] for i, name in kept}
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
        identical=identical_pairs(values[first.primary], lists, (first.ids, cutoff)),
        by_people=all(scores.by_people for scores in folders),
        notes=(
            f"Found the same in more than one folder, and compared once: {join(once)}.",
        )
        if once
        else (),
        lists=lists,
        judged={
            names[i, name]: folders[i].judged[name]
            for i, name in kept
            if name in folders[i].judged
        },
    )


def _span(bounds: Range | None) -> float:
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
            {rankings_digest(one.lists[name](), one.ids, cutoff) for one, name in sides}
        )
        == 1
    )


def folders_apart(folders: Sequence[Path]) -> list[str]:
    """The last part of each path, with as many before it as tell all of them apart.

    >>> folders_apart([Path("/old/quickstart"), Path("/new/quickstart")])
    ['old/quickstart', 'new/quickstart']
    """
    parts = [folder.resolve().parts for folder in folders]
    if len(set(parts)) < len(parts):
        raise InputError(
            Problem(str(folders[0]), "is named twice", "give different folders")
        )
    length = next(
        n
        for n in range(1, 1 + max(map(len, parts)))
        if len({one[-n:] for one in parts}) == len(parts)
    )
    return ["/".join(one[-length:]) for one in parts]


def _judged(results: Results, graded: GradedLabels, query: str) -> tuple[object, ...]:
    """All that a query's scores rest on beside the rankings."""
    return (
        graded.grades.get(query),
        graded.groups.get(query),
        results.queries[query].query.reference,
    )


def _measures(results: Sequence[Results]) -> tuple[Measure, ...]:
    """The first experiment's measures that every experiment has, its primary one first."""
    primary = primary_of(results[0].manifest.resolved)
    scored = [set(one.score_columns["measure"]) for one in results]
    named = [
        name
        for name in results[0].manifest.resolved.measures
        if all(name in names for names in scored)
    ]
    return parse_all(list(dict.fromkeys([primary, *computable(named)])))


def _notes(
    results: Sequence[Results], primary: Measure, named: Sequence[str]
) -> list[str]:
    notes = []
    declared = {primary_of(one.manifest.resolved): one.folder for one in results}
    if len(declared) > 1 and not named:
        which = join([f"{folder} by {name}" for name, folder in declared.items()])
        notes.append(
            f"The experiments decide by different measures ({which}): {primary} decides here."
        )
    if len({one.manifest.dataset.corpus_digest for one in results}) > 1:
        sizes = join(
            [f"{one.manifest.dataset.documents:,} in {one.folder}" for one in results]
        )
        notes.append(
            f"The documents are not the same ({sizes}): a difference may come from them."
        )
    return notes


class DeclaredSettings(NamedTuple):
    """What results folders declare in `[statistics]`."""

    settings: Settings
    """What all of them declare alike, with the default where they differ."""
    note: str = ""
    """What they declare otherwise; "" where that is nothing."""


def declared_settings(paths: Sequence[Path]) -> DeclaredSettings:
    """Return how the experiments of results folders test: a comparison claims no more than a run of theirs.

    Args:
        paths: results folders, each of one data set or of several; with anything else among them nothing is declared.
    """
    inner = [
        [path]
        if _holds_results(path)
        else [one.parent for one in path.glob("*/manifest.json")]
        for path in paths
    ]
    if not all(inner):
        return DeclaredSettings(Settings())
    every = [
        settings_of(records.read_manifest(folder))
        for folders in inner
        for folder in folders
    ]
    first, apart = (
        every[0],
        [
            one.name
            for one in fields(Settings)
            if len({getattr(s, one.name) for s in every}) > 1
        ],
    )
    # The scores have the first folder's weights and clusters; the seed only draws resamples.
    own = {
        name: getattr(Settings(), name)
        for name in apart
        if name not in ("weight", "cluster", "seed")
    }
    told = sorted(own.keys() - {"earlier"})
    note = (
        f"The experiments declare different statistics ({join(told)}): the defaults count here."
        if told
        else ""
    )
    return DeclaredSettings(replace(first, **own), note)


def _holds_results(path: Path) -> bool:
    return (path / "manifest.json").is_file()


def missing_retrievers(paths: Iterable[Path]) -> list[str]:
    """Say which retrievers of results folders failed, or had not answered: the best may be among them.

    Args:
        paths: results folders; anything else is passed over.
    """
    failed = {
        path: [*records.read_manifest(path).failed]
        for path in paths
        if _holds_results(path)
    }
    others = "who leads here leads among those that ran."
    return [
        f"{path}: Incomplete: without {join(missing)}; {others}"
        for path, missing in failed.items()
        if missing
    ]


def score_rankings(
    paths: Sequence[Path],
    named: Sequence[str],
    *,
    rule: str | None = None,
    conventions: Conventions,
) -> Scores:
    """Score TREC runs by qrels, or the rankings of results folders by their own labels.

    Args:
        paths: qrels and TREC runs, one results folder, or several.
        named: measures; none means those of the experiments, or the usual ones.
        rule: another grade rule for results folders.
        conventions: which queries count; of results folders only `queries`, the others are refused.

    Raises:
        InputError: with every problem that was found.
    """
    first, *runs = paths
    if not first.is_dir():
        if not runs:
            what = "no run was named" if first.exists() else "does not exist"
            raise InputError(
                Problem(str(first), what, "give a results folder, or qrels and runs")
            )
        if rule is not None:
            raise InputError(
                Problem(
                    "--grades",
                    "qrels have their grades already",
                    "it is for results folders",
                )
            )
        return score_runs(
            first, runs, parse_all(named or USUAL), conventions=conventions
        )
    _refuse_conventions(conventions)
    queries = None if conventions.queries is None else list(conventions.queries)
    if runs and all(path.is_dir() for path in runs):
        return score_folders(paths, named, rule=rule, queries=queries)
    if absent := [path for path in runs if not path.exists()]:
        raise InputError(
            Problem(
                str(absent[0]),
                "does not exist",
                "give results folders, or qrels and runs",
            )
        )
    if runs:
        raise InputError(
            Problem(
                str(first),
                "is a results folder, which has its own runs",
                "give its qrels.trec",
            )
        )
    results = records.read(first)
    measures = parse_all(named or computable(results.manifest.resolved.measures))
    scores = score_folder(
        results, measures, relevance=relevance_of(results, rule), queries=queries
    )
    return replace(scores, notes=(*scores.notes, *judged_notes(scores, [results])))


def judged_notes(scores: Scores, results: Sequence[Results]) -> tuple[str, ...]:
    """What is to be known of the judged shares of the first hits; nothing where labels name relevant documents only."""
    if not scores.retrievers or not scores.tells_unjudged:
        return ()
    depth = min(one.manifest.resolved.depth for one in results)
    cutoff = min(parse(scores.primary).cutoff or depth, depth)
    means = by_mean(
        {name: scores.mean(scores.primary, name) for name in scores.retrievers}
    )
    found = judged_warnings(
        {name: scores.judged[name] for name in means if name in scores.judged}, cutoff
    )
    return tuple(warning_sentences(list(found)))


def _refuse_conventions(conventions: Conventions) -> None:
    """Refuse what only TREC runs can be scored with, rather than ignore it.

    Raises:
        InputError: naming every option.
    """
    options = {
        "--skip-no-relevant": conventions.skip_no_relevant,
        "--intersection": conventions.intersection,
        "--double": conventions.precision == "double",
    }
    if given := [option for option, used in options.items() if used]:
        what = "is for TREC runs: a results folder leaves out queries without a relevant document, and has every answer"
        remedy = "leave it out, or give qrels.trec and runs/*.trec of the folder"
        raise InputError([Problem(option, what, remedy) for option in given])

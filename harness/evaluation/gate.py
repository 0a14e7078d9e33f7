"""Non-inferiority: may a retriever take the place of another, and what did each lose or gain on a changed corpus?"""

import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from harness.english import counted, first_few
from harness.evaluation.compare import compare_pairs
from harness.evaluation.evaluate import settings_of
from harness.evaluation.evidence import CUTOFF
from harness.evaluation.folders import SharedQueries, shared_queries
from harness.evaluation.readers import (
    primary_of,
    relevance_of,
    score_folder,
    scores_of_results,
)
from harness.evaluation.scores import Scores, rankings_digest
from harness.evaluation.verdict import Comparison, Gate, Verdict
from harness.measures import parse
from harness.records import UNSCORED, Results, read_corpus
from harness.stats.differences import differences
from harness.stats.intervals import mean
from harness.stats.paired_tests import EquivalenceMargin, fewest_units, not_worse
from harness.stats.power import at_look
from harness.stats.settings import Settings, check_margin
from retrievers.errors import InputError, Problem, did_you_mean

CHALLENGER, BASELINE = "challenger", "baseline"


def gate_scores(scores: Scores, *, margin: float, settings: Settings) -> Gate:
    """Test non-inferiority of the mean: passes where "challenger - baseline <= -margin" is rejected (`not_worse`).

    Args:
        scores: of "challenger" and "baseline" on the primary measure, defined for both.
        margin: loss of the mean that is still acceptable, in points of the measure.
        settings: level and seed; its margin is not read.

    Raises:
        InputError: a margin that is not a finite number above 0.
    """
    if not 0 < margin < math.inf:
        raise InputError(
            Problem(
                "margin", f"{margin} is not a finite number above 0", "such as 0.02"
            )
        )
    group, units, span = (
        scores.values[scores.primary],
        scores.units,
        scores.span_of(scores.primary),
    )
    d = differences(group[CHALLENGER], group[BASELINE])
    within = EquivalenceMargin(margin, span, units, settings.alpha)
    (test,) = not_worse(group, [(CHALLENGER, BASELINE)], within, settings.seed)
    measured = any(np.any(values) for values in group.values())
    return Gate(
        passed=measured and not settings.spent and test.greater <= settings.alpha,
        n=scores.n,
        clusters=len(units) if units.clustered else None,
        mean_difference=scores.mean(scores.primary, CHALLENGER)
        - scores.mean(scores.primary, BASELINE),
        margin=margin,
        p_value=test.greater,
        needed=None
        if span is None
        else fewest_units(margin, span, settings.alpha, mean(d.values, units.weights)),
        measured=measured,
        identical=bool(scores.identical),
        spent=settings.spent,
    )


class GateArm(NamedTuple):
    """One of the two retrievers, and the folder that holds its scores."""

    results: Results
    retriever: str


def gate_retrievers(
    challenger: GateArm,
    baseline: GateArm,
    *,
    margin: float,
    corpus_changed: bool = False,
) -> Gate:
    """Ask whether one retriever is not worse than another by the margin, on the primary measure.

    Of two folders, the queries that both have are compared.

    Args:
        challenger: the retriever that would take the other's place; its experiment declares measure and tests.
        baseline: the retriever in use.
        margin: the loss of the mean that is still acceptable.
        corpus_changed: whether the folders may be over two states of a corpus: queries whose relevant document is
            gone are left out.

    Raises:
        InputError: one did not run, or failed; or it is named twice; the margin is not above 0; or two folders cannot
            be compared: other documents, another primary measure, other texts or grades of a query, no query in both.
    """
    sides = (challenger, baseline)
    _check(sides)
    shared = None
    if challenger.results is not baseline.results:
        shared = same_ground(
            challenger.results, baseline.results, corpus_changed=corpus_changed
        )
    primary = primary_of(challenger.results.manifest.resolved)
    tables = [scores_of_results(side.results) for side in sides]
    known = [
        table.only(table.defined(primary, one.retriever))
        for table, one in zip(tables, sides, strict=True)
    ]
    asked = (
        set(known[0].ids)
        & set(known[1].ids)
        & set(known[0].ids if shared is None else shared.ids)
    )
    tables = [
        table.only(np.array([query in asked for query in table.ids], dtype=np.bool_))
        for table in known
    ]
    own, both = (
        tables[0],
        list(zip(tables, (one.retriever for one in sides), strict=True)),
    )
    pair = {
        name: table.values[primary][one]
        for name, (table, one) in zip((CHALLENGER, BASELINE), both, strict=True)
    }
    digests = {
        rankings_digest(table.lists[one](), own.ids, parse(primary).cutoff)
        for table, one in both
    }
    same = np.array_equal(pair[CHALLENGER], pair[BASELINE]) and len(digests) == 1
    scores = replace(
        own,
        values={primary: pair},
        identical=frozenset({frozenset(pair)} if same else ()),
    )
    check_margin("--margin", margin, scores.span_of(primary))
    return gate_scores(
        scores,
        margin=margin,
        settings=at_look(settings_of(challenger.results.manifest), scores.n),
    )


def same_ground(
    challenger: Results, baseline: Results, *, corpus_changed: bool = False
) -> SharedQueries:
    """Return the queries on which retrievers of two folders can be gated.

    Raises:
        InputError: the documents, the primary measure, or the text or the grades of a query in both are not the same.
    """
    where, remedy = (
        str(baseline.folder),
        f"run its experiment again on the data of {challenger.folder}",
    )
    problems = []
    measures = [primary_of(one.manifest.resolved) for one in (challenger, baseline)]
    if measures[0] != measures[1]:
        what = f"was decided by {measures[1]}, and {challenger.folder} by {measures[0]}"
        problems.append(Problem(where, what, "use one primary measure for both"))
    if corpus_changed and not problems:
        removed = (
            read_corpus(baseline.folder).keys() - read_corpus(challenger.folder).keys()
        )
        return shared_queries([challenger, baseline], removed=removed)
    if (
        challenger.manifest.dataset.corpus_digest
        != baseline.manifest.dataset.corpus_digest
    ):
        problems.append(
            Problem(
                where,
                f"holds results on other documents than {challenger.folder}",
                remedy,
            )
        )
    shared = shared_queries([challenger, baseline])
    if changed := shared.reworded + shared.relabelled:
        what = f"has {changed:,} of the same queries with another text or other grades than {challenger.folder}"
        problems.append(Problem(where, what, remedy))
    elif not shared.ids:
        problems.append(
            Problem(where, f"has no query in common with {challenger.folder}", remedy)
        )
    if problems:
        raise InputError(problems)
    return shared


def _check(sides: tuple[GateArm, GateArm]) -> None:
    """Refuse a folder without scores, a retriever without results, and a comparison with itself."""
    for results, _ in sides:
        if not results.scored:
            raise InputError(Problem(str(results.folder), *UNSCORED))
    (first, challenger), (second, baseline) = sides
    if first is second and challenger == baseline:
        raise InputError(
            Problem(
                challenger,
                "would be compared with itself",
                "name two different retrievers",
            )
        )
    if missing := [
        Problem(
            str(results.folder),
            f"holds no retriever {name!r}",
            did_you_mean(name, results.retrievers),
        )
        for results, name in sides
        if name not in results.retrievers
    ]:
        raise InputError(missing)


SAYS = {
    Verdict.BETTER: "better",
    Verdict.WORSE: "worse",
    Verdict.EQUIVALENT: "equivalent",
}


class ChangedRetriever(NamedTuple):
    """One retriever before and after."""

    retriever: str
    before: float
    after: float
    comparison: Comparison
    """After (a) with before (b)."""
    displaced: int
    """Queries that lost a relevant document from the first hits while a document that is new entered them."""


class CorpusChange(NamedTuple):
    """What became of a corpus, and of the retrievers that search it."""

    measure: str
    cutoff: int
    added: tuple[str, ...]
    removed: tuple[str, ...]
    changed: tuple[str, ...]
    left_out: tuple[str, ...]
    """Queries whose relevant document is gone."""
    queries: tuple[str, ...]
    """Those that are compared: the same text, the same relevant documents."""
    retrievers: tuple[ChangedRetriever, ...]

    def lines(self) -> Iterator[str]:
        """What `harness compare OLD NEW --corpus-changed` prints."""
        kinds = (
            ("added", self.added),
            ("removed", self.removed),
            ("changed", self.changed),
        )
        yield f"documents: {', '.join(f'{len(ids):,} {kind}' for kind, ids in kinds)}"
        if self.left_out:
            yield f"left out, since a relevant document is gone: {first_few(self.left_out)}"
        yield f"{self.measure}, {counted(len(self.queries), 'query')}, each retriever against itself:"
        for one in self.retrievers:
            row, number = one.comparison, len(self.queries)
            gap = f"{row.mean_difference:+.3f}, {row.ci_low:+.3f} to {row.ci_high:+.3f}"
            says = f"p {row.p_adjusted:.3g}: {SAYS.get(row.verdict, 'undecided')}"
            lost = f"{one.displaced:,} of {number:,} queries lost a relevant document from the top {self.cutoff}"
            yield f"{one.retriever}: {one.before:.3f} before, {one.after:.3f} after ({gap}), {says}"
            yield f"  {lost} to documents that are new"


def corpus_change(old: Results, new: Results) -> CorpusChange:
    """Compare two runs of the same queries over two states of a corpus.

    Args:
        old: the earlier run.
        new: the later one; its experiment says how it is tested.

    Raises:
        InputError: the primary measures differ, a run kept no digests of its documents, or no query or no retriever is
            in both.
    """
    shared, primary = (
        same_ground(new, old, corpus_changed=True),
        primary_of(new.manifest.resolved),
    )
    queries = shared.ids
    before, after = read_corpus(old.folder), read_corpus(new.folder)
    fresh = {id_ for id_, digest in after.items() if before.get(id_) != digest}
    removed = before.keys() - after.keys()
    names = [name for name in new.retrievers if name in old.retrievers]
    if not queries or not names:
        what = f"has no {'query' if names else 'retriever'} in common with {new.folder}"
        raise InputError(
            Problem(str(old.folder), what, "compare runs of one experiment")
        )
    sides = [
        score_folder(
            one, [parse(primary)], relevance=relevance_of(one), queries=queries
        )
        for one in (old, new)
    ]
    values = {
        f"{name} {when}": side.values[primary][name]
        for name in names
        for when, side in zip(("before", "after"), sides, strict=True)
    }
    scores = replace(sides[1], values={primary: values})
    settings = at_look(
        replace(settings_of(new.manifest), by_people=scores.by_people), scores.n
    )
    rows = compare_pairs(
        scores, [(f"{name} after", f"{name} before") for name in names], settings
    )
    cutoff = parse(primary).cutoff or CUTOFF
    relevant = {query: set(new.queries[query].labels.relevant) for query in queries}
    changed = []
    for name, row in zip(names, rows, strict=True):
        first, then = (_tops(one, name, cutoff) for one in (old, new))
        displaced = sum(
            bool((first[q] - then[q]) & of) and bool((then[q] - first[q]) & fresh)
            for q, of in relevant.items()
        )
        means = (scores.mean(primary, row.b), scores.mean(primary, row.a))
        changed.append(ChangedRetriever(name, *means, row, displaced))
    edited = tuple(sorted(fresh & before.keys()))
    return CorpusChange(
        primary,
        cutoff,
        tuple(sorted(fresh - before.keys())),
        tuple(sorted(removed)),
        edited,
        shared.gone,
        queries,
        tuple(changed),
    )


def _tops(results: Results, name: str, cutoff: int) -> defaultdict[str, frozenset[str]]:
    return defaultdict(
        frozenset,
        {
            query: frozenset(one.doc_ids[:cutoff])
            for query, one in results.answers(name)
        },
    )

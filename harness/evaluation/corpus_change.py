"""Two states of a corpus compared.

In come the results of two runs of the same queries; each retriever in both is compared
with itself, on queries that have a label in both states, each scored by its own state's
labels. A difference that missing labels may explain is undecided.
"""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from enum import StrEnum
from typing import NamedTuple

from harness.evaluation.compare import compare_pairs
from harness.evaluation.pair_diagnostics import DEFAULT_CUTOFF
from harness.evaluation.verdict import Comparison, Verdict
from harness.measures import parse_measure
from harness.records import Results, read_corpus_digests
from harness.scoring.declared_settings import settings_of_run
from harness.scoring.rescore import relevance_by_rule, rescore
from harness.scoring.scores import Scores, widest_range
from harness.scoring.states import (
    RankedState,
    StateLabels,
    StateQueries,
    compare_labelling,
    find_state_queries,
)
from harness.stats.looks import settings_at_look
from retrievers.errors import InputError, Problem

NO_DOCUMENTS: frozenset[str] = frozenset()


class LabelReason(StrEnum):
    """Why a difference between two states is undecided."""

    NEW_UNLABELLED = "new documents are not labelled"
    OLD_LESS_LABELLED = "the old state was less labelled"


class ChangedRetriever(NamedTuple):
    """One retriever before and after."""

    retriever: str
    before: float
    """Its mean on the primary measure in the earlier state."""
    after: float
    """The same in the later state."""
    comparison: Comparison
    """The comparison of the state after (a) with the state before (b)."""
    labels: StateLabels
    reason: LabelReason | None
    """Why missing labels leave the difference undecided; None if they do not."""
    displaced: int
    """How many queries lost a relevant first hit to a new document.

    The new one is irrelevant, or has no label.
    """

    @property
    def verdict(self) -> Verdict:
        """What the later state shows against the earlier one."""
        return Verdict.UNDECIDED if self.reason else self.comparison.verdict


class ChangedDocuments(NamedTuple):
    """The documents that differ between two states of a corpus."""

    added: tuple[str, ...]
    removed: tuple[str, ...]
    changed: tuple[str, ...]

    @property
    def new(self) -> frozenset[str]:
        """The documents whose text is new."""
        return frozenset(self.added) | frozenset(self.changed)


class CorpusChange(NamedTuple):
    """What changed in a corpus, and in the retrievers that search it."""

    measure: str
    """The primary measure of both runs."""
    cutoff: int
    """How many hits of a query are its first hits."""
    documents: ChangedDocuments
    queries: StateQueries
    retrievers: tuple[ChangedRetriever, ...]
    """Those that are in both runs, in the order of the later one."""


def compare_corpus_states(old: Results, new: Results) -> CorpusChange:
    """Compare two runs of the same queries over two states of a corpus.

    Every query that both states score is scored by each state's own labels; it counts
    if every retriever has a value in both.

    Args:
        old: the earlier run.
        new: the later one; its experiment declares the tests.

    Raises:
        InputError: the primary measures differ, a run stored no digests of its
            documents, no query or no retriever is in both, or no query counts.
    """
    _refuse_other_measure(old, new)
    primary = new.manifest.resolved.primary
    documents = changed_documents(old, new)
    queries = find_state_queries(old, new)
    retrievers = [name for name in new.retrievers if name in old.retrievers]
    if not queries.ids or not retrievers:
        missing = "query" if retrievers else "retriever"
        problem = f"has no {missing} in common with {new.folder}"
        remedy = "compare runs of one experiment"
        raise InputError(Problem(str(old.folder), problem, remedy))
    scores = _scores_of_both(
        retrievers,
        primary,
        before=_rescore(old, primary).select_ids(queries.ids),
        after=_rescore(new, primary).select_ids(queries.ids),
    )
    scores = scores.select_queries(scores.defined(primary))
    refuse_no_value(scores, old)
    without_value = len(queries.ids) - scores.n
    queries = queries._replace(ids=scores.ids, without_value=without_value)
    declared = replace(
        settings_of_run(new.manifest), judged_by_people=scores.judged_by_people
    )
    rows = compare_pairs(
        scores,
        [(f"{name} after", f"{name} before") for name in retrievers],
        settings_at_look(declared, scores.n),
    )
    cutoff = parse_measure(primary).cutoff or DEFAULT_CUTOFF
    states = _ComparedStates(old, new, queries.ids, documents.new, cutoff)
    changed = tuple(
        _compare_retriever(name, row, scores, states)
        for name, row in zip(retrievers, rows, strict=True)
    )
    return CorpusChange(primary, cutoff, documents, queries, changed)


class _ComparedStates(NamedTuple):
    """Two runs over two states of a corpus, and what of them is compared."""

    old: Results
    new: Results
    queries: tuple[str, ...]
    new_documents: frozenset[str]
    """The documents whose text is new."""
    cutoff: int
    """How many hits of a query are its first hits."""


def _compare_retriever(
    name: str, comparison: Comparison, scores: Scores, states: _ComparedStates
) -> ChangedRetriever:
    """Return what changed in one retriever.

    Args:
        name: of the retriever.
        comparison: of its scores after, as a, with those before.
        scores: of all retrievers, before and after.
        states: the two runs.
    """
    labels = compare_labelling(
        RankedState(states.old, name),
        RankedState(states.new, name),
        states.queries,
        states.new_documents,
        cutoff=states.cutoff,
    )
    return ChangedRetriever(
        retriever=name,
        before=scores.mean(scores.primary, comparison.b),
        after=scores.mean(scores.primary, comparison.a),
        comparison=comparison,
        labels=labels,
        reason=label_reason(labels, comparison.mean_difference),
        displaced=_count_displaced(
            _top_documents(states.old, name, states.cutoff),
            _top_documents(states.new, name, states.cutoff),
            {query_id: _relevant(states.new, query_id) for query_id in states.queries},
            states.new_documents,
        ),
    )


def label_reason(labels: StateLabels, difference: float) -> LabelReason | None:
    """Return why missing labels leave a difference undecided; None if they do not."""
    if difference < 0 and labels.is_new_less_labelled:
        return LabelReason.NEW_UNLABELLED
    if difference > 0 and labels.is_old_less_labelled:
        return LabelReason.OLD_LESS_LABELLED
    return None


def refuse_no_value(scores: Scores, old: Results) -> None:
    """Refuse scores without a query.

    Raises:
        InputError: no query has a value of the primary measure in both runs.
    """
    if not scores.n:
        problem = f"has no query with a value of {scores.primary} in both runs"
        raise InputError(Problem(str(old.folder), problem, "use another measure"))


def _refuse_other_measure(old: Results, new: Results) -> None:
    """Refuse runs that were decided by different measures.

    Raises:
        InputError: the primary measures differ.
    """
    before = old.manifest.resolved.primary
    after = new.manifest.resolved.primary
    if before != after:
        problem = f"was decided by {before}, and {new.folder} by {after}"
        remedy = "use one primary measure for both"
        raise InputError(Problem(str(old.folder), problem, remedy))


def changed_documents(old: Results, new: Results) -> ChangedDocuments:
    """Return the documents that differ between two states of a corpus."""
    before = read_corpus_digests(old.folder)
    after = read_corpus_digests(new.folder)
    changed = [
        document
        for document, digest in after.items()
        if before.get(document, digest) != digest
    ]
    return ChangedDocuments(
        added=tuple(sorted(after.keys() - before.keys())),
        removed=tuple(sorted(before.keys() - after.keys())),
        changed=tuple(sorted(changed)),
    )


def _rescore(results: Results, primary: str) -> Scores:
    relevance = relevance_by_rule(results)
    return rescore(results, [parse_measure(primary)], relevance=relevance)


def _scores_of_both(
    retrievers: Sequence[str], primary: str, *, before: Scores, after: Scores
) -> Scores:
    """Return the scores of each retriever as two: "x before" and "x after".

    They are on the queries that are scored in both states.
    """
    before = before.select_ids(after.ids)
    after = after.select_ids(before.ids)
    columns = {}
    for name in retrievers:
        columns[f"{name} before"] = before.values[primary][name]
        columns[f"{name} after"] = after.values[primary][name]
    return replace(
        after,
        values={primary: columns},
        # Both may depend on a state's grades: the wider range holds for both.
        ranges={primary: widest_range([before, after], primary)},
        # In a state with averages of trials no measure is 0 or 1.
        binary=after.binary & before.binary,
        judged_by_people=after.judged_by_people and before.judged_by_people,
    )


def _relevant(results: Results, query_id: str) -> frozenset[str]:
    return frozenset(results.queries[query_id].labels.relevant)


def _top_documents(
    results: Results, retriever: str, cutoff: int
) -> dict[str, frozenset[str]]:
    """Return the first hits of each query."""
    return {
        query_id: frozenset(ranking.doc_ids[:cutoff])
        for query_id, ranking in results.iter_rankings(retriever)
    }


def _count_displaced(
    before: dict[str, frozenset[str]],
    after: dict[str, frozenset[str]],
    relevant: dict[str, frozenset[str]],
    new_documents: AbstractSet[str],
) -> int:
    """Count the queries that lost a relevant document while a new one came in.

    The new one is irrelevant, or has no label.

    Args:
        before: query id -> the first hits in the earlier state.
        after: the same in the later state.
        relevant: query id -> its relevant documents.
        new_documents: those that only the later state has in this form.
    """
    displaced = 0
    for query_id, relevant_documents in relevant.items():
        top_before = before.get(query_id, NO_DOCUMENTS)
        top_after = after.get(query_id, NO_DOCUMENTS)
        lost = (top_before - top_after) & relevant_documents
        entered = (top_after - top_before) & new_documents - relevant_documents
        if lost and entered:
            displaced += 1
    return displaced

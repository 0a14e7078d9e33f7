"""Two states of a corpus compared."""

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import NamedTuple

from harness.english import count_of, first_names
from harness.evaluation.compare import compare_pairs
from harness.evaluation.gate import shared_gate_queries
from harness.evaluation.pair_diagnostics import DEFAULT_CUTOFF
from harness.evaluation.verdict import Comparison, Verdict
from harness.measures import parse_measure
from harness.records import Results, read_corpus_digests
from harness.scoring.declared_settings import settings_of_run
from harness.scoring.rescore import relevance_by_rule, rescore
from harness.scoring.scores import Scores
from harness.scoring.stored_scores import primary_measure
from harness.stats.looks import settings_at_look
from retrievers.errors import InputError, Problem

CHANGE_WORDS = {
    Verdict.BETTER: "better",
    Verdict.WORSE: "worse",
    Verdict.EQUIVALENT: "equivalent",
}
NO_DOCUMENTS: frozenset[str] = frozenset()


class ChangedRetriever(NamedTuple):
    """One retriever before and after."""

    retriever: str
    before: float
    after: float
    comparison: Comparison
    """After (a) with before (b)."""
    displaced: int
    """Queries that lost a relevant document from the first hits to a new document."""


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
    cutoff: int
    documents: ChangedDocuments
    left_out: tuple[str, ...]
    """Queries whose relevant document is gone."""
    queries: tuple[str, ...]
    """Those that are compared: the same text, the same relevant documents."""
    retrievers: tuple[ChangedRetriever, ...]

    def lines(self) -> Iterator[str]:
        """The lines that `harness compare OLD NEW --corpus-changed` prints."""
        counts = [
            f"{len(self.documents.added):,} added",
            f"{len(self.documents.removed):,} removed",
            f"{len(self.documents.changed):,} changed",
        ]
        yield f"documents: {', '.join(counts)}"
        if self.left_out:
            queries = first_names(self.left_out)
            yield f"left out, since a relevant document is gone: {queries}"
        queries = count_of(len(self.queries), "query")
        yield f"{self.measure}, {queries}, each retriever against itself:"
        for changed in self.retrievers:
            yield from self._retriever_lines(changed)

    def _retriever_lines(self, changed: ChangedRetriever) -> Iterator[str]:
        row = changed.comparison
        means = f"{changed.before:.3f} before, {changed.after:.3f} after"
        gap = f"{row.mean_difference:+.3f}, {row.ci_low:+.3f} to {row.ci_high:+.3f}"
        word = CHANGE_WORDS.get(row.verdict, "undecided")
        yield f"{changed.retriever}: {means} ({gap}), p {row.p_adjusted:.3g}: {word}"
        lost = f"{changed.displaced:,} of {len(self.queries):,} queries lost"
        yield (
            f"  {lost} a relevant document from the top {self.cutoff} "
            "to documents that are new"
        )


def compare_corpus_states(old: Results, new: Results) -> CorpusChange:
    """Compare two runs of the same queries over two states of a corpus.

    Args:
        old: the earlier run.
        new: the later one; its experiment declares the tests.

    Raises:
        InputError: the primary measures differ, a run stored no digests of its
            documents, or no query or no retriever is in both.
    """
    shared = shared_gate_queries(new, old, corpus_changed=True)
    primary = primary_measure(new.manifest.resolved)
    documents = _changed_documents(old, new)
    retrievers = [name for name in new.retrievers if name in old.retrievers]
    if not shared.ids or not retrievers:
        missing = "query" if retrievers else "retriever"
        problem = f"has no {missing} in common with {new.folder}"
        remedy = "compare runs of one experiment"
        raise InputError(Problem(str(old.folder), problem, remedy))
    scores = _scores_of_both(
        retrievers,
        primary,
        before=_rescore(old, primary, shared.ids),
        after=_rescore(new, primary, shared.ids),
    )
    declared = replace(
        settings_of_run(new.manifest), judged_by_people=scores.judged_by_people
    )
    rows = compare_pairs(
        scores,
        [(f"{name} after", f"{name} before") for name in retrievers],
        settings_at_look(declared, scores.n),
    )
    cutoff = parse_measure(primary).cutoff or DEFAULT_CUTOFF
    changed: list[ChangedRetriever] = []
    for name, row in zip(retrievers, rows, strict=True):
        displaced = _count_displaced(
            _top_documents(old, name, cutoff),
            _top_documents(new, name, cutoff),
            {query_id: _relevant(new, query_id) for query_id in shared.ids},
            documents.new,
        )
        before = scores.mean(primary, row.b)
        after = scores.mean(primary, row.a)
        changed.append(ChangedRetriever(name, before, after, row, displaced))
    return CorpusChange(
        measure=primary,
        cutoff=cutoff,
        documents=documents,
        left_out=shared.gone,
        queries=shared.ids,
        retrievers=tuple(changed),
    )


def _changed_documents(old: Results, new: Results) -> ChangedDocuments:
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


def _rescore(results: Results, primary: str, queries: Sequence[str]) -> Scores:
    return rescore(
        results,
        [parse_measure(primary)],
        relevance=relevance_by_rule(results),
        queries=queries,
    )


def _scores_of_both(
    retrievers: Sequence[str], primary: str, *, before: Scores, after: Scores
) -> Scores:
    """Return the scores of each retriever under two names, before and after."""
    columns = {}
    for name in retrievers:
        columns[f"{name} before"] = before.values[primary][name]
        columns[f"{name} after"] = after.values[primary][name]
    return replace(after, values={primary: columns})


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
    """Count the queries that lost a relevant document to a new one.

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
        entered = (top_after - top_before) & new_documents
        if lost and entered:
            displaced += 1
    return displaced

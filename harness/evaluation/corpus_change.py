"""Two states of a corpus compared."""

from collections import defaultdict
from collections.abc import Iterator
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
from harness.scoring.stored_scores import primary_measure
from harness.stats.looks import settings_at_look
from retrievers.errors import InputError, Problem

CHANGE_WORDS = {
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
            yield f"left out, since a relevant document is gone: {first_names(self.left_out)}"
        yield f"{self.measure}, {count_of(len(self.queries), 'query')}, each retriever against itself:"
        for one in self.retrievers:
            row, number = one.comparison, len(self.queries)
            gap = f"{row.mean_difference:+.3f}, {row.ci_low:+.3f} to {row.ci_high:+.3f}"
            says = (
                f"p {row.p_adjusted:.3g}: {CHANGE_WORDS.get(row.verdict, 'undecided')}"
            )
            lost = f"{one.displaced:,} of {number:,} queries lost a relevant document from the top {self.cutoff}"
            yield f"{one.retriever}: {one.before:.3f} before, {one.after:.3f} after ({gap}), {says}"
            yield f"  {lost} to documents that are new"


def compare_corpus_states(old: Results, new: Results) -> CorpusChange:
    """Compare two runs of the same queries over two states of a corpus.

    Args:
        old: the earlier run.
        new: the later one; its experiment says how it is tested.

    Raises:
        InputError: the primary measures differ, a run kept no digests of its documents, or no query or no retriever is
            in both.
    """
    shared, primary = (
        shared_gate_queries(new, old, corpus_changed=True),
        primary_measure(new.manifest.resolved),
    )
    queries = shared.ids
    before, after = read_corpus_digests(old.folder), read_corpus_digests(new.folder)
    fresh = {id_ for id_, digest in after.items() if before.get(id_) != digest}
    removed = before.keys() - after.keys()
    names = [name for name in new.retrievers if name in old.retrievers]
    if not queries or not names:
        what = f"has no {'query' if names else 'retriever'} in common with {new.folder}"
        raise InputError(
            Problem(str(old.folder), what, "compare runs of one experiment")
        )
    sides = [
        rescore(
            one,
            [parse_measure(primary)],
            relevance=relevance_by_rule(one),
            queries=queries,
        )
        for one in (old, new)
    ]
    values = {
        f"{name} {when}": side.values[primary][name]
        for name in names
        for when, side in zip(("before", "after"), sides, strict=True)
    }
    scores = replace(sides[1], values={primary: values})
    settings = settings_at_look(
        replace(
            settings_of_run(new.manifest), judged_by_people=scores.judged_by_people
        ),
        scores.n,
    )
    rows = compare_pairs(
        scores, [(f"{name} after", f"{name} before") for name in names], settings
    )
    cutoff = parse_measure(primary).cutoff or DEFAULT_CUTOFF
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
            for query, one in results.iter_rankings(name)
        },
    )

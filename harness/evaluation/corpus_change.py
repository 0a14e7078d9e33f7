"""The same queries on a changed corpus: what changed, and what each retriever lost or gained against itself."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

from harness.english import counted, first_few
from harness.evaluation.compare import compare_pairs
from harness.evaluation.evaluate import settings_of
from harness.evaluation.gate import same_ground
from harness.evaluation.readers import primary_of, relevance_of, score_folder
from harness.evaluation.verdict import Comparison, Verdict
from harness.measures import parse
from harness.records import Results, read_corpus
from harness.stats.power import at_look
from retrievers.errors import InputError, Problem

CUTOFF = 10
"""Hits that are looked at, where the primary measure has no cutoff."""
SAYS = {Verdict.BETTER: "better", Verdict.WORSE: "worse", Verdict.EQUIVALENT: "equivalent"}


class ChangedRetriever(NamedTuple):
    """One retriever before and after."""

    retriever: str
    before: float
    after: float
    comparison: Comparison
    """After (a) with before (b)."""
    displaced: int
    """Queries of which a relevant document left the first hits while a document that is new entered them."""


class CorpusChange(NamedTuple):
    """What became of a corpus, and of the retrievers that search it."""

    measure: str
    cutoff: int
    added: tuple[str, ...]
    removed: tuple[str, ...]
    changed: tuple[str, ...]
    left_out: tuple[str, ...]
    """Queries of which a relevant document is gone."""
    queries: tuple[str, ...]
    """Those that are compared: the same text, the same relevant documents."""
    retrievers: tuple[ChangedRetriever, ...]

    def lines(self) -> Iterator[str]:
        """What `harness compare OLD NEW --corpus-changed` prints."""
        kinds = (("added", self.added), ("removed", self.removed), ("changed", self.changed))
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
    shared, primary = same_ground(new, old, corpus_changed=True), primary_of(new.manifest.resolved)
    queries = shared.ids
    before, after = read_corpus(old.folder), read_corpus(new.folder)
    fresh = {id_ for id_, digest in after.items() if before.get(id_) != digest}
    removed = before.keys() - after.keys()
    names = [name for name in new.retrievers if name in old.retrievers]
    if not queries or not names:
        what = f"has no {'query' if names else 'retriever'} in common with {new.folder}"
        raise InputError(Problem(str(old.folder), what, "compare runs of one experiment"))
    sides = [score_folder(one, [parse(primary)], relevance=relevance_of(one), queries=queries) for one in (old, new)]
    values = {f"{name} {when}": side.values[primary][name] for name in names
              for when, side in zip(("before", "after"), sides, strict=True)}  # fmt: skip
    scores = replace(sides[1], values={primary: values})
    settings = at_look(replace(settings_of(new.manifest), by_people=scores.by_people), scores.n)
    rows = compare_pairs(scores, [(f"{name} after", f"{name} before") for name in names], settings)
    cutoff = parse(primary).cutoff or CUTOFF
    relevant = {query: set(new.queries[query].labels.relevant) for query in queries}
    changed = []
    for name, row in zip(names, rows, strict=True):
        tops = [_tops(one, name, queries, cutoff) for one in (old, new)]
        displaced = _displaced(tops[0], tops[1], relevant, fresh)
        means = (scores.mean(primary, row.b), scores.mean(primary, row.a))
        changed.append(ChangedRetriever(name, *means, row, displaced))
    edited = tuple(sorted(fresh & before.keys()))
    return CorpusChange(primary, cutoff, tuple(sorted(fresh - before.keys())), tuple(sorted(removed)), edited,
                        shared.gone, queries, tuple(changed))  # fmt: skip


def _tops(results: Results, name: str, queries: Collection[str], cutoff: int) -> dict[str, frozenset[str]]:
    asked = set(queries)
    return {query: frozenset(one.doc_ids[:cutoff]) for query, one in results.answers(name) if query in asked}


def _displaced(
    before: Mapping[str, frozenset[str]], after: Mapping[str, frozenset[str]],
    relevant: Mapping[str, set[str]], fresh: Collection[str],
) -> int:  # fmt: skip
    pairs = [(before.get(query, frozenset()), after.get(query, frozenset()), of) for query, of in relevant.items()]
    return sum(bool((old - new) & wanted) and bool((new - old) & set(fresh)) for old, new, wanted in pairs)

"""A corpus of templates that grew, by BM25; used by stats.py."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from harness.dataset import Dataset, DatasetReference, load_dataset
from harness.evaluation.compare import compare_retrievers
from harness.evaluation.verdict import Verdict
from harness.measures import measure_rankings, parse_measure
from harness.scoring.scores import Scores
from harness.stats.differences import Floats
from harness.stats.settings import Settings
from retrievers.bm25 import BM25
from retrievers.meter import Meter
from retrievers.types import Document, Query

COLLECTIONS = ("survey-templates-en", "survey-templates-ja")
HELD_OUT = (0.1, 0.25, 0.5)
"""Shares of the templates that are new in the later state."""
MOST_CORPORA = 200
"""Corpora of a row: each is indexed, and is drawn from once."""
CUTOFF = 10
QUALITY = parse_measure(f"nDCG@{CUTOFF}")


class Grown(NamedTuple):
    """One corpus that grew, and one sample of queries."""

    within_noise: bool
    """Whether the true change is at most one standard error of the sample."""
    change: float
    """The true one: of all queries by the labels of each state."""
    compared: int
    """Queries of the sample that gained no relevant template."""
    before: bool
    """Whether it is called worse if the others are left out."""
    now: bool
    now_unlabelled: bool
    """The same where a template without a label may be relevant."""


class State(NamedTuple):
    """The queries in one state of the corpus."""

    scores: Floats
    first_hits: Sequence[frozenset[str]]


def grown(experiments: int) -> Iterator[str]:
    """Templates held out at random, with their labels; then the corpus has all."""
    yield (
        "| templates | new | true change | within a standard error "
        "| queries left, before | worse, before | worse, now "
        "| worse, now, by these labels |"
    )
    yield "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
    for collection in COLLECTIONS:
        dataset = _load(collection)
        documents = list(dataset.documents())
        relevant = {
            query.id: frozenset(dataset.labels[query.id].relevant)
            for query in dataset.stored_queries
        }
        everything = _search(documents, dataset.stored_queries, relevant)
        for share in HELD_OUT:
            corpora = [
                _grow(
                    documents,
                    dataset.stored_queries,
                    relevant,
                    everything,
                    share=share,
                    seed=seed,
                )
                for seed in range(min(experiments, MOST_CORPORA))
            ]
            yield _row(f"{collection[-2:]} | {share:.0%}", corpora)


def _row(head: str, corpora: Sequence[Grown]) -> str:
    """The rates, of the corpora whose true change is within noise."""
    calm = [corpus for corpus in corpora if corpus.within_noise]
    change = np.mean([corpus.change for corpus in corpora])
    left = np.mean([corpus.compared for corpus in corpora])
    cells = [f"{change:+.3f}", f"{len(calm)} of {len(corpora)}", f"{left:.0f}"]
    if calm:
        before = np.mean([corpus.before for corpus in calm])
        now = np.mean([corpus.now for corpus in calm])
        unlabelled = np.mean([corpus.now_unlabelled for corpus in calm])
        cells += [f"{before:.0%}", f"{now:.1%}", f"{unlabelled:.1%}"]
    return f"| {head} | {' | '.join(cells)} |"


def _load(collection: str) -> Dataset:
    folder = Path(__file__).parents[1] / "datasets" / collection
    queries = ("queries.json", "queries-extended.json")
    return load_dataset(DatasetReference(path=folder, queries=queries))


def _grow(
    documents: Sequence[Document],
    queries: Sequence[Query],
    relevant: Mapping[str, Collection[str]],
    everything: State,
    *,
    share: float,
    seed: int,
) -> Grown:
    """Hold templates out, then draw as many queries as there are, with replacement.

    All queries are the population, so that the truth is known; those whose relevant
    templates are all held out have no score in the earlier state.
    """
    rng = np.random.default_rng([seed, int(100 * share)])
    is_new = rng.permutation(len(documents)) < round(share * len(documents))
    old = [documents[i] for i in np.flatnonzero(~is_new)]
    new_ids = frozenset(documents[i].id for i in np.flatnonzero(is_new))
    kept = [
        i
        for i, query in enumerate(queries)
        if not new_ids.issuperset(relevant[query.id])
    ]
    asked = [queries[i] for i in kept]
    old_relevant = {query.id: relevant[query.id] - new_ids for query in asked}
    before = _search(old, asked, old_relevant)
    differences = everything.scores[kept] - before.scores
    gains = np.array([not new_ids.isdisjoint(relevant[query.id]) for query in asked])
    has_unlabelled = np.array(
        [
            bool((everything.first_hits[i] & new_ids) - relevant[queries[i].id])
            for i in kept
        ]
    )
    drawn = rng.integers(0, len(kept), len(kept))
    error = float(np.std(differences, ddof=1)) / len(kept) ** 0.5
    change = float(differences.mean())
    is_worse = _is_worse(differences[drawn])
    return Grown(
        within_noise=abs(change) <= error,
        change=change,
        compared=int((~gains[drawn]).sum()),
        before=_is_worse(differences[drawn][~gains[drawn]]),
        now=is_worse,
        now_unlabelled=is_worse and not has_unlabelled[drawn].any(),
    )


def _search(
    documents: Sequence[Document],
    queries: Sequence[Query],
    relevant: Mapping[str, Collection[str]],
) -> State:
    """Search a state, and score it by its own labels."""
    retriever = BM25()
    retriever.index(documents, Meter())
    rankings = retriever.search(queries, CUTOFF, Meter())
    hits = {
        query.id: list(ranking.doc_ids)
        for query, ranking in zip(queries, rankings, strict=True)
    }
    grades = {query.id: dict.fromkeys(relevant[query.id], 1) for query in queries}
    values = measure_rankings([QUALITY], grades, hits).values
    return State(
        np.asarray(values).ravel(), [frozenset(hits[query.id]) for query in queries]
    )


def _is_worse(differences: Floats) -> bool:
    """Whether the product's test calls the later state worse."""
    if not len(differences):
        return False
    before = np.full(len(differences), 0.5)
    scores = Scores(
        ids=tuple(f"{i:04}" for i in range(len(differences))),
        values={"m": {"after": before + differences / 2, "before": before}},
    )
    [row] = compare_retrievers(scores, settings=Settings())
    return row.verdict is Verdict.WORSE

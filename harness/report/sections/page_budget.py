"""The queries that a page has room for."""

import base64
import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from harness.pages import visible_text
from harness.records import KEPT_RANKS, TEXT_LIMITS
from harness.report.ranking_digests import EMPTY_RANKING
from harness.report.sections.misses import QueryGroup, miss_causes
from harness.report.sections.query_rows import (
    QueryFacts,
    QueryRows,
    collect_query_rows,
    score_ranges,
)
from harness.report.sections.rerankers import find_rerankings
from harness.report.view import View

FAST_COMPRESSION_LENGTH = 500_000
"""Characters from which on fast compression is used.

The best takes several times longer and saves little.
"""


def pack_json(content: Any) -> str:
    """Return JSON as text for a script element.

    `DecompressionStream("deflate")` reads it back.

    >>> unpack_json(pack_json({"a": [1, "<"]}))
    {'a': [1, '<']}
    """
    code = visible_text(json.dumps(content, ensure_ascii=False, separators=(",", ":")))
    level = 9 if len(code) < FAST_COMPRESSION_LENGTH else 4
    return base64.b64encode(zlib.compress(code.encode("utf-8"), level)).decode("ascii")


def unpack_json(text: str) -> Any:
    """Unpack JSON."""
    return json.loads(zlib.decompress(base64.b64decode(text)))


MAX_PAGE_BYTES = 1_000_000
"""Largest size of a page's evidence, deflated, in bytes."""
LETTER_BYTES = 0.5
"""Approximate packed size of a letter of text."""
SCORE_BYTES = 4.0
"""Approximate packed size of a score."""
HIT_BYTES = 5.0
"""Approximate packed size of a hit without its score."""


class BudgetStep(NamedTuple):
    """An amount of evidence per query."""

    hits: int
    """Hits per ranking."""
    document_length: int
    """Characters per document."""


BUDGET_STEPS = (
    BudgetStep(KEPT_RANKS, TEXT_LIMITS[0]),
    BudgetStep(KEPT_RANKS, 2_000),
    BudgetStep(KEPT_RANKS, 600),
    BudgetStep(KEPT_RANKS, 200),
    BudgetStep(KEPT_RANKS, 0),
    BudgetStep(KEPT_RANKS // 2, 0),
)
"""They are tried in this order until the budget is met."""


class PageBudget(NamedTuple):
    """The amount of evidence on the page."""

    hits: int
    document_length: int
    queries: int


class PageQueries(NamedTuple):
    """The evidence of one page."""

    rows: Mapping[str, Any]
    packed: str
    """The same, packed."""
    packed_texts: str
    """The texts of the documents and the scores of the hits, packed."""
    budget: PageBudget
    query_indices: tuple[int, ...]
    """Of the queries on the page."""


@dataclass(frozen=True, slots=True)
class _PackedQueries:
    """Some queries with a number of hits, packed."""

    indices: Sequence[int]
    hits: int
    query_rows: QueryRows
    packed: str
    document_lengths: np.ndarray[tuple[int, ...], np.dtype[np.int64]]
    """Of the documents with a stored text."""

    def estimate_size(self, document_length: int, retrievers: int) -> float:
        """Return the approximate size in bytes with texts of at most this length."""
        letters = float(np.minimum(self.document_lengths, document_length).sum())
        size = len(self.packed) + LETTER_BYTES * letters
        if document_length:
            size += SCORE_BYTES * self.hits * len(self.indices) * retrievers
        return size


def queries_that_fit(
    view: View, groups: Sequence[QueryGroup], *, has_own_page: bool = False
) -> PageQueries:
    """The evidence that fits the budget.

    First texts are shortened, then queries that differ least are dropped.

    Args:
        view: the results.
        groups: the groups of failures.
        has_own_page: whether it has its own page, with four times the room and every
            query.
    """
    budget = 4 * MAX_PAGE_BYTES if has_own_page else MAX_PAGE_BYTES
    ranges = score_ranges(view)
    facts = QueryFacts(groups, find_rerankings(view), miss_causes(view))
    indices = list(view.listed_queries)
    retrievers = len(view.ranked)
    while True:
        packed: _PackedQueries | None = None
        for step in BUDGET_STEPS:
            is_last_step = step == BUDGET_STEPS[-1]
            hits_size = HIT_BYTES * step.hits * len(indices) * retrievers
            if hits_size > budget and not is_last_step:
                continue
            if packed is None or packed.hits != step.hits:
                packed = _pack_queries(view, indices, facts, step.hits)
            size = packed.estimate_size(step.document_length, retrievers)
            must_fit = has_own_page or len(indices) == 1
            if size <= budget or (must_fit and is_last_step):
                return _page_queries(view, packed, step)
        by_range = sorted(indices, key=lambda i: -ranges[i])
        most_different = set(by_range[: len(indices) // 2])
        indices = [i for i in indices if i in most_different]


def _pack_queries(
    view: View, indices: Sequence[int], facts: QueryFacts, hits: int
) -> _PackedQueries:
    query_rows = collect_query_rows(view, indices, facts, hits)
    documents = map(view.results.documents.get, query_rows.documents)
    lengths = [len(document.text) for document in documents if document]
    return _PackedQueries(
        indices,
        hits,
        query_rows,
        packed=pack_json(query_rows.rows),
        document_lengths=np.array(lengths, dtype=np.int64),
    )


def _page_queries(view: View, packed: _PackedQueries, step: BudgetStep) -> PageQueries:
    texts: list[str] = []
    scores: list[list[list[float]]] = []
    if step.document_length:
        texts = [
            _document_text(view, doc, step.document_length)
            for doc in packed.query_rows.documents
        ]
        scores = [_hit_scores(view, index, step.hits) for index in packed.indices]
    return PageQueries(
        packed.query_rows.rows,
        packed.packed,
        packed_texts=pack_json({"texts": texts, "scores": scores}),
        budget=PageBudget(step.hits, step.document_length, len(packed.indices)),
        query_indices=tuple(packed.indices),
    )


def _hit_scores(view: View, index: int, hits: int) -> list[list[float]]:
    """Each retriever's scores of its hits for a query, with three digits."""
    query_id = view.ids[index]
    scores_by_retriever: list[list[float]] = []
    for retriever in view.ranked:
        top_hits = view.ranking_digests[retriever].top_hits
        scores = top_hits.get(query_id, EMPTY_RANKING).scores[:hits].tolist()
        scores_by_retriever.append([float(f"{score:.3g}") for score in scores])
    return scores_by_retriever


def _document_text(view: View, doc: str, length: int) -> str:
    document = view.results.documents.get(doc)
    if document is None:
        return ""
    if len(document.text) <= length:
        return document.text
    return document.text[:length].rstrip() + "…"

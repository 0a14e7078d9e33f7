"""The queries that a page has room for."""

import base64
import json
import zlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from harness.pages import visible_text
from harness.records import KEPT_RANKS, TEXT_LIMITS
from harness.report.ranking_digests import EMPTY_RANKING
from harness.report.sections.misses import QueryGroup, miss_causes
from harness.report.sections.query_rows import collect_query_rows, score_ranges
from harness.report.sections.rerankers import find_rerankings
from harness.report.view import View

FAST_COMPRESSION_LENGTH = 500_000
"""Characters from which on fast compression is used: the best takes several times longer and saves little."""


def pack_json(value: Any) -> str:
    """Return JSON as text for a script element; `DecompressionStream("deflate")` reads it back.

    >>> unpack_json(pack_json({"a": [1, "<"]}))
    {'a': [1, '<']}
    """
    code = visible_text(json.dumps(value, ensure_ascii=False, separators=(",", ":")))
    level = 9 if len(code) < FAST_COMPRESSION_LENGTH else 4
    return base64.b64encode(zlib.compress(code.encode("utf-8"), level)).decode("ascii")


def unpack_json(text: str) -> Any:
    """Unpack JSON."""
    return json.loads(zlib.decompress(base64.b64decode(text)))


MAX_PAGE_BYTES = 1_000_000
"""Largest size of a page's evidence, deflated, in bytes."""
LETTER_BYTES, SCORE_BYTES, HIT_BYTES = 0.5, 4.0, 5.0
"""Approximate packed size of a letter of text, of a score and of the rest of a hit."""
BUDGET_STEPS = (
    (KEPT_RANKS, TEXT_LIMITS[0]),
    (KEPT_RANKS, 2_000),
    (KEPT_RANKS, 600),
    (KEPT_RANKS, 200),
    (KEPT_RANKS, 0),
    (KEPT_RANKS // 2, 0),
)
"""Hits per ranking and characters per document, tried in this order until the budget is met."""


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
    """The texts of the evidence's documents and the scores of its hits, packed."""
    budget: PageBudget
    query_indices: tuple[int, ...]
    """Number of queries."""


def queries_that_fit(
    view: View, alike: Sequence[QueryGroup], *, whole: bool = False
) -> PageQueries:
    """The evidence that fits the budget: first texts are shortened, then queries that differ least are dropped.

    Args:
        view: the results.
        alike: the groups of failures.
        whole: whether it has its own page, with four times the room and every query.
    """
    budget = 4 * MAX_PAGE_BYTES if whole else MAX_PAGE_BYTES
    distances, about = (
        score_ranges(view),
        (alike, find_rerankings(view), miss_causes(view)),
    )
    places, taken = list(view.listed_queries), 0
    while True:
        for hits, letters in BUDGET_STEPS:
            if (
                HIT_BYTES * hits * len(places) * len(view.ranked) > budget
                and (hits, letters) != BUDGET_STEPS[-1]
            ):
                continue
            if hits != taken:
                evidence, documents = collect_query_rows(view, places, about, hits)
                code, taken = pack_json(evidence), hits
                kept_texts = (view.results.documents.get(doc) for doc in documents)
                lengths = np.array(
                    [len(kept.text) for kept in kept_texts if kept], dtype=np.int64
                )
            more = LETTER_BYTES * float(np.minimum(lengths, letters).sum())
            more += (
                SCORE_BYTES * hits * len(places) * len(view.ranked) if letters else 0
            )
            if len(code) + more <= budget or (
                (whole or len(places) == 1) and (hits, letters) == BUDGET_STEPS[-1]
            ):
                beside: dict[str, Any] = {"texts": [], "scores": []}
                if letters:
                    beside["texts"] = [_text(view, doc, letters) for doc in documents]
                    beside["scores"] = [_scores(view, place, hits) for place in places]
                kept_of = PageBudget(hits, letters, len(places))
                return PageQueries(
                    evidence, code, pack_json(beside), kept_of, tuple(places)
                )
        near = set(sorted(places, key=lambda i: -distances[i])[: len(places) // 2])
        places, taken = [i for i in places if i in near], 0


def _scores(view: View, place: int, hits: int) -> list[list[float]]:
    """Each retriever's scores of its hits for a query, with three digits."""
    tops = (
        view.ranking_digests[name].top_hits.get(view.ids[place], EMPTY_RANKING)
        for name in view.ranked
    )
    return [
        [float(f"{score:.3g}") for score in top.scores[:hits].tolist()] for top in tops
    ]


def _text(view: View, doc: str, letters: int) -> str:
    kept = view.results.documents.get(doc)
    if kept is None:
        return ""
    return (
        kept.text if len(kept.text) <= letters else kept.text[:letters].rstrip() + "…"
    )

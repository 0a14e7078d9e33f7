"""What the trade-offs show: sizes of vectors, what approximate search gives up, which points bear their names."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

from harness.records import Results
from harness.report.text import size

UNITS = {"sparse": ("nonzeros", "numbers that are not 0"), "multivector": ("tokens", "vectors, one a token")}
"""Kind -> the key of the manifest, and what is counted."""


class VectorSize(NamedTuple):
    """The vectors of one retriever."""

    counted: str
    """What is counted."""
    per_text: float
    """Of a document, or of a passage, on average."""
    per_query: float
    dimensions: int
    bytes_per_document: float


def vector_sizes(results: Results) -> dict[str, VectorSize]:
    """Return the retrievers by vectors of unequal size, in the order of the experiment."""
    sizes = {}
    for name in results.retrievers:
        facts = results.manifest.retrievers[name].provenance
        key, counted = UNITS.get(results.manifest.resolved.blocks[name]["kind"], ("", ""))
        if f"{key}_per_text" in facts:
            sizes[name] = VectorSize(
                counted,
                float(facts[f"{key}_per_text"]),
                float(facts[f"{key}_per_query"]),
                int(facts["dimensions"]),
                float(facts["vector_bytes"]) / results.manifest.dataset.documents,
            )
    return sizes


class Approximation(NamedTuple):
    """One approximate retriever against exact search in the same collection."""

    compared: int
    """Queries that were searched both ways."""
    recall_at_10: float
    """Share of the exact first 10 hits that the approximate search found among its own first 10."""
    recall: float
    """The same for all hits of the depth."""
    bytes: float
    """Bytes of vectors and graph that a search needs at hand."""
    exact_bytes: float
    """Bytes of the vectors in 32 bits, which exact search needs."""
    ms: float
    """Milliseconds of a query, in batches."""
    exact_ms: float
    unindexed: str = ""
    """What the engine did not do of what was asked for, in a sentence; "" where it did all, or does not say."""


def approximations(results: Results) -> dict[str, Approximation]:
    """Return the approximate retrievers, in the order of the experiment, each against exact search."""
    ledger = results.manifest.ledger.retrievers
    measured = {
        name: _approximation(results, name, counts)
        for name in results.retrievers
        if (counts := ledger[name].counts.get("search-exact")) and counts.get("exact_hits")
    }
    return {name: one for name, one in measured.items() if one is not None}


def _approximation(results: Results, name: str, counts: Mapping[str, float]) -> Approximation | None:
    facts = results.manifest.retrievers[name].provenance
    stages = {row["stage"]: row for row in results.costs.to_dict("records") if row["retriever"] == name}
    if not {"search", "search-exact"} <= stages.keys() or "vector_bytes" not in facts:
        return None

    def ms(stage: str) -> float:
        return 1e3 * float(stages[stage]["seconds"]) / int(stages[stage]["texts"])

    return Approximation(
        compared=int(stages["search-exact"]["texts"]),
        recall_at_10=counts["shared_hits_at_10"] / counts["exact_hits_at_10"],
        recall=counts["shared_hits"] / counts["exact_hits"],
        bytes=float(facts["vector_bytes"]),
        exact_bytes=4.0 * int(facts["dimensions"]) * int(facts["vectors"]),
        ms=ms("search"),
        exact_ms=ms("search-exact"),
        unindexed=_unindexed(facts),
    )


def _unindexed(facts: Mapping[str, str]) -> str:
    """Say which vectors an engine has left out of its index, since their segments are below its thresholds.

    >>> _unindexed({"points": "9", "indexed_points": "0", "dimensions": "384", "indexing_threshold_kb": "10000"})
    '9 of 9 vectors (13.8 kB) are neither in a graph nor compressed: below the threshold of 10.2 MB all are compared'
    """
    points, indexed = int(facts.get("points", 0)), int(facts.get("indexed_points", 0))
    dimensions = int(facts["dimensions"])
    indexing, full_scan = (1024 * int(facts.get(f"{name}_threshold_kb", 0)) for name in ("indexing", "full_scan"))
    if indexed < points:
        left = points - indexed
        what = f"{left:,} of {points:,} vectors ({size(4 * dimensions * left)}) are neither in a graph nor compressed"
        return f"{what}: below the threshold of {size(indexing)} all are compared" if indexing else what
    if 4 * dimensions * points < full_scan:
        whole = size(4 * dimensions * points)
        return f"no graph is searched: {whole} are below the threshold of {size(full_scan)}, all vectors are compared"
    return ""


SIDES = ("left", "right")
"""How a name is aligned: "left" begins right of its point, "right" ends left of it."""
APART, ABOVE, LETTER, LINE, MARK = 7.0, 9.0, 6.5, 14.0, 6.0
"""Pixels: a name beside and above its point, a letter's width, a name's height, half of a point's size."""


class Plane(NamedTuple):
    """Where points lie, in pixels."""

    width: float
    height: float
    padding: float
    """Left and right of the outermost points."""
    logarithmic: bool
    """Whether the axis of prices is."""


class _Box(NamedTuple):
    left: float
    right: float
    top: float
    bottom: float

    def meets(self, other: _Box) -> bool:
        return (
            self.left < other.right and other.left < self.right and self.top < other.bottom and other.top < self.bottom
        )


def placed_names(points: Mapping[str, tuple[float, float]], span: tuple[float, float], plane: Plane) -> dict[str, str]:
    """Return name -> the side on which it stands, for the points that have room; the best choose first.

    Args:
        points: name -> price and quality.
        span: lowest and highest quality of the axis.
        plane: where points lie.
    """
    prices = {name: math.log(price) if plane.logarithmic else price for name, (price, _) in points.items()}
    first, last = min(prices.values()), max(prices.values())
    inner, low, high = plane.width - 2 * plane.padding, *span
    centres = {
        name: (
            plane.padding + inner * ((prices[name] - first) / ((last - first) or 1)),
            plane.height * (high - quality) / ((high - low) or 1),
        )
        for name, (_, quality) in points.items()
    }
    marks = {name: _Box(x - MARK, x + MARK, y - MARK, y + MARK) for name, (x, y) in centres.items()}
    taken: dict[str, tuple[str, _Box]] = {}
    for name in sorted(points, key=lambda name: -points[name][1]):
        x = centres[name][0]
        for side in SIDES if x <= plane.width / 2 else SIDES[::-1]:
            box = _box(name, centres[name], side)
            others = [*(mark for other, mark in marks.items() if other != name), *(box for _, box in taken.values())]
            if box.left >= 0 and box.right <= plane.width and not any(box.meets(other) for other in others):
                taken[name] = (side, box)
                break
    return {name: side for name, (side, _) in taken.items()}


def _box(name: str, centre: tuple[float, float], side: str) -> _Box:
    x, y = centre
    long = LETTER * len(name)
    left = x + APART if side == "left" else x - APART - long
    return _Box(left, left + long, y - ABOVE - LINE / 2, y - ABOVE + LINE / 2)

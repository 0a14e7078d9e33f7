"""The rankings that people compare."""

import hashlib
import json
from collections.abc import Sequence
from typing import Literal, NamedTuple

from harness.labels.pool import shuffle_key
from harness.records import Results
from harness.records.documents_file import KEPT_RANKS
from retrievers.errors import InputError, Problem
from retrievers.types import Query

COMPARED_QUERIES = 25
"""Queries of one session: about ten minutes for a person."""
REPEATED_QUERIES = 5
"""Queries that a person answers twice, to measure how often answers agree."""
DIGEST_LENGTH = 16
"""Hex digits of the digest by which answers are matched to their page."""


class ComparisonDesign(NamedTuple):
    """Which two retrievers are compared, and what is drawn."""

    a: str
    """The first of the two names in alphabetical order."""
    b: str
    depth: int
    """Documents of each ranking that people see."""
    seed: int


class ComparedRankings(NamedTuple):
    """Two rankings for one query, whose first documents differ."""

    query: Query
    a: tuple[str, ...]
    """Ids of the first documents of retriever `a`, to the depth of the design."""
    b: tuple[str, ...]
    a_is_left: bool
    """Whether a is at the left in the first round; a repetition swaps the sides."""

    def is_list_of_a(self, side: Literal["left", "right"], round_: int) -> bool:
        """Whether the list on a side is that of `a`; round 2 swaps the sides."""
        is_swapped = round_ == 2
        return (side == "left") == (self.a_is_left != is_swapped)


class ComparisonStep(NamedTuple):
    """One screen of the page."""

    query: int
    """Index among the compared queries."""
    round: int
    """1; 2 for a repetition with swapped sides."""


def compare_design(
    results: Results, first: str, second: str, depth: int, *, seed: int
) -> ComparisonDesign:
    """Return the design of a comparison.

    Raises:
        InputError: both names are the same retriever, or the depth is below 1 or larger
            than what results store.
    """
    if first == second:
        remedy = f"name two of {', '.join(results.retrievers)}"
        raise InputError(Problem(first, "is compared with itself", remedy))
    if not 1 <= depth <= KEPT_RANKS:
        remedy = f"results hold the texts of the first {KEPT_RANKS}"
        raise InputError(Problem("--depth", f"{depth} cannot be shown", remedy))
    a, b = sorted((first, second))
    return ComparisonDesign(a, b, depth, seed)


def differing_rankings(
    results: Results, design: ComparisonDesign
) -> list[ComparedRankings]:
    """Return every query whose first documents differ, in the order of the seed.

    A query that one of the two has no ranking for is left out. The order depends on
    hashes alone, so that a page of more queries begins with the same.

    Raises:
        InputError: there is no such retriever, or no query whose first documents
            differ.
    """
    rankings_a = results.rankings(design.a)
    rankings_b = results.rankings(design.b)
    compared: list[ComparedRankings] = []
    for query_id, labelled in results.queries.items():
        if query_id not in rankings_a or query_id not in rankings_b:
            continue
        ids_a = rankings_a[query_id].doc_ids[: design.depth]
        ids_b = rankings_b[query_id].doc_ids[: design.depth]
        if ids_a != ids_b:
            is_left = shuffle_key(design.seed, "side", query_id)[0] % 2 == 0
            compared.append(ComparedRankings(labelled.query, ids_a, ids_b, is_left))
    if not compared:
        problem = (
            f"{design.a} and {design.b} have the same first {design.depth} documents "
            "for every query"
        )
        remedy = "there is nothing to prefer; try a larger --depth"
        raise InputError(Problem(str(results.folder), problem, remedy))
    compared.sort(key=lambda pair: shuffle_key(design.seed, pair.query.id))
    return compared


def comparison_digest(
    compared: Sequence[ComparedRankings], design: ComparisonDesign
) -> str:
    """Return a digest of all that could be compared: it names a page and its export."""
    rows = [[pair.query.id, pair.query.text, pair.a, pair.b] for pair in compared]
    text = json.dumps([design, rows], ensure_ascii=False)
    encoded = text.encode("utf-8", "surrogatepass")
    return hashlib.sha256(encoded).hexdigest()[:DIGEST_LENGTH]


def comparison_steps(
    compared: Sequence[ComparedRankings], seed: int
) -> list[ComparisonStep]:
    """Return the screens of a page: each query once, then up to five again, swapped.

    These are among the first 25, so that a page of more queries repeats the same.

    Args:
        compared: the queries on the page, the first of `differing_rankings`.
        seed: of the choice of those that come again.
    """
    steps = [ComparisonStep(number, 1) for number in range(len(compared))]
    first_numbers = range(min(len(compared), COMPARED_QUERIES))

    def random_key(number: int) -> bytes:
        return shuffle_key(seed, "again", compared[number].query.id)

    repeated = sorted(first_numbers, key=random_key)[:REPEATED_QUERIES]
    return steps + [ComparisonStep(number, 2) for number in sorted(repeated)]

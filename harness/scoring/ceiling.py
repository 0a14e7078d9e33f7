"""What the best reranker could reach: the candidates of its first stage in the order of their grades."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def perfect(doc_ids: Sequence[str], grades: Mapping[str, int], depth: int | None) -> list[str]:
    """Return the first `depth` candidates in the order of their grades, the others beneath as they were.

    >>> perfect(["a", "b", "c", "d"], {"b": 1, "c": 2, "d": 3}, 3)
    ['c', 'b', 'a', 'd']
    """
    head = sorted(doc_ids[:depth], key=lambda doc: -grades.get(doc, 0))
    return [*head, *doc_ids[len(head) :]]

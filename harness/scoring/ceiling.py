"""What the best reranker could reach: the candidates of its first stage in the order of their grades."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

READ = "reranker depth"
"""Where a retriever's provenance says how many candidates its reranker reads."""


def candidates_read(provenance: Mapping[str, str], reranker: Mapping[str, Any]) -> int | None:
    """Return how many candidates a reranker reads: as it says, or as its options say, in folders of before.

    >>> candidates_read({"reranker depth": "10"}, {"kind": "http", "depth": 20}), candidates_read({}, {"kind": "x"})
    (10, None)
    """
    stated = provenance.get(READ, "")
    if stated.isascii() and stated.isdigit():
        return int(stated)
    option = reranker.get("depth")
    return option if isinstance(option, int) else None


def perfect(doc_ids: Sequence[str], grades: Mapping[str, int], depth: int | None) -> list[str]:
    """Return the first `depth` candidates in the order of their grades, the others beneath as they were.

    >>> perfect(["a", "b", "c", "d"], {"b": 1, "c": 2, "d": 3}, 3)
    ['c', 'b', 'a', 'd']
    """
    head = sorted(doc_ids[:depth], key=lambda doc: -grades.get(doc, 0))
    return [*head, *doc_ids[len(head) :]]

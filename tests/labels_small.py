"""Pools and judgments small enough for every test."""

from __future__ import annotations

import json

from harness.dataset.judgments import Judgment
from harness.labels.pool import DEFAULT, DrawnPool, pool_of, pooled_query
from retrievers.types import Document


def pool(queries=4, documents=3, *, texts=None, design="sample", policy=DEFAULT):
    """A pool of questions q0, q1, … with documents d0, d1, …"""
    made = []
    for q in range(queries):
        query = f"question {q}" if texts is None else texts[q % len(texts)]
        said = [f"text {d} of {q}" if texts is None else texts[(q + d) % len(texts)] for d in range(documents)]
        shown = [Document(f"d{d}", f"title {d}" if texts is None else one[:10], one) for d, one in enumerate(said)]
        made.append(pooled_query(f"q{q}", query, shown, 0.5))
    drawn = DrawnPool(depth=10, seed=1, population=2 * queries, sampled=queries, design=design)
    return pool_of(policy, drawn, tuple(made))


def judgment(query="q0", document="d0", grade=1, judge="ann", **more):
    """One judgment, as a file would have it."""
    said = {"kind": "human", "pool": "p", "text": "t", **more}
    return Judgment(query_id=query, document_id=document, grade=grade, judge=judge, **said)


def write(path, judgments):
    """Write a file of judgments."""
    path.write_text("".join(one.line() for one in judgments), encoding="utf-8")
    return path


def row(**changes):
    """One line of a file of judgments as a dictionary."""
    return {**json.loads(judgment().line()), **changes}

"""Pools and judgments small enough for every test."""

from __future__ import annotations

import json

from harness.dataset import load_dataset, parse_reference
from harness.dataset.judgment import Judgment, judged_text_digest
from harness.labels.pool import (
    DEFAULT_POLICY,
    PoolDesign,
    build_pool,
    build_pooled_query,
)
from retrievers.types import Document
from tests.support import small

RELEVANT = {id_: docs for id_, _, docs in small.QUERIES}


def pool(queries=4, documents=3, *, texts=None, policy=DEFAULT_POLICY):
    """A pool of questions q0, q1, … with documents d0, d1, …"""
    judgments = []
    for q in range(queries):
        query = f"question {q}" if texts is None else texts[q % len(texts)]
        rankings = [
            f"text {d} of {q}" if texts is None else texts[(q + d) % len(texts)]
            for d in range(documents)
        ]
        documents_shown = [
            Document(f"d{d}", f"title {d}" if texts is None else label[:10], label)
            for d, label in enumerate(rankings)
        ]
        judgments.append(build_pooled_query(f"q{q}", query, documents_shown, 0.5))
    drawn = PoolDesign(
        depth=10, seed=1, population=2 * queries, sampled=queries, design="sample"
    )
    return build_pool(policy, drawn, tuple(judgments))


def judgment(query="q0", document="d0", grade=1, judge="ann", **more):
    """One judgment, as a file would have it."""
    fields = {"kind": "human", "pool": "p", "text": "t", **more}
    return Judgment(
        query_id=query, document_id=document, grade=grade, judge=judge, **fields
    )


def as_person(pool, judge="ann"):
    """Judge a pool of the small data set by its own labels: relevant documents get 2,
    the others 0.
    """
    return [
        judgment(
            query.query_id,
            document.id,
            2 if document.id in RELEVANT[query.query_id] else 0,
            judge,
            pool=pool.digest,
            text=document.digest,
            design=pool.drawn.design,
            inclusion=query.inclusion,
            asked=len(query.documents),
        )
        for query in pool.queries
        for document in query.documents
    ]


def judged(folder, ids, judge="ann", kind="human", *, noise=0, depth=None, **more):
    """Judgments of some questions by the small data set's own labels; `noise` flips
    every so-manieth grade.
    """
    documents = {
        document.id: document
        for document in load_dataset(parse_reference(folder)).documents()
    }
    texts = json.loads((folder / "queries.json").read_text(encoding="utf-8"))
    texts = {row["id"]: row["query"] for row in texts}
    lines = []
    for query in ids:
        top_documents = list(documents)[:depth]
        for number, document in enumerate(top_documents):
            grade = 2 if document in RELEVANT[query.rstrip("-")] else 0
            if noise and (number + len(query)) % noise == 0:
                grade = 3 - grade
            digest = judged_text_digest(texts[query], documents[document])
            lines.append(
                judgment(
                    query,
                    document,
                    grade,
                    judge,
                    kind=kind,
                    text=digest,
                    asked=len(top_documents),
                    **more,
                )
            )
    return lines


def write(path, judgments):
    """Write a file of judgments."""
    path.write_text(
        "".join(judgment.line() for judgment in judgments), encoding="utf-8"
    )
    return path


def row(**changes):
    """One line of a file of judgments as a dictionary."""
    return {**json.loads(judgment().line()), **changes}

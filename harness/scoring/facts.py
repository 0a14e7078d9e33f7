"""What the statistics have to know beside the scores: ranges, clusters, rankings that are the same."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from itertools import combinations

from harness.measures import Measure, span
from harness.measures.scores import Judgments
from harness.stats import Facts, Range
from retrievers.errors import InputError, Problem, did_you_mean
from retrievers.types import Query

Documents = Mapping[str, Mapping[str, Sequence[str]]]
"""Retriever -> query id -> document ids, best first."""


def facts_of(
    measures: Sequence[Measure],
    judgments: Judgments,
    answers: Documents,
    *,
    primary: Measure,
    clusters: Sequence[str] | None = None,
) -> Facts:
    """Return what is known of the measures and of the rankings.

    Args:
        measures: what was measured.
        judgments: query id -> document id -> grade, of the scored queries.
        answers: the rankings.
        primary: the measure that decides: rankings are identical where they are so down to its cutoff.
        clusters: each query's cluster, in the order of the sorted ids; None where none are declared.
    """
    heads = {name: head_of(given, sorted(judgments), primary.cutoff) for name, given in answers.items()}
    return Facts(
        ranges={str(measure): Range(0.0, span(measure, judgments)) for measure in measures},
        clusters=clusters,
        identical=identical_pairs(heads),
    )


def head_of(answers: Mapping[str, Sequence[str]], queries: Sequence[str], cutoff: int | None) -> str:
    """Return the SHA-256 of what one retriever ranks down to a cutoff, in the order of the queries."""
    digest = hashlib.sha256()
    for query in queries:
        digest.update(json.dumps([query, list(answers.get(query, ())[:cutoff])]).encode())
    return digest.hexdigest()


def identical_pairs(heads: Mapping[str, str]) -> frozenset[frozenset[str]]:
    """Return the pairs of retrievers that rank the same documents in the same order, on every query.

    Args:
        heads: retriever -> `head_of` its rankings; "" where that is not known.
    """
    return frozenset(frozenset((a, b)) for a, b in combinations(heads, 2) if heads[a] and heads[a] == heads[b])


def clusters_of(queries: Sequence[Query], field: str | None) -> tuple[str, ...] | None:
    """Return each query's cluster, "" where it has none; None where no field is declared.

    Raises:
        InputError: no query has the field: every query would stand alone, and nobody would notice.
    """
    if field is None:
        return None
    if queries and not any(query.fields.get(field) for query in queries):
        known = {name for query in queries for name in query.fields}
        raise InputError(Problem("[statistics] cluster", f"no query has a field {field!r}", did_you_mean(field, known)))
    return tuple(query.fields.get(field, "") for query in queries)

"""The units that queries count as."""

import math
import unicodedata
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from harness.english import count_of
from retrievers.errors import InputError, Problem, collect_errors, did_you_mean
from retrievers.types import Query

CONVERSATION_FIELD = "conversation"
"""The field that clusters the turns of a conversation if none is declared."""


class QueryUnits(NamedTuple):
    """The cluster and the weight of each query, in the order of the queries."""

    clusters: tuple[str, ...] | None
    """Each query's cluster, "" for none; None: every query is a unit."""
    weights: tuple[float, ...] | None
    """How much each query counts, 1 to 2 on average; None: all alike."""


def query_units(
    queries: Sequence[Query], cluster: str | None, weight: str | None
) -> QueryUnits:
    """Return the clusters and the weights of queries.

    Args:
        queries: in the order of the result.
        cluster: the field of queries that belong together.
        weight: the field that says how much a query counts.

    Raises:
        InputError: as by `query_weights`.
    """
    return QueryUnits(query_clusters(queries, cluster), query_weights(queries, weight))


def query_clusters(
    queries: Sequence[Query], field: str | None
) -> tuple[str, ...] | None:
    """Return each query's cluster, "" if it has none.

    None if no query has a cluster, no field is declared, and none is a turn of a
    conversation. Queries of equal text (after NFKC, case folding and collapsing white
    space) and equal history are the same question under several ids: they always belong
    together, with all that share the declared field with one of them. So do the turns
    of a conversation, if no field is declared.

    Args:
        queries: in the order of the result; they may be only a part of those of which
            `refuse_absent_fields` has found one with the field.
        field: the declared field.

    >>> queries = [Query("1", "When?"), Query("2", "Who?"), Query("3", " when? ")]
    >>> query_clusters(queries, None)
    ('1', '', '1')
    """
    if field is None and any(query.history for query in queries):
        field = CONVERSATION_FIELD
    leaders = _cluster_leaders(queries, field)
    members = Counter(leaders)
    if field is None and len(members) == len(queries):
        return None
    names = {
        leader: queries[leader].id if count > 1 else ""
        for leader, count in members.items()
    }
    return tuple(names[leader] for leader in leaders)


def refuse_absent_fields(
    queries: Sequence[Query], cluster: str | None, weight: str | None
) -> None:
    """Refuse fields that none of the queries has, if there are queries.

    Otherwise no query would have a cluster, unnoticed. Without a field of clusters,
    queries with a history need "conversation".

    Raises:
        InputError: no query has the field of clusters, or the one of weights.
    """
    if cluster is None and any(query.history for query in queries):
        cluster = CONVERSATION_FIELD
    problems: list[Problem] = []
    for setting, field in (("cluster", cluster), ("weight", weight)):
        if field is not None:
            with collect_errors(problems):
                _refuse_absent_field(queries, setting, field)
    if problems:
        raise InputError(problems)


def _refuse_absent_field(queries: Sequence[Query], setting: str, field: str) -> None:
    if not queries or any(query.fields.get(field) for query in queries):
        return
    fields: set[str] = set()
    for query in queries:
        fields.update(query.fields)
    problem = f"{field!r} is a field of no query"
    remedy = did_you_mean(field, fields)
    raise InputError(Problem(f"[statistics] {setting}", problem, remedy))


def _cluster_leaders(queries: Sequence[Query], field: str | None) -> list[int]:
    """Return the index of the first query in each query's cluster.

    Clusters grow by chains: queries of one text may have several values of the field.
    """
    leaders = list(range(len(queries)))

    def find_leader(index: int) -> int:
        while leaders[index] != index:
            index = leaders[index]
        return index

    first_with_text: dict[str, int] = {}
    first_with_field: dict[str, int] = {}
    labels = _cluster_labels(queries, field)
    for index, (query, label) in enumerate(zip(queries, labels, strict=True)):
        text = "\0".join([*query.history, _normalised_text(query.text)])
        for key, first_index in ((text, first_with_text), (label, first_with_field)):
            if not key:
                continue
            earlier = find_leader(first_index.setdefault(key, index))
            current = find_leader(index)
            leaders[max(earlier, current)] = min(earlier, current)
    return [find_leader(index) for index in range(len(queries))]


def _cluster_labels(queries: Sequence[Query], field: str | None) -> list[str]:
    """Return each query's value of a field, "" for none.

    Queries with a history have the field `conversation`. The first turn has no history,
    and so no such field: it is found by its text, the first message of the others'
    histories. (Of several conversations that open alike, it gets the last.)
    """
    if field is None:
        return [""] * len(queries)
    conversation_by_opening: dict[str, str] = {}
    if field == CONVERSATION_FIELD:
        for query in queries:
            if query.history and query.fields.get(field):
                conversation_by_opening[query.history[0]] = query.fields[field]
    return [
        query.fields.get(field) or conversation_by_opening.get(query.text, "")
        for query in queries
    ]


def _normalised_text(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def query_weights(
    queries: Sequence[Query], field: str | None
) -> tuple[float, ...] | None:
    """Return how much each query counts, 1 to 2 on average; None without a field.

    Only shares matter, and sums of weighted differences are compared with 0 relative to
    1. So all are scaled to a mean between 1 and 2, by a power of two, which changes no
    digit.

    Raises:
        InputError: the field of a query is not a number above 0.
    """
    if field is None:
        return None
    weights: list[float] = []
    invalid: list[str] = []
    for query in queries:
        text = query.fields.get(field, "")
        weight = _parse_weight(text)
        if weight is None:
            invalid.append(f"{query.id!r} has {text!r}")
        else:
            weights.append(weight)
    if invalid:
        count = f"{count_of(len(invalid), 'query')} of {len(queries):,}"
        problem = f"{count} without a number above 0 in the field {field!r}"
        examples = ", ".join(invalid[:3])
        remedy = "such as 120, its traffic"
        where = "[statistics] weight"
        raise InputError(Problem(where, f"{problem}: {examples}", remedy))
    # Divided first: the sum of very large weights would be infinite.
    mean = math.fsum(weight / len(weights) for weight in weights)
    _, exponent = math.frexp(mean)
    return tuple(math.ldexp(weight, 1 - exponent) for weight in weights)


def _parse_weight(text: str) -> float | None:
    """Return a weight; None if the text is no finite number above 0."""
    try:
        weight = float(text)
    except ValueError:
        return None
    return weight if 0 < weight < math.inf else None

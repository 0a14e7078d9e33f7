"""What counts as one query, with its weight."""

import math
import unicodedata
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress

from harness.english import count_of
from retrievers.errors import InputError, Problem, did_you_mean
from retrievers.types import Query


def query_clusters(
    queries: Sequence[Query], name: str | None
) -> tuple[str, ...] | None:
    """Return each query's cluster, "" if it has none; None where all do and no field is declared.

    Queries of equal text (after NFKC, case folding and collapsing white space) ask the same question under several
    ids: they belong together always, with all that shares the declared field with one of them. So do the turns of a
    conversation, where no field is declared.

    Args:
        queries: in the order of the answer.
        name: the declared field.

    Raises:
        InputError: no query has the field: no query would have a cluster, unnoticed.

    >>> query_clusters([Query("1", "When?"), Query("2", "Who?"), Query("3", " when? ")], None)
    ('1', '', '1')
    """
    if name is None and any(query.history for query in queries):
        name = "conversation"
    if (
        name is not None
        and queries
        and not any(query.fields.get(name) for query in queries)
    ):
        known = {one for query in queries for one in query.fields}
        raise InputError(
            Problem(
                "[statistics] cluster",
                f"no query has a field {name!r}",
                did_you_mean(name, known),
            )
        )
    first: dict[tuple[str, str], int] = {}
    leader = list(range(len(queries)))

    def led(place: int) -> int:
        while leader[place] != place:
            place = leader[place]
        return place

    for place, query in enumerate(queries):
        text = " ".join(unicodedata.normalize("NFKC", query.text).casefold().split())
        for key in (
            ("text", " ".join([*query.history, text])),
            ("field", query.fields.get(name, "") if name else ""),
        ):
            if key[1]:
                one, other = led(first.setdefault(key, place)), led(place)
                leader[max(one, other)] = min(one, other)
    together = [led(place) for place in range(len(queries))]
    members = Counter(together)
    if name is None and len(members) == len(queries):
        return None
    return tuple(queries[place].id if members[place] > 1 else "" for place in together)


def query_weights(
    queries: Sequence[Query], name: str | None
) -> tuple[float, ...] | None:
    """Return how much each query counts, about 1 on average; None where no field is declared.

    Only shares matter, and sums of weighted differences are told from 0 by what is small beside 1. The scale is a power
    of two, which moves no digit.

    Raises:
        InputError: the field of a query is not a number above 0.
    """
    if name is None:
        return None
    weights, wrong = [], []
    for query in queries:
        value = query.fields.get(name, "")
        with suppress(ValueError):
            if 0 < (weight := float(value)) < math.inf:
                weights.append(weight)
                continue
        wrong.append(f"{query.id!r} has {value!r}")
    if wrong:
        what = f"{count_of(len(wrong), 'query')} of {len(queries):,} without a number above 0 in the field {name!r}"
        raise InputError(
            Problem(
                "[statistics] weight",
                f"{what}: {', '.join(wrong[:3])}",
                "such as 120, its traffic",
            )
        )
    _, scale = math.frexp(math.fsum(weight / len(weights) for weight in weights))
    return tuple(math.ldexp(weight, 1 - scale) for weight in weights)

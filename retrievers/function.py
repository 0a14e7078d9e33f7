"""A search function of the user."""

import asyncio
import inspect
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from numbers import Real
from typing import Annotated, Any

from pydantic import Field

from retrievers.errors import BackendError
from retrievers.external import ExternalRetriever, refuse_distances
from retrievers.ids import hit_id
from retrievers.meter import Meter
from retrievers.options.tables import TextOrObject
from retrievers.options.user_code import NamedObject, resolve_callable, wrap_user_errors
from retrievers.query import Query
from retrievers.ranking import Ranking, ranked

FUNCTION_RESULT_SHAPE = (
    "for each query a list of ids, or of pairs of id and score, best first"
)
"""What a function returns."""


class Function(ExternalRetriever):
    """Asks a function, which may be async, for the hits of queries.

    One that is named is called as `function(queries: list[str], depth: int)` and returns a list for each query; one
    that is given in Python, `Function(search)`, as `function(query, depth)`. A list holds ids, or pairs of id and
    score, best first; where the ids are places in a list of texts, numbers, as NumPy's argsort gives them.
    """

    positional_option = "call"
    call: TextOrObject
    """"package.module:function", found as Python finds modules, the working directory included."""
    batch_size: Annotated[int, Field(ge=0)] = 0
    """Queries a call; 0: all of them at once."""
    _function: Callable[[list[str], int], Any] | None = None

    def __init__(self, *given: Any, **options: Any) -> None:
        """Take the function, or its name; nothing is imported before it is checked or asked."""
        if given and callable(given[0]):
            given, options = (
                (NamedObject.wrap(_each(given[0])),),
                {"batch_size": 1, **options},
            )
        super().__init__(*given, **options)

    @property
    def provenance(self) -> Mapping[str, str]:
        """What was called, and the version of its package where that has one."""
        module = sys.modules.get(self.call.partition(":")[0].partition(".")[0])
        version = getattr(module, "__version__", None)
        return {"call": self.call, **({"version": str(version)} if version else {})}

    def check(self) -> None:
        """Import the function: the code of its module runs."""
        self._imported()

    def search(
        self, queries: Sequence[Query], depth: int, meter: Meter
    ) -> list[Ranking]:
        """Call the function on the texts of the queries.

        Raises:
            BackendError: it raised an exception, or did not return one list of hits per query.
        """
        size = self.batch_size or max(len(queries), 1)
        rankings: list[Ranking] = []
        with meter.stage("search", total=len(queries)):
            for start in range(0, len(queries), size):
                some = queries[start : start + size]
                answers = self._called([query.text for query in some], depth)
                hits = [
                    self._hits(query, given)
                    for query, given in zip(some, answers, strict=True)
                ]
                refuse_distances(scores for _, scores in hits)
                rankings += [ranked(ids, scores, depth) for ids, scores in hits]
                meter.count(calls=1, texts=len(some))
        return self._recognised(rankings, meter)

    def _called(self, texts: list[str], depth: int) -> list[Any]:
        with wrap_user_errors((self.call,)):
            returned = self._imported()(texts, depth)
            answers = list(
                asyncio.run(returned) if inspect.iscoroutine(returned) else returned
            )
        if len(answers) != len(texts):
            raise BackendError(
                f"{self.call} returned {len(answers)} lists for {len(texts)} queries; {FUNCTION_RESULT_SHAPE}"
            )
        return answers

    def _hits(self, query: Query, hits: Any) -> tuple[list[str], list[float]]:
        try:
            if isinstance(
                hits, str | Mapping | AbstractSet
            ):  # which have no order, or none that was meant
                raise TypeError
            pairs = [
                (hit, None) if isinstance(hit, str | Real) else (hit[0], float(hit[1]))
                for hit in hits
            ]
        except (TypeError, ValueError, IndexError, KeyError, OverflowError):
            raise BackendError(
                f"{self.call}: the hits of query {query.id!r} cannot be read; {FUNCTION_RESULT_SHAPE}"
            ) from None
        named = [hit_id(hit) for hit, _ in pairs]
        ids = [one for one in named if one is not None]
        scores = [
            float(len(pairs) - place) if score is None else score
            for place, (_, score) in enumerate(pairs)
        ]
        if len(ids) < len(pairs) or not all(map(math.isfinite, scores)):
            places = range(len(pairs))
            wrong = next(
                pairs[place]
                for place in places
                if named[place] is None or not math.isfinite(scores[place])
            )
            shape = "an id is a text or a whole number, a score a finite number"
            raise BackendError(
                f"{self.call}: {wrong!r:.60} is among the hits of query {query.id!r}; {shape}"
            )
        if len(set(ids)) < len(ids):
            raise BackendError(f"{self.call}: query {query.id!r} has a document twice")
        return ids, scores

    def _imported(self) -> Callable[[list[str], int], Any]:
        if self._function is None:
            self._function = resolve_callable(self.call)
        return self._function


def _each(function: Callable[[str, int], Any]) -> Callable[[list[str], int], list[Any]]:
    """Ask a function of one query for each of several."""

    def each(queries: list[str], depth: int) -> list[Any]:
        answers = [function(query, depth) for query in queries]
        # What has no order, or none that was meant, stays as it is: it is refused.
        return [
            hits if isinstance(hits, str | Mapping | AbstractSet) else list(hits)
            for hits in answers
        ]

    each.__qualname__ = getattr(function, "__qualname__", type(function).__qualname__)
    return each

"""A search function of the user."""

import asyncio
import inspect
import math
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from concurrent.futures import ThreadPoolExecutor
from numbers import Real
from typing import Annotated, Any, ClassVar, NamedTuple

from pydantic import Field

from retrievers.errors import BackendError
from retrievers.external import ExternalRetriever
from retrievers.facts import ModelFacts, RetrieverFacts
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


class _FunctionHits(NamedTuple):
    """The hits that a function returned for one query."""

    ids: list[str]
    scores: list[float]


class Function(ExternalRetriever):
    """Asks a function, which may be async, for the hits of queries.

    A function that is named is called as `function(queries: list[str], depth: int)` and
    returns a list for each query; one that is given in Python, `Function(search)`, is
    called as `function(query, depth)`. A list has ids, or pairs of id and score, best
    first. If ids are positions in a list of texts, they may be numbers, as from NumPy's
    argsort.
    """

    repeatable: ClassVar[bool] = False
    positional_option = "call"
    call: TextOrObject
    """"package.module:function", found as Python finds modules, the working directory
    included."""
    batch_size: Annotated[int, Field(ge=0)] = 0
    """Queries a call; 0: all of them at once."""
    _function: Callable[[list[str], int], Any] | None = None

    def __init__(self, *args: Any, **options: Any) -> None:
        """Set the function, or its name; its module is imported on first use."""
        if args and callable(args[0]):
            args = (NamedObject.wrap(_for_many_queries(args[0])),)
            options = {"batch_size": 1, **options}
        super().__init__(*args, **options)

    @property
    def facts(self) -> RetrieverFacts:
        """The function, and the version of its package if it has one."""
        package_name = self.call.partition(":")[0].partition(".")[0]
        version = getattr(sys.modules.get(package_name), "__version__", None)
        return RetrieverFacts(
            model=ModelFacts(call=self.call, version=str(version or ""))
        )

    def check(self) -> None:
        """Import the function: the code of its module runs."""
        self._import_function()

    def search(
        self, queries: Sequence[Query], depth: int, meter: Meter
    ) -> list[Ranking]:
        """Call the function on the texts of the queries.

        Raises:
            BackendError: it raised an exception, did not return one list of hits per
                query, or returned distances, unknown ids, or no hits.
        """
        batch_size = self.batch_size or max(len(queries), 1)
        rankings: list[Ranking] = []
        score_lists: list[tuple[str, Sequence[float]]] = []
        with meter.stage("search", total=len(queries)):
            for start in range(0, len(queries), batch_size):
                batch = queries[start : start + batch_size]
                started = time.perf_counter()
                returned_lists = self._call([query.text for query in batch], depth)
                if batch_size == 1:
                    meter.time_request(time.perf_counter() - started)
                hit_lists = [
                    self._read_hits(query, returned)
                    for query, returned in zip(batch, returned_lists, strict=True)
                ]
                for query, hits in zip(batch, hit_lists, strict=True):
                    score_lists.append((query.id, hits.scores))
                rankings.extend(
                    ranked(hits.ids, hits.scores, depth) for hits in hit_lists
                )
                meter.count(calls=1, texts=len(batch))
            self._check_first_hits(score_lists, meter)
        return self._with_document_ids(rankings, meter)

    def _call(self, texts: list[str], depth: int) -> list[Any]:
        """Return the function's list of hits for each query."""
        with wrap_user_errors((self.call,)):
            returned = self._import_function()(texts, depth)
            hit_lists = list(_wait_if_async(returned))
        if len(hit_lists) != len(texts):
            raise BackendError(
                f"{self.call} returned {len(hit_lists)} lists for {len(texts)} "
                f"queries; {FUNCTION_RESULT_SHAPE}"
            )
        return hit_lists

    def _read_hits(self, query: Query, returned: Any) -> _FunctionHits:
        """Return the ids and scores of one query's hits.

        Raises:
            BackendError: they cannot be read, or a document occurs twice.
        """
        try:
            pairs = _id_score_pairs(returned)
        except (TypeError, ValueError, IndexError, KeyError, OverflowError):
            raise BackendError(
                f"{self.call}: the hits of query {query.id!r} cannot be read; "
                f"{FUNCTION_RESULT_SHAPE}"
            ) from None
        hits = _FunctionHits([], [])
        for position, (returned_id, returned_score) in enumerate(pairs):
            doc_id = hit_id(returned_id)
            score = returned_score
            if score is None:
                score = float(len(pairs) - position)
            if doc_id is None or not math.isfinite(score):
                raise BackendError(
                    f"{self.call}: {pairs[position]!r:.60} is among the hits of query "
                    f"{query.id!r}; an id is a text or a whole number, "
                    "a score a finite number"
                )
            hits.ids.append(doc_id)
            hits.scores.append(score)
        if len(set(hits.ids)) < len(hits.ids):
            raise BackendError(f"{self.call}: query {query.id!r} has a document twice")
        return hits

    def _import_function(self) -> Callable[[list[str], int], Any]:
        """Return the function, imported on first use."""
        if self._function is None:
            self._function = resolve_callable(self.call)
        return self._function


def _id_score_pairs(returned: Any) -> list[tuple[Any, float | None]]:
    """Return the id and the score of each hit; None for hits without a score.

    Raises:
        TypeError: hits have no order, or are not ids or pairs.
    """
    if _has_no_order(returned):
        raise TypeError
    pairs: list[tuple[Any, float | None]] = []
    for hit in returned:
        if isinstance(hit, str | Real):
            pairs.append((hit, None))
        elif isinstance(hit, bytes):  # two of its bytes would be a pair
            raise TypeError
        else:
            pairs.append((hit[0], float(hit[1])))
    return pairs


def _has_no_order(returned: Any) -> bool:
    """Return whether hits have no order, or none that was meant."""
    return isinstance(returned, str | Mapping | AbstractSet)


def _wait_if_async(returned: Any) -> Any:
    """Return what a function returned; of an async one, what it returns in the end."""
    if not inspect.iscoroutine(returned):
        return returned
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(returned)
    # A notebook's loop runs in this thread: another thread has one for this function.
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, returned).result()


def _for_many_queries(
    function: Callable[[str, int], Any],
) -> Callable[[list[str], int], list[Any]]:
    """Return a function that calls a function of one query for each of several."""

    def search_many(queries: list[str], depth: int) -> list[Any]:
        hit_lists = []
        for query in queries:
            hits = _wait_if_async(function(query, depth))
            # Hits without an order stay as they are, and are refused later.
            hit_lists.append(hits if _has_no_order(hits) else list(hits))
        return hit_lists

    qualified_name = getattr(function, "__qualname__", type(function).__qualname__)
    search_many.__qualname__ = qualified_name
    return search_many

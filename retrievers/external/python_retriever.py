"""`kind = "python"`: a function of the user's own, taken from the environment that runs the harness."""

from __future__ import annotations

import asyncio
import inspect
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from retrievers.errors import BackendError, check_not_negative
from retrievers.external import ExternalRetriever
from retrievers.held import called, faults_of
from retrievers.meter import Meter
from retrievers.remote.redaction import as_written
from retrievers.types import Query, Ranking, ranked

SHAPE = "for each query a list of ids, or of pairs of id and score, best first"


class PythonRetriever(ExternalRetriever):
    """Asks `function(queries: list[str], depth: int)`, which may be async, for the hits of each query."""

    def __init__(self, *, call: str, batch_size: int = 0) -> None:
        """Name the function; nothing is imported before it is checked or asked.

        Args:
            call: "package.module:function", found as Python finds modules, the working directory included.
            batch_size: queries a call; 0: all of them at once.
        """
        check_not_negative("", batch_size=batch_size)
        self._name, self._size = call, batch_size
        self._function: Callable[[list[str], int], Any] | None = None

    @property
    def provenance(self) -> Mapping[str, str]:
        """What was called, and the version of its package where that has one."""
        module = sys.modules.get(self._name.partition(":")[0].partition(".")[0])
        version = getattr(module, "__version__", None)
        return {"call": as_written(self._name), **({"version": str(version)} if version else {})}

    def check(self) -> None:
        """Import the function: the code of its module runs."""
        self._imported()

    def search(self, queries: Sequence[Query], depth: int, meter: Meter) -> list[Ranking]:
        """Call the function on the texts of the queries.

        Raises:
            BackendError: it raised an exception, or did not return one list of hits per query.
        """
        size = self._size or max(len(queries), 1)
        rankings: list[Ranking] = []
        with meter.stage("search", total=len(queries)):
            for start in range(0, len(queries), size):
                some = queries[start : start + size]
                answers = self._called([query.text for query in some], depth)
                rankings += [self._ranking(query, hits, depth) for query, hits in zip(some, answers, strict=True)]
                meter.count(calls=1, texts=len(some))
        return self._recognised(rankings, meter)

    def _called(self, texts: list[str], depth: int) -> list[Any]:
        with faults_of((self._name,)):
            returned = self._imported()(texts, depth)
            if inspect.isawaitable(returned):
                returned = asyncio.run(_awaited(returned))
            answers = list(returned)
        if len(answers) != len(texts):
            raise BackendError(f"{self._name} returned {len(answers)} lists for {len(texts)} queries; {SHAPE}")
        return answers

    def _ranking(self, query: Query, hits: Any, depth: int) -> Ranking:
        try:
            pairs = [(hit, None) if isinstance(hit, str) else (str(hit[0]), _number(hit[1])) for hit in hits]
        except (TypeError, ValueError, IndexError, KeyError):
            raise BackendError(f"{self._name}: the hits of query {query.id!r} cannot be read; {SHAPE}") from None
        ids = [id_ for id_, _ in pairs]
        if len(set(ids)) < len(ids):
            raise BackendError(f"{self._name}: query {query.id!r} has a document twice")
        scored = [float(len(pairs) - place) if score is None else score for place, (_, score) in enumerate(pairs)]
        if not all(map(math.isfinite, scored)):
            raise BackendError(f"{self._name}: query {query.id!r} has a score that is no finite number")
        return ranked(ids, scored, depth)

    def _imported(self) -> Callable[[list[str], int], Any]:
        if self._function is None:
            self._function = called(self._name)
        return self._function


def _number(score: Any) -> float:
    """A score as a float; a whole number that none can hold becomes infinite."""
    try:
        return float(score)
    except OverflowError:
        return math.inf


async def _awaited(returned: Any) -> Any:
    return await returned

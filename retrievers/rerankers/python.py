"""`kind = "python"`: a function of the user's own that scores pairs of a query and a document."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from retrievers.called import CalledModel, imported
from retrievers.errors import BackendError, InputError, Problem, check_positive
from retrievers.failures import faults_of
from retrievers.meter import Call
from retrievers.types import Pair, PairScores, Reranker


class PythonReranker(CalledModel, Reranker):
    """Orders the first `depth` candidates by a function of pairs (query, document), or by an object's `predict`."""

    def __init__(self, call: str, *, depth: int = 10, cache: str = "") -> None:
        """Name the function; nothing is imported before it is checked or asked.

        Args:
            call: "package.module:function", found as Python finds modules, the working directory included.
            depth: how many candidates of each query are read again.
            cache: the name of this version of it, under which scores are kept for later runs; left out, they are not.
        """
        super().__init__(call, cache)
        check_positive("rerank", depth=depth)
        self._depth = depth

    @property
    def depth(self) -> int:
        """How many candidates of each query are read again."""
        return self._depth

    def check(self) -> None:
        """Import the function: the code of its module runs."""
        found = imported(self._name)
        if not callable(getattr(found, "predict", found)):
            what = f"{self._name!r} is no function, and has no predict"
            raise InputError(Problem("call", what, "give a function of pairs that returns a score for each"))

    def score(self, pairs: Sequence[Pair], call: Call) -> PairScores:
        """Call the function on the pairs of one request.

        Raises:
            BackendError: it raised an exception, or did not return a number for each pair.
        """
        found = imported(self._name)
        with faults_of((self._name,)):
            scores = np.asarray(getattr(found, "predict", found)(list(pairs)), dtype=np.float64)
        if scores.shape != (len(pairs),):
            what = f"returned an array of shape {scores.shape} for {len(pairs)} pairs"
            raise BackendError(f"{self._name} {what}: it has to be ({len(pairs)},), a score for each pair")
        call.meter.count(calls=1)
        return PairScores(scores, *np.zeros((2, len(pairs)), dtype=np.int64))

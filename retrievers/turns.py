"""Takes turns with other runs: what another one is computing is waited for, not computed twice."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Generic, NamedTuple, TypeVar

from retrievers.cache import Cache
from retrievers.meter import Stop
from retrievers.parallel import answers
from retrievers.types import Limits

Answer = TypeVar("Answer")
_PAUSE = 0.25
"""Seconds between two looks at whether another run's answers have come."""
_LEASE = 600.0


class Work(NamedTuple, Generic[Answer]):
    """How the missing ones of some keys are computed, kept and read back; positions are those of the keys."""

    names: Sequence[bytes]
    """The keys."""
    ask: Callable[[list[int], Stop], Answer]
    """Sends one request."""
    keep: Callable[[list[int], Answer], None]
    """Puts an answer into the cache."""
    read: Callable[[list[int]], tuple[list[int], Answer]]
    """Reads from the cache which of the positions are there by now, and their answers."""


class Turn(NamedTuple, Generic[Answer]):
    """Some positions and their answer."""

    positions: list[int]
    answer: Answer
    cached: bool
    """Whether another run computed it."""


def lease_of(limits: Limits | None) -> float:
    """Return the seconds for which a claim holds: longer than a request within such limits can take."""
    return lease_after(0.0 if limits is None else limits.patience)


def lease_after(patience: float) -> float:
    """Return the seconds for which a claim holds where a request is given up after so many."""
    return _LEASE + patience


def answers_in_turn(
    work: Work[Answer], requests: Sequence[Sequence[int]], cache: Cache, *, width: int, lease: float
) -> Iterator[Turn[Answer]]:
    """Yield the answers to all positions as they come: those of this run, then those that others were computing.

    Each request is claimed when its turn comes. What another run claims is waited for; when that run gives up, fails or
    dies, its requests are sent here.

    Args:
        work: what is done with a request.
        requests: positions, each at most once.
        cache: holds the claims.
        width: requests at once.
        lease: seconds for which a claim holds.
    """
    try:
        while requests:
            others: list[list[int]] = []
            for some, answer in answers(work.ask, _claimed(work, requests, cache, lease, others), width=width):
                work.keep(some, answer)
                yield Turn(some, answer, cached=False)
            requests = others
            held, answer = work.read([i for some in others for i in some])
            if held:
                yield Turn(held, answer, cached=True)
                answered = set(held)
                requests = [rest for some in others if (rest := [i for i in some if i not in answered])]
            elif others:
                time.sleep(_PAUSE)
    finally:
        cache.give_up()


def _claimed(
    work: Work[Answer], requests: Iterable[Sequence[int]], cache: Cache, lease: float, others: list[list[int]]
) -> Iterator[list[int]]:
    """Yield of each request what this run computes; the rest, which others do, is added to `others`."""
    for some in requests:
        taken = cache.claim([work.names[i] for i in some], lease)
        own = [i for i in some if work.names[i] in taken]
        if rest := [i for i in some if work.names[i] not in taken]:
            others.append(rest)
        if own:
            yield own

"""Three truth values: a verdict that is missing or unreadable is unknown (None), never false.

Kleene's strong logic: an unknown part makes the whole unknown only where the rest does not decide it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

Truth = bool | None


def any_of(values: Iterable[Truth]) -> Truth:
    """Whether one of the values is true: unknown where none is true and one is unknown; false for no values.

    >>> any_of([None, True]), any_of([None, False]), any_of([])
    (True, None, False)
    """
    answer: Truth = False
    for value in values:
        if value:
            return True
        if value is None:
            answer = None
    return answer


def both(first: Truth, second: Truth) -> Truth:
    """Whether both are true: false where one is false, else unknown where one is unknown.

    >>> both(None, False), both(None, True), both(True, True)
    (False, None, True)
    """
    if first is False or second is False:
        return False
    return None if first is None or second is None else True


def negated(value: Truth) -> Truth:
    """The opposite; unknown stays unknown.

    >>> negated(None), negated(False)
    (None, True)
    """
    return None if value is None else not value


def share(values: Sequence[Truth]) -> float | None:
    """The share of true values: undefined (None) for no values, and where one of them is unknown.

    >>> share([True, False]), share([True, None]), share([])
    (0.5, None, None)
    """
    if not values or None in values:
        return None
    return sum(bool(value) for value in values) / len(values)

"""What something costs, told by what counting costs on the same machine at the same time."""

import time
from collections.abc import Callable

COUNTED = 1_000_000


def cost(action: Callable[[], object]) -> float:
    """Processor time of an action, in multiples of what it takes to count to a million: the least of three tries.

    A busy machine makes a try dear by chance, and none cheap.
    """
    return min(_once(action) for _ in range(3))


def _once(action: Callable[[], object]) -> float:
    began = time.process_time()
    action()
    ended = time.process_time()
    for _ in range(COUNTED):
        pass
    return (ended - began) / (time.process_time() - ended)


MUCH = 20
"""A second or so of a usual machine, where a cost in the square of the length would be minutes."""

"""What something costs, told by what counting costs on the same machine at the same
time.
"""

import time
from collections.abc import Callable

COUNTED = 1_000_000
MUCH = 20
"""A second or so of a usual machine, where a cost in the square of the length would be
minutes.
"""


def is_cheap(action: Callable[[], object]) -> bool:
    """Whether an action takes less of the processor than counting to a million takes
    twenty times.

    A busy machine makes a try dear by chance, and none cheap: one of three is enough.
    """
    return any(_once(action) < MUCH for _ in range(3))


def _once(action: Callable[[], object]) -> float:
    began = time.process_time()
    action()
    ended = time.process_time()
    for _ in range(COUNTED):
        pass
    return (ended - began) / (time.process_time() - ended)

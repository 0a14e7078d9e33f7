"""The start of the process."""

import gc
import os
import signal
import sys

GC_THRESHOLD = 20_000
"""Objects that are made before the new ones are searched for cycles; Python's own 700
(2,000 from 3.13 on) is for programs that make few.
"""


def start() -> None:
    """Load the command line and run it; exit with 130 if that is stopped."""
    gc.set_threshold(GC_THRESHOLD)
    try:
        from harness.cli import main

        main()
    except KeyboardInterrupt:
        sys.stderr.write("stopped\n")
        sys.exit(130)
    finally:
        # Threads are waited for, and one more Ctrl-C ends that.
        signal.signal(signal.SIGINT, lambda *_: os._exit(130))
        # All that is left would be searched for cycles before the process ends:
        # 1.1 s where a bi-encoder was loaded.
        gc.freeze()


if __name__ == "__main__":
    start()

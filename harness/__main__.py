"""What `harness` and `python -m harness` start: Ctrl-C ends in one line, also while all is being loaded."""

import sys


def start() -> None:
    """Load the command line and run it; exit with 130 where that is stopped."""
    try:
        from harness.cli import main

        main()
    except KeyboardInterrupt:
        sys.stderr.write("stopped\n")
        sys.exit(130)


if __name__ == "__main__":
    start()

"""`python -m harness`: the command line where its script is not on the path."""

from harness.cli import main

if __name__ == "__main__":
    main()

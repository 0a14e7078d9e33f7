"""A list in a file, one entry on each line.

Such lists are what people write for a command: ids of queries, or example queries.
"""

from pathlib import Path

from harness.dataset.text_rows import read_text
from retrievers.errors import InputError, Problem


def read_listed_lines(path: Path, noun: str) -> list[str]:
    """Return the lines of a UTF-8 file in their order, without the space around them.

    Blank lines are skipped; a line that occurs twice is returned twice.

    Args:
        path: the file.
        noun: what a line is, for the message: "query id".

    Raises:
        InputError: it cannot be read, has another encoding, or only blank lines.
    """
    stripped_lines = [line.strip() for line in read_text(path).split("\n")]
    lines = [line for line in stripped_lines if line]
    if not lines:
        remedy = f"one {noun} a line, in UTF-8"
        raise InputError(Problem(str(path), f"names no {noun}", remedy))
    return lines

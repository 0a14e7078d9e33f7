"""JSON Lines: one object a line."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from harness.records.folder import create, regular

LONGEST_LINE = 64 << 20
"""Bytes of a line, at most: a ranking of a million hits has less."""
BLOCK = 1 << 20
CHANGED = "it was changed or cut since it was written"

Row = TypeVar("Row")


def write_jsonl(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Write one JSON object a line."""
    with create(path) as handle:
        handle.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def read_jsonl(path: Path, parse: Callable[[bytes], Row] = json.loads, *, digest: str = "") -> Iterator[Row]:
    """Stream the rows of a file.

    Args:
        path: the file.
        parse: one line to a row; ValueError where it is none.
        digest: the SHA-256 that the file must have; "" where that is not known.

    Raises:
        OSError: the file cannot be read.
        ValueError: a line is no row, or longer than 64 MiB; after the last line, the digest is another.
    """
    hashed = hashlib.sha256()
    with regular(path).open("rb") as handle:
        number = 0
        while line := handle.readline(LONGEST_LINE + 1):
            number += 1
            hashed.update(line)
            if len(line) > LONGEST_LINE:
                raise ValueError(f"line {number} is longer than {LONGEST_LINE:,} bytes")
            if line.strip():
                try:
                    row = parse(line)
                except RecursionError:
                    raise ValueError(f"line {number} is nested too deep") from None
                except ValueError as error:
                    raise ValueError(f"line {number}: {error}") from None
                yield row
    if digest and hashed.hexdigest() != digest:
        raise ValueError(CHANGED)


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file that is no link; OSError or ValueError where it cannot be read."""
    digest = hashlib.sha256()
    with regular(path).open("rb") as handle:
        while block := handle.read(BLOCK):
            digest.update(block)
    return digest.hexdigest()

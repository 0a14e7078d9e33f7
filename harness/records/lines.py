"""JSON Lines: one object a line."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any


def write_jsonl(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Write one JSON object a line."""
    with path.open("w", encoding="utf-8", newline="\n") as handle:
        handle.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def read_jsonl(path: Path) -> Iterator[dict[str, Any]]:
    """Stream the objects of a file; OSError or ValueError where it cannot be read."""
    with path.open("rb") as handle:
        for line in handle:
            if line.strip():
                yield json.loads(line)

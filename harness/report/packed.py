"""What a page holds beside what it shows: JSON, deflated, which scripts unpack when somebody asks for it."""

from __future__ import annotations

import base64
import json
import zlib
from typing import Any

from harness.pages import visible


def packed(value: Any) -> str:
    """Return JSON as text that stands in a script element; `DecompressionStream("deflate")` reads it back.

    >>> unpacked(packed({"a": [1, "<"]}))
    {'a': [1, '<']}
    """
    code = visible(json.dumps(value, ensure_ascii=False, separators=(",", ":")))
    return base64.b64encode(zlib.compress(code.encode("utf-8"), 6)).decode("ascii")


def unpacked(text: str) -> Any:
    """Return what was packed."""
    return json.loads(zlib.decompress(base64.b64decode(text)))

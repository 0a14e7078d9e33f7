"""The reply of the process that converts files."""

from __future__ import annotations

import json
from typing import Any, NamedTuple


class Conversion(NamedTuple):
    """What a converter finds in a file: titles and texts, or why it failed."""

    titles: tuple[str, ...] = ()
    """What may be the title of the file, best first."""
    texts: tuple[str, ...] = ()
    """The text of each page, or of the whole file."""
    failed: str = ""
    """The reason if there is no text; else empty."""

    def line(self) -> str:
        """Return the conversion as one line of JSON."""
        if self.failed:
            return json.dumps({"failed": self.failed}, ensure_ascii=False)
        content = {"titles": self.titles, "texts": self.texts}
        return json.dumps(content, ensure_ascii=False)


def parse_conversion(line: str) -> Conversion:
    """Return the conversion in a line.

    Raises:
        ValueError: it is not JSON.
    """
    content: Any = json.loads(line)
    return Conversion(
        titles=tuple(content.get("titles", ())),
        texts=tuple(content.get("texts", ())),
        failed=content.get("failed", ""),
    )

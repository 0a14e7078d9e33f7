"""Where progress is shown: in a terminal and in a notebook, on standard error."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from harness.console.printing import console_of
from harness.console.progress import Progress
from harness.running.options import Watch


@contextmanager
def progress_shown(wanted: bool | None) -> Iterator[Watch]:
    """Yield what shows progress; None: where somebody sees it, in a terminal or a notebook."""
    notebook = "ipykernel" in sys.modules
    seen = sys.stderr.isatty() or notebook
    with Progress(console_of(stderr=True), quiet=not (seen if wanted is None else wanted), line=notebook) as shown:
        yield shown.watch

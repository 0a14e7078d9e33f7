"""Whatever a retriever raises is its own failure, told with the line of the code where it arose."""

from __future__ import annotations

import sysconfig
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType

from retrievers.errors import BackendError, HarnessError

OURS = Path(__file__).parent


@contextmanager
def faults_of(parts: Iterable[object]) -> Iterator[None]:
    """Turn whatever a retriever raises into its own failure, so that others go on: only Ctrl-C passes, and our errors.

    Args:
        parts: what the retriever is made of; a class or an object, or the name of the user's function.

    Raises:
        BackendError: names what is not ours among the parts, and the line of the user's code where it failed.
    """
    try:
        yield
    except (HarnessError, KeyboardInterrupt):
        raise
    except BaseException as failure:  # SystemExit too: nobody's code ends the program
        names = " or ".join(name for part in parts if part is not None and (name := _foreign(part)))
        said = " ".join("".join(traceback.format_exception_only(failure)).split())[:300]
        place = _place(failure.__traceback__, ours=not names)
        raise BackendError(": ".join(filter(None, [names, said])) + (f" ({place})" if place else "")) from failure


def _foreign(part: object) -> str:
    """What a part is called that is not ours; "" for one of ours."""
    if isinstance(part, str):
        return part
    cls = part if isinstance(part, type) else type(part)
    return "" if cls.__module__.partition(".")[0] == OURS.name else cls.__name__


def _place(trace: TracebackType | None, *, ours: bool) -> str:
    """The last line that ran of the user's own files, else of other packages, else of `ours` if it is to be told."""
    packages, python = sysconfig.get_path("purelib"), sysconfig.get_path("stdlib")
    frames = [(Path(frame.filename), frame.lineno) for frame in traceback.extract_tb(trace)]
    others = [one for one in frames if one[0].is_file() and not one[0].is_relative_to(OURS)]
    installed = [one for one in others if one[0].is_relative_to(packages) or not one[0].is_relative_to(python)]
    own = [one for one in installed if not one[0].is_relative_to(packages)]
    for some in (own, installed, frames if ours else []):
        if some:
            file, line = some[-1]
            return f"{file.name}:{line}"
    return ""

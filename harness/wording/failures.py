"""The sentence of a failed retriever."""

from collections.abc import Iterable, Sequence

from harness.english import names_or_count

MAX_REASON_LENGTH = 100
"""Characters of the reason in a headline."""
MAX_SHORT_LENGTH = 50
"""Characters of the line of an index."""
MAX_SHORT_NAME = 20
"""Characters of a retriever's name in that line."""


def failure_line(retriever: str, reason: str) -> str:
    """Return which retriever failed, and why.

    >>> failure_line("ours", "connection refused")
    'ours: connection refused'
    """
    return f"{retriever}: {reason}"


def failure_lines(reasons: Iterable[tuple[str, str]], run: str = "") -> list[str]:
    """Return a line for each failed retriever.

    Args:
        reasons: retrievers with the reason of each.
        run: the name of their run, if there are several.
    """
    prefix = f"{run}: " if run else ""
    return [
        f"{prefix}{failure_line(retriever, reason)}" for retriever, reason in reasons
    ]


def failure_summary(reasons: Iterable[tuple[str, str]]) -> str:
    """Return which retrievers failed, with the first reason, in one line.

    >>> failure_summary([("ours", "connection refused")])
    'ours failed (connection refused)'
    >>> failure_summary([("ours", "refused"), ("hybrid", skipped_reason(["ours"]))])
    'ours and hybrid failed (refused)'
    """
    (first, reason), *others = reasons
    failed = names_or_count([first, *(retriever for retriever, _ in others)], 3)
    return f"{failed} failed ({_brief_reason(first, reason, MAX_REASON_LENGTH)})"


def short_failure(reasons: Iterable[tuple[str, str]]) -> str:
    """Return the same for a line that begins with the word "failed".

    >>> short_failure([("ours", "connection refused"), ("hybrid", "…")])
    'ours (connection refused) and 1 more'
    """
    (first, reason), *others = reasons
    further = f" and {len(others)} more" if others else ""
    retriever = first[:MAX_SHORT_NAME]
    room = MAX_SHORT_LENGTH - len(retriever) - len(further) - len(" ()")
    return f"{retriever} ({_brief_reason(first, reason, room)}){further}"


def _brief_reason(retriever: str, reason: str, room: int) -> str:
    """Return the first clause of a reason, cut to a room.

    It is without the retriever's name and without what to do about it.

    >>> _brief_reason("ours", "ours: refused; is it running?", 20)
    'refused'
    """
    clause = reason.partition("\n")[0].removeprefix(f"{retriever}: ")
    clause = clause.partition(";")[0].rstrip(".")
    return clause if len(clause) <= room else f"{clause[: room - 1].rstrip()}…"


def skipped_reason(parts: Sequence[str]) -> str:
    """Return why a retriever did not run whose parts failed.

    >>> skipped_reason(["minilm"])
    'skipped, because minilm failed'
    """
    return f"skipped, because {names_or_count(parts)} failed"

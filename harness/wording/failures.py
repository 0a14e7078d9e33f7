"""The sentence of a failed retriever."""

from collections.abc import Iterable, Sequence

from harness.english import names_or_count
from harness.records import RetrieverFailure

MAX_REASON_LENGTH = 100
"""Characters of the reason in a headline."""
MAX_SHORT_LENGTH = 50
"""Characters of a run's line in the page that lists runs."""
MAX_SHORT_NAME = 20
"""Characters of a retriever's name in that line."""


def failure_line(retriever: str, reason: str) -> str:
    """Return which retriever failed, and why.

    >>> failure_line("ours", "connection refused")
    'ours: connection refused'
    """
    return f"{retriever}: {reason}"


def failure_lines(failures: Iterable[RetrieverFailure], run: str = "") -> list[str]:
    """Return a line for each failed retriever.

    Args:
        failures: retrievers with the reason of each.
        run: the name of their run, if there are several.
    """
    prefix = f"{run}: " if run else ""
    return [
        f"{prefix}{failure_line(failure.retriever, failure.reason)}"
        for failure in failures
    ]


def failure_summary(failures: Iterable[RetrieverFailure]) -> str:
    """Return which retrievers failed, one at least, with the first one's reason.

    The first is that of the experiment, even if it only uses one that failed.

    >>> first = RetrieverFailure("ours", "connection refused")
    >>> failure_summary([first])
    'ours failed (connection refused)'
    >>> failure_summary([first, RetrieverFailure("hybrid", skipped_reason(["ours"]))])
    'ours and hybrid failed (connection refused)'
    """
    first, *others = failures
    retrievers = [first.retriever, *(other.retriever for other in others)]
    failed = names_or_count(retrievers, 3)
    return f"{failed} failed ({_brief_reason(first, MAX_REASON_LENGTH)})"


def short_failure(failures: Iterable[RetrieverFailure]) -> str:
    """Return the first that failed, its reason, and how many more; one at least.

    The text stands behind the word "failed".

    >>> first = RetrieverFailure("ours", "connection refused")
    >>> short_failure([first, RetrieverFailure("hybrid", "…")])
    'ours (connection refused) and 1 more'
    """
    first, *others = failures
    further = f" and {len(others)} more" if others else ""
    retriever = first.retriever[:MAX_SHORT_NAME]
    room = MAX_SHORT_LENGTH - len(retriever) - len(further) - len(" ()")
    return f"{retriever} ({_brief_reason(first, room)}){further}"


def _brief_reason(failure: RetrieverFailure, room: int) -> str:
    """Return the first clause of a reason, cut to a room.

    It is without the retriever's name and without what to do about it.

    >>> _brief_reason(RetrieverFailure("ours", "ours: refused; is it running?"), 20)
    'refused'
    >>> _brief_reason(RetrieverFailure("ours", "500 (3 tries; set patience)"), 20)
    '500'
    """
    first_line = failure.reason.partition("\n")[0]
    clause = first_line.removeprefix(f"{failure.retriever}: ")
    clause = _without_open_bracket(clause.partition(";")[0].rstrip("."))
    if len(clause) <= room:
        return clause
    return f"{_without_open_bracket(clause[: room - 1].rstrip())}…"


def _without_open_bracket(clause: str) -> str:
    """Return the start of a clause up to a bracket that is not closed.

    >>> _without_open_bracket("500 (busy) (tried 3 times"), _without_open_bracket("(a)")
    ('500 (busy)', '(a)')
    """
    while clause.count("(") > clause.count(")"):
        clause = clause.rpartition("(")[0].rstrip()
    return clause


def skipped_reason(parts: Sequence[str]) -> str:
    """Return why a retriever did not run whose parts failed.

    >>> skipped_reason(["minilm"])
    'skipped, because minilm failed'
    """
    return f"skipped, because {names_or_count(parts)} failed"

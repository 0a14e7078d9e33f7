"""The sentence of a failed retriever."""

from collections.abc import Iterable, Sequence

from harness.english import names_or_count
from harness.records import RetrieverFailure

SKIPPED = "skipped, because"
"""How the reason of a retriever starts whose parts failed; results folders have it."""
MAX_REASON_LENGTH = 100
"""Characters of the reason in a headline."""
MAX_SHORT_LENGTH = 50
"""Characters of a failure in the page that lists runs."""
MAX_SHORT_NAME = 20
"""Characters of a retriever's name in that line."""


def failure_line(retriever: str, reason: str) -> str:
    """Return which retriever failed, and why.

    A reason that begins with the name of a service, even the same, stays as it is.

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
    """Return which retrievers failed, one at least, with the reason of the first.

    One that was skipped is not the first, wherever it stands.

    >>> ours = RetrieverFailure("ours", "connection refused")
    >>> failure_summary([ours])
    'ours failed (connection refused)'
    >>> failure_summary([RetrieverFailure("hybrid", skipped_reason(["ours"])), ours])
    'hybrid and ours failed (connection refused)'
    """
    all_failures = tuple(failures)
    retrievers = [failure.retriever for failure in all_failures]
    reason = _brief_reason(_first_cause(all_failures), MAX_REASON_LENGTH)
    return f"{names_or_count(retrievers, 3)} failed{_in_brackets(reason)}"


def short_failure(failures: Iterable[RetrieverFailure]) -> str:
    """Return the first that failed, its reason, and how many more; one at least.

    One that was skipped is not the first. The text stands behind the word "failed".

    >>> ours = RetrieverFailure("ours", "connection refused")
    >>> short_failure([RetrieverFailure("hybrid", skipped_reason(["ours"])), ours])
    'ours (connection refused) and 1 more'
    """
    all_failures = tuple(failures)
    first = _first_cause(all_failures)
    further = f" and {len(all_failures) - 1} more" if len(all_failures) > 1 else ""
    retriever = first.retriever[:MAX_SHORT_NAME]
    room = MAX_SHORT_LENGTH - len(retriever) - len(further) - len(" ()")
    return f"{retriever}{_in_brackets(_brief_reason(first, room))}{further}"


def _in_brackets(reason: str) -> str:
    return f" ({reason})" if reason else ""


def _first_cause(failures: Sequence[RetrieverFailure]) -> RetrieverFailure:
    """Return the first that failed by itself; the first if all were skipped."""
    for failure in failures:
        if not failure.reason.startswith(SKIPPED):
            return failure
    return failures[0]


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

    All of it, if it begins with that bracket.

    >>> _without_open_bracket("500 (busy) (tried 3 times"), _without_open_bracket("(a)")
    ('500 (busy)', '(a)')
    """
    start = clause
    while start.count("(") > start.count(")"):
        start = start.rpartition("(")[0].rstrip()
    return start or clause


def skipped_reason(parts: Sequence[str]) -> str:
    """Return why a retriever did not run whose parts failed.

    >>> skipped_reason(["minilm"])
    'skipped, because minilm failed'
    """
    return f"{SKIPPED} {names_or_count(parts)} failed"

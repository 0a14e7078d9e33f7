"""Requests to a judge that have no reply yet."""

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from harness.answers.judge import JudgeReplies
from retrievers.errors import UnreadableReplies

ReplyType = TypeVar("ReplyType")
RequestType = TypeVar("RequestType")


def ask_missing(
    requests: Iterable[RequestType],
    is_known: Callable[[RequestType], bool],
    ask: Callable[[Sequence[RequestType]], JudgeReplies[ReplyType]],
) -> dict[RequestType, ReplyType | None]:
    """Ask once for each distinct request that is not known.

    Returns:
        Only the requests that were not known, in their order, with their replies; None
        if a reply is unreadable or missing.

    Raises:
        UnreadableReplies: the judge stopped because its first replies were all
            unreadable, and none of these requests was known.

    >>> from harness.answers.judge import IndexedReply
    >>> def shout(requests):
    ...     for index, text in enumerate(requests):
    ...         yield IndexedReply(index, text.upper())
    >>> ask_missing(["a", "b", "a"], {"b"}.__contains__, shout)
    {'a': 'A'}
    """
    distinct = list(dict.fromkeys(requests))
    missing = [request for request in distinct if not is_known(request)]
    replies: dict[int, ReplyType | None] = {}
    try:
        if missing:
            for index, reply in ask(missing):
                replies[index] = reply  # noqa: PERF403 - kept if a later one raises
    except UnreadableReplies:
        # Other requests have replies, so the judge works: these stay None.
        if len(missing) == len(distinct):
            raise
    return {request: replies.get(index) for index, request in enumerate(missing)}
